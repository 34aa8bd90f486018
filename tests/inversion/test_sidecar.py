"""Subtitles and transcripts of many makers, and of none."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inversion.sidecar import SidecarUnreadable, parse_sidecar, read_sidecar


def lines(data: str | bytes) -> list[tuple[int | None, int | None, str]]:
    found = parse_sidecar(data if isinstance(data, bytes) else data.encode())
    return [(s.start_us, s.end_us, s.text) for s in found.segments]


def test_srt_with_tags_entities_and_an_empty_line_inside_a_cue() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\n<i>Hi &amp; bye</i>\n\nstill the first\n\n2\n00:00:03,500 --> 00:00:04,000\n- Next.\n"
    assert lines(text) == [(1_000_000, 2_000_000, "Hi & bye still the first"), (3_500_000, 4_000_000, "Next.")]


def test_srt_without_numbers_with_windows_line_ends_and_a_mark() -> None:
    assert lines(b"\xef\xbb\xbf00:00:01.000 --> 00:00:02.000\r\nHi.\r\n") == [(1_000_000, 2_000_000, "Hi.")]


def test_utf_16_and_latin_1_files_are_read() -> None:
    cue = "00:00:01,000 --> 00:00:02,000\nCafé au lait.\n"
    assert lines(cue.encode("utf-16"))[0][2] == "Café au lait."
    assert lines(cue.encode("cp1252"))[0][2] == "Café au lait."


def test_vtt_with_notes_styles_settings_and_word_times() -> None:
    text = (
        "WEBVTT\nKind: captions\n\nNOTE not spoken\nmore\n\nSTYLE\n::cue {color: red}\n\nintro\n"
        "00:00.000 --> 00:02.000 align:start position:0%\nhello<00:00:00.400><c> there</c><00:00:01.000><c> friend</c>\n"
    )
    (segment,) = parse_sidecar(text.encode()).segments
    assert [(w.text, w.start_us, w.end_us) for w in segment.words] == [
        ("hello", 0, 400_000),
        ("there", 400_000, 1_000_000),
        ("friend", 1_000_000, 2_000_000),
    ]


def test_captions_that_roll_up_give_every_line_once() -> None:
    text = (
        "WEBVTT\n\n00:00.000 --> 00:02.000\nhello there my friend\n\n00:02.000 --> 00:02.010\nhello there my friend\n\n"
        "00:02.010 --> 00:04.000\nhello there my friend\nhow are you\n"
    )
    assert [line[2] for line in lines(text)] == ["hello there my friend", "how are you"]


def test_a_line_said_twice_is_kept_twice() -> None:
    text = "1\n00:00:00,000 --> 00:00:02,000\nwe will win\n\n2\n00:00:02,000 --> 00:00:04,000\nwe will win\n"
    assert [line[2] for line in lines(text)] == ["we will win", "we will win"]


def test_automatic_captions_roll_line_by_line_also_where_a_line_is_one_word() -> None:
    text = (
        "WEBVTT\n\n00:00:00.500 --> 00:00:02.400\n \nin<00:00:00.650><c> being</c>\n\n00:00:02.400 --> 00:00:02.410\nin being\n \n\n"
        "00:00:02.410 --> 00:00:04.200\nin being\nmodern.\n\n00:00:04.200 --> 00:00:05.900\nmodern.\nIt was not passed.\n"
    )
    assert [line[2] for line in lines(text)] == ["in being", "modern.", "It was not passed."]


def test_a_vtt_with_spaces_on_its_empty_lines_says_no_cue_names() -> None:
    text = "WEBVTT\n \nfirst\n00:00.000 --> 00:02.000\nHello.\n \nsecond\n00:02.000 --> 00:03.000\nBye.\n"
    assert [line[2] for line in lines(text)] == ["Hello.", "Bye."]


TWO = [(500_000, 2_400_000, "It is new."), (4_200_000, 5_900_000, "It lasts.")]
ASS = (
    "[Script Info]\nScriptType: v4.00+\n\n[V4+ Styles]\nFormat: Name, Fontname\nStyle: Default,Arial\n\n[Events]\n"
    "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    "Dialogue: 0,0:00:04.20,0:00:05.90,Default,,0,0,0,,It lasts.\n"
    "Dialogue: 0,0:00:00.50,0:00:02.40,Default,,0,0,0,,{\\i1}It is{\\i0}\\Nnew.\n"
    "Dialogue: 0,0:00:00.50,0:00:02.40,Default,,0,0,0,,{\\p1}m 0 0 l 100 0{\\p0}\n"
    "Comment: 0,0:00:00.50,0:00:02.40,Default,,0,0,0,,to be done\n"
)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sbv", "0:00:00.500,0:00:02.400\nIt is new.\n\n0:00:04.200,0:00:05.900\nIt lasts.\n"),
        ("tsv", "start\tend\ttext\n500\t2400\tIt is new.\n4200\t5900\tIt lasts.\n"),
        ("ssa", ASS),
        ("srt", "2\n00:00:04,200 --> 00:00:05,900\nIt lasts.\n\n1\n00:00:00,500 --> 00:00:02,400\nIt is new.\n"),
    ],
)
def test_other_forms_and_orders_give_the_same_segments(kind: str, text: str) -> None:
    assert parse_sidecar(text.encode()).kind == kind
    assert lines(text) == TWO


@pytest.mark.parametrize(
    ("stamps", "start", "end"),
    [("-00:00:00,500 --> 00:00:02,400", 0, 2_400_000), ("00:00:00,500 --> 99999:00:02,400", 500_000, 360_000_000_000)],
    ids=["before the film", "for years"],
)
def test_a_cue_with_impossible_times_keeps_its_words(stamps: str, start: int, end: int) -> None:
    assert lines(f"1\n{stamps}\nIt is new.\n") == [(start, end, "It is new.")]


def test_descriptions_of_sound_are_left_out() -> None:
    text = "1\n00:00:00,000 --> 00:00:02,000\n[music]\n♪ la la\nHello [coughs] there.\n"
    assert [line[2] for line in lines(text)] == ["Hello there."]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"segments": [{"start": 0.5, "end": 1.5, "text": " Hi."}]}, [(500_000, 1_500_000, "Hi.")]),
        ({"transcription": [{"offsets": {"from": 500, "to": 1500}, "text": " Hi."}]}, [(500_000, 1_500_000, "Hi.")]),
        ({"chunks": [{"timestamp": [0.5, 1.5], "text": " Hi."}]}, [(500_000, 1_500_000, "Hi.")]),
        ({"chunks": [{"timestamp": [0.5, None], "text": " Hi."}]}, [(500_000, None, "Hi.")]),
        ([{"start": "00:00:00,500", "end": "00:00:01,500", "text": "Hi."}], [(500_000, 1_500_000, "Hi.")]),
        ({"segments": [{"start": "0.5", "end": "1.50", "text": "Hi."}]}, [(500_000, 1_500_000, "Hi.")]),
        ({"segments": [{"text": "Hi.", "time_interval": {"start": 0.5, "end": 1.5}}]}, [(500_000, 1_500_000, "Hi.")]),
    ],
)
def test_json_of_several_makers(value: object, expected: list[tuple[int, int, str]]) -> None:
    assert lines(json.dumps(value)) == expected


def test_whisperx_words_keep_times_scores_and_gaps() -> None:
    value = {
        "segments": [
            {
                "start": 7.3,
                "end": 8.4,
                "text": " cost over $43,000. Matt",
                "words": [
                    {"word": "cost", "start": 7.3, "end": 7.4, "score": 0.9},
                    {"word": "over", "start": 7.4, "end": 7.5, "score": 0.8},
                    {"word": "$43,000."},
                    {"word": "Matt", "start": 8.1, "end": 8.3, "score": 0.7},
                ],
            }
        ],
        "language": "en",
    }
    found = parse_sidecar(json.dumps(value).encode())
    (segment,) = found.segments
    assert found.language == "en"
    assert segment.text == "cost over $43,000. Matt"
    assert [(w.start_us, w.confidence) for w in segment.words] == [(7_300_000, 0.9), (7_400_000, 0.8), (None, None), (8_100_000, 0.7)]


def test_chinese_word_lists_join_without_spaces() -> None:
    value = {
        "words": [
            {"word": "你", "start": 0, "end": 0.2},
            {"word": "好", "start": 0.2, "end": 0.4},
            {"word": "Python", "start": 0.5, "end": 1},
        ]
    }
    assert parse_sidecar(json.dumps(value).encode()).segments[0].text == "你好Python"


def test_loose_words_of_a_service_are_laid_on_its_segments() -> None:
    value = {
        "language": "english",
        "text": "Hi there. You",
        "segments": [{"start": 0.0, "end": 2.0, "text": " Hi there. You"}],
        "words": [
            {"word": "Hi", "start": 0.1, "end": 0.2},
            {"word": "there", "start": 0.5, "end": 0.9},
            {"word": "You", "start": 1.2, "end": 1.3},
        ],
    }
    found = parse_sidecar(json.dumps(value).encode())
    assert found.language == "en"
    assert [(w.text, w.start_us) for w in found.segments[0].words] == [("Hi", 100_000), ("there.", 500_000), ("You", 1_200_000)]


@pytest.mark.shared
def test_a_text_without_times_is_not_timed(shared: Path) -> None:
    found = read_sidecar(shared / "cases" / "zh_mixed_punctuation.json", 1_000_000)
    assert (found.is_timed, found.language) == (False, "zh")
    assert found.segments[0].text == json.loads((shared / "cases" / "zh_mixed_punctuation.json").read_text())["text"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "sidecar_empty"),
        (b"\x00\x01\x02\x03", "sidecar_binary"),
        (b"{not json", "sidecar_json"),
        (b"{}", "sidecar_json"),
        (b"[" * 100_000, "sidecar_json"),
        (b"<?xml version='1.0'?><tt><body><div><p begin='0.5s'>Hi.</p></div></body></tt>", "sidecar_format"),
        (b'{"segments": []}', "sidecar_json"),
        (b'{"segments": [{"start": 1e999, "end": "x", "text": ""}]}', "sidecar_empty"),
        (b"1\n00:00:01,000 --> 00:00:02,000\n[music]\n", "sidecar_empty"),
    ],
)
def test_what_is_no_transcript_is_refused(data: bytes, code: str) -> None:
    with pytest.raises(SidecarUnreadable) as caught:
        parse_sidecar(data)
    assert caught.value.code == code


def test_a_missing_and_a_huge_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SidecarUnreadable, match="cannot read"):
        read_sidecar(tmp_path / "absent.srt", 100)
    os.mkfifo(tmp_path / "pipe.srt")
    for name in ("pipe.srt", ""):
        with pytest.raises(SidecarUnreadable, match="no regular file"):
            read_sidecar(tmp_path / name, 100)
    (tmp_path / "big.srt").write_bytes(b"x" * 101)
    with pytest.raises(SidecarUnreadable, match="over 100 bytes"):
        read_sidecar(tmp_path / "big.srt", 100)


FRAGMENTS = (
    '00:00:01,000 --> 00:00:02,000|WEBVTT|\n|\n\n|1|hello|<00:00:01.500>|<c>|{|}|[|"words"|:|,|"start"|1e5|-->|\ufeff|你好|\ud7ff|&amp;'
).split("|")


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join) | st.binary(max_size=200).map(lambda b: b.decode("latin-1")))
@settings(max_examples=500)
def test_any_input_gives_segments_or_a_typed_refusal_quickly(text: str) -> None:
    started = time.perf_counter()
    with contextlib.suppress(SidecarUnreadable):
        assert all(s.words for s in parse_sidecar(text.encode("utf-8", "surrogatepass")).segments)
    assert time.perf_counter() - started < 0.5


@pytest.mark.parametrize("unit", ["00:00:01,000 --> 00:00:02,000\nla la la\n\n", "<00:00:01.500>", "{\\an8}", "<c", "[[[[", "-->", "♪ "])
def test_a_long_file_takes_linear_time(unit: str) -> None:
    started = time.perf_counter()
    with contextlib.suppress(SidecarUnreadable):
        parse_sidecar(("WEBVTT\n\n00:00.000 --> 00:02.000\n" + unit * (1_000_000 // len(unit))).encode())
    assert time.perf_counter() - started < 10
