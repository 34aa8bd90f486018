"""Snapshots: a state plus its artifact references, named by digest, restorable."""

from __future__ import annotations

from typing import Literal

from schemas.canonical import Frozen, Sha256


class Snapshot(Frozen):
    """A manifest of record digests. The records are artifacts of kind ``record``; equal records are stored once."""

    schema_version: Literal["snapshot.1"] = "snapshot.1"
    project_id: str
    state_digest: Sha256
    film_record: Sha256
    task_record: Sha256
    shot_records: tuple[tuple[str, Sha256], ...]
