"""The music library: tracks with moods, titles and licences, and the choice of one for a query.

Owns reading a library's folder and ranking its tracks. Never decodes: a track's length and loudness are measured in the sandbox by the
tool that takes it.

A user's library is a folder with ``music.json``::

    {"name": "our music", "tracks": [{"file": "rain.flac", "title": "Rain", "moods": ["calm", "piano"],
      "licence": "CC-BY-4.0", "attribution": "A. Composer", "energy": 0.2, "bpm": 72}]}

``moods``, ``attribution``, ``energy`` (0 still to 1 driving) and ``bpm`` may be left out.
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
_ENERGY = {"calm": 0.15, "tender": 0.25, "nostalgic": 0.35, "happy": 0.65, "energetic": 0.9}
"""How driving a mood is: the energy of tracks whose tags say none."""
_BPM = dict(
    calm_acoustic_1=68, calm_acoustic_s411=137, calm_acoustic_s522=91, calm_electronic_s411=140, calm_electronic_s522=95,
    energetic_acoustic_1=133, energetic_acoustic_2=89, energetic_acoustic_s522=133, energetic_electronic_2=150,
    energetic_electronic_s411=150, happy_acoustic_1=110, happy_acoustic_2=110, happy_acoustic_s411=110, happy_electronic_1=123,
    happy_electronic_2=82, happy_electronic_s411=122, nostalgic_acoustic_1=79, nostalgic_acoustic_s411=78, nostalgic_acoustic_s522=103,
    nostalgic_electronic_2=170, nostalgic_electronic_s411=167, nostalgic_electronic_s522=85, tender_acoustic_1=120, tender_acoustic_2=90,
    tender_acoustic_s411=90, tender_electronic_1=100, tender_electronic_2=100, tender_electronic_s411=66,
)  # fmt: skip
"""Tempi of the packaged library's tracks, measured with replay.tempo (a test measures again)."""

LIKE, MOOD, ENERGY, TEMPO = 0.4, 0.4, 0.2, 0.3
"""Weights of the parts of a score. Only parts that the query asks for count; the sum is scaled to 1."""
UNKNOWN = 0.5
"""Part of a track whose tags do not say."""
BPM_OFF = 40
"""A tempo this far from the wanted one is as wrong as any."""
OCTAVE = 0.8
"""Worth of half or double the wanted tempo."""
_WISHED_ENERGY = (
    (0.1, r"\b(?:very calm|still|meditative|ambient)\b|宁静|冥想"),
    (0.2, r"\b(?:calm|quiet|soft|gentle|relax\w*|sooth\w*|slow|low[- ]energy)\b|安静|舒缓|柔和|轻柔|平静|慢"),
    (0.5, r"\b(?:moderate|medium|mid-?tempo)\b|中等|适中"),
    (0.9, r"\b(?:energetic|driving|fast|powerful|upbeat|high[- ]energy|intense|exciting)\b|激昂|动感|快节奏|有力|热烈"),
)
_WISHED_BPM = re.compile(r"(\d{2,3})\s*(?:bpm|beats)|每分钟\s*(\d{2,3})\s*拍", re.IGNORECASE)


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
        tracks.append(
            MusicTrack(
                file.stem,
                file,
                title,
                moods,
                "MIT",
                "immich-memories (generated with ACE-Step 1.5)",
                0,
                _ENERGY.get(file.parent.name),
                _BPM.get(file.stem, 0),
            )
        )
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
    attribution, energy = entry.get("attribution"), entry.get("energy")
    if energy is not None and not 0 <= float(energy) <= 1:
        raise ValueError(f"energy {energy} lies not between 0 and 1")
    bpm = int(entry.get("bpm", 0))
    if bpm and not 20 <= bpm <= 400:
        raise ValueError(f"bpm {bpm} is no tempo")
    return MusicTrack(
        track_id,
        file,
        str(entry.get("title", file.stem))[:120],
        moods,
        str(entry["licence"]),
        None if attribution is None else str(attribution),
        0,
        next((_ENERGY[m] for m in moods if m in _ENERGY), None) if energy is None else float(energy),
        bpm,
    )


def rank_tracks(
    tracks: Sequence[MusicTrack], query: str, moods: Sequence[str], embedder: Embedder, *, present: str | None = None
) -> tuple[tuple[MusicTrack, float], ...]:
    """Tracks with their scores, 0 to 1, best first; equal scores in order of track id.

    A score is made of the likeness of the query to title and moods (scaled so that the likest track has 1), the share of the wanted moods
    that the track has, and, where the query speaks of them, how near its energy and its tempo come.

    Args:
        present: a track already in use: it goes last, whatever its score.
    """
    if not tracks:
        return ()
    wanted = [m.strip().lower() for m in moods if m.strip()]
    texts = [f"{t.title}. {', '.join(t.moods)}. {'. '.join(_STYLES[m] for m in t.moods if m in _STYLES)}" for t in tracks]
    likeness = embedder.encode(texts, is_query=False) @ embedder.encode([" ".join([query, *wanted])], is_query=True)[0]
    low, high = float(likeness.min()), float(likeness.max())
    energy, bpm = wished_energy(query), wished_bpm(query)
    scored: list[tuple[MusicTrack, float]] = []
    for track, value in zip(tracks, likeness, strict=True):
        like = (float(value) - low) / (high - low) if high - low > 1e-6 else 1.0
        parts = [(LIKE, like)]
        if wanted:
            parts.append((MOOD, sum(1 for m in wanted if m in track.moods) / len(wanted)))
        if energy is not None:
            parts.append((ENERGY, UNKNOWN if track.energy is None else 1 - abs(track.energy - energy)))
        if bpm:
            parts.append((TEMPO, _tempo_fit(track.bpm, bpm)))
        scored.append((track, round(sum(w * p for w, p in parts) / sum(w for w, _ in parts), 4)))
    return tuple(sorted(scored, key=lambda s: (s[0].track_id == present, -s[1], s[0].track_id)))


def wished_energy(query: str) -> float | None:
    """The energy a query asks for, 0 to 1; the mean if it names several; None if it names none."""
    found = [value for value, words in _WISHED_ENERGY if re.search(words, query, re.IGNORECASE)]
    return sum(found) / len(found) if found else None


def wished_bpm(query: str) -> int:
    """The tempo a query names (``90 bpm``, ``每分钟90拍``), 0 if none."""
    match = _WISHED_BPM.search(query)
    return int(match.group(1) or match.group(2)) if match else 0


def _tempo_fit(has: int, wanted: int) -> float:
    """1 at the wanted tempo, falling to 0 at :data:`BPM_OFF` beside it; half or double the tempo is nearly as good."""
    if has == 0:
        return UNKNOWN
    octave = OCTAVE * max(0.0, 1 - min(abs(has * 2 - wanted), abs(has - wanted * 2)) / BPM_OFF)
    return max(0.0, 1 - abs(has - wanted) / BPM_OFF, octave)
