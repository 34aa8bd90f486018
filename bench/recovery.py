"""Faults put in on purpose, by the thousand: how many the scripted policy finds, tells apart and mends, and what that costs.

    python -m bench.recovery [--faults 1000] [--work DIR] [--per-run 4] [--projects 12] [--real DIR] [--first 0] [--jobs 2] [--json FILE]
    python -m bench.recovery --gate

Makes small narrated films (and takes pieces of real ones from ``--real``), recovers a storyboard from each with the real inversion,
produces each film once with the real tools, then runs it again from the point where drawn faults strike (repair.injection). Everything
that was not spoiled comes out of the content store, so a fault costs its tainted artifacts. Results go to ``DIR/results.N.jsonl``, one
run a line; a bench that was stopped goes on there. Prints Markdown tables. ``--gate`` is small, in a folder of its own, and fails below
97 % recovered: with so few faults one more or less is a percent. (Over 500 lines, for the texts of its films are among them.)
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import wave
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from inversion.invert import invert
from jobs.config import WorkprintConfig
from media.command import Sandbox
from media.ffmpeg import house_audio, house_video, run_ffmpeg
from media.ocr import RapidReader
from media.sandbox import open_sandbox
from repair.config import FaultConfig
from repair.diagnose import ScriptedCritic
from repair.fault_kinds import KINDS
from repair.injection import Injected, inject
from repair.inspect import open_defects
from repair.links import link
from repair.outcomes import artifacts_of, needless, outcomes
from repair.registry import full_registry
from repair.taxonomy import MEND_ORDER
from replay.build_engines import build_engines
from replay.episode import run_episode
from replay.policies.base import Policy
from replay.policies.scripted import ScriptedPolicy
from replay.pool import cut_pool
from replay.runtime import Runtime
from replay.speech import FliteSpeech
from replay.suite import Suite
from replay.task import build_task
from schemas.errors import ConfigInvalid, PipelineError
from schemas.media import SourceItem
from schemas.stage import Rejected
from schemas.storyboard import Storyboard
from schemas.trajectory import Outcome, RoleContext, RoleOutput, Trajectory
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore

SEEDS = (0, 1, 2)
"""Base runs of every project, each with other habits of the policy."""

CONFIG = WorkprintConfig.model_validate(
    {
        "inversion": {"asr": {"model": "whisper-tiny-en", "cpu_threads": 2}},
        "replay": {
            "budget": 40,
            "speech": {"engine": "flite"},
            "retrieval": {"embedder": "hashing"},
            "render": {"height": 180, "frame_rate": 15, "preset": "ultrafast"},
            "policy": {"mistake_rate": 0.0},
        },
    }
)

TOPICS: dict[str, tuple[tuple[str, str | None], ...]] = {
    "Tides": (
        ("The moon pulls the sea towards it twice a day.", None),
        ("High water comes every twelve hours and twenty five minutes.", "12 h 25 min"),
        ("In a narrow bay the water can rise by sixteen metres.", None),
        ("So a harbour must be built for both levels.", None),
        ("Sailors carry a table of the tides with them.", "Tide table"),
    ),
    "Bread": (
        ("Bread needs only flour, water, salt and time.", "Flour Water Salt"),
        ("Yeast eats the sugar and blows the dough up.", None),
        ("After two hours the dough has twice its size.", None),
        ("The oven must be as hot as it will go.", "250 degrees"),
        ("Let the loaf cool before anyone cuts it.", None),
    ),
    "Locks": (
        ("A canal climbs a hill with the help of locks.", None),
        ("The gates close, and the water lifts the boat.", None),
        ("Leonardo drew the pointed gate that is still in use.", "Mitre gate"),
        ("One passage takes about fifteen minutes.", "15 minutes"),
        ("Every passage costs a whole basin of water.", None),
    ),
    "Maps": (
        ("No flat map can show the round earth truly.", None),
        ("Mercator kept the angles and gave up the areas.", "Mercator 1569"),
        ("Greenland looks as large as Africa on his map.", None),
        ("Africa is in fact fourteen times larger.", "14 times larger"),
        ("Choose the map for the question you have.", None),
    ),
    "Glass": (
        ("Glass is sand that was melted with soda and lime.", "Sand Soda Lime"),
        ("It gets soft slowly and has no melting point.", None),
        ("A blower turns the pipe so that nothing sags.", None),
        ("Window glass floats on a bath of liquid tin.", "Float glass"),
        ("Cooled too fast it would burst into pieces.", None),
    ),
    "Bees": (
        ("A bee tells the others where the flowers are.", None),
        ("She dances a figure of eight on the comb.", "The dance"),
        ("The angle of the dance is the angle to the sun.", None),
        ("The length of it tells the distance.", None),
        ("Forty thousand bees live in one hive.", "40000 bees"),
    ),
    "Steel": (
        ("Iron with a little carbon in it is called steel.", None),
        ("Too much carbon makes it brittle.", "Less than 2 percent"),
        ("Bessemer blew air through the melted iron.", None),
        ("Twenty minutes did the work of a whole day.", "20 minutes"),
        ("Rails and bridges became cheap at once.", None),
    ),
    "Clocks": (
        ("A clock counts something that repeats.", None),
        ("A pendulum of one metre swings once a second.", "1 metre"),
        ("Quartz swings more than thirty thousand times.", "32768 hertz"),
        ("Atoms swing so fast that no wheel could follow.", None),
        ("Ships once carried clocks to know where they were.", None),
    ),
    "Salt": (
        ("Salt was so dear that wars were fought for it.", None),
        ("The sea holds thirty five grams in every litre.", "35 grams a litre"),
        ("Shallow basins let the sun do the work.", None),
        ("In the mountains it is washed out of the rock.", None),
        ("Roman soldiers are said to have been paid in it.", "Salary"),
    ),
    "Rails": (
        ("The first trains ran on wooden rails.", None),
        ("Iron wheels on iron rails waste hardly any force.", None),
        ("The usual width is one metre and forty three.", "1435 mm"),
        ("Russia chose a wider track for itself.", "1520 mm"),
        ("At the border the wheels have to be changed.", None),
    ),
    "Paper": (
        ("Paper was invented in China from bark and rags.", "China 105"),
        ("The fibres swim in water and settle on a sieve.", None),
        ("Prisoners of war carried the secret to the west.", None),
        ("Wood made paper cheap a long time later.", None),
        ("A tree gives about ten thousand sheets.", "10000 sheets"),
    ),
    "Wind": (
        ("Wind is air on its way from high to low pressure.", None),
        ("The turning of the earth bends its path.", "Coriolis"),
        ("A mill takes at most three fifths of its force.", "59 percent"),
        ("Long wings turn slowly and still move fast outside.", None),
        ("At sea it blows more steadily than on land.", None),
    ),
}  # fmt: skip
"""Narration of the made films, sentence by sentence, with the words of a card where one is shown."""

PIECES = (
    ("narrated/physicsworks_lecture_en.webm", 64, 22),
    ("narrated/proving-it-works_en.mp4", 3, 22),
    ("constructed/printing_en.mp4", 0, 24),
)
"""Pieces of real films: file under ``--real``, start and length in seconds."""

PICTURES = (
    "testsrc2=s=320x180:r=15,hue=h={h}",
    "mandelbrot=s=320x180:r=15:start_scale={f}:end_scale=0.05",
    "life=s=320x180:r=15:mold=10:ratio=0.3:seed={h}:death_color=#a03030:life_color=#30ff80,hue=h={h}",
    "gradients=s=320x180:r=15:speed=0.05:seed={h}:c0=blue:c1=orange",
    "testsrc2=s=320x180:r=15,negate,hue=h={h},vflip",
)


def films(work: Path, count: int, real: Path | None, sandbox: Sandbox) -> Iterator[tuple[str, Path]]:
    """Name and file of every source film, made where it is not there yet."""
    folder = work / "films"
    folder.mkdir(parents=True, exist_ok=True)
    for number, (name, lines) in enumerate(list(TOPICS.items())[:count]):
        path = folder / f"{name.lower()}.mp4"
        if not path.exists():
            _make(path, number, lines, sandbox)
        yield name, path
    for file, start, length in PIECES if real is not None else ():
        source = (real or Path()) / file
        path = folder / f"{source.stem}.mp4"
        if source.exists() and not path.exists():
            cut = ("-ss", str(start), "-i", "/in/film", "-t", str(length), "-vf", "scale=320:-2,fps=15", *house_video(23, "ultrafast"))
            with tempfile.TemporaryDirectory() as box:
                run_ffmpeg(
                    (*cut, *house_audio(), "/out/f.mp4"), inputs={"film": source}, outputs=("f.mp4",), sandbox=sandbox, workdir=Path(box)
                )
                (Path(box) / "f.mp4").rename(path)
        if path.exists():
            yield source.stem, path


def _make(path: Path, number: int, lines: tuple[tuple[str, str | None], ...], sandbox: Sandbox) -> None:
    """A narrated film of one shot a line."""
    voice = FliteSpeech(sandbox)
    sound: list[Any] = []
    with tempfile.TemporaryDirectory() as box:
        inputs: dict[str, Path] = {}
        for n, (text, card) in enumerate(lines):
            samples, rate = voice.speak(text, "en", ("slt", "awb", "rms")[number % 3], 1.0)
            frames = round((len(samples) / rate + 0.6) * 15)
            padded = np.zeros(frames * rate // 15, np.float32)
            padded[rate // 5 : rate // 5 + len(samples)] = samples[: len(padded) - rate // 5]
            sound.append(padded)
            picture = PICTURES[(n + number) % len(PICTURES)].format(h=(n * 70 + number * 31) % 360, f=2 + n)
            words = {}
            if card is not None:
                text_at = "fontcolor=white:fontsize=34:x=(w-tw)/2:y=(h-th)/2"
                picture = f"color=c=0x142850:s=320x180:r=15,drawtext=textfile=/in/card.txt:expansion=none:{text_at}"
                words = {"card.txt": card.encode()}
            argv = ("-f", "lavfi", "-i", picture, "-frames:v", str(frames), *house_video(20, "ultrafast"), f"/out/{n}.mp4")
            run_ffmpeg(argv, texts=words, outputs=(f"{n}.mp4",), sandbox=sandbox, workdir=Path(box))
            inputs[f"{n}.mp4"] = Path(box) / f"{n}.mp4"
        with wave.open(str(Path(box) / "s.wav"), "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(16_000)
            out.writeframes((np.concatenate(sound) * 32767).astype("<i2").tobytes())
        names = [a for n in range(len(lines)) for a in ("-i", f"/in/{n}.mp4")]
        joined = "".join(f"[{n}:v]" for n in range(len(lines))) + f"concat=n={len(lines)}:v=1:a=0[v]"
        argv = (
            *names,
            "-i",
            "/in/s.wav",
            "-filter_complex",
            joined,
            "-map",
            "[v]",
            "-map",
            f"{len(lines)}:a",
            *house_video(20, "ultrafast"),
            *house_audio(),
            "/out/f.mp4",
        )
        run_ffmpeg(argv, inputs={**inputs, "s.wav": Path(box) / "s.wav"}, outputs=("f.mp4",), sandbox=sandbox, workdir=Path(box))
        (Path(box) / "f.mp4").rename(path)


class Timed:
    """A policy that notes when it was asked; between two questions lies the work of one call."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.name, self.seed = policy.name, policy.seed
        self.asked: dict[int, float] = {}

    def act(self, context: RoleContext) -> RoleOutput:
        """The policy's answer."""
        self.asked[context.call_index] = time.perf_counter()
        return self._policy.act(context)

    def seconds(self, first: int, end: int) -> float:
        """Wall seconds of the calls ``[first, end)``."""
        later = [at for index, at in self.asked.items() if index >= end]
        return min(later, default=time.perf_counter()) - self.asked[first]


