"""Assembly: script, tiles, shots, intent; interchange and admission on the result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import opentimelineio as otio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inversion.admission import refuse_item, refuse_media, refuse_storyboard, refuse_transcript
from inversion.config import AdmissionConfig, InversionConfig
from inversion.interchange import from_otio, from_srt, public_json, to_otio, to_srt
from inversion.rows import storyboard_rows
from inversion.storyboard import build_storyboard
from inversion.transcript import SpokenSegment, SpokenWord, Transcript, words_of
from schemas.errors import SchemaMismatch
from schemas.media import AudioStream, MediaInfo, SourceItem, VideoStream
from schemas.stage import RejectCode
from schemas.storyboard import Evidence, KeyFrame, Spotlight, SpotlightKind, Storyboard, TextBox, Transition, WordTiming
from schemas.tables import TABLE
from schemas.time import Rate, Span


@dataclass(frozen=True)
class Found:
    """A shot as the detector gives it, at 25 frames a second."""

    start_us: int
    end_us: int
    transition_in: Transition = Transition.CUT
    transition_start_us: int | None = None
    transition_end_us: int | None = None
    confidence: float = 0.9

    @property
    def start_frame(self) -> int:
        return self.start_us // 40_000

    @property
    def end_frame(self) -> int:
        return self.end_us // 40_000


def media(duration_us: int, width: int = 1280, height: int = 720, *, vfr: bool = False, sound: bool = True) -> MediaInfo:
    video = VideoStream(
        index=0, codec="h264", pix_fmt="yuv420p", coded_width=width, coded_height=height, rotation=0, sar_num=1, sar_den=1,
        display_width=width, display_height=height, rate=Rate(num=25, den=1), is_vfr=vfr, start_us=0, duration_us=duration_us,
        frames=duration_us // 40_000,
    )  # fmt: skip
    audio = AudioStream(index=1, codec="aac", sample_rate=48_000, channels=2, start_us=0, duration_us=duration_us) if sound else None
    return MediaInfo(
        sha256="a" * 64, size_bytes=1, container="mov", video=video, audio=audio, audio_choice="the only one", duration_us=duration_us
    )


def evidence(*text: str, caption: str = "a dark picture") -> Evidence:
    boxes = tuple(TextBox(text=t, x=0, y=20 * k, width=100, height=20, confidence=0.9) for k, t in enumerate(text))
    frame = KeyFrame(at_us=0, sha256="b" * 64, width=64, height=36)
    return Evidence(key_frames=(frame,), text=boxes, motion=0.1, luma=0.5, colour=(1, 2, 3), caption=caption)


def spoken(*lines: tuple[str, int, int], language: str = "en", timing: WordTiming = WordTiming.ALIGNED) -> Transcript:
    """A transcript of lines with (start, end) in milliseconds, words spread evenly."""
    segments = []
    for text, start, end in lines:
        words = words_of(text)
        step = (end - start) * 1000 // len(words)
        timed = [
            SpokenWord(w.text, start * 1000 + k * step, start * 1000 + (k + 1) * step, 0.8, timing, w.space_after)
            for k, w in enumerate(words)
        ]
        timed[-1] = SpokenWord(timed[-1].text, timed[-1].start_us, end * 1000, 0.8, timing, language != "zh")
        segments.append(SpokenSegment(tuple(timed), start * 1000, end * 1000, 0.8))
    spans = tuple(Span(start_us=s * 1000, end_us=e * 1000) for _, s, e in lines)
    return Transcript(tuple(segments), language, 0.99, {"asr": "test"}, spans, 1.0)


def board(
    transcript: Transcript,
    shots: Sequence[Found],
    *,
    seen: Sequence[Evidence] | None = None,
    spotlights: dict[int, Spotlight] | None = None,
    item: SourceItem | None = None,
    info: MediaInfo | None = None,
) -> Storyboard:
    info = info or media(shots[-1].end_us)
    return build_storyboard(
        "prj_1",
        item or SourceItem(uri="film.mp4"),
        info,
        transcript,
        shots,
        seen or [evidence() for _ in shots],
        lambda narrations: [(spotlights or {}).get(k) for k in range(len(narrations))],
        InversionConfig(),
        {"asr": "test"},
    )


THREE = (
    Found(0, 4_000_000, Transition.START),
    Found(4_000_000, 6_000_000),
    Found(6_000_000, 10_000_000, Transition.DISSOLVE, 5_800_000, 6_200_000),
)
TALK = spoken(("A pendulum swings here.", 500, 2_500), ("It has potential energy, and it", 3_000, 4_200), ("moves on.", 4_300, 5_000))


def test_words_sentences_and_shots_fit_together() -> None:
    found = board(TALK, THREE)
    assert found.script == "A pendulum swings here. It has potential energy, and it moves on."
    assert [(s.text, s.shots) for s in found.sentences] == [
        ("A pendulum swings here.", (0,)),
        ("It has potential energy, and it moves on.", (0, 1)),
    ]
    assert [s.narration for s in found.shots] == ["A pendulum swings here. It has potential energy, and", "it moves on.", ""]
    assert [s.shot.has_narration for s in found.shots] == [True, True, False]
    assert [s.constraints for s in found.shots] == [
        ("ends_mid_sentence",),
        ("starts_mid_sentence",),
        ("no_narration", "gradual_transition_in"),
    ]
    assert found.shots[1].communicates == "It has potential energy, and it moves on."
    assert found.shots[2].communicates == "a dark picture"
    assert found.shots[0].visual_query == "potential energy, pendulum swings"
    assert found.shots[2].visual_query == "a dark picture"


def test_chinese_words_join_without_spaces() -> None:
    found = board(spoken(("天地玄黄，宇宙洪荒。", 500, 3_000), ("日月盈昃。", 4_200, 5_800), language="zh"), THREE)
    assert found.script == "天地玄黄，宇宙洪荒。日月盈昃。"
    assert [s.narration for s in found.shots] == ["天地玄黄，宇宙洪荒。", "日月盈昃。", ""]


def test_words_after_the_last_frame_have_no_shot_and_the_last_shot_carries_their_text() -> None:
    found = board(spoken(("Seen and heard.", 500, 3_000), ("Heard only.", 11_000, 12_000)), THREE)
    assert [w.shot for w in found.words] == [0, 0, 0, None, None]
    assert [(s.text, s.shots, s.flags) for s in found.sentences] == [("Seen and heard.", (0,), ()), ("Heard only.", (), ("after_picture",))]
    last = found.shots[-1]
    assert (last.narration, last.shot.has_narration, last.shot.first_word, last.shot.end_word) == ("Heard only.", False, 3, 3)
    assert "narration_outlasts_picture" in last.constraints


def test_a_spotlight_leads_what_its_shot_communicates_and_screen_text_joins_the_query() -> None:
    card = Spotlight(kind=SpotlightKind.NUMBER, slots={"value": "150", "label": "joules"}, origin="screen")
    found = board(TALK, THREE, seen=[evidence(), evidence("150 joules"), evidence()], spotlights={1: card})
    assert found.shots[1].communicates == "number: 150, joules | It has potential energy, and it moves on."
    assert found.shots[1].visual_query.endswith("150 joules")
    assert "text_on_screen" in found.shots[1].constraints


def test_a_film_without_words_still_has_its_shots() -> None:
    found = board(Transcript((), "und", None, {}, (), 1.0), THREE)
    assert (found.script, found.words, found.sentences, found.segments) == ("", (), (), ())
    assert [s.narration for s in found.shots] == ["", "", ""]


def test_a_title_comes_from_the_user_or_from_the_narration_never_from_the_name() -> None:
    assert board(TALK, THREE, item=SourceItem(uri="x", title="Given")).title == "Given"
    assert board(TALK, THREE, item=SourceItem(uri="; rm -rf $(x).mp4")).title == "Potential energy, pendulum swings, moves"


@pytest.mark.parametrize(
    ("width", "height", "expected"),
    [
        (1920, 1080, "16:9"),
        (320, 240, "4:3"),
        (720, 1280, "9:16"),
        (600, 620, "1:1"),
        (2560, 1080, "16:9"),
        (321, 181, "16:9"),
        (180, 320, "9:16"),
    ],
)
def test_aspect_ratio_snaps_to_the_nearest(width: int, height: int, expected: str) -> None:
    assert board(TALK, THREE, info=media(10_000_000, width, height)).aspect_ratio == expected


def test_the_feasible_length_holds_the_films_own() -> None:
    found = board(TALK, THREE)
    assert found.duration_min_us <= 10_000_000 <= found.duration_max_us


lines = st.lists(
    st.tuples(
        st.sampled_from(["It works.", "No end,", "Why? Because.", "a b c d e f", "Dr. No."]), st.integers(0, 2_500), st.integers(300, 3_000)
    ),
    max_size=6,
)


@given(lines, st.sets(st.integers(1, 249), max_size=5))
@settings(max_examples=60, deadline=None)
def test_sentences_segments_and_shots_tile_the_script(parts: list[tuple[str, int, int]], cuts: set[int]) -> None:
    at, timed = 0, []
    for text, pause, length in parts:
        timed.append((text, at + pause, at + pause + length))
        at += pause + length
    edges = [0, *sorted(c * 40_000 for c in cuts), 10_000_000]
    found = board(spoken(*timed) if timed else Transcript((), "en", None, {}, (), 1.0), [Found(a, b) for a, b in pairwise(edges)])
    for parts_ in (found.sentences, found.segments, found.shots):
        spans = [(p.script_start, p.script_end) for p in parts_]
        assert [a for a, _ in spans] == [0, *(b for _, b in spans[:-1])][: len(spans)]
        assert not spans or spans[-1][1] == len(found.script)
    assert all(found.script[s.script_start : s.script_end].rstrip() == s.text for s in found.sentences)
    assert all(found.script[s.script_start : s.script_end].rstrip() == s.narration for s in found.shots)
    for word in found.words:
        owners = [s.shot.index for s in found.shots if s.shot.first_word <= word.index < s.shot.end_word]
        assert owners == ([] if word.shot is None else [word.shot])


def test_segments_hold_whole_sentences_and_part_where_the_subject_changes() -> None:
    physics = [(f"The pendulum keeps its mechanical energy {k}.", 4_000 * k, 4_000 * k + 3_500) for k in range(9)]
    cooking = [(f"Now fry the onions in butter {k}.", 40_000 + 4_000 * k, 40_000 + 4_000 * k + 3_500) for k in range(9)]
    found = board(spoken(*physics, *cooking), [Found(0, 80_000_000, Transition.START)])
    assert [(s.first_sentence, s.end_sentence) for s in found.segments] == [(0, 9), (9, 18)]
    assert "pendulum" in found.segments[0].title.lower()
    assert "butter" in found.segments[1].title.lower() or "onions" in found.segments[1].title.lower()


# -- interchange -------------------------------------------------------------------------------------------------------------


def test_srt_round_trip_keeps_texts_and_times() -> None:
    found = board(TALK, THREE)
    text = to_srt(found)
    assert text.startswith("1\n00:00:00,500 --> 00:00:02,500\nA pendulum swings here.\n\n2\n00:00:03,000 -->")
    assert [(c.text, c.start_us, c.end_us) for c in from_srt(text)] == [(s.text, s.start_us, s.end_us) for s in found.sentences]


@pytest.mark.parametrize("vfr", [False, True])
def test_otio_round_trip_keeps_shots_and_sentences(vfr: bool) -> None:
    found = board(TALK, THREE, info=media(10_000_000, vfr=vfr))
    cuts, cues = from_otio(to_otio(found))
    assert [(c.start_us, c.end_us, c.transition_in) for c in cuts] == [
        (0, 4_000_000, Transition.START),
        (4_000_000, 6_000_000, Transition.CUT),
        (6_000_000, 10_000_000, Transition.DISSOLVE),
    ]
    assert [(c.text, c.start_us) for c in cues] == [(s.text, s.start_us) for s in found.sentences]


def test_otio_has_clips_markers_and_a_dissolve_on_exact_frames() -> None:
    timeline = otio.adapters.read_from_string(to_otio(board(TALK, THREE)), "otio_json")
    (track,) = timeline.video_tracks()
    clips = [c for c in track if isinstance(c, otio.schema.Clip)]
    (mix,) = [t for t in track if isinstance(t, otio.schema.Transition)]
    assert [(c.source_range.start_time.value, c.source_range.duration.value, c.source_range.start_time.rate) for c in clips] == [
        (0, 100, 25),
        (100, 50, 25),
        (150, 100, 25),
    ]
    assert (mix.in_offset.value, mix.out_offset.value, mix.transition_type) == (5, 5, "SMPTE_Dissolve")
    assert [m.name for m in track.markers] == ["A pendulum swings here.", "It has potential energy, and it moves on."]


@pytest.mark.parametrize("text", ["", "{}", "nonsense", '{"OTIO_SCHEMA": "Timeline.1", "tracks": null}'])
def test_foreign_timelines_are_refused(text: str) -> None:
    with pytest.raises(SchemaMismatch):
        from_otio(text)


def test_public_json_has_the_promised_keys_and_is_json() -> None:
    public = json.loads(json.dumps(public_json(board(TALK, THREE))))
    assert {"version", "project_id", "source", "language", "shots", "sentences", "words"} <= public.keys()
    assert {"start_us", "end_us", "transition_in"} <= public["shots"][0].keys()
    assert {"text", "start_us", "end_us", "shots"} <= public["sentences"][0].keys()
    assert public["shots"][2]["transition_in"] == "dissolve"
    assert [w["text"] for w in public["words"]][:3] == ["A", "pendulum", "swings"]


def test_a_storyboard_survives_its_own_json() -> None:
    found = board(TALK, THREE)
    again = Storyboard.model_validate_json(found.canonical())
    assert again == found
    assert again.digest() == found.digest()


def test_rows_fit_their_tables() -> None:
    found = board(spoken(("Seen and heard.", 500, 4_600), ("Heard only.", 11_000, 12_000)), THREE)
    rows = storyboard_rows(found)
    rows["projects"] = [{**r, "split": "train"} for r in rows["projects"]]
    for name, some in rows.items():
        for row in some:
            TABLE[name].finish(row, stage_key="k", run_id="r")
    assert [(r["sentence_index"], r["shot_index"], r["words"]) for r in rows["alignments"]] == [(0, 0, 3)]
    assert rows["words"][-1]["shot_index"] is None


# -- admission ---------------------------------------------------------------------------------------------------------------


def test_admission_reasons_are_closed_and_carry_figures() -> None:
    found = board(TALK, THREE)
    config = InversionConfig()

    def code(**thresholds: object) -> RejectCode | None:
        refused = refuse_storyboard(found, AdmissionConfig.model_validate(thresholds))
        return None if refused is None else refused.code

    assert code() is None
    assert code(min_narration_share=0.9) is RejectCode.LOW_NARRATION_SHARE
    assert code(min_confidence=0.9) is RejectCode.LOW_CONFIDENCE
    assert code(min_shots=4) is RejectCode.TOO_FEW_SHOTS
    silent = refuse_transcript(Transcript((), "en", 0.9, {}, (), 1.0), config.admission)
    assert silent is not None
    assert silent.code is RejectCode.NO_SPEECH
    foreign = refuse_transcript(TALK, AdmissionConfig(languages=("zh",)))
    assert foreign is not None
    assert (foreign.code, foreign.detail) == (RejectCode.LANGUAGE_REFUSED, "language is en (probability 0.99), allowed: zh")
    licence = refuse_item(SourceItem(uri="x", licence="all rights reserved"), AdmissionConfig(licences=("CC-BY-3.0",)))
    assert licence is not None
    assert licence.code is RejectCode.LICENCE_REFUSED
    assert refuse_item(SourceItem(uri="x", licence="cc-by-3.0"), AdmissionConfig(licences=("CC-BY-3.0",))) is None


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (media(10_000_000, sound=False), RejectCode.NO_AUDIO),
        (media(10_000_000).model_copy(update={"video": None}), RejectCode.NO_VIDEO),
        (media(1_000_000), RejectCode.TOO_SHORT),
        (media(5 * 3_600_000_000), RejectCode.LIMIT_DURATION),
    ],
)
def test_what_is_no_narrated_film_is_refused_before_anybody_listens(info: MediaInfo, code: RejectCode) -> None:
    refused = refuse_media(info, InversionConfig())
    assert refused is not None
    assert refused.code is code


@pytest.mark.parametrize(
    ("changes", "detail"),
    [
        ({"video": None}, "no moving picture (sound only)"),
        ({"video": None, "audio": None}, "no moving picture (no streams at all)"),
        ({"video": None, "ignored_streams": ("cover art (png)",)}, "no moving picture (sound, cover art (png))"),
        ({"audio": None}, "no sound track (picture only)"),
        ({"audio": None, "ignored_streams": ("subtitles", "data")}, "no sound track (picture, subtitles; data)"),
    ],
)
def test_a_refusal_says_what_is_in_the_file(changes: dict[str, object], detail: str) -> None:
    refused = refuse_media(media(10_000_000).model_copy(update=changes), InversionConfig())
    assert refused is not None
    assert refused.detail == detail
