"""What is written, as it is spoken: literal tables."""

from __future__ import annotations

import pytest

from replay.speech_forms import spoken

ENGLISH = [
    ("1974", "1974"),
    ("the 1990s", "the 1990s"),
    ("1,234,567", "1,234,567"),
    ("10:30", "10 30"),
    ("9:05 am", "9 oh 5 a.m."),
    ("at 9:00.", "at 9 o'clock."),
    ("12:30:15", "12 30 and 15 seconds"),
    ("5 PM sharp", "5 p.m. sharp"),
    ("2020-01-05", "January 5, 2020"),
    ("Jan. 5, 2020", "January 5, 2020"),
    ("5 km", "5 kilometers"),
    ("5kg of sand", "5 kilograms of sand"),
    ("1 kg", "1 kilogram"),
    ("20 °C", "20 degrees Celsius"),
    ("90° turn", "90 degrees turn"),
    ("50 m/s", "50 meters per second"),
    ("5 m²", "5 square meters"),
    ("10 m3", "10 cubic meters"),
    ("5 s", "5 seconds"),
    ("5s", "5s"),
    ("5G", "5G"),
    ("8 GB", "8 gigabytes"),
    ("It cost $3.5 million in 1974.", "It cost 3.5 million dollars in 1974."),
    ("€2 billion and £4 thousand", "2 billion euros and 4 thousand pounds"),
    ("$20 each", "20 dollars each"),
    ("$1", "1 dollar"),
    ("$5.20", "5 dollars and 20 cents"),
    ("$1,234.50", "1,234 dollars and 50 cents"),
    ("$1.5M", "1.5 million dollars"),
    ("¥100", "100 yen"),
    ("100k", "100 thousand"),
    ("1.5M users", "1.5 million users"),
    ("a 7B model", "a 7 billion model"),
    ("4K video", "4 K video"),
    ("10-20 people", "10 to 20 people"),
    ("1990–1995", "1990 to 1995"),
    ("5%–10%", "5% to 10%"),
    ("COVID-19", "COVID-19"),
    ("GPT-4", "GPT-4"),
    ("555-1234-567", "555-1234-567"),
    ("a 10-year-old", "a 10-year-old"),
    ("mid-1990s", "mid-1990s"),
    ("-5 degrees", "minus 5 degrees"),
    ("−5", "minus 5"),
    ("10 - 5 = 5", "10 minus 5 equals 5"),
    ("2 + 2 = 4", "2 plus 2 equals 4"),
    ("3×4", "3 times 4"),
    ("1920×1080 pixels", "1920 by 1080 pixels"),
    ("10x faster", "10 times faster"),
    ("16:9", "16 to 9"),
    ("½", "one half"),
    ("2½ cups", "2 and a half cups"),
    ("3/8", "3 over 8"),
    ("24/7", "24 7"),
    ("x^2 + y^2", "x squared plus y squared"),
    ("E=mc²", "E equals m c squared"),
    ("π ≈ 3.14", "pi about 3.14"),
    ("≥ 5%", "at least 5%"),
    ("C++", "C++"),
    ("5+", "5 plus"),
    ("A&B", "A and B"),
    ("and/or", "and or"),
    ("#1", "number 1"),
    ("No. 5", "number 5"),
    ("no. It was", "no. It was"),
    ("Fig. 3", "figure 3"),
    ("e.g. this", "for example this"),
    ("vs. him", "versus him"),
    ("Prof. Li", "Professor Li"),
    ("St. Albans", "Saint Albans"),
    ("Main St. is", "Main Street is"),
    ("PhD", "P H D"),
    ("Dr. Who", "Dr. Who"),
    ("World War II", "World War 2"),
    ("Chapter IV", "Chapter 4"),
    ("Chapter X", "Chapter 10"),
    ("Part XIX", "Part 19"),
    ("Type I error", "Type 1 error"),
    ("Appendix C", "Appendix C"),
    ("Book I read", "Book I read"),
    ("a Boeing 747-400", "a Boeing 747-400"),
    ("3-2", "3-2"),
    ("pages 9-10.", "pages 9 to 10."),
    ("1,000-2,500 people", "1,000 to 2,500 people"),
    ("call 1-800-555-1234", "call 1-800-555-1234"),
    ("I think", "I think"),
    ("user@host.com", "user at host dot com"),
    ("see https://www.a.org/b-c.", "see a dot org slash b dash c."),
    ("13800138000", "1 3 8 0 0 1 3 8 0 0 0"),
    ("Hello 😀 world", "Hello world"),
    ("a\u200bb", "a b"),
    ("Привет friend", "friend"),
    ("ＧＰＵ１００％", "GPU100%"),
    ("the word 桥", "the word 桥"),
    ("naïve", "naïve"),
    ("", ""),
]
MANDARIN = [
    ("1974年", "1974年"),
    ("50%", "50%"),
    ("10:30", "10点30分"),
    ("9:05", "9点零5分"),
    ("9:00", "9点"),
    ("下午3:30", "下午3点30分"),
    ("3:30 pm", "下午3点30分"),
    ("2024-01-05", "2024年1月5日"),
    ("20℃", "20摄氏度"),
    ("-5度", "-5度"),
    ("5kg", "5公斤"),
    ("5 km/h", "5公里每小时"),
    ("5m²", "5平方米"),
    ("60Hz", "60赫兹"),
    ("8GB", "8GB"),
    ("100W", "100瓦"),
    ("6000万", "6000万"),
    ("¥100", "100元"),
    ("￥99.5", "99.5元"),
    ("$5", "5美元"),
    ("¥3.5亿", "3.5亿元"),
    ("1,234人", "1234人"),
    ("1,234,567", "1234567"),
    ("13800138000", "一三八零零一三八零零零"),
    ("10-20人", "10到20人"),
    ("10～20岁", "10到20岁"),
    ("10%-20%", "10%到20%"),
    ("2024-2025年", "二零二四到2025年"),
    ("1998年-2003年", "1998年到2003年"),
    ("GPT-4", "GPT-4"),
    ("3×4=12", "3乘4等于12"),
    ("3-2=1", "3减2等于1"),
    ("2+3", "2加3"),
    ("x²", "x的平方"),
    ("π", "派"),
    ("5‰", "千分之5"),
    ("比分3:2", "比分3比2"),
    ("#1", "1号"),
    ("黑&白", "黑和白"),
    ("A&B", "A&B"),
    ("①", "1"),
    ("ＧＰＵ", "GPU"),
    ("二〇二四年", "二零二四年"),
    ("½", "1/2"),
    ("用 GPU 训练。", "用 GPU 训练。"),
    ("你好，world！", "你好，world！"),
    ("😀你好", "你好"),
    ("C++语言", "C++语言"),
]


