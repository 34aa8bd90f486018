"""The folder of an export: filled under a temporary name, made durable, and put in its place in one step.

A reader sees the whole export or none of it; a failed export leaves nothing. Only storage renames and syncs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from materialize.export.options import ExportedFile
from schemas.errors import ConfigInvalid
from storage import durable


class ExportFolder:
    """Files of one export, before it is published."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._rows: dict[str, int | None] = {}

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

    def names(self) -> list[str]:
        """Names of all files so far, sorted."""
        return sorted(self._rows)

    def files(self) -> tuple[ExportedFile, ...]:
        """All files written so far, by name, with digests."""
        out = []
        for name in sorted(self._rows):
            sha, size = durable.digest_file(self.root / name)
            out.append(ExportedFile(path=name, sha256=sha, size_bytes=size, rows=self._rows[name]))
        return tuple(out)


@contextmanager
def new_folder(out: Path) -> Iterator[ExportFolder]:
    """Make the export folder ``out``; it appears when the block ends without an error.

    Raises:
        ConfigInvalid: there is something at ``out`` already.
        StorageFull, StorageFault: it could not be written.
    """
    out = out.absolute()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigInvalid("output_exists", f"there is something at {out} already", "name a new folder, or remove it first")
    try:
        durable.make_folder(out.parent)
        with tempfile.TemporaryDirectory(prefix=durable.TEMP_PREFIX, dir=out.parent) as temp:
            root = Path(temp) / "export"
            root.mkdir(mode=durable.FOLDER_MODE)
            yield ExportFolder(root)
            for path in sorted(root.rglob("*")):
                if path.is_dir():
                    durable.fsync_folder(path)
                else:
                    durable.fsync_file(path)
            durable.fsync_folder(root)
            durable.publish([(root, out)])
    except OSError as error:
        raise durable.fault_from(error, f"writing the export {out.name}") from error