@dataclass
class Project:
    """One storyboard, produced once without faults for every seed."""

    name: str
    board: Storyboard
    suite: Suite
    bases: dict[int, Trajectory] = field(default_factory=dict)


def open_project(
    name: str, path: Path, store: ArtifactStore, engines: Any, sandbox: Sandbox, work: Path, *, tell: bool = False
) -> Project | None:
    """Invert a film and produce it; None when it is not admitted. Kept in the work folder."""
    kept = work / "boards" / f"{name}.json"
    kept.parent.mkdir(exist_ok=True)
    if not kept.exists():
        item = SourceItem(uri=path.name, title=name, licence="CC0-1.0")
        made = invert(item, path, CONFIG.inversion, sandbox=sandbox, store=store, reader=RapidReader(), note=lambda _t: None)
        if isinstance(made, Rejected):
            print(f"{name}: not admitted: {made.code.value} {made.detail}", flush=True)
            return None
        kept.write_bytes(made.output.canonical())
    board = Storyboard.model_validate_json(kept.read_bytes())
    scratch = work / "scratch"
    scratch.mkdir(exist_ok=True)
    suite = Suite(store, SnapshotStore(store), sandbox, engines, CONFIG.replay, scratch)
    project = Project(name, board, suite)
    registry = full_registry()
    for seed in SEEDS:
        file = work / "boards" / f"{name}.{seed}.json"
        if not file.exists():
            pool = cut_pool(board, path, sandbox=sandbox, store=store, config=CONFIG.replay, note=lambda _t: None)
            task = build_task(board, pool, CONFIG.replay, engines, registry.digest())
            made_run = run_episode(Runtime(task, registry, suite), policy_of(board, seed), link=link)
            file.write_bytes(made_run.canonical())
        base = Trajectory.model_validate_json(file.read_bytes())
        if base.outcome is Outcome.DELIVERED:
            project.bases[seed] = base
    spots = sum(1 for s in board.shots if s.spotlight is not None)
    if tell:
        print(f"{name}: {len(board.shots)} shots, {spots} graphics, {len(project.bases)} base runs", flush=True)
    return project if project.bases else None


