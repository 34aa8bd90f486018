"""What can be reached from a set of artifacts: the mark phase of garbage collection, and of the check for orphans.

Conservative: a stored digest anywhere in the text of a JSON artifact or a journal counts as a reference. So no record type has to be known
here, and nothing that might be needed is ever taken for garbage.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from schemas.canonical import Sha256
from schemas.errors import StorageFault
from storage import durable
from storage.artifacts import ArtifactStore

_DIGESTS = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def digests_in(data: bytes) -> Iterator[Sha256]:
    """Everything in the bytes that has the form of a sha256."""
    for match in _DIGESTS.finditer(data):
        yield match.group().decode()


def digests_under(folder: Path) -> set[Sha256]:
    """Digests named in any file under a folder (journals of runs that are not finished)."""
    found: set[Sha256] = set()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            found.update(digests_in(b"".join(durable.read_chunks(path))))
    return found


def reachable(store: ArtifactStore, roots: Iterable[Sha256], known: set[Sha256] | None = None) -> set[Sha256]:
    """Stored artifacts reachable from ``roots``, the roots that are stored included.

    Args:
        known: artifacts found reachable before; they are not read again, and are part of the result.

    Raises:
        StorageFault: an artifact cannot be read. (Damaged bytes are read as they are.)
    """
    found = set(known or ())
    waiting = [r for r in set(roots) - found if store.has(r)]
    found.update(waiting)
    while waiting:
        for name in digests_in(_json_of(store, waiting.pop())):
            if name not in found and store.has(name):
                found.add(name)
                waiting.append(name)
    return found


def _json_of(store: ArtifactStore, name: Sha256) -> bytes:
    """The bytes of an artifact that looks like JSON, else nothing."""
    try:
        chunks = store.chunks(name)
        first = next(chunks, b"")
    except (StorageFault, FileNotFoundError):
        if store.has(name):
            raise
        return b""  # collected by another process
    return first + b"".join(chunks) if first[:1] in (b"{", b"[") else b""
