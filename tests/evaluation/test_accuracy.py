"""What counts as right, on small cases with values worked out by hand; and whole inversions of two made films against loose floors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from evaluation.accuracy import (
    Boundary,
    Score,
    confusion,
    distance,
    found_boundaries,
    greedy_shots,
    match_words,
    plain,
    score_alignment,
    score_boundaries,
    score_film,
    score_screen,
    score_words,
)
from evaluation.studio.make import FILM, Order, make_film
from evaluation.studio.truth import (
    FilmTruth,
    TrueJoin,
    TrueLine,
    TrueSentence,
    TrueShot,
    TrueSpotlight,
    TrueWord,
)
from inversion.config import AsrConfig, EvidenceConfig, InversionConfig
from inversion.invert import invert
from media.ocr import RapidReader
from media.sandbox import open_sandbox
from schemas.media import SourceItem
from schemas.stage import Done
from schemas.storyboard import SpotlightKind, Storyboard
from storage.artifacts import ArtifactStore
from tests.evaluation.test_studio import parts_or_skip

S = 1_000_000


def join(kind: str, at: int, reach: int = 0) -> TrueJoin:
    return TrueJoin.model_validate(
        {
            "kind": kind,
            "at_us": at * 40_000,
            "start_us": (at - reach) * 40_000,
            "end_us": (at + reach) * 40_000,
            "at_frame": at,
            "start_frame": at - reach,
            "end_frame": at + reach,
        }
    )


@pytest.mark.parametrize(
    ("joins", "found", "counts"),
    [
        ([join("cut", 50)], [Boundary(51, 51, "cut")], {"cut hit": 1, "cut named": 1}),
        ([join("cut", 50)], [Boundary(52, 52, "cut")], {"cut missed": 1, "cut false": 1}),
        ([join("cut", 50), join("cut", 51)], [Boundary(50, 50, "cut")], {"cut hit": 1, "cut named": 1, "cut missed": 1}),
        ([join("cut", 50)], [Boundary(40, 60, "dissolve")], {"cut missed": 1, "gradual false": 1}),
        ([join("dissolve", 50, 8)], [Boundary(55, 62, "dissolve")], {"gradual hit": 1, "gradual named": 1}),
        ([join("dissolve", 50, 8)], [Boundary(47, 47, "cut"), Boundary(54, 54, "cut")], {"gradual hit": 1, "cut false": 1}),
        ([join("fade_black", 50, 8)], [Boundary(45, 55, "dissolve")], {"gradual hit": 1}),
        ([join("wipe", 50, 8)], [Boundary(50, 50, "cut")], {"slide hit": 1}),
        ([], [Boundary(9, 9), Boundary(20, 25)], {"cut false": 1, "gradual false": 1}),
    ],
)
def test_boundaries_are_counted(joins: list[TrueJoin], found: list[Boundary], counts: dict[str, int]) -> None:
    got = score_boundaries(joins, found).counts
    assert {k: v for k, v in got.items() if v} == counts


def test_f1_and_shares_and_quantiles() -> None:
    score = Score()
    score.counts.update({"cut hit": 8, "cut missed": 1, "cut false": 3, "word": 10, "word in its shot": 9})
    score.borders_us = [10, 30, 20, 1000]
    assert score.f1("cut") == pytest.approx(16 / 20)
    assert score.f1("gradual") == 1.0
    assert score.share("word in its shot", "word") == 0.9
    assert (score.quantile_us(0.5), score.quantile_us(0.95)) == (30, 1000)
    assert Score().quantile_us(0.5) == 0


@pytest.mark.parametrize(("a", "b", "count"), [("", "", 0), ("abc", "abc", 0), ("abc", "ac", 1), ("", "xy", 2), ("kitten", "sitting", 3)])
def test_edit_distance(a: str, b: str, count: int) -> None:
    assert distance(a, b) == count


def test_plain_text_forgets_case_width_and_marks() -> None:
    assert plain("“Ｔhe  River”— 4,200°!") == "theriver4200"


def truth(language: str = "en", words: tuple[tuple[str, int, int, int, int], ...] = (), **more: object) -> FilmTruth:
    """A film of two shots of two seconds; words as (text, start, end, sentence, shot)."""
    told = tuple(TrueWord(text=t, start_us=a, end_us=b, sentence=n, shot=shot, space_after=language == "en") for t, a, b, n, shot in words)
    base: dict[str, object] = {
        "seed": 0,
        "kind": "essay",
        "language": language,
        "width": 480,
        "height": 270,
        "rate": 25,
        "vfr": False,
        "frames": 100,
        "duration_us": 4 * S,
        "frame_us": tuple(k * 40_000 for k in range(100)),
        "speech": "none",
        "word_times": "exact",
        "music": None,
        "captions": False,
        "words": told,
        "sentences": (),
        "shots": (shown(0, 2), shown(2, 4)),
        "joins": (join("cut", 50),),
        "flashes": (),
        "credits": (),
        "film_sha256": "0" * 64,
    }
    return FilmTruth.model_validate(base | more)


def shown(start: int, end: int, **more: object) -> TrueShot:
    times = {"start_us": start * S, "end_us": end * S, "start_frame": start * 25, "end_frame": end * 25, "what": "still"}
    return TrueShot.model_validate(times | more)


Board = Callable[..., Storyboard]


@pytest.fixture
def board(tmp_path: Path) -> Board:
    """Storyboards by hand: words as (text, start, end, shot), one sentence for each number in ``sentences``."""
    from schemas.media import MediaInfo
    from schemas.storyboard import Admission, BoardShot, Evidence, KeyFrame, Sentence, Shot, TextBox, Transition, Word, WordTiming

    def make(
        words: tuple[tuple[str, int, int, int], ...] = (), sentences: tuple[int, ...] = (), cut: int = 2 * S, text: tuple[str, ...] = ()
    ) -> Storyboard:
        told = tuple(
            Word.model_construct(index=k, text=t, start_us=a, end_us=b, timing=WordTiming.ALIGNED, sentence=0, shot=shot)
            for k, (t, a, b, shot) in enumerate(words)
        )
        ends = (0, *sentences)
        drafts = tuple(Sentence.model_construct(first_word=a, end_word=b) for a, b in pairwise(ends))
        boxes = tuple(TextBox(text=t, x=40, y=60 + 40 * k, width=200, height=24, confidence=0.99) for k, t in enumerate(text))
        shots = []
        for k, (start, end) in enumerate(((0, cut), (cut, 4 * S))):
            shot = Shot.model_construct(
                index=k, start_us=start, end_us=end, start_frame=start // 40_000, end_frame=end // 40_000,
                transition_in=Transition.CUT if k else Transition.START, transition_start_us=None, transition_end_us=None,
            )  # fmt: skip
            frame = KeyFrame(at_us=start + 500_000, sha256="0" * 64, width=480, height=270)
            evidence = Evidence.model_construct(key_frames=(frame,), text=boxes if k == 0 else (), burned_captions=())
            shots.append(BoardShot.model_construct(shot=shot, evidence=evidence, spotlight=None))
        return Storyboard.model_construct(
            words=told, sentences=drafts, shots=tuple(shots), media=MediaInfo.model_construct(), admission=Admission.model_construct()
        )

    return make


ENGLISH = (("The", 100_000, 300_000, 0, 0), ("river,", 300_000, 900_000, 0, 0), ("Now", 2_100_000, 2_500_000, 1, 1))


def test_words_are_matched_by_their_letters(board: Board) -> None:
    found = board((("the", 140_000, 300_000, 0), ("liver", 300_000, 900_000, 0), ("now.", 2_060_000, 2_500_000, 1)))
    matches, wrong, length = match_words(truth(words=ENGLISH), found)
    assert ([(m.true, m.first) for m in matches], wrong, length) == ([(0, 0), (2, 2)], 1, 3)
    assert score_words(truth(words=ENGLISH), found, matches).borders_us == [40_000, 0, 40_000, 0]


def test_mandarin_words_are_matched_by_their_characters(board: Board) -> None:
    wanted = truth("zh", (("活字", 0, 400_000, 0, 0), ("好。", 400_000, 600_000, 0, 0)))
    found = board((("活", 20_000, 200_000, 0), ("字", 200_000, 430_000, 0), ("坏。", 430_000, 600_000, 0)))
    matches, wrong, length = match_words(wanted, found)
    assert ([(m.true, m.first, m.last) for m in matches], wrong, length) == ([(0, 0, 1)], 1, 3)
    assert score_words(wanted, found, matches).borders_us == [20_000, 30_000]


def test_a_sentence_is_right_when_all_its_words_are_in_the_shots_meant(board: Board) -> None:
    wanted = truth(words=ENGLISH)
    found = board((("the", 0, 300_000, 0), ("river", 300_000, 900_000, 1), ("now", 2_100_000, 2_500_000, 1)), (2, 3))
    matches, _, _ = match_words(wanted, found)
    score = score_alignment(wanted, found, [w.shot for w in found.words], matches)
    assert (score.counts["sentence"], score.counts["sentence over its shots"]) == (2, 1)
    assert (score.counts["word"], score.counts["word in its shot"]) == (3, 2)
    assert greedy_shots(found) == [0, 0, 1]


def test_letters_boxes_kinds_and_key_frames_are_counted(board: Board) -> None:
    line = TrueLine(text="River Trade", x=42, y=62, width=196, height=22, since_us=0, until_us=2 * S, role="card")
    card = shown(0, 2, spotlight=TrueSpotlight(kind=SpotlightKind.TITLE, slots={"title": "River Trade"}), lines=(line,))
    wanted = truth(shots=(card, shown(2, 4)), flashes=({"start_us": 2_400_000, "end_us": 2_600_000},))
    score = score_screen(wanted, board(text=("River Trude",)))
    assert (score.counts["letters"], score.counts["letters wrong"]) == (10, 1)
    assert (score.counts["line"], score.counts["line in its box"]) == (1, 1)
    assert dict(score.kinds) == {("title", "none"): 1, ("none", "none"): 1}
    assert (score.counts["key frame"], score.counts["key frame clear"]) == (2, 1)
    assert confusion(score.kinds) == [("title", {"none": 1}), ("none", {"none": 1})]


def test_gradual_boundaries_are_found_by_their_frames(board: Board) -> None:
    assert found_boundaries(board(cut=2 * S), truth().frame_us) == [Boundary(50, 50, "cut")]


@pytest.mark.parametrize(("seed", "kind", "speech"), [(39, "vfr", "kokoro"), (102, "explainer", "flite")])
def test_made_films_are_inverted_well(seed: int, kind: str, speech: str, tmp_path: Path) -> None:
    """The gate's share of bench/inversion_accuracy.py: two short films, floors well under what is measured there."""
    parts_or_skip("kokoro-model", "kokoro-voices", "fonts-inter", "fonts-noto-sc", "demo-video", "music-library", "whisper-base")
    sandbox = open_sandbox()
    wanted = make_film(Order(seed, kind=kind, seconds=6, speech=speech), tmp_path / "film", sandbox)
    config = InversionConfig(asr=AsrConfig(cpu_threads=1), evidence=EvidenceConfig(ocr_threads=1))
    source = SourceItem(uri="film.mp4", language=wanted.language)
    done = invert(source, tmp_path / "film" / FILM, config, sandbox=sandbox, store=ArtifactStore(tmp_path / "store"), reader=RapidReader(1))
    assert isinstance(done, Done)
    score = score_film(wanted, done.output)
    assert score.f1("cut") >= 0.8
    assert score.share("word in its shot", "word") >= 0.9
    assert score.share("kind right", "kind") >= 0.5
    assert score.counts["spoken word wrong"] <= 0.25 * score.counts["spoken word"]
    assert score.counts["letters wrong"] <= 0.2 * score.counts["letters"]
    if wanted.word_times == "exact":
        assert score.quantile_us(0.5) <= 80_000
    assert isinstance(wanted.sentences[0], TrueSentence)
