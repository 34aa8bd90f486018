"""Canonical bytes, digests and ids: the one way in which content names things.

Owns the byte form that every digest is taken over. Must not read or write files.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict

Sha256 = str
"""64 lower-case hex digits."""


class Frozen(BaseModel):
    """Base of all records: immutable, closed (unknown keys are refused), comparable by value."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def canonical(self) -> bytes:
        """Canonical JSON bytes of this record (see :func:`canonical_bytes`)."""
        return canonical_bytes(self.model_dump(mode="json"))

    def digest(self) -> Sha256:
        """sha256 over :meth:`canonical`."""
        return sha256_bytes(self.canonical())


def canonical_bytes(value: Any) -> bytes:
    """JSON with sorted keys, no white space, UTF-8, shortest float form.

    Raises:
        TypeError: for values JSON cannot hold, lone surrogates, and integers over 64 bits.
    """
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def canonical_text(value: Any) -> str:
    """:func:`canonical_bytes` as text."""
    return canonical_bytes(value).decode()


def sha256_bytes(data: bytes) -> Sha256:
    """sha256 of ``data`` as hex."""
    return hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> Sha256:
    """sha256 over the canonical bytes of a JSON-like value."""
    return sha256_bytes(canonical_bytes(value))


_PREFIX = {
    "project": "prj",
    "trajectory": "trj",
    "snapshot": "snp",
    "example": "exa",
    "group": "grp",
    "stage": "stg",
    "run": "run",
}


def derive_id(kind: str, content: Any) -> str:
    """A stable id such as ``prj_3f0a…``: prefix of the kind and 24 hex digits over kind and content.

    Args:
        kind: one of project, trajectory, snapshot, example, group, stage, run.
        content: JSON-like value that names the thing; equal content gives an equal id.
    """
    return f"{_PREFIX[kind]}_{digest_of([kind, content])[:24]}"


def stage_key(stage: str, version: int, config_digest: Sha256, inputs: tuple[Sha256, ...]) -> str:
    """Key of one stage execution: same key, nothing is done again (DESIGN rule 1)."""
    return derive_id("stage", [stage, version, config_digest, list(inputs)])
