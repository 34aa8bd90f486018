"""The folder of an export: filled under a temporary name, made durable, and put in its place in one step.

A reader sees the whole export or none of it; a failed export leaves nothing. One that was killed, or had no space left, leaves its finished
shards under the temporary name, and the next export of the same rows into the same place goes on behind them. Only storage renames, syncs
and removes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from pydantic import ValidationError

from materialize.export.options import ExportedFile
from materialize.export.records import Tally
from schemas.canonical import Frozen
from schemas.errors import ConfigInvalid, StorageFault, StorageFull
from storage import durable
from storage.marker import MARKER

_NO_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENAMETOOLONG)
_LONGEST_NAME = 255
"""Bytes of one name, on every file system in use."""


class _Finished(Frozen):
    """One finished shard: what was counted, and its files."""

    tally: Tally
    files: tuple[ExportedFile, ...]


class ExportFolder:
    """Files of one export, before it is published."""

    def __init__(self, root: Path, records: Path) -> None:
        self.root = root
        self._records = records
        self._rows: dict[str, int | None] = {}
        self._known: dict[str, ExportedFile] = {}

    def path(self, name: str, rows: int | None = None) -> Path:
        """Where a file is to be written. ``name`` is relative, with forward slashes; ``rows`` is recorded in the manifest."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._rows[name] = rows
        return path

    def write(self, name: str, data: bytes, rows: int | None = None) -> None:
        """Write a whole file."""
        self.path(name, rows).write_bytes(data)

    def set_rows(self, name: str, rows: int) -> None:
        """Record how many examples a file holds, once that is known."""
        self._rows[name] = rows

    def forget(self, names: Iterable[str]) -> None:
        """Leave files out that were written; they are gone when the export is there."""
        for name in names:
            self._rows.pop(name, None)
            self._known.pop(name, None)

    def names(self) -> list[str]:
        """Names of all files so far, sorted."""
        return sorted(self._rows)

    def files(self) -> tuple[ExportedFile, ...]:
        """All files written so far, by name, with digests."""
        return tuple(self._known.get(name) or self._digested(name) for name in self.names())

    def finish(self, shard: str, names: list[str], tally: Tally) -> None:
        """Record that a shard is whole, with the files it consists of."""
        files = tuple(self._digested(name) for name in names)
        self._known |= {f.path: f for f in files}
        self._records.mkdir(exist_ok=True)
        durable.write_file(self._records / f"{shard}.json", orjson.dumps(_Finished(tally=tally, files=files).model_dump(mode="json")))

    def finished(self, shard: str) -> Tally | None:
        """What a killed export counted in a shard that it finished; None when it did not, or its files are no longer what they were."""
        try:
            found = _Finished.model_validate_json((self._records / f"{shard}.json").read_bytes())
        except (OSError, ValidationError):
            return None
        for file in found.files:
            path = self.root / file.path
            if not path.is_file() or durable.digest_file(path) != (file.sha256, file.size_bytes):
                return None
        self._rows |= {f.path: f.rows for f in found.files}
        self._known |= {f.path: f for f in found.files}
        return found.tally

    def _digested(self, name: str) -> ExportedFile:
        sha, size = durable.digest_file(self.root / name)
        return ExportedFile(path=name, sha256=sha, size_bytes=size, rows=self._rows[name])


@contextmanager
def new_folder(out: Path, key: str) -> Iterator[ExportFolder]:
    """Make the export folder ``out``; it appears when the block ends without an error.

    Args:
        key: names everything that decides the bytes. What a killed export with another key left is thrown away.

    Raises:
        ConfigInvalid: there is something at ``out`` already, or nothing can be made there.
        LockHeld: another process is writing this export.
        StorageFull, StorageFault: it could not be written.
    """
    try:
        out = _place(out)
        work = out.parent / f"{durable.TEMP_PREFIX}{out.name}"
        durable.make_folder(work)
        with durable.exclusive(work, f"the export {out.name}"):
            try:
                _prepare(work, key)
                folder = ExportFolder(work / "export", work / "shards")
                yield folder
                _publish(folder, out)
            except BaseException as error:
                if not _goes_on(error, work):
                    durable.remove_folder(work)
                raise
            durable.remove_folder(work)
    except OSError as error:
        fault = durable.fault_from(error, f"writing the export {out.name}")
        if fault.code == "read_only" or error.errno in _NO_PLACE:
            raise StorageFault(fault.code, fault.message, "name a folder in a place that you may write to") from error
        raise fault from error


def _place(out: Path) -> Path:
    """Where the export will lie, links followed.

    Raises:
        ConfigInvalid: nothing can be made there.
    """
    place = Path(os.path.realpath(out))
    try:
        longest = max(len(part.encode()) for part in (f"{durable.TEMP_PREFIX}{place.name}", *place.parts))
    except UnicodeEncodeError:
        raise ConfigInvalid("output_name", f"{str(place)!r} is not UTF-8", "name a folder in UTF-8: Arrow opens no other") from None
    if longest > _LONGEST_NAME:
        raise ConfigInvalid(
            "output_name", f"a name in {place} is too long", f"give it at most {_LONGEST_NAME - len(durable.TEMP_PREFIX)} bytes"
        )
    if place.is_symlink():
        raise ConfigInvalid("output_link", f"{place} is a link that leads to itself", "name another place")
    if lake := next((p for p in (place, *place.parents) if (p / MARKER).is_file()), None):
        raise ConfigInvalid("output_in_lake", f"{place} lies in the lake {lake}, whose files are its own", "name a folder outside of it")
    if place == Path.cwd():
        raise ConfigInvalid("output_is_here", f"{place} is the folder you are in, and would be replaced", "name a new folder in it")
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise ConfigInvalid("output_exists", f"there is something at {place} already", "name a new folder, or remove it first")
    above = next(p for p in place.parents if p.exists())
    if not above.is_dir():
        raise ConfigInvalid("output_below_file", f"{above} is a file, and no folder can be made below it", "name another place")
    return place


def _goes_on(error: BaseException, work: Path) -> bool:
    """The same command may be started again and finds shards that it need not write again: after a stop, or when the device was full."""
    stopped = isinstance(error, KeyboardInterrupt | SystemExit | OSError | StorageFull)
    return stopped and any(work.glob("shards/*.json"))


def _prepare(work: Path, key: str) -> None:
    marker = work / "key"
    if not marker.is_file() or marker.read_text("utf-8") != key:
        for name in ("shards", "export"):
            durable.remove_folder(work / name)
        durable.write_file(marker, key.encode())
    (work / "export").mkdir(mode=durable.FOLDER_MODE, exist_ok=True)


def _publish(folder: ExportFolder, out: Path) -> None:
    root = folder.root
    known = {root / name for name in folder.names()}
    for path in sorted(root.rglob("*")):
        if path.is_dir():
            durable.fsync_folder(path)
        elif path in known:
            durable.fsync_file(path)
        else:
            durable.remove(path)
    durable.fsync_folder(root)
    durable.publish([(root, out)])
