"""Where a lake lies: a folder, or a bucket with a working folder on this machine.

A lake in a bucket keeps its artifacts and tables there and its ledger in Postgres (``WORKPRINT_LEDGER``); the working folder holds copies
of what this machine has read or written, and the journals of the runs on it. Must not open anything.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson
import platformdirs

from schemas.canonical import sha256_bytes
from schemas.errors import ConfigInvalid
from storage.bucket import Bucket, is_bucket_url
from storage.marker import MARKER

LEDGER_VARIABLE = "WORKPRINT_LEDGER"
"""Names the Postgres ledger as a URL. It may hold a password, so it is never written anywhere."""

CACHE_VARIABLE = "WORKPRINT_CACHE"


@dataclass(frozen=True, slots=True)
class Place:
    """A lake's folder on this machine, its bucket if it has one, and its ledger (None: the embedded one)."""

    location: Path
    """What to open the lake with on any machine."""
    root: Path
    bucket: Bucket | None
    ledger_url: str | None


def cache_folder() -> Path:
    """Where this user keeps what can be made again."""
    return Path(os.environ.get(CACHE_VARIABLE) or platformdirs.user_cache_dir("workprint"))


def work_folder(location: Path | str) -> Path:
    """The folder on this machine of a lake at ``location`` (a folder or ``s3://...``)."""
    if not is_bucket_url(str(location)):
        return Path(location).resolve()
    return (cache_folder() / "lakes" / sha256_bytes(Bucket(str(location)).url.encode())[:16]).resolve()


def place_of(location: Path | str, ledger_url: str | None) -> Place:
    """Find out where a lake lies.

    Args:
        ledger_url: SQLAlchemy URL of a Postgres ledger; None takes ``WORKPRINT_LEDGER`` for lakes in a bucket, for those that were made
            with a Postgres ledger, and for new ones.

    Raises:
        ConfigInvalid: a bucket that cannot be, or a lake that needs a Postgres ledger which is not named.
    """
    named = ledger_url or os.environ.get(LEDGER_VARIABLE) or None
    root = work_folder(location)
    if is_bucket_url(str(location)):
        bucket = Bucket(str(location))
        return Place(Path(bucket.url), root, bucket, _needed(named, bucket.url))
    kind = _kind(root)
    if kind == "postgres":
        return Place(root, root, None, _needed(named, str(root)))
    return Place(root, root, None, ledger_url if kind == "sqlite" else named)


def _kind(root: Path) -> str | None:
    """The kind of ledger that a lake was made with; None for a new one (or one whose marker cannot be read: opening it tells why)."""
    try:
        return str(orjson.loads((root / MARKER).read_bytes())["ledger"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _needed(url: str | None, where: str) -> str:
    if url is None:
        raise ConfigInvalid(
            "no_ledger",
            f"the ledger of {where} is a Postgres database, which is not named",
            f"set {LEDGER_VARIABLE}, for example postgresql+psycopg://user@host/lake",
        )
    return url
