"""Spoken sentences with the exact time of every word: the sound half of the film studio.

Three ways: the neural voice with the phone durations its own model decided on, flite (times of sentences only), and recordings whose text
is known (times of sentences only). Must not lay sentences out in a film.

**How word times come about.** The Kokoro graph decides how many units of 25 ms each of its symbols lasts before it makes any sound; that
tensor is asked for as a second output. Two things make it inexact: the sound of a phone begins some 10 to 60 ms before the place the
durations give, by phone, and the last symbol before a pause counts the pause too. So the durations say which word is where, and the sound
says where it begins and ends: a border at a pause goes to the edge of the audible sound; a border inside running speech goes to the
strongest change of the spectrum near by.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evaluation.studio.truth import Credit
from media.assets import asset, cache_folder
from media.audio import read_audio
from media.command import Sandbox
from media.probe import probe
from replay.config import SpeechConfig
from replay.engines import Samples
from replay.kokoro import KokoroSpeech, phonemes, symbol_ids
from replay.sound import fade_edges, resample, trim_silence
from replay.speech import open_speech
from schemas.canonical import digest_of
from schemas.errors import ConfigInvalid, EngineMissing, ToolFailed
from schemas.time import US
from storage.durable import make_folder, write_file

RATE = 24_000
"""Samples per second of everything spoken here."""
UNIT = 600
"""Samples of one unit of duration."""

_DURATIONS = b"/encoder/Clip_output_0"
_STEP = 120
"""Samples between two looks at the sound: 5 ms."""
_QUIET_DB = -38.0
"""Below the loudest 5 ms by this much is silence."""
_PAUSE_US = 90_000
"""A shorter silence at a border is the closure of a consonant and belongs to the word behind it."""
_EARLY_US, _REACH_US, _SPREAD_US = 25_000, 50_000, 20_000
"""Where inside running speech a border is expected (this much before the place the durations give), and how far from there it may lie."""
_MARKS = set(';:,.!?—…"()“” ')


@dataclass(frozen=True, slots=True)
class TimedWord:
    """A word as written, with its place in the sound, microseconds from the first sample."""

    text: str
    start_us: int
    end_us: int
    space_after: bool


@dataclass(frozen=True, slots=True)
class Utterance:
    """One spoken sentence: mono samples at :data:`RATE`, its words in order."""

    text: str
    samples: Samples
    words: tuple[TimedWord, ...]


class Speaker(Protocol):
    """Speaks sentences."""

    @property
    def name(self) -> str:
        """Engine and voice."""
        ...

    @property
    def exact_words(self) -> bool:
        """Word times can be relied on."""
        ...

    @property
    def credits(self) -> tuple[Credit, ...]:
        """Whose work the voice is."""
        ...

    def speak(self, text: str) -> Utterance:
        """One sentence. Raises PipelineError where the engine cannot."""
        ...


class KokoroSpeaker:
    """The neural voice, with word times.

    Speech is kept in the cache folder by what was asked for, because it takes about as long to make as to listen to.

    Args:
        language: ``en`` or ``zh``.
        voice: a name such as ``af_heart``.
        speed: 1.0 is the voice's own.
    """

    exact_words = True
    credits = (
        Credit(what="Kokoro-82M voice model, int8 export", author="hexgrad; export by thewh1teagle", licence="Apache-2.0; export MIT"),
    )

    def __init__(self, language: str, voice: str, speed: float = 1.0) -> None:
        engine = KokoroSpeech(asset("kokoro-model"), asset("kokoro-voices"))
        self._voice = engine.voice_for(language, voice)
        self._language, self._speed = language, speed
        self._key = {"engine": engine.name, "version": engine.version}
        self.name = f"{engine.name} {self._voice}"

    def speak(self, text: str) -> Utterance:
        """Raises EngineMissing without the model, and ToolFailed where its answer does not fit the text."""
        wave, edges, sounds = self._heard(text)
        written, groups = _written(text, self._language), _groups(sounds)
        counts = [max(1, len(_groups(phonemes(w, self._language)))) if self._language == "en" else 1 for w, _ in written]
        if sum(counts) != len(groups):
            raise ToolFailed("speech_words", f"{len(groups)} spoken words for {sum(counts)} written ones: {text[:60]!r}", "reword it")
        spans: list[tuple[float, float]] = []
        at = 0
        for count in counts:
            spans.append((float(edges[groups[at][0] + 1]), float(edges[groups[at + count - 1][1] + 1])))
            at += count
        times = settle_times(wave, spans)
        lead = max(0, times[0][0] - RATE // 25)
        tail = min(len(wave), times[-1][1] + RATE // 10)
        words = tuple(
            TimedWord(w, (a - lead) * US // RATE, (b - lead) * US // RATE, space) for (w, space), (a, b) in zip(written, times, strict=True)
        )
        return Utterance(text, fade_edges(wave[lead:tail], RATE), words)

    def _heard(self, text: str) -> tuple[Samples, NDArray[np.int64], str]:
        """Samples, edges of the model's symbols (samples, silence before and after included), symbols; kept in the cache folder."""
        sounds = "".join(c for c in phonemes(text, self._language) if symbol_ids(c))
        key = {**self._key, "sounds": sounds, "voice": self._voice, "speed": str(self._speed)}
        file = cache_folder() / "studio-speech" / f"{digest_of(key)[:40]}.npz"
        kept = _read_kept(file)
        if kept is None:
            kept = self._run(symbol_ids(sounds))
            make_folder(file.parent)
            buffer = io.BytesIO()
            np.savez(buffer, wave=kept[0], edges=kept[1])
            write_file(file, buffer.getvalue())
        return (*kept, sounds)

    def _run(self, ids: list[int]) -> tuple[Samples, NDArray[np.int64]]:
        style = np.fromfile(asset("kokoro-voices") / f"{self._voice}.bin", "<f4").reshape(510, 256)[len(ids)]
        feed = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": style.reshape(1, 256),
            "speed": np.array([self._speed], np.float32),
        }
        answer = _timed_session().run(None, feed)
        wave, units = np.asarray(answer[0], np.float32).ravel(), np.asarray(answer[1]).ravel()
        if len(units) != len(ids) + 2 or not np.isfinite(wave).all():
            raise ToolFailed("speech_durations", f"{len(units)} durations for {len(ids)} symbols, or samples that are no numbers")
        return wave, (np.concatenate([[0], np.cumsum(units)]) * UNIT).astype(np.int64)


