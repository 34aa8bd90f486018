"""Language of a text, and its key terms."""

from __future__ import annotations

import pytest

from inversion.config import InversionConfig
from inversion.language import guess_language, language_code, stated_language
from inversion.terms import key_phrases, rarity, terms


@pytest.mark.parametrize(
    ("text", "expected", "language"),
    [
        ("This is a video for testing.", None, "en"),
        ("This is a video for testing.", "zh", "en"),
        ("这是一条用于测试的视频。", "en", "zh"),
        ("大家好,我的名字是 Auto Cut。", None, "zh"),
        ("これはテスト動画です。", None, "ja"),
        ("이것은 테스트 비디오입니다.", None, "ko"),
        ("Das ist ein Video und es ist nicht lang.", None, "de"),
        ("C'est une vidéo pour les tests et elle est dans la liste.", None, "fr"),
        ("Это видео для проверки.", None, "ru"),
        ("Це відео.", "uk", "uk"),
        ("مرحبا بالعالم", None, "ar"),
        ("Taa daa", "sw", "sw"),
        ("1455", "en", "en"),
        ("", None, "und"),
    ],
)
def test_language_of_a_text(text: str, expected: str | None, language: str) -> None:
    assert guess_language(text, expected) == language


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("en", "en"), ("EN", "en"), (" en-US ", "en"), ("eng", "en"), ("English", "en"), ("zh_Hans_CN", "zh"), ("cmn", "zh"),
        ("中文", "zh"),
        ("yue", "yue"), ("und", None), ("klingon", None), ("en; rm", None), ("", None), ("engl", None),
    ],
)  # fmt: skip
def test_a_language_is_known_by_its_usual_names(written: str, code: str | None) -> None:
    assert language_code(written) == code


@pytest.mark.parametrize(
    ("written", "code"),
    [("ga-IE", "ga"), ("gle", "gle"), ("Icelandic", "is"), ("Chinese (Simplified)", "zh"), ("und", None), ("Klingon", None), ("e;", None)],
)
def test_a_text_may_be_in_a_language_that_no_recogniser_knows(written: str, code: str | None) -> None:
    assert stated_language(written) == code


def test_settings_take_names_of_languages_and_refuse_others() -> None:
    config = InversionConfig.model_validate({"language": "zh-Hans", "admission": {"languages": ["English", "chi"]}})
    assert (config.language, config.admission.languages) == ("zh", ("en", "zh"))
    with pytest.raises(ValueError, match="'klingon' is no language that can be recognised"):
        InversionConfig(language="klingon")
    with pytest.raises(ValueError, match="'klingon' is no language; give codes"):
        InversionConfig.model_validate({"admission": {"languages": ["klingon"]}})


def test_key_phrases_of_english_are_its_content_words() -> None:
    text = "Now I want to return to the conservation of mechanical energy."
    assert key_phrases(text, "en", {}, 3) == ["mechanical energy", "conservation", "return"]


def test_key_phrases_of_chinese_leave_particles_out() -> None:
    assert key_phrases("大语言模型可以帮助我们理解历史，大语言模型很强大。", "zh", {}, 2) == ["大语言模型", "理解历史"]


def test_forms_of_a_word_count_as_one_term() -> None:
    assert terms("The pendulum swings; swinging pendulums.", "en") == {"pendulum": 2, "swing": 2}


def test_the_subject_of_a_film_outweighs_words_that_come_once() -> None:
    weights = rarity(["Energy is kept.", "Energy moves.", "A building falls."], "en")
    assert weights["energy"] > weights["build"]
