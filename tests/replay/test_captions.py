"""Captions."""

from __future__ import annotations

import pytest

from replay.captions import to_srt
from replay.mix import Spoken


def srt(*pieces: tuple[int, int, str]) -> str:
    return to_srt([Spoken(f"s{i:03d}", a * 1000, b * 1000, text, "0" * 64) for i, (a, b, text) in enumerate(pieces)]).decode()


def test_one_cue_for_a_short_narration() -> None:
    assert srt((80, 2080, "The bridge was built.")) == "1\n00:00:00,080 --> 00:00:02,080\nThe bridge was built.\n"


def test_long_narration_is_broken_and_its_time_shared_out() -> None:
    text = (
        "The old bridge over the river was built in nineteen seventy four, by engineers from two towns. Nobody has ever used it since then."
    )
    found = srt((0, 8000, text))
    assert found.count(" --> ") == 3
    assert found.splitlines()[1].startswith("00:00:00,000 -->")
    assert "--> 00:00:08,000" in found
    assert max(len(line) for line in found.splitlines()) <= 60


def test_chinese_is_broken_at_its_own_marks() -> None:
    found = srt(
        (
            0,
            9000,
            "桥要造两次：一次在纸上，永远不会倒；一次在风里，我们才知道自己忘了什么。后来的人从桥上走过，却没有一个人记得当年的风有多大。",
        )
    )
    assert found.count(" --> ") >= 2
    assert " " not in found.splitlines()[2]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("桥要造两次，一次在纸上，一次在风里。", ["桥要造两次，一次在纸上，一次在风里。"]),
        ("后来的人从桥上走过去了，却没有一个人记得当年的风有多大。", ["后来的人从桥上走过去了，", "却没有一个人记得当年的风有多大。"]),
        ("没有一个人记得当年从桥上走过的人到底有多少个而风又有多大", ["没有一个人记得当年从桥上走过", "的人到底有多少个而风又有多大"]),
        ("我们用来训练这个小小模型的是 Transformer 和一台很旧的机器", ["我们用来训练这个小小模型的是", "Transformer 和一台很旧的机器"]),
        ("It cost 3,000,000 dollars, or 2.5 times as much as planned.", ["It cost 3,000,000 dollars, or", "2.5 times as much as planned."]),
        ("A" * 50, ["A" * 50]),
    ],
)
def test_a_long_cue_has_two_lines(text: str, lines: list[str]) -> None:
    assert srt((0, 5000, text)).splitlines()[2:] == lines


def test_numbers_run_on_over_shots() -> None:
    assert [line for line in srt((0, 1000, "One."), (2000, 3000, "Two.")).splitlines() if line.isdigit()] == ["1", "2"]


def test_silence_has_no_captions() -> None:
    assert to_srt([]) == b""
