"""The artifact store: immutable files named by the sha256 of their bytes.

Owns writing (durable before return) and reading (verified). Must not know about projects, tables or tools.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import Frozen, Sha256, canonical_bytes, sha256_bytes
from schemas.errors import DigestMismatch, SchemaMismatch, StorageFault
from storage import durable
from storage.bucket import Bucket

_TRUSTED_S = 3600.0
"""How long it is believed that an artifact seen in the bucket is still there; far shorter than what garbage collection leaves alone."""

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

    def __init__(self, root: Path, bucket: Bucket | None = None) -> None:
        """Open the store, making the folder if it is missing.

        Args:
            bucket: where the artifacts are; the folder then holds copies of those that this machine has written or read.

        Raises:
            StorageFault: the folder cannot be made.
        """
        self.root = Path(root).resolve()
        self.bucket = bucket
        self._shared: dict[Sha256, float] = {}
        self._latch = durable.Latch()
        self._temp = self.root / "tmp"
        self._folders: set[str] = set()
        self._verified: dict[Sha256, tuple[int, int, int]] = {}
        self._unsynced: dict[Sha256, None] = {}
        with self._latch.writing(f"making {self.root.name}"):
            durable.make_folder(self._temp)

    def __reduce__(self) -> tuple[type[ArtifactStore], tuple[Path, Bucket | None]]:
        return ArtifactStore, (self.root, self.bucket)

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
            if not later:
                self._share(fresh)
        return refs

    def sync(self) -> None:
        """Make everything that was stored ``later`` durable.

        Raises:
            StorageFull, StorageFault: nothing was acknowledged.
        """
        with self._latch.writing("making artifacts durable"):
            self._settle(list(self._unsynced))

    def _share(self, names: Iterable[Sha256]) -> None:
        """Put artifacts that lie in the folder into the bucket, if there is one."""
        wanted = list(names)
        if self.bucket is not None and wanted:
            self.bucket.upload({self.key(name): self._file(name) for name in wanted})
            self._shared.update((name, time.monotonic()) for name in wanted)

    def key(self, name: Sha256) -> str:
        """The key of an artifact in a bucket."""
        return f"artifacts/{name[:2]}/{name}"

    def is_shared(self, name: Sha256) -> bool:
        """The artifact is where every machine finds it: in the bucket, or in the folder where there is no bucket.

        Raises:
            StorageFault: the bucket does not answer.
        """
        if self.bucket is None:
            return self._file(name).is_file()
        if time.monotonic() - self._shared.get(name, -_TRUSTED_S) < _TRUSTED_S:
            return True
        try:
            found = self.bucket.stat(self.key(name)) is not None
        except OSError as error:
            raise durable.fault_from(error, "asking the bucket") from error
        if found:
            self._shared[name] = time.monotonic()
        return found

    def _fetch(self, name: Sha256) -> bool:
        """Bring an artifact from the bucket into the folder; False if it is nowhere.

        Raises:
            StorageFault: the bucket does not answer.
            DigestMismatch: the bucket's bytes are damaged.
        """
        if self.bucket is None:
            return False
        try:
            temp, seen, _ = durable.write_temp(self._temp, self.bucket.chunks(self.key(name)), sync=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise durable.fault_from(error, "reading from the bucket") from error
        if seen != name:
            durable.remove(temp)
            raise _damaged(name)
        durable.publish([(temp, self._place(name, sync=False))], sync=False)
        return True

    def _settle(self, names: list[Sha256]) -> None:
        self._share(names)
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
            self._unsynced.pop(name, None)

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
                self._share([name])
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
        if self.bucket is not None and not later and time.monotonic() - self._shared.get(name, -_TRUSTED_S) >= _TRUSTED_S:
            self._share([name])  # young again for garbage collection there too
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
        if not file.is_file():
            self._fetch(sha256)
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

    def chunks(self, sha256: Sha256) -> Iterator[bytes]:
        """The bytes as they are, unverified: from the folder, else from the bucket. For upkeep and checks.

        Raises:
            StorageFault: it cannot be opened.
            OSError: the bucket does not have it (FileNotFoundError) or does not answer.
        """
        file = self._file(sha256)
        return self.bucket.chunks(self.key(sha256)) if self.bucket is not None and not file.is_file() else durable.read_chunks(file)

    def path(self, sha256: Sha256) -> Path:
        """The file, verified once per process and again when it changed. Read it, never write it.

        Raises:
            StorageFault: there is no such artifact.
            DigestMismatch: the stored bytes are damaged.
        """
        file = self._file(sha256)
        if not file.is_file() and not self._fetch(sha256):
            raise _missing(sha256)
        stamp = _stamp(file)
        if self._verified.get(sha256) != stamp:
            if durable.digest_file(file)[0] != sha256:
                raise _damaged(sha256)
            self._verified[sha256] = stamp
        return file

    def has(self, sha256: Sha256) -> bool:
        """There is an artifact of that name (its bytes are not read)."""
        return self._file(sha256).is_file() or (self.bucket is not None and self.is_shared(sha256))

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
        """Digests of all stored artifacts, sorted; of a bucket, those in it."""
        if self.bucket is not None:
            yield from (name for o in self.bucket.list("artifacts") if is_digest(name := o.key.rpartition("/")[2]))
            return
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
