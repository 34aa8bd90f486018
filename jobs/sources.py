"""What the user named, as a list of inputs: files, folders, globs, manifests. Reads names and digests, never media.

A name is data: nothing is parsed out of it and no option is read from it. A link that leads outside the folder it was found in
is refused; a link inside is followed.
"""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from schemas.canonical import derive_id, digest_of
from schemas.errors import ConfigInvalid
from schemas.media import SourceItem
from schemas.stage import RejectCode, Rejected

MEDIA_SUFFIXES = frozenset(
    ".mp4 .m4v .mov .mkv .webm .avi .ts .mts .m2ts .mpg .mpeg .ogv .ogg .flv .wmv .3gp .m4a .mp3 .wav .flac .opus .mxf".split()
)
"""Endings taken when a folder is given. A file named on the command line is always taken."""

MANIFEST_SUFFIXES = frozenset((".csv", ".jsonl", ".ndjson", ".parquet"))
_FIELDS = frozenset(SourceItem.model_fields)


@dataclass(frozen=True, slots=True)
class Located:
    """One input: as named, where it lies, or why it cannot be used at all."""

    item: SourceItem
    path: Path
    refused: Rejected | None = None


@dataclass(frozen=True, slots=True)
class SourceGroup:
    """Inputs with equal bytes: one project. ``items[0]`` stands for it."""

    key: str
    items: tuple[SourceItem, ...]
    path: Path
    sha256: str | None
    size_bytes: int | None
    refused: Rejected | None = None

    @property
    def project_id(self) -> str | None:
        """Id of the project these bytes make; None when they could not be read."""
        return project_id_of(self.sha256) if self.sha256 is not None else None


def project_id_of(source_sha256: str) -> str:
    """The project's id: named by the source's bytes alone."""
    return derive_id("project", {"source_sha256": source_sha256})


def shown_name(path: Path | str) -> str:
    """A path as text that every table and page can hold: bytes that are no UTF-8 are written as ``\\xNN``."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def source_key(item: SourceItem, sha256: str | None) -> str:
    """Key of one named input."""
    return digest_of([item.uri, sha256])


def locate(names: Iterable[str]) -> list[Located]:
    """Expand files, folders, globs and manifests, in the order given; folders sorted.

    Raises:
        ConfigInvalid: a manifest that cannot be read or lacks ``uri``. (A missing file is a rejection, not an error.)
    """
    out: list[Located] = []
    for name in names:
        path = Path(name)
        if not name:  # not the folder that one happens to be in
            out.append(_missing(SourceItem(uri=name), path, "no file can have this name"))
        elif not _can_be(path):
            out.append(_one(SourceItem(uri=shown_name(name)), path, None))
        elif path.is_dir():
            out.extend(_folder(path))
        elif path.suffix.lower() in MANIFEST_SUFFIXES and path.is_file():
            out.extend(_manifest(path))
        elif not os.path.lexists(path) and glob.has_magic(name):
            hits = sorted(glob.glob(name, recursive=True))
            out.extend(_one(SourceItem(uri=shown_name(h)), Path(h), None) for h in hits if not Path(h).is_dir())
            if not hits:
                out.append(_missing(SourceItem(uri=shown_name(name)), path, "no file matches this pattern"))
        else:
            out.append(_one(SourceItem(uri=shown_name(name)), path, None))
    return out


def _can_be(path: Path) -> bool:
    """Whether the system takes the name at all: one that is too long, or holds U+0000, raises where others are merely not there."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return True
    except (OSError, ValueError):
        return False
    return True


def group(located: Iterable[Located]) -> list[SourceGroup]:
    """Digest the files and put equal bytes together. Order of first appearance. Empty files stay apart from each other."""
    groups: dict[str, list[tuple[Located, str | None, int | None]]] = {}
    for one in located:
        sha, size = (None, None) if one.refused else digest_file(one.path)
        refused = one.refused
        if sha is None and refused is None:
            one = Located(one.item, one.path, Rejected(RejectCode.UNREADABLE, "the file exists but cannot be read"))
        key = project_id_of(sha) if sha is not None and size else "src_" + source_key(one.item, sha)[:24]
        groups.setdefault(key, []).append((one, sha, size))
    out = []
    for key, members in groups.items():
        first, sha, size = members[0]
        items = tuple(dict.fromkeys(m[0].item for m in members))
        out.append(SourceGroup(key, items, first.path, sha, size, first.refused))
    return out


