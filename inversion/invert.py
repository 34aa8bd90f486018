"""Editing inversion of one source: probe, listen and look at the same time, align, judge. The one entry point of this package.

A stage: typed input in, ``Done`` or ``Rejected`` out. Writes artifacts (key frames, the storyboard) and no tables.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inversion.admission import refuse_item, refuse_media, refuse_storyboard, refuse_transcript
from inversion.asr import Recogniser, recogniser
from inversion.config import AsrConfig, InversionConfig
from inversion.evidence import gather_evidence
from inversion.given import from_sidecar
from inversion.language import language_code, stated_language
from inversion.listen import transcribe
from inversion.rows import storyboard_rows
from inversion.shots import DetectedShot, detect_shots
from inversion.sidecar import Sidecar, read_sidecar
from inversion.spotlight import find_spotlights
from inversion.storyboard import build_storyboard
from inversion.transcript import Transcript
from inversion.vision import describer
from media.audio import read_pcm
from media.command import Sandbox
from media.crew import Crew, result
from media.probe import probe
from schemas.artifact import ArtifactKind
from schemas.canonical import derive_id
from schemas.errors import MediaRejected
from schemas.media import MediaInfo, SourceItem
from schemas.stage import Done, RejectCode, Rejected
from schemas.storyboard import Evidence, Storyboard, TextBox
from storage.artifacts import ArtifactStore

Note = Callable[[str], None]
T = TypeVar("T")


class TextReader(Protocol):
    """Optical character recognition (structural; media.ocr has one)."""

    name: str

    def read(self, image: NDArray[np.uint8]) -> tuple[TextBox, ...]:
        """Text lines of a picture, top to bottom."""
        ...


class _Stopped(Exception):
    """The other half of the work failed; this half need not go on."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the eyes found."""

    shots: tuple[DetectedShot, ...]
    evidence: list[Evidence]


def invert(
    item: SourceItem,
    path: Path,
    config: InversionConfig,
    *,
    sandbox: Sandbox,
    store: ArtifactStore,
    reader: TextReader | None = None,
    open_recogniser: Callable[[AsrConfig], Recogniser] = recogniser,
    note: Note | None = None,
) -> Done[Storyboard] | Rejected:
    """Recover the storyboard of a finished narrated video.

    Args:
        item: the source as the user named it; its subtitles or script are used where it names them (``config.asr.prefer_given``).
        path: the file itself. Opened in the sandbox only.
        config: all thresholds and engines; part of the stage key.
        sandbox: where decoders run.
        store: key frames and the storyboard are written here.
        reader: reads text off key frames; without one no on-screen text is found.
        open_recogniser: gives who listens, asked only where the source brings no text of its own.
        note: told of progress, from either of two threads.

    Returns:
        ``Done`` with the storyboard, rows for projects (without ``split``), words, sentences, shots, alignments and storyboards, and the
        digests of all artifacts; or ``Rejected`` with a closed code and figures.

    Raises:
        PipelineError: our own failures (sandbox, engines, storage); never for what is in the file.
    """
    tell = note or (lambda _: None)
    refused = refuse_item(item, config.admission)
    if refused is not None:
        return refused
    try:
        tell("probing")
        media = probe(path, sandbox)
        refused = refuse_media(media, config)
        if refused is not None:
            return refused
        given = _given(item, config)
        seen, heard = _look_and_listen(path, media, item, given, config, sandbox, store, reader, open_recogniser, tell)
    except MediaRejected as error:
        return rejected(error)
    if isinstance(heard, Rejected):
        return heard
    return _judge(item, media, heard, seen, config, store, reader, tell)


def rejected(error: MediaRejected) -> Rejected:
    """A rejection with the same closed code; codes of side files count as unreadable."""
    codes = {c.value for c in RejectCode}
    return Rejected(RejectCode(str(error.code)) if str(error.code) in codes else RejectCode.UNREADABLE, error.message)


def project_id_of(media: MediaInfo) -> str:
    """The project's id: named by the source's bytes alone."""
    return derive_id("project", {"source_sha256": media.sha256})


@dataclass(frozen=True, slots=True)
class _Given:
    """Text that came with the source: timed subtitles, or a script without times."""

    subtitles: Sidecar | None = None
    script: Sidecar | None = None


