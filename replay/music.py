"""The music library: tracks with moods, titles and licences, and the choice of one for a query.

Owns reading a library's folder and ranking its tracks. Never decodes: a track's length and loudness are measured in the sandbox by the
tool that takes it.

A user's library is a folder with ``music.json``::

    {"name": "our music", "tracks": [{"file": "rain.flac", "title": "Rain", "moods": ["calm", "piano"],
      "licence": "CC-BY-4.0", "attribution": "A. Composer"}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from media.assets import asset
from replay.engines import Embedder, MusicTrack
from schemas.canonical import digest_of
from schemas.errors import ConfigInvalid

PACKAGE = "immich-memories-music"
INDEX = "music.json"

_STYLES = {
    "calm": "slow, quiet, relaxed, thoughtful, documentary, science, nature, lecture",
    "energetic": "fast, driving, powerful, sport, action, technology, excitement",
    "happy": "bright, cheerful, optimistic, friendly, holiday, family",
    "nostalgic": "wistful, memories, history, the past, melancholy, archive",
    "tender": "gentle, warm, emotional, love, care, intimate, hope",
    "acoustic": "guitar and piano",
    "electronic": "synthesizer and beats",
}
"""What the moods of the packaged library sound like, in words a query may use."""


@dataclass(slots=True)
class FolderLibrary:
    """A library on disk. ``duration_us`` of a track is 0 until somebody measured it."""

    name: str
    tracks: tuple[MusicTrack, ...]


def open_music(folder: str | None = None) -> FolderLibrary:
    """The user's library, or the packaged one.

    Args:
        folder: a folder with ``music.json``; None for the packaged library.

    Raises:
        EngineMissing: the packaged library is not installed.
        ConfigInvalid: the folder or its index is not as described.
    """
    return _packaged(asset("music-library")) if folder is None else _indexed(Path(folder))


def _packaged(root: Path) -> FolderLibrary:
    try:
        name = f"{PACKAGE} {version(PACKAGE)}"
    except PackageNotFoundError:
        name = PACKAGE
    tracks: list[MusicTrack] = []
    for file in sorted(root.rglob("*.opus")):
        parts = file.stem.split("_")
        moods = tuple(dict.fromkeys([file.parent.name, *(p for p in parts[:-1] if not p.isdigit())]))
        title = " ".join(parts).capitalize()
        tracks.append(MusicTrack(file.stem, file, title, moods, "MIT", "immich-memories (generated with ACE-Step 1.5)", 0))
    return FolderLibrary(name, tuple(tracks))


def _indexed(root: Path) -> FolderLibrary:
    index = root / INDEX
    try:
        data: Any = json.loads(index.read_text(encoding="utf-8"))
        name = str(data["name"])[:80]
        tracks = tuple(_track(root, entry) for entry in data["tracks"])
    except OSError as error:
        raise ConfigInvalid("no_music_index", f"{index} cannot be read: {error}", f"write {INDEX} as replay.music describes") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigInvalid(
            "bad_music_index", f"{index} is not as expected: {error}", f"write {INDEX} as replay.music describes"
        ) from error
    if len({t.track_id for t in tracks}) != len(tracks):
        raise ConfigInvalid("bad_music_index", f"{index} names a file twice", "name each file once")
    return FolderLibrary(f"{name} {digest_of(data)[:12]}", tracks)


def _track(root: Path, entry: dict[str, Any]) -> MusicTrack:
    file = (root / str(entry["file"])).resolve()
    if not file.is_relative_to(root.resolve()) or not file.is_file():
        raise ValueError(f"'{str(entry['file'])[:80]}' is no file of this folder")
    track_id = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(file.relative_to(root.resolve()).with_suffix("")))[:60]
    moods = tuple(str(m).strip().lower()[:40] for m in entry.get("moods", []))
    attribution = entry.get("attribution")
    return MusicTrack(
        track_id,
        file,
        str(entry.get("title", file.stem))[:120],
        moods,
        str(entry["licence"]),
        None if attribution is None else str(attribution),
        0,
    )


def rank_tracks(
    tracks: Sequence[MusicTrack], query: str, moods: Sequence[str], embedder: Embedder, *, present: str | None = None
) -> tuple[tuple[MusicTrack, float], ...]:
    """Tracks with their scores, 0 to 1, best first; equal scores in order of track id.

    Half of a score is likeness of the query to title and moods (scaled so that the likest track has 1), half is the share of the wanted
    moods that the track has.

    Args:
        present: a track already in use: it goes last, whatever its score.
    """
    if not tracks:
        return ()
    wanted = [m.strip().lower() for m in moods if m.strip()]
    texts = [f"{t.title}. {', '.join(t.moods)}. {'. '.join(_STYLES[m] for m in t.moods if m in _STYLES)}" for t in tracks]
    likeness = embedder.encode(texts, is_query=False) @ embedder.encode([" ".join([query, *wanted])], is_query=True)[0]
    low, high = float(likeness.min()), float(likeness.max())
    scored: list[tuple[MusicTrack, float]] = []
    for track, value in zip(tracks, likeness, strict=True):
        like = (float(value) - low) / (high - low) if high - low > 1e-6 else 1.0
        mood = sum(1 for m in wanted if m in track.moods) / len(wanted) if wanted else like
        scored.append((track, round(0.5 * like + 0.5 * mood, 4)))
    return tuple(sorted(scored, key=lambda s: (s[0].track_id == present, -s[1], s[0].track_id)))
