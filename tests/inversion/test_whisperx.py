"""WhisperX behind its guard: missing, with a stand-in package of the same interface, and for real where the extra is installed:

python -m venv VENV && VENV/bin/pip install -e '.[whisperx]' pytest pytest-timeout
VENV/bin/pytest -m full tests/inversion/test_whisperx.py
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inversion.asr import recogniser
from inversion.config import AsrConfig, InversionConfig
from inversion.listen import transcribe
from media.audio import read_audio
from media.probe import probe
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing
from schemas.storyboard import WordTiming

SOUND = np.zeros(32_000, dtype=np.float32)


INSTALLED = importlib.util.find_spec("whisperx") is not None


@pytest.mark.skipif(INSTALLED, reason="whisperx is installed")
def test_without_the_package_the_engine_is_missing() -> None:
    with pytest.raises(EngineMissing) as caught:
        recogniser(AsrConfig(engine="whisperx"))
    assert caught.value.code == "whisperx_missing"
    assert "workprint[whisperx]" in caught.value.next_step


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """A package named whisperx that answers as the real one does; words without times as it leaves numerals."""
    log: list[tuple[str, dict[str, Any]]] = []
    fake = ModuleType("whisperx")
    fake.__spec__ = importlib.util.spec_from_loader("whisperx", loader=None)

    def load_model(name: str, device: str, **more: Any) -> SimpleNamespace:
        log.append(("load_model", {"name": name, "device": device, **more}))
        said = [{"start": 0.1, "end": 1.9, "text": " cost over $43,000."}]
        return SimpleNamespace(transcribe=lambda audio, batch_size, language: {"segments": said, "language": language or "en"})

    def align(segments: Any, model: Any, about: Any, audio: Any, device: str, **more: Any) -> dict[str, Any]:
        log.append(("align", {"device": device}))
        words = [{"word": "cost", "start": 0.1, "end": 0.4, "score": 0.9}, {"word": "over", "start": 0.5, "end": 0.9, "score": 0.8}]
        return {"segments": [{**segments[0], "words": [*words, {"word": "$43,000."}]}]}

    fake.load_model = load_model  # type: ignore[attr-defined]
    fake.load_align_model = lambda language, device, model_name=None: log.append(("aligner", {"name": model_name})) or ("m", {})  # type: ignore[attr-defined]
    fake.align = align  # type: ignore[attr-defined]
    nltk = ModuleType("nltk")
    nltk.data = SimpleNamespace(find=lambda name: name, path=[])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "whisperx", fake)
    monkeypatch.setitem(sys.modules, "nltk", nltk)
    real = importlib.metadata.version
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.8.6" if name == "whisperx" else real(name))
    return log


def test_words_keep_times_scores_and_gaps(calls: list[tuple[str, dict[str, Any]]]) -> None:
    engine = recogniser(AsrConfig(engine="whisperx", model="large-v3", whisperx_align_model="/models/w2v"))
    found = engine.recognise(SOUND, "en")
    assert [(w.text, w.start_us, w.confidence, w.timing) for w in found.segments[0].words] == [
        ("cost", 100_000, 0.9, WordTiming.ALIGNED),
        ("over", 500_000, 0.8, WordTiming.ALIGNED),
        ("$43,000.", None, None, WordTiming.INTERPOLATED),
    ]
    assert [name for name, _ in calls] == ["load_model", "aligner", "align"]
    assert calls[0][1]["vad_method"] == "pyannote"
    assert calls[1][1]["name"] == "/models/w2v"
    assert (engine.takes_whole, engine.gives_aligned, engine.name) == (True, True, "whisperx 3.8.6 large-v3 int8")


@pytest.mark.full
@pytest.mark.shared
@pytest.mark.skipif(not INSTALLED, reason="whisperx is not installed (an extra of several GB)")
def test_the_real_package_runs_with_local_models(shared: Path, tmp_path: Path) -> None:
    """Real recognition and voice activity; the alignment model is tiny and random, so only the order of its times means anything."""
    torch: Any = importlib.import_module("torch")
    transformers: Any = importlib.import_module("transformers")
    torch.manual_seed(0)
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"abcdefghijklmnopqrstuvwxyz'"]
    (tmp_path / "vocab.json").write_text(json.dumps({c: i for i, c in enumerate(letters)}))
    marks = {"unk_token": "<unk>", "pad_token": "<pad>", "word_delimiter_token": "|"}
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(tmp_path / "vocab.json"), **marks)
    extractor = transformers.Wav2Vec2FeatureExtractor(feature_size=1, sampling_rate=16_000, padding_value=0.0, do_normalize=True)
    transformers.Wav2Vec2Processor(feature_extractor=extractor, tokenizer=tokenizer).save_pretrained(tmp_path)
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128, "conv_dim": (32,) * 7}
    transformers.Wav2Vec2ForCTC(transformers.Wav2Vec2Config(vocab_size=len(letters), **shape)).save_pretrained(tmp_path)
    sandbox = open_sandbox("process")
    film = shared / "cases" / "numerals_1455.mp4"
    sound = read_audio(film, probe(film, sandbox), sandbox)
    config = InversionConfig(asr=AsrConfig(engine="whisperx", whisperx_align_model=str(tmp_path)))
    found = transcribe(sound, recogniser(config.asr), config)
    words = [w for s in found.segments for w in s.words]
    assert found.language == "en"
    assert "1455" in " ".join(w.text for w in words)
    assert all((a.end_us or 0) <= (b.start_us or 0) for a, b in pairwise(words))
    assert found.engines["asr"].startswith("whisperx 3")