def _given(item: SourceItem, config: InversionConfig) -> _Given:
    if not config.asr.prefer_given:
        return _Given()
    if item.subtitles is not None:
        found = read_sidecar(Path(item.subtitles), config.sidecar_bytes)
        return _Given(subtitles=found) if found.is_timed else _Given(script=found)
    if item.script is not None:
        return _Given(script=read_sidecar(Path(item.script), config.sidecar_bytes))
    return _Given()


def _look_and_listen(
    path: Path,
    media: MediaInfo,
    item: SourceItem,
    given: _Given,
    config: InversionConfig,
    sandbox: Sandbox,
    store: ArtifactStore,
    reader: TextReader | None,
    open_recogniser: Callable[[AsrConfig], Recogniser],
    tell: Note,
) -> tuple[_Seen, Transcript | Rejected]:
    """Both halves, at the same time where the configuration allows; a rejected transcript ends the looking early."""
    stop = threading.Event()

    def say(text: str) -> None:
        if stop.is_set():
            raise _Stopped
        tell(text)

    def listen() -> Transcript | Rejected:
        try:
            transcript = _listen(path, media, item, given, config, sandbox, open_recogniser, say)
            refused = refuse_transcript(transcript, config.admission)
            if refused is not None:
                stop.set()
            return refused or transcript
        except BaseException:
            stop.set()
            raise

    def look() -> _Seen:
        track = detect_shots(path, media, sandbox, config)
        say(f"found {len(track.shots)} shots")
        evidence = gather_evidence(path, media, sandbox, track.shots, reader if config.evidence.ocr else None, store, config)
        say("looked at every shot")
        return _Seen(track.shots, evidence)

    if not config.overlap:
        heard = listen()
        return (_Seen((), []), heard) if isinstance(heard, Rejected) else (look(), heard)
    with Crew(max_workers=1, thread_name_prefix="listen") as pool:
        future = pool.submit(listen)
        try:
            seen = look()
        except _Stopped:
            return _Seen((), []), result(future)
        except BaseException:
            stop.set()
            raise
        return seen, result(future)


def _listen(
    path: Path,
    media: MediaInfo,
    item: SourceItem,
    given: _Given,
    config: InversionConfig,
    sandbox: Sandbox,
    open_recogniser: Callable[[AsrConfig], Recogniser],
    say: Note,
) -> Transcript:
    audio = read_pcm(path, media, sandbox)
    if given.subtitles is not None:
        say("reading subtitles")
        return from_sidecar(given.subtitles, audio, config, config.language or stated_language(item.language or ""))
    script = None if given.script is None else given.script.segments
    wanted = item.language or (None if given.script is None else given.script.language)
    language = config.language or language_code(wanted or "")
    if wanted and language is None:
        say(f"'{wanted[:40]}' is no language that a recogniser knows; the sound decides")
    return transcribe(audio, open_recogniser(config.asr), config, language=language, script=script, note=say)


def _judge(
    item: SourceItem,
    media: MediaInfo,
    heard: Transcript,
    seen: _Seen,
    config: InversionConfig,
    store: ArtifactStore,
    reader: TextReader | None,
    tell: Note,
) -> Done[Storyboard] | Rejected:
    tell("assembling the storyboard")
    engines = dict(heard.engines)
    if reader is not None and config.evidence.ocr:
        engines["ocr"] = reader.name
    eye = describer(config.evidence)
    if eye is not None:
        engines["caption"] = eye.name
    board = build_storyboard(
        project_id_of(media),
        item,
        media,
        heard,
        seen.shots,
        seen.evidence,
        lambda narrations: find_spotlights(seen.evidence, narrations, seen.shots, heard.language, title=item.title),
        config,
        engines,
    )
    refused = refuse_storyboard(board, config.admission)
    if refused is not None:
        return refused
    whole = store.put_bytes(board.canonical(), ArtifactKind.STORYBOARD, "application/json")
    frames = [k.sha256 for s in board.shots for k in s.evidence.key_frames]
    return Done(board, storyboard_rows(board), tuple(dict.fromkeys([*frames, whole.sha256])))
