"""Text on its way to a voice."""

from __future__ import annotations

import pytest

from replay.romanise import foreign_words
from replay.speech_text import clauses, is_speakable, plain, runs, sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "A sentence that is long enough. Another one follows it here.",
            ("A sentence that is long enough.", "Another one follows it here."),
        ),
        ("Dr. Smith went to St. Albans in the morning. He came back.", ("Dr. Smith went to St. Albans in the morning. He came back.",)),
        ("Yes. It was a very cold winter that year.", ("Yes. It was a very cold winter that year.",)),
        ("It was a very cold winter that year. Yes.", ("It was a very cold winter that year. Yes.",)),
        ("桥要造两次，一次在纸上，永远不会倒下来，看着很安全。一次在风里，我们才知道自己到底忘了什么东西。",
         ("桥要造两次，一次在纸上，永远不会倒下来，看着很安全。", "一次在风里，我们才知道自己到底忘了什么东西。")),
        ("  ", ()),
    ],
)  # fmt: skip
def test_sentences(text: str, expected: tuple[str, ...]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("text", "longest", "expected"),
    [
        ("short", 20, ("short",)),
        ("one two three, four five six, seven", 20, ("one two three,", "four five six, seven")),
        ("one two three four five", 9, ("one two", "three", "four five")),
        ("abcdefghij", 4, ("abcd", "efgh", "ij")),
    ],
)
def test_clauses_keep_to_the_length_and_lose_nothing(text: str, longest: int, expected: tuple[str, ...]) -> None:
    assert clauses(text, longest) == expected


def test_text_is_tidied() -> None:
    assert plain("cafe\u0301  au\n\tlait ") == "caf\u00e9 au lait"


@pytest.mark.parametrize(("text", "expected"), [("—", False), ("...!", False), ("7", True), ("桥", True), ("a", True), ("", False)])
def test_speakable(text: str, expected: bool) -> None:
    assert is_speakable(text) is expected


def test_latin_words_are_told_apart() -> None:
    assert [(r.text, r.script) for r in runs("用 GPU Cluster 和AI训练。")] == [
        ("用 ", "han"),
        ("GPU Cluster", "latin"),
        (" 和", "han"),
        ("AI", "latin"),
        ("训练。", "han"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<speak>Hello <break time='500ms'/> you</speak>", "Hello you"),
        ('a <font color="#fff">bold</font> move<br>', "a bold move"),
        ("<prosody rate=fast>go</prosody>", "go"),
        ("<!-- aside -->said", "said"),
        ("AT&amp;T &#39;s", "AT&T 's"),
        ("x < 5 and y > 3", "x < 5 and y > 3"),
        ("git add <file>", "git add file"),
        ("a &copy b", "a &copy b"),
    ],
)
def test_marks_for_machines_are_not_words(text: str, expected: str) -> None:
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [("the word Привет and שלום", ("Привет", "שלום")), ("α and Ω, naïve 中文", ()), ("", ())],
)
def test_words_that_a_voice_can_only_approximate(text: str, words: tuple[str, ...]) -> None:
    assert foreign_words(text) == words
