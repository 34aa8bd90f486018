"""A user's folder of clips: which files are offered, and what is said about them.

Owns reading names, ``pool.json`` and sidecars. Never opens a clip: that is the sandbox's business.

``pool.json`` lists clips, ``NAME.json`` beside ``NAME.mp4`` describes one and goes before the list::

    {"clips": [{"file": "harbour.mp4", "text": "ships in a harbour at dawn", "licence": "CC-BY-4.0", "attribution": "A. Camera"}]}

Without either, a file's name is its text and its licence is ``unknown``. Licence and attribution go into the film's credits.
"""

from __future__ import annotations

import json
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import ConfigInvalid, MediaRejected

SUFFIXES = (".mp4", ".mov", ".mkv", ".webm", ".m4v", ".avi", ".ts")
LIST = "pool.json"
MAX_JSON_BYTES = 4 * 1024 * 1024
MAX_CLIPS = 2000
FIELDS = {"text": 600, "licence": 120, "attribution": 300}
"""What may be said about a clip, and how many characters of it are kept."""


@dataclass(frozen=True, slots=True)
class About:
    """What is said about a clip."""

    text: str
    licence: str
    attribution: str | None


class Shelf:
    """The folder.

    Raises:
        ConfigInvalid: ``pool.json`` is there and is not as described.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._listed = _listed(folder / LIST)

    def clips(self) -> list[Path]:
        """Files with a clip's ending, by name; at most :data:`MAX_CLIPS`."""
        found = sorted((p for p in self.folder.iterdir() if p.suffix.lower() in SUFFIXES), key=lambda p: p.name)
        if len(found) > MAX_CLIPS:
            raise ConfigInvalid("extra_folder", f"{self.folder} holds {len(found)} clips, at most {MAX_CLIPS}", "use several folders")
        return found

    def about(self, path: Path) -> About:
        """What is said about a clip.

        Raises:
            MediaRejected: it is no regular file of this folder, or its sidecar is no JSON object of texts.
        """
        if path.is_symlink() or not stat.S_ISREG(path.lstat().st_mode):
            raise MediaRejected("not_a_file", "it is no regular file of the folder")
        said = dict(self._listed.get(path.name, {}))
        sidecar = path.with_suffix(".json")
        if sidecar.name != LIST and sidecar.exists():
            said |= _entry(_read(sidecar), sidecar.name)
        tidy = {field: plain(said[field])[:most] for field, most in FIELDS.items() if field in said}
        name = plain(path.stem.replace("_", " ").replace("-", " "))
        return About(tidy.get("text") or name, tidy.get("licence") or "unknown", tidy.get("attribution") or None)


def plain(text: str) -> str:
    """Text without control, invisible and unassigned characters, inner white space one space."""
    kept = "".join(" " if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn") else c for c in text)
    return " ".join(unicodedata.normalize("NFC", kept).split())


def shown_name(path: Path) -> str:
    """A file's name as it is shown and recorded."""
    return plain(path.name)[:120] or "-"


def _listed(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    try:
        value = _read(path)
        rows = value.get("clips") if isinstance(value, dict) else None
        if not isinstance(rows, list):
            raise MediaRejected("sidecar", f"{LIST} must be an object with a list under clips")
        out = {str(row["file"]): _entry({k: v for k, v in row.items() if k != "file"}, LIST) for row in rows}
    except (MediaRejected, KeyError, TypeError, AttributeError) as error:
        raise ConfigInvalid("pool_list", f"{path} is not as expected: {error}", f"write {LIST} as replay.shelf describes") from error
    return out


def _read(path: Path) -> Any:
    """The JSON of a small regular file."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_JSON_BYTES:
            raise MediaRejected("sidecar", f"{path.name} is no regular file of at most {MAX_JSON_BYTES} bytes")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise MediaRejected("sidecar", f"{plain(path.name)[:80]} is not JSON: {plain(str(error))[:120]}") from error


def _entry(value: Any, name: str) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(value.get(field, ""), str) for field in FIELDS):
        raise MediaRejected("sidecar", f"{plain(name)[:80]} must be an object with texts under {', '.join(FIELDS)}")
    return {field: value[field] for field in FIELDS if field in value}
