"""Listening: windows, real recognition and alignment, second listening, scripts and subtitles against the sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from inversion.asr import FasterWhisper, Heard, recogniser
from inversion.config import AsrConfig, InversionConfig
from inversion.force import align_words
from inversion.given import from_sidecar, lay_over_speech
from inversion.hearing import spoken_language
from inversion.listen import find_speech, transcribe
from inversion.pronounce import arpabet
from inversion.sidecar import parse_sidecar
from inversion.speech import (
    Samples,
    Window,
    covered_us,
    cut_windows,
    loud_frames,
    merge_spans,
    samples_at,
    speech_probabilities,
    speech_spans,
    split_long,
    us_at,
    without,
)
from inversion.transcript import SpokenSegment, SpokenWord, Transcript, words_of
from inversion.words import trim_to_sound
from media.audio import read_wav
from media.command import Command
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing
from schemas.storyboard import WordTiming
from schemas.time import Span

CONFIG = InversionConfig()
TINY = AsrConfig(model="whisper-tiny-en")


def spans(*pairs: tuple[float, float]) -> tuple[Span, ...]:
    return tuple(Span(start_us=round(a * 1e6), end_us=round(b * 1e6)) for a, b in pairs)


def texts(found: Transcript) -> list[str]:
    return [s.text for s in found.segments]


@pytest.fixture(scope="session")
def two_sentences(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """A synthetic voice says two sentences; 4 s of silence lie between them, 1 s before."""
    folder = tmp_path_factory.mktemp("voice")
    graph = (
        "flite=text='The old pendulum swings slowly over the wooden table.':voice=slt[a];"
        "flite=text='Nobody was hurt when the building came down.':voice=slt[b];"
        "[a]aresample=16000,adelay=1000,apad=pad_dur=4[c];[b]aresample=16000,apad=pad_dur=1[d];[c][d]concat=n=2:v=0:a=1[o]"
    )
    argv = ("ffmpeg", "-v", "error", "-filter_complex", graph, "-map", "[o]", "-c:a", "pcm_s16le", "-fflags", "+bitexact", "/out/voice.wav")
    done = open_sandbox("process").run(Command(argv=argv, outputs=("voice.wav",)), folder)
    assert done.returncode == 0, done.stderr
    sound, rate = read_wav(done.outputs["voice.wav"].read_bytes())
    assert rate == 16_000
    return sound


@pytest.fixture(scope="session")
def tiny() -> FasterWhisper:
    try:
        return FasterWhisper(TINY)
    except EngineMissing as missing:
        pytest.skip(str(missing))


@dataclass
class Double:
    """A recogniser whose answers are set by the test."""

    answers: list[list[SpokenSegment]]
    votes: list[Mapping[str, float]] = field(default_factory=list)
    name: str = "double"
    longest_us: int = 28_000_000
    takes_whole: bool = False
    gives_aligned: bool = False
    at_once: int = 1
    asked: list[tuple[int, str | None, bool]] = field(default_factory=list)

    def detect(self, sound: Samples) -> Mapping[str, float]:
        return self.votes.pop(0) if self.votes else {}

    def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
        self.asked.append((len(sound), language, careful))
        return Heard(tuple(self.answers.pop(0)) if self.answers else (), language)


def said(text: str, start: float, end: float, confidence: float = 0.9) -> SpokenSegment:
    words = words_of(text)
    step = (end - start) / len(words)
    timed = tuple(
        SpokenWord(
            w.text, round((start + k * step) * 1e6), round((start + (k + 1) * step) * 1e6), 0.9, WordTiming.RECOGNISED, w.space_after
        )
        for k, w in enumerate(words)
    )
    return SpokenSegment(timed, round(start * 1e6), round(end * 1e6), confidence)


# -- speech and windows ------------------------------------------------------------------------------------------------------


def test_speech_is_found_where_somebody_speaks(two_sentences: Samples) -> None:
    found = speech_spans(speech_probabilities(two_sentences), len(two_sentences))
    assert len(found) == 2
    assert 1.0e6 < found[0].start_us < 1.4e6
    assert found[1].start_us - found[0].end_us > 3.5e6


def test_blocks_give_the_same_speech_as_one_piece(two_sentences: Samples, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = speech_probabilities(two_sentences)
    monkeypatch.setattr("inversion.speech._BLOCK", 37)
    np.testing.assert_allclose(speech_probabilities(two_sentences), whole, atol=1e-5)


def test_windows_are_few_end_in_long_pauses_and_shorten_silences() -> None:
    speech = spans((1, 9), (9.2, 17), (20, 27), (27.2, 36))
    windows = cut_windows(speech, 40_000_000, longest_us=28_000_000, keep_us=1_000_000, pad_us=200_000)
    assert [(w.span.start_us, w.span.end_us) for w in windows] == [(800_000, 17_200_000), (19_800_000, 36_200_000)]
    (one,) = cut_windows(spans((1, 3), (20, 22)), 30_000_000, longest_us=28_000_000, keep_us=1_000_000, pad_us=200_000)
    assert one.parts == spans((0.8, 3.5), (19.5, 22.2))
    assert one.duration_us == 5_400_000


def test_no_window_is_longer_than_allowed_and_all_speech_is_in_one() -> None:
    speech = spans(*((k * 3.7, k * 3.7 + 2.9) for k in range(40)))
    windows = cut_windows(speech, 150_000_000, longest_us=28_000_000, keep_us=1_000_000, pad_us=200_000)
    assert all(w.duration_us <= 28_000_000 for w in windows)
    assert covered_us(speech, merge_spans(p for w in windows for p in w.parts)) == sum(s.duration_us for s in speech)


def test_times_of_a_window_come_back_to_the_film() -> None:
    window = Window(spans((10, 12), (40, 43)))
    assert window.on_film(500_000, 900_000) == (10_500_000, 10_900_000)
    assert window.on_film(1_900_000, 2_500_000) == (40_000_000, 40_500_000)
    assert (window.off_film(40_500_000), window.off_film(20_000_000)) == (2_500_000, None)


def test_speech_without_a_pause_is_cut_where_it_is_least_likely() -> None:
    probabilities = np.full(2_000, 0.9, dtype=np.float32)
    probabilities[700] = 0.55
    cut = 700 * 512 * 1_000_000 // 16_000
    found = split_long([Span(start_us=0, end_us=40_000_000)], probabilities, 28_000_000)
    assert found == (Span(start_us=0, end_us=cut), Span(start_us=cut, end_us=40_000_000))


def test_spans_are_taken_from_spans() -> None:
    assert without(spans((0, 10)), spans((2, 3), (5, 6))) == spans((0, 2), (3, 5), (6, 10))


def test_words_do_not_reach_into_digital_silence() -> None:
    sound = np.zeros(16_000, dtype=np.float32)
    sound[4_800:8_000] = 0.5
    word = SpokenWord("in", 286_000, 600_000, None, WordTiming.ALIGNED)
    (trimmed,) = trim_to_sound([word], loud_frames(sound))
    assert (trimmed.start_us, trimmed.end_us) == (300_000, 500_000)


# -- recognition -------------------------------------------------------------------------------------------------------------


def test_two_sentences_are_heard_on_the_films_clock_with_aligned_words(two_sentences: Samples, tiny: FasterWhisper) -> None:
    found = transcribe(two_sentences, tiny, CONFIG)
    assert [t.lower().rstrip(".") for t in texts(found)] == [
        "the old pendulum swings slowly over the wooden table",
        "nobody was hurt when the building came down",
    ]
    words = [w for s in found.segments for w in s.words]
    assert {w.timing for w in words} == {WordTiming.ALIGNED}
    assert (words[0].start_us or 0) >= 1_000_000
    assert not any(4_400_000 < (w.start_us or 0) < 7_500_000 for w in words)
    assert found.speech_covered > 0.95
    assert found.engines["aligner"].startswith("pocketsphinx")


def test_the_same_sound_gives_the_same_transcript(two_sentences: Samples, tiny: FasterWhisper) -> None:
    assert transcribe(two_sentences, tiny, CONFIG) == transcribe(two_sentences, tiny, CONFIG)


def test_silence_and_noise_give_no_words(tiny: FasterWhisper) -> None:
    assert transcribe(np.zeros(80_000, dtype=np.float32), tiny, CONFIG).segments == ()
    hiss = np.random.default_rng(1).normal(0, 0.01, 80_000).astype(np.float32)
    assert transcribe(hiss, tiny, CONFIG).segments == ()
    assert transcribe(np.zeros(0, dtype=np.float32), tiny, CONFIG).segments == ()


def test_a_missing_model_is_a_typed_error(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing) as caught:
        recogniser(AsrConfig(model=str(tmp_path / "nowhere")))
    assert caught.value.code == "asr_model_missing"


def test_a_block_that_was_passed_over_is_listened_to_again(two_sentences: Samples, tiny: FasterWhisper) -> None:
    class Drops:
        """Forgets what follows the first segment, once."""

        name, longest_us, takes_whole, gives_aligned, at_once = "drops", tiny.longest_us, False, False, 1

        def detect(self, sound: Samples) -> Mapping[str, float]:
            return {"en": 1.0}

        def recognise(self, sound: Samples, language: str | None, *, careful: bool = False) -> Heard:
            heard = tiny.recognise(sound, language, careful=careful)
            first = SpokenSegment(tuple(w for w in heard.segments[0].words if (w.start_us or 0) < 4_000_000), 0, 4_000_000, 0.9)
            return heard if careful else Heard((first,), "en")

    found = transcribe(two_sentences, Drops(), CONFIG)
    assert [("building" in t, s.flags) for t, s in zip(texts(found), found.segments, strict=True)] == [
        (False, ()),
        (True, ("heard_again",)),
    ]
    assert found.flags == ("heard_again:1",)
    assert found.speech_covered > 0.95


def test_text_for_silence_is_dropped_and_counted(two_sentences: Samples) -> None:
    double = Double([[said("The old pendulum swings slowly over the wooden table", 0.2, 2.9), said("Thanks for watching.", 3.45, 3.85)]])
    found = transcribe(
        two_sentences, double, InversionConfig.model_validate({"timing": {"aligner": "none", "hallucination_share": 0.6}}), language="en"
    )
    assert texts(found) == ["The old pendulum swings slowly over the wooden table"]
    assert "dropped_in_silence:1" in found.flags


def test_a_close_call_between_languages_is_decided_by_recognising(two_sentences: Samples) -> None:
    double = Double([[said("een", 0, 1, 0.4)], [said("one", 0, 1, 0.8)]], votes=[{"nl": 0.5, "en": 0.45}])
    assert transcribe(two_sentences, double, CONFIG).language == "en"
    assert [asked[1] for asked in double.asked[:2]] == ["nl", "en"]


def test_an_accent_is_outvoted_by_other_windows() -> None:
    double = Double([], votes=[{"nl": 0.6, "en": 0.4}, {"en": 0.9, "nl": 0.1}])
    windows = (Window(spans((0, 20))), Window(spans((30, 45))))
    assert spoken_language(np.zeros(16_000 * 50, dtype=np.float32), windows, double) == ("en", 0.65)


# -- forced alignment --------------------------------------------------------------------------------------------------------


def test_known_words_are_found_in_the_sound(two_sentences: Samples) -> None:
    times = align_words(two_sentences[:80_000], ["The", "old", "pendulum", "swings", "slowly", "over", "the", "wooden", "table."])
    assert times is not None
    starts = [t[0] for t in times if t is not None]
    assert len(starts) == 9
    assert starts == sorted(starts)
    assert 1_000_000 <= starts[0] < 1_250_000


def test_equal_sound_gives_equal_times_whatever_was_aligned_before(two_sentences: Samples) -> None:
    words = ["The", "old", "pendulum", "swings", "slowly", "over", "the", "wooden", "table."]
    noise = np.random.default_rng(7).normal(0, 0.3, 160_000).astype(np.float32)
    first = align_words(two_sentences[:80_000], words)
    for other, text in ((noise, ["some", "words"]), (two_sentences[80_000:], ["Nobody", "was", "hurt"]), (noise * 0.01, ["more"])):
        align_words(other, text)
    assert align_words(two_sentences[:80_000], words) == first


def test_a_text_that_cannot_fit_gives_nothing(two_sentences: Samples) -> None:
    assert align_words(two_sentences[16_000:20_000], ["a", "great", "many", "words", "that", "nobody", "said"] * 4) is None


def test_words_without_sounds_get_no_times(two_sentences: Samples) -> None:
    times = align_words(two_sentences[:80_000], ["The", "old", "—", "pendulum", "swings", "slowly", "over", "the", "wooden", "table."])
    assert times is not None
    assert times[2] is None


@pytest.mark.parametrize(
    ("word", "sounds"),
    [
        ("15", "F IH F T IY N"),
        ("Kubernetes", "K UW B AH R N IY T S"),
        ("$5", "F AY V D AA L AH R Z"),
        ("her", "HH ER"),
        ("—", ""),
    ],
)
def test_words_outside_the_dictionary_are_pronounced_by_rule(word: str, sounds: str) -> None:
    assert " ".join(arpabet(word)) == sounds


# -- subtitles and scripts ---------------------------------------------------------------------------------------------------


def test_subtitles_are_refined_by_the_sound(two_sentences: Samples) -> None:
    text = (
        "1\n00:00:00,500 --> 00:00:05,000\nThe old pendulum swings slowly over the wooden table.\n\n"
        "2\n00:00:07,600 --> 00:00:11,000\nNobody was hurt when the building came down.\n"
    )
    found = from_sidecar(parse_sidecar(text.encode()), two_sentences, CONFIG, "en")
    words = [w for s in found.segments for w in s.words]
    assert {w.timing for w in words} == {WordTiming.ALIGNED}
    assert 1_000_000 <= (words[0].start_us or 0) < 1_250_000
    assert (words[8].end_us or 0) < 4_500_000
    assert found.engines["asr"] == "sidecar srt"
    assert found.speech_covered > 0.9


def test_subtitles_in_other_languages_are_laid_over_the_speech_inside_their_cue() -> None:
    cue = SpokenSegment(words_of("你好世界"), 0, 10_000_000)
    words = lay_over_speech(cue, spans((2, 3), (7, 8))).words
    assert [(w.text, w.start_us, w.end_us) for w in words] == [
        ("你", 2_000_000, 2_500_000),
        ("好", 2_500_000, 3_000_000),
        ("世", 7_000_000, 7_500_000),
        ("界", 7_500_000, 8_000_000),
    ]


def test_cues_behind_the_end_of_the_sound_are_dropped_and_counted(two_sentences: Samples) -> None:
    text = "1\n00:00:01,000 --> 00:00:04,000\nThe old pendulum.\n\n2\n01:00:00,000 --> 01:00:02,000\nNever.\n"
    found = from_sidecar(parse_sidecar(text.encode()), two_sentences, CONFIG, "en")
    assert texts(found) == ["The old pendulum."]
    assert "cues_dropped:1" in found.flags


def test_a_known_script_gives_the_text_and_the_sound_gives_the_times(two_sentences: Samples, tiny: FasterWhisper) -> None:
    script = [
        SpokenSegment(words_of("The Old Pendulum swings (slowly) over the wooden table.\n")),
        SpokenSegment(words_of("Nobody was hurt when the building came down!")),
    ]
    found = transcribe(two_sentences, tiny, CONFIG, language="en", script=script)
    assert texts(found) == ["The Old Pendulum swings (slowly) over the wooden table.", "Nobody was hurt when the building came down!"]
    assert found.script_match == 1.0
    assert {w.timing for s in found.segments for w in s.words} == {WordTiming.ALIGNED}
    assert (found.segments[1].words[0].start_us or 0) > 7_500_000


# -- real speech -------------------------------------------------------------------------------------------------------------


def real(shared: Path, name: str) -> Samples:
    from media.audio import read_audio
    from media.probe import probe

    path = shared / name
    sandbox = open_sandbox("process")
    return read_audio(path, probe(path, sandbox), sandbox)


@pytest.mark.shared
def test_25_s_of_silence_split_two_sentences(shared: Path, tiny: FasterWhisper) -> None:
    found = transcribe(real(shared, "cases/silence_25s_between.mp4"), tiny, CONFIG)
    times = [(s.words[0].start_us or 0, s.words[-1].end_us or 0) for s in found.segments]
    assert len(times) == 2
    assert times[0][0] == pytest.approx(500_000, abs=150_000)
    assert times[0][1] <= 3_000_000
    assert times[1][0] == pytest.approx(28_000_000, abs=150_000)


@pytest.mark.shared
def test_a_sound_track_that_starts_late_is_on_the_pictures_clock(shared: Path, tiny: FasterWhisper) -> None:
    found = transcribe(real(shared, "cases/audio_starts_1.5s.mkv"), tiny, CONFIG)
    assert (found.segments[0].words[0].start_us or 0) >= 1_500_000


@pytest.mark.shared
@pytest.mark.slow
def test_numerals_keep_their_times(shared: Path, tiny: FasterWhisper) -> None:
    found = transcribe(real(shared, "cases/numerals_1455.mp4"), tiny, CONFIG)
    words = [w for s in found.segments for w in s.words]
    assert any("1455" in w.text for w in words)
    at = 0
    for w in words:
        assert at <= (w.start_us or 0) < (w.end_us or 0) <= 9_010_000
        at = w.end_us or 0


@pytest.mark.shared
@pytest.mark.slow
def test_a_film_in_two_languages_is_heard_in_both(shared: Path) -> None:
    found = transcribe(real(shared, "media/narrated/autocut_test001_zh-en.mp4"), recogniser(AsrConfig()), CONFIG)
    assert found.language == "zh"
    text = "".join(texts(found))
    assert "大家好" in text
    assert "testing" in text
    assert [s.language for s in found.segments][-1] == "en"


def test_times_and_samples_agree() -> None:
    assert (samples_at(1_000_000), us_at(16_000)) == (16_000, 1_000_000)
    assert find_speech(np.zeros(16_000, dtype=np.float32), CONFIG).spans == ()


def test_asking_for_the_language_encodes_the_sound_once(two_sentences: Samples) -> None:
    try:
        engine = FasterWhisper(AsrConfig(model="whisper-base"))
    except EngineMissing as missing:
        pytest.skip(str(missing))
    encoder = engine._model.encode
    inner, count = encoder._encode, []
    encoder._kept.clear()
    encoder._encode = lambda features: count.append(1) or inner(features)
    try:
        assert max(engine.detect(two_sentences).items(), key=lambda v: v[1])[0] == "en"
        assert "pendulum" in engine.recognise(two_sentences, "en").segments[0].text
    finally:
        encoder._encode = inner
    assert len(count) == 1
