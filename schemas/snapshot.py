"""Snapshots: a state plus its artifact references, named by digest, restorable."""

from __future__ import annotations

from typing import Literal

from schemas.canonical import Frozen, Sha256


class SnapshotPage(Frozen):
    """Part of a snapshot: the record digests of a few shots. Equal pages are stored once, so one changed shot costs one page."""

    schema_version: Literal["snapshot_page.1"] = "snapshot_page.1"
    shot_records: tuple[tuple[str, Sha256], ...]


class Snapshot(Frozen):
    """A manifest of record digests. The records are artifacts of kind ``record``; equal records are stored once.

    Version 2 names the shots' records through pages (``shot_pages``), in the order of the shot ids; version 1 listed them itself.
    """

    schema_version: Literal["snapshot.1", "snapshot.2"] = "snapshot.2"
    project_id: str
    state_digest: Sha256
    film_record: Sha256
    task_record: Sha256
    shot_records: tuple[tuple[str, Sha256], ...] = ()
    shot_pages: tuple[Sha256, ...] = ()