def policy_of(board: Storyboard, seed: int) -> ScriptedPolicy:
    """The scripted policy of a base run."""
    return ScriptedPolicy(board, seed, CONFIG.replay, ScriptedCritic())


def run_one(project: Project, trial: int, per_run: int) -> dict[str, Any]:
    """One injected run as a record."""
    seed = sorted(project.bases)[trial % len(project.bases)]
    base = project.bases[seed]
    timed = Timed(policy_of(project.board, seed))
    started = time.perf_counter()
    record: dict[str, Any] = {"project": project.name, "trial": trial, "seed": seed}
    try:
        done = inject(base, FaultConfig(count=per_run, seed=trial), timed, full_registry(), project.suite)
    except ConfigInvalid as error:
        return {**record, "skipped": error.code}
    except PipelineError as error:
        return {**record, "failed": error.code}
    load = project.suite.snapshots.load
    final, healthy = load(done.trajectory.last_snapshot), load(base.last_snapshot)
    natural = {(d.subject, d.code) for d in open_defects(healthy)} | {
        (d.subject, d.code) for c in base.calls for v in c.verdicts for d in v.defects
    }
    found = outcomes(done.trajectory, final, done.broken_down)
    touched = {f.fault.subject for f in found}
    before, after = artifacts_of(healthy), artifacts_of(final)
    apart = [k for k in before if k.partition(".")[0] not in touched]
    return {
        **record,
        "delivered": done.trajectory.outcome is Outcome.DELIVERED,
        "wall_s": round(time.perf_counter() - started, 3),
        "calls": sum(1 for c in done.trajectory.calls if c.call_index == c.orchestrator_call),
        "base_calls": sum(1 for c in base.calls if c.call_index == c.orchestrator_call),
        "needless": needless(done.trajectory, natural),
        "untainted": len(apart),
        "kept": sum(1 for k in apart if before[k] == after.get(k)),
        "lost": [k for k in apart if before[k] != after.get(k)],
        "repairs": _repairs(done, timed),
        "costs": _costs(done),
        "faults": [
            {
                "kind": f.fault.kind,
                "level": f.level,
                "subject": f.fault.subject,
                "code": f.code,
                "found": f.call_found is not None or f.level == "infrastructure",
                "located": f.located,
                "diagnosed": f.diagnosed,
                "mends": list(f.mends),
                "recovered": f.recovered,
            }
            for f in found
        ],
    }


