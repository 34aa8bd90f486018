"""The marker that makes a folder a lake. Written before anything else, so that a half-made lake is recognised and finished.

Owns LAKE.json alone.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import orjson

from schemas.errors import ConfigInvalid, SchemaMismatch, StorageFault
from storage import durable
from storage.bucket import Bucket

MARKER = "LAKE.json"
FORMAT = "workprint-lake.1"


def open_marker(root: Path, ledger: str, *, create: bool) -> str:
    """Check that ``root`` is a lake of this format and ledger kind ('sqlite' or 'postgres'), or make it one if it is missing or empty.

    Returns:
        the lake's identity.

    Raises:
        ConfigInvalid: the folder holds other things, there is no lake and ``create`` is False, or the ledger is of another kind.
        SchemaMismatch: the lake is of another format, or its marker is damaged.
        StorageFault: it cannot be read or made, or its ledger is gone.
    """
    path = root / MARKER
    if root.exists() and not root.is_dir():
        raise ConfigInvalid("not_a_lake", f"{root} is a file", "name a folder")
    inside = sorted(p.name for p in root.iterdir() if not p.name.startswith(durable.TEMP_PREFIX)) if root.is_dir() else []
    if not path.is_file():  # looked at after the listing: whoever makes a lake writes the marker first
        if inside:
            raise ConfigInvalid("not_a_lake", f"{root} holds {inside[0]!r} and no {MARKER}", "name a lake, or an empty or new folder")
        if not create:
            raise ConfigInvalid("no_lake", f"there is no lake at {root}", "make one with 'workprint run'")
        _make(root, path, ledger)
    marker = _read(path)
    if marker.get("format") != FORMAT:
        raise SchemaMismatch(
            "lake_format", f"the lake is of format {marker.get('format')!r}, expected {FORMAT!r}", "use the release that made it"
        )
    if marker.get("ledger") != ledger:
        raise ConfigInvalid(
            "ledger_kind", f"the lake's ledger is {marker.get('ledger')}, opened as {ledger}", "set the ledger in the config"
        )
    if ledger == "sqlite" and not (root / "ledger.sqlite").is_file() and any((root / "tables").glob("*/*.parquet")):
        raise StorageFault("ledger_missing", "the lake has data files but no ledger.sqlite", "restore ledger.sqlite from a copy")
    return str(marker["lake_id"])


def open_shared_marker(bucket: Bucket, lake_id: str | None, *, create: bool) -> None:
    """Check that a bucket's prefix is a lake of this format, or make it one. The identity is the ledger's, so that two that make one agree.

    Args:
        lake_id: identity that the ledger gave; None looks only.

    Raises:
        ConfigInvalid: there is no lake and ``create`` is False.
        SchemaMismatch: the lake is of another format or belongs to another ledger, or its marker is damaged.
        StorageFault: the bucket does not answer.
    """
    try:
        marker = orjson.loads(b"".join(bucket.chunks(MARKER)))
    except FileNotFoundError:
        if not create:
            raise ConfigInvalid("no_lake", f"there is no lake at {bucket.url}", "make one with 'workprint run'") from None
        if lake_id is None:
            return
        marker = {"format": FORMAT, "lake_id": lake_id, "ledger": "postgres"}
        bucket.put(MARKER, orjson.dumps(marker) + b"\n")
    except OSError as error:
        raise durable.fault_from(error, f"reading {bucket.url}") from error
    except orjson.JSONDecodeError as error:
        raise SchemaMismatch("lake_format", f"{MARKER} in {bucket.url} is damaged", "restore it from a copy") from error
    if marker.get("format") != FORMAT:
        raise SchemaMismatch(
            "lake_format", f"the lake is of format {marker.get('format')!r}, expected {FORMAT!r}", "use the release that made it"
        )
    if lake_id is not None and marker.get("lake_id") != lake_id:
        raise SchemaMismatch("foreign_ledger", "the ledger belongs to another lake", "give each lake a ledger of its own")


def _make(root: Path, path: Path, ledger: str) -> None:
    try:
        durable.make_folder(root)
        with durable.exclusive(root, "the lake", wait=True):
            if not path.is_file():
                durable.write_file(path, orjson.dumps({"format": FORMAT, "lake_id": uuid.uuid4().hex, "ledger": ledger}) + b"\n")
    except OSError as error:
        raise durable.fault_from(error, "making the lake") from error


def _read(path: Path) -> dict[str, Any]:
    try:
        marker = orjson.loads(path.read_bytes())
    except orjson.JSONDecodeError as error:
        raise SchemaMismatch("lake_marker", f"{MARKER} cannot be read: {error}", "restore it from a copy") from error
    except OSError as error:
        raise durable.fault_from(error, f"reading {MARKER}") from error
    if not isinstance(marker, dict) or not isinstance(marker.get("lake_id"), str):
        raise SchemaMismatch("lake_marker", f"{MARKER} names no lake_id", "restore it from a copy")
    return marker
