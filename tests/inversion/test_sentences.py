"""Sentences: abbreviations, decimals, scripts without spaces, right-to-left text, pauses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inversion.sentences import split_sentences
from inversion.transcript import SpokenSegment, SpokenWord, clean_text, join_words, words_of
from inversion.words import settle
from schemas.storyboard import WordTiming


def sentences(text: str, language: str = "en") -> list[str]:
    """Sentences of a text spoken without pauses."""
    found = settle([SpokenSegment(words_of(text))], 600_000_000, 3_000_000)
    return [s.text for s in split_sentences(found, language, 2_000_000)]


def paced(*parts: tuple[str, int], language: str = "en") -> list[str]:
    """Sentences of parts with a pause (milliseconds) before each."""
    words: list[SpokenWord] = []
    at = 0
    for text, pause in parts:
        at += pause * 1000
        for w in words_of(text):
            words.append(SpokenWord(w.text, at, at + 200_000, 0.9, WordTiming.RECOGNISED, w.space_after))
            at += 200_000
        words[-1] = SpokenWord(words[-1].text, words[-1].start_us, at, 0.9, WordTiming.RECOGNISED, language != "zh")
    return [s.text for s in split_sentences([SpokenSegment(tuple(words))], language, 2_000_000)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It works. We tried it.", ["It works.", "We tried it."]),
        ("Dr. Smith met J. R. Tolkien. He was late.", ["Dr. Smith met J. R. Tolkien.", "He was late."]),
        ("It costs $3.50. Version 3.11 is out.", ["It costs $3.50.", "Version 3.11 is out."]),
        ("We met at 5 p.m. in the U.S. He left.", ["We met at 5 p.m. in the U.S.", "He left."]),
        ("See e.g. this, vs. that. Fine.", ["See e.g. this, vs. that.", "Fine."]),
        ('"Really?" he asked. "Yes!" she said.', ['"Really?" he asked.', '"Yes!" she said.']),
        ("Wait... What? Then... nothing.", ["Wait...", "What?", "Then... nothing."]),
        ("1. First item. 2. Second item.", ["1. First item.", "2. Second item."]),
        ("It happened in 1455. Nobody knows why.", ["It happened in 1455.", "Nobody knows why."]),
        ("See example.com. It is free.", ["See example.com.", "It is free."]),
        ("No full stop at all", ["No full stop at all"]),
    ],
)
def test_english(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.shared
def test_chinese_with_decimals_quotes_and_latin(shared: Path) -> None:
    text = json.loads((shared / "cases" / "zh_mixed_punctuation.json").read_text())["text"]
    found = sentences(text, "zh")
    assert found == ["我用的是Python 3.11版。", "速度快了2.5倍！", "“真的吗？”他问。", "Yes, it works.", "完"]
    words = settle([SpokenSegment(words_of(text))], 9_000_000, 3_000_000)
    assert join_words([w for s in words for w in s.words]) == text


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("他说：“好的。”然后走了。", "zh", ["他说：“好的。”", "然后走了。"]),
        ("「本当ですか？」と彼は聞いた。はい。3.5倍です！", "ja", ["「本当ですか？」と彼は聞いた。", "はい。", "3.5倍です！"]),
        ("مرحبا بالعالم! كيف حالك؟ أنا بخير.", "ar", ["مرحبا بالعالم!", "كيف حالك؟", "أنا بخير."]),
        ("यह एक वाक्य है। दूसरा वाक्य।", "hi", ["यह एक वाक्य है।", "दूसरा वाक्य।"]),
        ("¿Qué tal? ¡Muy bien!", "es", ["¿Qué tal?", "¡Muy bien!"]),
        ("Das kostet z.B. 3,5 Euro. Gut.", "de", ["Das kostet z.B. 3,5 Euro.", "Gut."]),
    ],
)
def test_other_languages_keep_their_logical_order(text: str, language: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


def test_a_pause_of_two_seconds_always_ends_a_sentence() -> None:
    assert paced(("He said that", 0), ("Nobody came", 2_100)) == ["He said that", "Nobody came"]


def test_a_speaker_who_pauses_inside_sentences_is_not_cut_where_punctuation_is_good() -> None:
    parts = (("It falls.", 0), ("It swings.", 900), ("It stops.", 900), ("If it swings", 900), ("from here, it hurts.", 1_900))
    assert paced(*parts) == ["It falls.", "It swings.", "It stops.", "If it swings from here, it hurts."]


def test_sentences_joined_in_one_breath_are_cut_at_pauses_when_punctuation_is_missing() -> None:
    assert paced(("has never been surpassed", 0), ("in being modern.", 800)) == ["has never been surpassed", "in being modern."]


def test_chinese_without_full_stops_is_cut_at_pauses() -> None:
    assert paced(("你好世界,", 0), ("一二三四,", 500), ("天地玄黄。", 500), language="zh") == ["你好世界,", "一二三四,", "天地玄黄。"]


def test_a_run_without_full_stops_is_cut_at_its_clearest_borders() -> None:
    clause = "and then we saw another town with many people in it,"
    found = sentences(" ".join([clause] * 12))
    assert len(found) >= 2
    assert all(len(s.split()) <= 80 and s.endswith("it,") for s in found)


def test_flags_of_a_segment_reach_its_sentences_only() -> None:
    one = SpokenSegment(words_of("Thank you. And"), flags=("repeated",))
    found = settle([one, SpokenSegment(words_of("now we go."))], 60_000_000, 3_000_000)
    assert [(s.text, s.flags) for s in split_sentences(found, "en", 2_000_000)] == [
        ("Thank you.", ("repeated",)),
        ("And", ("repeated",)),
        ("now we go.", ()),
    ]


@given(st.text("ab cD.!?…。，“”3'\"\n-", max_size=80))
def test_sentences_cover_all_words_in_order(text: str) -> None:
    found = settle([SpokenSegment(words_of(text))] if clean_text(text) else [], 60_000_000, 3_000_000)
    drafts = split_sentences(found, "en", 2_000_000)
    assert [k for d in drafts for k in range(d.first, d.end)] == list(range(sum(len(s.words) for s in found)))


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("de", "Das war am 3. Oktober 1990. Danach war alles anders.", ["Das war am 3. Oktober 1990.", "Danach war alles anders."]),
        ("de", "Er kam ca. um 8 Uhr. Er war z. B. müde.", ["Er kam ca. um 8 Uhr.", "Er war z. B. müde."]),
        ("de", "Er war 12. Dann ging er.", ["Er war 12.", "Dann ging er."]),
        ("de", "Sie sagte: „Komm!“ Dann ging sie.", ["Sie sagte: „Komm!“", "Dann ging sie."]),
        ("de", "„Komm!“, rief sie. »Gleich.« Er blieb.", ["„Komm!“, rief sie.", "»Gleich.«", "Er blieb."]),
        ("de", "Prof. Dr. h.c. Schmidt zahlt 1.000,50 Euro. Gut.", ["Prof. Dr. h.c. Schmidt zahlt 1.000,50 Euro.", "Gut."]),
        ("fr", "M. Dupont a dit : « Bonjour ! » Puis il partit.", ["M. Dupont a dit : « Bonjour ! »", "Puis il partit."]),
        ("fr", "« Venez ! » dit-il. Bien ?", ["« Venez ! » dit-il.", "Bien ?"]),
        ("es", "El Sr. Gómez llegó. ¿Qué pasó? ¡Nada!", ["El Sr. Gómez llegó.", "¿Qué pasó?", "¡Nada!"]),
        ("ru", "Это г. Москва, т. е. столица. Это был я. Да!", ["Это г. Москва, т. е. столица.", "Это был я.", "Да!"]),
        ("ja", "「行こう！」と言った。3.14は円周率です。", ["「行こう！」と言った。", "3.14は円周率です。"]),
        ("ja", "えっ…本当に？すごい！！バージョン2.0。", ["えっ…本当に？", "すごい！！", "バージョン2.0。"]),
        ("zh", "他问：“你好吗？”她说：“很好！”", ["他问：“你好吗？”", "她说：“很好！”"]),
        ("zh", "今天是2024年5月3日。温度是36.5度！OK?是。", ["今天是2024年5月3日。", "温度是36.5度！", "OK?", "是。"]),
        ("zh", "第一，价格是￥3.50元；第二，质量……好。", ["第一，价格是￥3.50元；第二，质量……好。"]),
        ("ar", "قال د. أحمد: السعر 3.5 دولار. هل هذا صحيح؟ نعم!", ["قال د. أحمد: السعر 3.5 دولار.", "هل هذا صحيح؟", "نعم!"]),
        ("he", "שלום לכולם. מה שלומך? טוב!", ["שלום לכולם.", "מה שלומך?", "טוב!"]),
        ("ur", "یہ کتاب ہے۔ کیا آپ جانتے ہیں؟", ["یہ کتاب ہے۔", "کیا آپ جانتے ہیں؟"]),
        ("hi", "डॉ. शर्मा आए। क्या वे 3.5 बजे बैठे? हाँ!", ["डॉ. शर्मा आए।", "क्या वे 3.5 बजे बैठे?", "हाँ!"]),
        ("ko", "안녕하세요. 가격은 3.5달러입니다.", ["안녕하세요.", "가격은 3.5달러입니다."]),
        ("th", "สวัสดีครับ ราคา 3.50 บาท", ["สวัสดีครับ ราคา 3.50 บาท"]),
        ("en", "Is it done? No. It is No. 1 of 2.", ["Is it done?", "No.", "It is No. 1 of 2."]),
        ("en", "It was 7 p.m. and dark. See fig. 3 in vol. 2. Done.", ["It was 7 p.m. and dark.", "See fig. 3 in vol. 2.", "Done."]),
        (
            "en",
            "It rose 3.5% to $1,250.75. That was 42nd St. in N. Y. Good.",
            ["It rose 3.5% to $1,250.75.", "That was 42nd St. in N. Y. Good."],
        ),
    ],
)
def test_numbers_quotes_and_abbreviations_by_language(language: str, text: str, expected: list[str]) -> None:
    assert sentences(text, language) == expected


@pytest.mark.parametrize(
    ("language", "parts", "expected"),
    [
        ("th", [("สวัสดีครับวันนี้", 0), ("อากาศดีมาก", 900), ("ราคา3.50บาท", 900)], ["สวัสดีครับวันนี้", "อากาศดีมาก", "ราคา3.50บาท"]),
        ("ja", [("今日は晴れです", 0), ("明日は雨です", 800)], ["今日は晴れです", "明日は雨です"]),
        ("zh", [("我们先看第一个例子", 0), ("然后看第二个", 800)], ["我们先看第一个例子", "然后看第二个"]),
    ],
)
def test_scripts_without_spaces_and_without_stops_are_cut_at_pauses(
    language: str, parts: list[tuple[str, int]], expected: list[str]
) -> None:
    words: list[SpokenWord] = []
    at = 0
    for text, pause in parts:
        at += pause * 1000
        for w in words_of(text):
            words.append(SpokenWord(w.text, at, at + 100_000, 0.9, WordTiming.RECOGNISED, False))
            at += 100_000
    assert [s.text for s in split_sentences([SpokenSegment(tuple(words))], language, 2_000_000)] == expected


@pytest.mark.parametrize(
    "text",
    ["مرحبا بالعالم 123 abc. كيف حالك؟", "שלום world 42! טוב.", "\u200fمرحبا\u200e (hello)."],
)
def test_right_to_left_text_stays_in_logical_order(text: str) -> None:
    """Direction marks go, nothing changes places: the first character said is the first of the script."""
    plain = text.replace("\u200f", "").replace("\u200e", "")
    assert join_words(words_of(text)) == plain
    assert " ".join(sentences(text, "ar")) == plain