@pytest.mark.parametrize(("text", "expected"), ENGLISH)
def test_english(text: str, expected: str) -> None:
    assert spoken(text, "en-US") == expected


@pytest.mark.parametrize(("text", "expected"), MANDARIN)
def test_mandarin(text: str, expected: str) -> None:
    assert spoken(text, "zh") == expected


def test_other_languages_stay_as_they_are() -> None:
    assert spoken("um 10:30 für 5€", "de") == "um 10:30 für 5€"


@pytest.mark.parametrize(("language", "table"), [("en", ENGLISH), ("zh", MANDARIN)])
def test_the_neural_voice_has_a_sound_for_all_of_it(language: str, table: list[tuple[str, str]]) -> None:
    from replay.kokoro import phonemes, symbol_ids

    pytest.importorskip("misaki.zh")
    found = {text: phonemes(words, language) for text, words in table if words}
    assert {t: p for t, p in found.items() if not p or len(symbol_ids(p)) != len(p)} == {}


@pytest.mark.parametrize(
    ("text", "language", "sounds"),
    [
        ("E=mc²", "en", "ˈi ˈikwᵊlz ˌɛm sˈi skwˈɛɹd"),
        ("at 9:05 am", "en", "æt nˈIn ˈO fˈIv ˌAˈɛm"),
        ("café", "en", "kæfˈA"),
        ("the word 桥", "en", "ðə wˈɜɹd ʨʰjau↗"),
        ("5kg", "zh", "u↓kʊ→ŋʨi→n"),
        ("用 GPU 训练", "zh", "jʊ↘ŋ ʤˌipˌijˈu ɕy↘nljɛ↘n"),
    ],
)
def test_sounds(text: str, language: str, sounds: str) -> None:
    from replay.kokoro import phonemes

    pytest.importorskip("misaki.zh")
    assert phonemes(spoken(text, language), language) == sounds
