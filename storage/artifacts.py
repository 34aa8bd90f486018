"""The artifact store: immutable files named by the sha256 of their bytes.

Owns writing (durable before return) and reading (verified). Must not know about projects, tables or tools.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import Frozen, Sha256, canonical_bytes, sha256_bytes
from schemas.errors import DigestMismatch, SchemaMismatch, StorageFault
from storage import durable

_DIGEST = re.compile(r"[0-9a-f]{64}")

JSON_TYPE = "application/json"


def is_digest(text: str) -> bool:
    """The text has the form of a sha256."""
    return _DIGEST.fullmatch(text) is not None


def json_bytes(value: Any) -> bytes:
    """Canonical bytes of a record or a JSON-like value.

    Raises:
        SchemaMismatch: the value holds something that JSON cannot (lone surrogates, integers over 64 bits, foreign types).
    """
    try:
        return value.canonical() if isinstance(value, Frozen) else canonical_bytes(value)
    except (TypeError, ValueError) as error:
        raise SchemaMismatch(
            "not_json", f"a value cannot be stored as JSON: {error}", "replace lone surrogates and foreign types"
        ) from error


class ArtifactStore:
    """Content-addressed files under ``root/aa/<sha256>``, readable by every user of the machine.

    Several processes and threads may use one folder at once. After a failed write the object accepts no more writes; open a new one.
    """

    def __init__(self, root: Path) -> None:
        """Open the store, making the folder if it is missing.

        Raises:
            StorageFault: the folder cannot be made.
        """
        self.root = Path(root).resolve()
        self._latch = durable.Latch()
        self._temp = self.root / "tmp"
        self._folders: set[str] = set()
        self._verified: dict[Sha256, tuple[int, int, int]] = {}
        self._unsynced: dict[Sha256, None] = {}
        with self._latch.writing(f"making {self.root.name}"):
            durable.make_folder(self._temp)

    def __reduce__(self) -> tuple[type[ArtifactStore], tuple[Path]]:
        return ArtifactStore, (self.root,)

    # -- writing ---------------------------------------------------------------------------------------------------------------

    def put_bytes(self, data: bytes, kind: ArtifactKind, media_type: str, *, later: bool = False) -> ArtifactRef:
        """Store bytes; durable on return. Bytes that are there already are not written again.

        Args:
            later: visible at once, durable only after :meth:`sync`. For bytes that a durable record can make again (the contexts and
                snapshots of a run whose journal is durable).

        Raises:
            StorageFull, StorageFault: nothing was acknowledged.
        """
        return self.put_many([(data, kind, media_type)], later=later)[0]

    def put_json(self, value: Any, kind: ArtifactKind, *, later: bool = False) -> ArtifactRef:
        """Store a record or JSON-like value as canonical JSON; ``later`` as in :meth:`put_bytes`.

        Raises:
            SchemaMismatch: the value cannot be JSON.
            StorageFull, StorageFault: nothing was acknowledged.
        """
        return self.put_bytes(json_bytes(value), kind, JSON_TYPE, later=later)

    def put_many(self, items: Iterable[tuple[bytes, ArtifactKind, str]], *, later: bool = False) -> list[ArtifactRef]:
        """Store several values with one fsync per folder; all durable on return (``later`` as in :meth:`put_bytes`), refs in the order
        given.

        Raises:
            StorageFull, StorageFault: nothing was acknowledged.
        """
        refs: list[ArtifactRef] = []
        fresh: dict[Sha256, bytes] = {}
        with self._latch.writing("writing artifacts"):
            for data, kind, media_type in items:
                name = sha256_bytes(data)
                refs.append(ArtifactRef(sha256=name, kind=kind, media_type=media_type, size_bytes=len(data)))
                if name not in fresh and not self._holds(name, later=later):
                    fresh[name] = data
            moves = []
            for name, data in fresh.items():
                temp, _, _ = durable.write_temp(self._temp, [data], sync=not later)
                moves.append((temp, self._place(name, sync=not later)))
            durable.publish(moves, sync=not later)
            for name in fresh:
                self._verified[name] = _stamp(self._file(name))
                if later:
                    self._unsynced[name] = None
        return refs

    def sync(self) -> None:
        """Make everything that was stored ``later`` durable.

        Raises:
            StorageFull, StorageFault: nothing was acknowledged.
        """
        with self._latch.writing("making artifacts durable"):
            self._settle(list(self._unsynced))

    def _settle(self, names: list[Sha256]) -> None:
        folders: dict[Path, None] = {}
        for name in names:
            file = self._file(name)
            durable.fsync_file(file)
            folders[file.parent] = None
        if folders:
            folders[self.root] = None
        for folder in folders:
            durable.fsync_folder(folder)
        for name in names:
            self._verified[name] = _stamp(self._file(name))
            del self._unsynced[name]

    def put_file(self, path: Path, kind: ArtifactKind, media_type: str, *, take: bool = False) -> ArtifactRef:
        """Store the bytes of a regular file; a later write to the original does not change the store.

        Args:
            take: move the file in instead of copying it. Only for files that this process made and nobody else has open;
                files of another owner or with further links are copied all the same (and stay where they are).

        Raises:
            StorageFault: the file cannot be read, or the store not be written (StorageFull: no space).
        """
        with self._latch.writing(f"storing {path.name}"):
            temp, name, size = self._taken(path) if take and _is_ours(path) else durable.write_temp(self._temp, durable.read_chunks(path))
            if self._holds(name):
                durable.remove(temp)
            else:
                durable.publish([(temp, self._place(name))])
                self._verified[name] = _stamp(self._file(name))
        return ArtifactRef(sha256=name, kind=kind, media_type=media_type, size_bytes=size)

    def _taken(self, path: Path) -> tuple[Path, Sha256, int]:
        temp = durable.temp_name(self._temp)
        try:
            path.rename(temp)
        except OSError:  # another device
            return durable.write_temp(self._temp, durable.read_chunks(path))
        durable.fsync_file(temp)
        return (temp, *durable.digest_file(temp))

    def _place(self, name: Sha256, *, sync: bool = True) -> Path:
        folder = self.root / name[:2]
        if not sync:
            if not folder.is_dir():
                folder.mkdir(exist_ok=True)
                folder.chmod(durable.FOLDER_MODE)
        elif name[:2] not in self._folders:
            durable.make_folder(folder)
            durable.fsync_folder(self.root)  # another process may have made it and died before its fsync
            self._folders.add(name[:2])
        return folder / name

    def _holds(self, name: Sha256, *, later: bool = False) -> bool:
        """The right bytes are there and, unless ``later``, durable. Renews the time stamp that garbage collection goes by."""
        file = self._file(name)
        if not file.is_file():
            return False
        if name in self._unsynced and not later:
            self._settle([name])
        if self._verified.get(name) != _stamp(file):
            if durable.digest_file(file)[0] != name:
                return False  # damaged: the caller has the right bytes and replaces it
            durable.fsync_folder(file.parent)
        with suppress(PermissionError):  # another user's file: it stays as old as it is
            os.utime(file)
        self._verified[name] = _stamp(file)
        return True

    # -- reading ---------------------------------------------------------------------------------------------------------------

    def read(self, sha256: Sha256) -> bytes:
        """The bytes, verified on every read.

        Raises:
            StorageFault: there is no such artifact.
            DigestMismatch: the stored bytes are damaged.
        """
        file = self._file(sha256)
        data = b"".join(_existing(file, sha256))
        if sha256_bytes(data) != sha256:
            raise _damaged(sha256)
        return data

    def read_json(self, sha256: Sha256) -> Any:
        """The value of a JSON artifact.

        Raises:
            StorageFault, DigestMismatch: as :meth:`read`.
            SchemaMismatch: the artifact is not JSON.
        """
        data = self.read(sha256)
        try:
            return orjson.loads(data)
        except orjson.JSONDecodeError as error:
            raise SchemaMismatch("not_json", f"artifact {sha256[:12]} is not JSON: {error}") from error

    def path(self, sha256: Sha256) -> Path:
        """The file, verified once per process and again when it changed. Read it, never write it.

        Raises:
            StorageFault: there is no such artifact.
            DigestMismatch: the stored bytes are damaged.
        """
        file = self._file(sha256)
        try:
            stamp = _stamp(file)
        except FileNotFoundError:
            raise _missing(sha256) from None
        if self._verified.get(sha256) != stamp:
            if durable.digest_file(file)[0] != sha256:
                raise _damaged(sha256)
            self._verified[sha256] = stamp
        return file

    def has(self, sha256: Sha256) -> bool:
        """There is a file of that name (its bytes are not read)."""
        return self._file(sha256).is_file()

    # -- results that can be made again ----------------------------------------------------------------------------------------

    def remember(self, key: str, ref: ArtifactRef) -> None:
        """Note that ``key`` (everything a result was made from, as text) gave ``ref``. A later note of the same key replaces it.

        The notes are a cache, not a record: losing them costs time only, and they keep no artifact from garbage collection.

        Raises:
            StorageFull, StorageFault: nothing was acknowledged.
        """
        with self._latch.writing("noting a result"):
            durable.write_file(self._note(key), json_bytes({"key": key, "ref": ref.model_dump(mode="json")}))

    def recall(self, key: str) -> ArtifactRef | None:
        """What ``key`` gave before, its bytes verified once per process and young again for garbage collection; None if it was never noted,
        the note is damaged, or the artifact is damaged or gone."""
        try:
            note = orjson.loads(b"".join(durable.read_chunks(self._note(key))))
            ref = ArtifactRef.model_validate(note["ref"])
            return ref if note["key"] == key and self._holds(ref.sha256) else None
        except (StorageFault, OSError, ValueError, KeyError, TypeError):
            return None

    def stale_notes(self) -> Iterator[Path]:
        """Files of notes that are unfinished, damaged, or whose artifact is gone."""
        for path in sorted((self.root / "recall").glob("*/*")):
            if path.name.startswith(durable.TEMP_PREFIX):
                yield path
                continue
            try:
                digest = orjson.loads(path.read_bytes())["ref"]["sha256"]
            except (OSError, ValueError, KeyError, TypeError):
                yield path
                continue
            if not (isinstance(digest, str) and is_digest(digest) and self.has(digest)):
                yield path

    def _note(self, key: str) -> Path:
        name = sha256_bytes(key.encode())
        return self.root / "recall" / name[:2] / name

    def names(self) -> Iterator[Sha256]:
        """Digests of all stored artifacts, sorted."""
        for folder in sorted(self.root.iterdir()):
            if len(folder.name) == 2:
                yield from sorted(f.name for f in folder.iterdir() if _DIGEST.fullmatch(f.name))

    def _file(self, name: Sha256) -> Path:
        if not _DIGEST.fullmatch(name):
            raise StorageFault("bad_digest", f"{name[:80]!r} is not a sha256 in lower-case hex")
        return self.root / name[:2] / name


def _stamp(file: Path) -> tuple[int, int, int]:
    s = file.stat()
    return s.st_ino, s.st_size, s.st_mtime_ns


def _is_ours(path: Path) -> bool:
    s = path.lstat()
    return s.st_uid == os.geteuid() and s.st_nlink == 1 and not path.is_symlink()


def _existing(file: Path, name: Sha256) -> Iterator[bytes]:
    if not file.is_file():
        raise _missing(name)
    yield from durable.read_chunks(file)


def _missing(name: Sha256) -> StorageFault:
    return StorageFault("artifact_missing", f"artifact {name} is not in the store", "run the stage that makes it again, or `fsck` the lake")


def _damaged(name: Sha256) -> DigestMismatch:
    return DigestMismatch(
        "artifact_damaged",
        f"artifact {name} no longer has the bytes its name promises",
        "restore the file, or remove it and run again",
    )