def _timed_session() -> Any:
    """The model with its durations as a second output.

    The file is a protocol buffer, where a message that comes twice is merged: a second graph that holds nothing but one output, put
    behind the bytes, adds that output to the first.
    """
    if not _SESSION:
        ort: Any = importlib.import_module("onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        value = b"\x0a" + bytes([len(_DURATIONS)]) + _DURATIONS
        graph = b"\x62" + bytes([len(value)]) + value
        model = asset("kokoro-model").read_bytes() + b"\x3a" + bytes([len(graph)]) + graph
        session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        if len(session.get_outputs()) != 2:
            raise EngineMissing("speech_durations", "this Kokoro model does not tell how long its phones last", "fetch the model again")
        _SESSION.append(session)
    return _SESSION[0]


_SESSION: list[Any] = []
"""The one loaded model of this process."""


def _written(text: str, language: str) -> list[tuple[str, bool]]:
    """(word, a space follows): what stands between spaces, or in Mandarin the words the letters-to-sounds step cuts the text into."""
    if language != "zh":
        parts = text.split()
        return [(p, k + 1 < len(parts)) for k, p in enumerate(parts)]
    jieba: Any = importlib.import_module("jieba")
    out: list[str] = []
    for piece in jieba.lcut(text):
        if out and not any(c.isalnum() for c in piece):
            out[-1] += piece
        else:
            out.append(piece)
    return [(w, False) for w in out]


def _groups(sounds: str) -> list[tuple[int, int]]:
    """Symbols ``[first, end)`` of each spoken word: runs between spaces and punctuation."""
    out: list[tuple[int, int]] = []
    for k, c in enumerate(sounds):
        if c in _MARKS:
            continue
        if out and out[-1][1] == k:
            out[-1] = (out[-1][0], k + 1)
        else:
            out.append((k, k + 1))
    return out


def settle_times(wave: Samples, spans: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Where each word is heard, in samples, from where the durations say it is.

    Args:
        wave: mono at :data:`RATE`.
        spans: samples (first, end) of each word by the durations alone; spaces and punctuation lie between.

    Returns:
        Ranges that rise and do not overlap, at pauses on the edges of audible sound.
    """
    level = loudness(wave)
    quiet = _quiet_runs(level > 10 ** (_QUIET_DB / 20) * float(level.max(initial=0.0)))
    change = _spectral_change(wave)
    starts, ends = [0] * len(spans), [0] * len(spans)
    heard = np.flatnonzero(level > 10 ** (_QUIET_DB / 20) * float(level.max(initial=0.0)))
    starts[0] = int(heard[0]) * _STEP if len(heard) else 0
    ends[-1] = (int(heard[-1]) + 1) * _STEP if len(heard) else len(wave)
    reach = _REACH_US * RATE / US
    for k, ((begin, end), (start, stop)) in enumerate(pairwise(spans)):
        near = [r for r in quiet if begin - reach < r[0] < start + reach and end - reach - 4 * UNIT < r[1] < stop]
        pause = max(near, key=lambda r: r[1] - r[0], default=None)
        if pause is not None and pause[1] - pause[0] >= _PAUSE_US * RATE // US:
            ends[k], starts[k + 1] = pause
            continue
        middle = _border(change, quiet, (end + start) / 2)
        ends[k] = starts[k + 1] = middle
    least = RATE // 50
    for k in range(len(spans)):
        if k:
            starts[k] = max(starts[k], ends[k - 1])
        ends[k] = max(ends[k], starts[k] + least)
    return list(zip(starts, ends, strict=True))


def loudness(wave: Samples) -> NDArray[np.float64]:
    """Root mean square of each 5 ms."""
    blocks = wave[: len(wave) // _STEP * _STEP].reshape(-1, _STEP).astype(np.float64)
    level: NDArray[np.float64] = np.sqrt((blocks * blocks).mean(axis=1))
    return level


def _quiet_runs(loud: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Silences inside the sound, in samples; sounds of 5 ms alone do not end one."""
    out: list[tuple[int, int]] = []
    edges = np.flatnonzero(np.diff(np.concatenate([[True], loud, [True]]).astype(np.int8)))
    for first, end in zip(edges[::2], edges[1::2], strict=True):
        if out and first - out[-1][1] // _STEP <= 1:
            out[-1] = (out[-1][0], int(end) * _STEP)
        else:
            out.append((int(first) * _STEP, int(end) * _STEP))
    return [r for r in out if r[0] > 0 and r[1] < len(loud) * _STEP]


def _spectral_change(wave: Samples) -> NDArray[np.float64]:
    """How much the spectrum (24 bands, logarithm) differs between 15 ms before and 15 ms after each 5 ms."""
    size, reach = 480, 3
    padded = np.pad(wave.astype(np.float64), (size // 2, size // 2))
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[::_STEP] * np.hanning(size)
    power = np.abs(np.fft.rfft(frames, 512))
    bands = np.geomspace(3, 256, 25).astype(int)
    log = np.log(np.stack([power[:, a : max(b, a + 1)].mean(axis=1) for a, b in pairwise(bands)], axis=1) + 1e-3)
    out = np.zeros(len(log))
    if len(log) > 2 * reach:
        out[reach:-reach] = np.abs(log[2 * reach :] - log[: -2 * reach]).mean(axis=1)
    return out


def _border(change: NDArray[np.float64], quiet: Sequence[tuple[int, int]], expected: float) -> int:
    """The border of two words that run into each other: the beginning of a closure where one is near, else the greatest change."""
    centre = expected - _EARLY_US * RATE / US
    reach = _REACH_US * RATE // US
    near = [r for r in quiet if abs(r[0] - centre) <= reach and r[1] - r[0] >= 3 * _STEP]
    if near:
        return min(near, key=lambda r: abs(r[0] - centre))[0]
    low, high = max(0, int((centre - reach) // _STEP)), min(len(change), int((centre + reach) // _STEP) + 1)
    at = np.arange(low, high)
    if not len(at):
        return max(0, int(centre))
    likely = np.exp(-0.5 * ((at * _STEP - centre) / (_SPREAD_US * RATE / US)) ** 2)
    return int(at[int((change[low:high] * likely).argmax())]) * _STEP


def _read_kept(file: Path) -> tuple[Samples, NDArray[np.int64]] | None:
    try:
        with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as kept:
            return kept["wave"], kept["edges"]
    except (OSError, ValueError, KeyError):
        return None


class FliteSpeaker:
    """flite: fast and rough, English only. Knows when sentences are spoken, not words."""

    exact_words = False
    credits = (Credit(what="flite voice", author="Carnegie Mellon University", licence="BSD-like"),)

    def __init__(self, sandbox: Sandbox, language: str, voice: str = "slt") -> None:
        self._engine = open_speech(SpeechConfig(engine="flite"), sandbox)
        self._voice = self._engine.voice_for(language, voice)
        self._language = language
        self.name = f"flite {self._voice}"

    def speak(self, text: str) -> Utterance:
        """Words share the sentence's time by their letters."""
        samples, rate = self._engine.speak(text, self._language, self._voice, 1.0)
        return _shared_out(text, resample(samples, rate, RATE), self._language)


class Recordings:
    """Recordings of one speaker with their text, from a folder with a ``metadata.csv`` as LJ Speech has it (name|text|normalised text).

    Speaks the recordings' own texts only, see :attr:`texts`.
    """

    exact_words = False

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        table = folder / "metadata.csv"
        if not table.is_file():
            raise ConfigInvalid("no_recordings", f"{folder.name} holds no metadata.csv", "give a folder as LJ Speech has it")
        self._files: dict[str, Path] = {}
        for line in table.read_text(encoding="utf-8").splitlines():
            name, _, texts = line.partition("|")
            found = sorted((*folder.glob(f"{name}.*"), *(folder / "wavs").glob(f"{name}.*")))
            if found and texts:
                self._files[" ".join(texts.split("|")[-1].split())] = found[0]
        if not self._files:
            raise ConfigInvalid("no_recordings", f"{folder.name}: no recording named in metadata.csv is there", "check the folder")
        self._sandbox = sandbox
        self.name = f"recordings {folder.name}"
        self.credits = (Credit(what=f"recordings of {folder.name}", author="see the folder", licence="see the folder"),)

    @property
    def texts(self) -> tuple[str, ...]:
        """What can be spoken, in the order of the table."""
        return tuple(self._files)

    def speak(self, text: str) -> Utterance:
        """The recording of exactly this text. Raises ConfigInvalid where there is none."""
        if text not in self._files:
            raise ConfigInvalid("no_such_recording", f"nobody recorded {text[:60]!r}", "speak one of the recordings' texts")
        path = self._files[text]
        samples = trim_silence(read_audio(path, probe(path, self._sandbox), self._sandbox, RATE), RATE)
        return _shared_out(text, fade_edges(samples, RATE), "en")


def _shared_out(text: str, samples: Samples, language: str) -> Utterance:
    level = loudness(samples)
    heard = np.flatnonzero(level > 10 ** (_QUIET_DB / 20) * float(level.max(initial=0.0)))
    first, last = (int(heard[0]) * _STEP, (int(heard[-1]) + 1) * _STEP) if len(heard) else (0, len(samples))
    start, end = first * US // RATE, last * US // RATE
    words = _written(text, language)
    edges = np.cumsum([0, *(len(w) for w, _ in words)]) * (end - start) // max(1, sum(len(w) for w, _ in words)) + start
    return Utterance(text, samples, tuple(TimedWord(w, int(edges[k]), int(edges[k + 1]), s) for k, (w, s) in enumerate(words)))
