"""Small productions for the tests of tools: pool entries, states, environments."""

from __future__ import annotations

import hashlib

from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.state import PoolClip
from schemas.time import Rate


def pool_entry(text: str, seconds: float) -> PoolClip:
    """A clip of the pool whose bytes nobody stored."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return PoolClip(
        clip_id=f"clip_{digest[:12]}",
        ref=ArtifactRef(sha256=digest, kind=ArtifactKind.CLIP, media_type="video/mp4", size_bytes=1),
        text=text,
        duration_us=round(seconds * 1e6),
        width=320,
        height=180,
        rate=Rate(num=30, den=1),
        licence="CC0-1.0",
        origin="source",
    )
