"""Opens the engines that a configuration names."""

from __future__ import annotations

from media.command import Sandbox
from media.ocr import RapidReader
from replay.config import ReplayConfig
from replay.embed import open_embedder
from replay.engines import Engines, SpeechEngine, TextReader
from replay.graphics.pack import load_templates
from replay.music import open_music
from replay.sight import open_sight
from replay.speech import open_speech


def build_engines(
    config: ReplayConfig, sandbox: Sandbox, *, speech: SpeechEngine | None = None, reader: TextReader | None = None
) -> Engines:
    """The engines of a run. Models are loaded at first use, so this is cheap.

    Args:
        speech: used instead of the configured engine, which is then not opened here: the same one in another process.
        reader: as ``speech``, for text recognition.

    Raises:
        EngineMissing: a configured engine, model or library is not installed; says what brings it.
        ConfigInvalid: an endpoint or a folder of the configuration makes no sense.
    """
    return Engines(
        speech=open_speech(config.speech, sandbox) if speech is None else speech,
        embedder=open_embedder(config.retrieval.embedder),
        music=open_music(config.mix.music_folder),
        templates=load_templates(),
        reader=RapidReader() if reader is None else reader,
        sight=None if config.retrieval.image_model is None else open_sight(config.retrieval.image_model),
    )