def _repairs(done: Injected, timed: Timed) -> list[dict[str, Any]]:
    """Every round of repair: from the repair call to its verification, with the mends it held, its calls and seconds."""
    calls = done.trajectory.calls
    rounds: dict[int, int] = {}
    mends: Counter[int] = Counter()
    for one in done.trajectory.repairs:
        if one.call_mended < done.kept_calls:
            continue
        first = calls[one.call_mended].orchestrator_call
        rounds[first] = max(rounds.get(first, 0), one.call_verified if one.call_verified is not None else one.call_mended)
        mends[first] += 1
    return [
        {
            "mends": mends[first],
            "calls": sum(1 for c in calls[first : last + 1] if c.call_index == c.orchestrator_call),
            "s": round(timed.seconds(first, last + 1), 3),
        }
        for first, last in rounds.items()
    ]


def _costs(done: Injected) -> list[dict[str, Any]]:
    """What every mend of an error took: its share of the calls' own time, where one repair held several."""
    links = [r for r in done.trajectory.repairs if r.call_mended >= done.kept_calls and r.outcome == "verified"]
    together = Counter(r.call_mended for r in links)
    return [
        {
            "mend": r.diagnosis.mend.value,
            "calls": r.calls_spent,
            "artifacts": r.artifacts_made,
            "s": sum(done.spent_us.get(i, 0) for i in range(r.call_found + 1, (r.call_verified or r.call_mended) + 1))
            / 1e6
            / together[r.call_mended],
        }
        for r in links
    ]


