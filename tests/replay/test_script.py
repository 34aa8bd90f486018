"""Sentence borders of the script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.script import MAX_SENTENCE, sentences


def cut(script: str) -> list[str]:
    return [script[s.start : s.end] for s in sentences(script)]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("", []),
        ("No end", ["No end"]),
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("Dr. Smith paid $3.50 for it. He left.", ["Dr. Smith paid $3.50 for it. ", "He left."]),
        ("It rose by 3.5. then it fell", ["It rose by 3.5. then it fell"]),
        ("J. R. Smith came. Good.", ["J. R. Smith came. ", "Good."]),
        ('"Why?" She left...', ['"Why?" ', "She left..."]),
        ("A line\nand another\n", ["A line\n", "and another\n"]),
        ("今天天气很好。我们去了公园！真的吗？", ["今天天气很好。", "我们去了公园！", "真的吗？"]),
        ("他说：“好。”然后走了。", ["他说：“好。”", "然后走了。"]),
        ("GPT-4.5很强。U.S.公司", ["GPT-4.5很强。", "U.S.公司"]),
        ("Hi. ", ["Hi. "]),
    ],
)
def test_where_sentences_end(script: str, expected: list[str]) -> None:
    assert cut(script) == expected


def test_an_endless_sentence_is_cut_at_a_comma() -> None:
    script = "word " * 60 + "word, " + "word " * 60
    assert cut(script)[0].endswith("word, ")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='ab. ,!?\n。，"好A1', max_size=900))
def test_every_character_lies_in_exactly_one_sentence(script: str) -> None:
    parts = cut(script)
    assert "".join(parts) == script
    assert all(parts)
    assert all(len(p.strip()) <= MAX_SENTENCE + 1 for p in parts)