def digest_file(path: Path) -> tuple[str | None, int | None]:
    """sha256 and length of a regular file; (None, None) if it is none or cannot be read. A pipe or a device is never waited for."""
    h = hashlib.sha256()
    size = 0
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
            if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
                return None, None
            while block := f.read(1 << 20):
                h.update(block)
                size += len(block)
    except (OSError, ValueError):
        return None, None
    return h.hexdigest(), size


def _folder(root: Path) -> Iterator[Located]:
    manifest = next((root / n for n in ("manifest.csv", "manifest.jsonl", "manifest.parquet") if (root / n).is_file()), None)
    if manifest is not None:
        yield from _manifest(manifest)
        return
    unlisted: list[OSError] = []
    for folder, folders, files in os.walk(root, onerror=unlisted.append):
        folders.sort()
        for link in (Path(folder) / name for name in folders if (Path(folder) / name).is_symlink()):
            if not link.resolve().is_relative_to(root.resolve()):  # one that leads inside is walked under its own name
                why = "the link leads to a folder outside the one it lies in; name that folder itself"
                yield Located(SourceItem(uri=shown_name(link)), link, Rejected(RejectCode.OUTSIDE_ROOT, why))
        for name in sorted(files):
            path = Path(folder) / name
            if path.suffix.lower() in MEDIA_SUFFIXES:
                yield _one(SourceItem(uri=shown_name(path)), path, root)
    for error in unlisted:
        item = SourceItem(uri=shown_name(error.filename))
        yield Located(item, Path(error.filename), Rejected(RejectCode.UNREADABLE, f"the folder cannot be listed ({error.strerror})"))


def _one(item: SourceItem, path: Path, root: Path | None) -> Located:
    if not _can_be(path):
        return _missing(item, path, "no file can have this name")
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as e:
        why = "a link that leads nowhere" if path.is_symlink() else "no such file"
        return _missing(item, path, f"{why} ({type(e).__name__})")
    if root is not None and path.is_symlink() and not real.is_relative_to(root.resolve()):
        return Located(item, path, Rejected(RejectCode.OUTSIDE_ROOT, "the link leads outside the folder it lies in"))
    if not real.is_file():
        return Located(item, path, Rejected(RejectCode.NOT_A_FILE, "expected a regular file"))
    return Located(item, real)


def _missing(item: SourceItem, path: Path, why: str) -> Located:
    return Located(item, path, Rejected(RejectCode.NOT_FOUND, why))


def _manifest(path: Path) -> Iterator[Located]:
    for number, row in enumerate(_rows(path), start=1):
        if not isinstance(row, dict) or None in row:
            what = "is no object" if not isinstance(row, dict) else "has more values than there are columns"
            raise ConfigInvalid("manifest_row", f"row {number} of {path.name} {what}", "see docs/cli.md for manifests")
        row = {k: v for k, v in row.items() if v not in (None, "")}
        uri = row.get("uri")
        if not isinstance(uri, str):
            raise ConfigInvalid("manifest_row", f"row {number} of {path.name} has no 'uri'", "give every row a 'uri' column")
        unknown = sorted(set(row) - _FIELDS)
        if unknown:
            raise ConfigInvalid(
                "manifest_column",
                f"row {number} of {path.name} has column {unknown[0]!r}",
                f"allowed columns: {', '.join(sorted(_FIELDS))}",
            )
        item = SourceItem(**{k: v if k == "uri" else str(v) for k, v in row.items()})
        for name in ("subtitles", "script"):
            side = getattr(item, name)
            if side is not None and not Path(side).is_absolute():
                item = item.model_copy(update={name: str(path.parent / side)})
        target = Path(uri) if Path(uri).is_absolute() else path.parent / uri
        yield _one(item, target, None)


def _rows(path: Path) -> Iterator[Any]:
    try:
        kind = path.suffix.lower()
        if kind == ".csv":
            with path.open(newline="", encoding="utf-8-sig") as f:
                yield from csv.DictReader(f)
        elif kind == ".parquet":
            yield from pq.read_table(path).to_pylist()
        else:
            for line in path.read_bytes().split(b"\n"):
                if line.strip():
                    yield orjson.loads(line)
    except (OSError, ValueError, csv.Error) as e:
        raise ConfigInvalid("manifest_unreadable", f"{path.name} cannot be read as a manifest: {e}", "use CSV, JSONL or Parquet") from e