def table(runs: list[dict[str, Any]]) -> str:
    """The Markdown tables."""
    failed = sum("failed" in r for r in runs)
    runs = [r for r in runs if "faults" in r]
    faults = [f for r in runs for f in r["faults"]]
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for fault in faults:
        by_kind[fault["kind"]].append(fault)
    rounds = [one for r in runs for one in r["repairs"]]
    mends = sum(one["mends"] for one in rounds)
    more = sum(r["calls"] - r["base_calls"] for r in runs) / max(1, len(faults))
    seconds = sum(o["s"] for o in rounds) / max(1, mends)

    def share(rows: list[dict[str, Any]], key: str) -> str:
        return f"{100 * sum(bool(r[key]) for r in rows) / len(rows):.1f} %" if rows else "-"

    lines = [
        "| what | |",
        "| --- | --- |",
        f"| faults that struck, runs, projects | {len(faults)}, {len(runs)}, {len({r['project'] for r in runs})} |",
        f"| recovered | {share(faults, 'recovered')} ({sum(f['recovered'] for f in faults)} of {len(faults)}) |",
        f"| found; on the right shot and artifact | {share(faults, 'found')}; {share(faults, 'located')} |",
        f"| cause told right | {share(faults, 'diagnosed')} |",
        f"| needless repairs, of all mends | {sum(r['needless'] for r in runs)} of {mends} |",
        f"| films delivered; runs that broke down for reasons of ours | {share(runs, 'delivered')}; {failed} |",
        f"| untainted artifacts kept | {sum(r['kept'] for r in runs)} of {sum(r['untainted'] for r in runs)} |",
        f"| calls a mend (repair, remaking, verification) | {sum(o['calls'] for o in rounds) / max(1, mends):.2f} |",
        f"| seconds a mend | {seconds:.2f} (median of a round {median([o['s'] for o in rounds] or [0]):.2f}) |",
        f"| more orchestrator calls than without faults, a fault | {more:.2f} |",
        f"| wall seconds a run | {sum(r['wall_s'] for r in runs) / max(1, len(runs)):.1f} |",
        "",
        "| fault | struck | found | located | cause | recovered | found as | mended by |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for kind in KINDS:
        rows = by_kind.get(kind, [])
        if rows:
            codes = Counter(r["code"] or "-" for r in rows).most_common(2)
            means = Counter(m for r in rows for m in r["mends"]).most_common(2)
            cells = [f"`{kind}`", str(len(rows)), *(share(rows, k) for k in ("found", "located", "diagnosed", "recovered"))]
            lines.append("| " + " | ".join([*cells, ", ".join(c for c, _ in codes), ", ".join(m for m, _ in means) or "-"]) + " |")
    lines += [
        "",
        "| mend, cheapest first | verified | calls | artifacts | seconds (mean) | median |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    costs = [c for r in runs for c in r["costs"]]
    for mend in MEND_ORDER:
        own = [c for c in costs if c["mend"] == mend.value]
        if own:
            calls, made, s = (sum(c[k] for c in own) / len(own) for k in ("calls", "artifacts", "s"))
            lines.append(f"| `{mend.value}` | {len(own)} | {calls:.2f} | {made:.2f} | {s:.2f} | {median(c['s'] for c in own):.2f} |")
    return "\n".join(lines)


def work_off(args: argparse.Namespace, worker: int) -> list[dict[str, Any]]:
    """Every ``--jobs``-th run from the worker's own on, until its share of the faults struck; each line is written when its run is done."""
    sandbox = open_sandbox()
    store = ArtifactStore(args.work / "artifacts")
    engines = build_engines(CONFIG.replay, sandbox)
    opened = [open_project(n, p, store, engines, sandbox, args.work) for n, p in films(args.work, args.projects, args.real, sandbox)]
    projects = [p for p in opened if p is not None]
    log = args.work / f"results.{worker}.jsonl"
    runs = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    known = {(r["project"], r["trial"]) for r in runs}
    struck = sum(len(r.get("faults", ())) for r in runs)
    trial = args.first + worker
    with log.open("a") as out:
        while struck * args.jobs < args.faults and projects:
            project = projects[(trial // args.jobs) % len(projects)]
            if (project.name, trial) not in known:
                record = run_one(project, trial, args.per_run)
                out.write(json.dumps(record) + "\n")
                out.flush()
                runs.append(record)
                struck += len(record.get("faults", ()))
                if len(runs) % 50 == 0:
                    print(f"worker {worker}: {struck} faults in {len(runs)} runs", flush=True)
            trial += args.jobs
    return runs


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=1000, help="stop after so many faults struck")
    parser.add_argument("--per-run", type=int, default=4)
    parser.add_argument("--projects", type=int, default=len(TOPICS))
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "workprint-bench-repair")
    parser.add_argument("--real", type=Path, help="folder with the pieces of real films")
    parser.add_argument("--first", type=int, default=0, help="number of the first run: seed of its faults")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--gate", action="store_true", help="36 runs over two projects, so that every kind of fault is drawn about 4 times")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.gate:
        args.faults, args.projects, args.work = 110, 2, args.work.with_name(args.work.name + "-gate")
    args.work.mkdir(parents=True, exist_ok=True)
    sandbox = open_sandbox()
    first = [
        open_project(n, p, ArtifactStore(args.work / "artifacts"), build_engines(CONFIG.replay, sandbox), sandbox, args.work, tell=True)
        for n, p in films(args.work, args.projects, args.real, sandbox)
    ]  # made once, before the workers look at them
    if not any(first):
        sys.exit("no film was admitted")
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        runs = [r for part in pool.map(work_off, [args] * args.jobs, range(args.jobs)) for r in part]
    print(table(runs))
    if args.json is not None:
        args.json.write_text(json.dumps(runs, indent=1))
    faults = [f for r in runs for f in r.get("faults", ())]
    if args.gate and sum(f["recovered"] for f in faults) < 0.97 * len(faults):
        sys.exit("fewer than 97 % recovered")


if __name__ == "__main__":
    main()
