"""What a film shows and sounds like after decoding, as digests: one for every picture, one for all samples.

Two files of different bytes with equal fingerprints are the same film to a viewer. Owns the comparison's figures, not a judgement.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from media.command import Limits, Sandbox
from media.ffmpeg import run_ffmpeg

_LIMITS = Limits(wall_s=1800.0, cpu_s=7200)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Digests of a decoded film."""

    frames: tuple[str, ...]
    """SHA-256 of every decoded picture with its size, in order of presentation."""
    sound: str
    """SHA-256 over all decoded samples, 16 bits; empty without sound."""

    def first_difference(self, other: Fingerprint) -> int | None:
        """Index of the first picture that differs or that only one film has; None when all are equal."""
        for index, (a, b) in enumerate(zip(self.frames, other.frames, strict=False)):
            if a != b:
                return index
        return None if len(self.frames) == len(other.frames) else min(len(self.frames), len(other.frames))


def fingerprint(path: Path, sandbox: Sandbox) -> Fingerprint:
    """Decode a film once and digest it.

    Raises:
        ToolFailed: it cannot be decoded, or has no picture.
        LimitExceeded, SandboxUnavailable: ours to handle.
    """
    pictures = ("-map", "0:v:0", "-fps_mode", "passthrough", "-f", "framehash", "-hash", "sha256", "/out/frames")
    whole = ("-map", "0:v:0", "-map", "0:a:0?", "-fps_mode", "passthrough", "-c:a", "pcm_s16le", "-f", "streamhash", "/out/streams")
    with tempfile.TemporaryDirectory(prefix="workprint-") as folder:
        done = run_ffmpeg(
            ("-threads", "1", "-i", "/in/film", *pictures, *whole),
            inputs={"film": path},
            outputs=("frames", "streams"),
            sandbox=sandbox,
            workdir=Path(folder),
            limits=_LIMITS,
        )
        rows = [line.split(",") for line in done.outputs["frames"].read_text("ascii").splitlines() if not line.startswith("#")]
        streams = [line.strip().split(",") for line in done.outputs["streams"].read_text("ascii").splitlines()]
    sound = [row[2].removeprefix("SHA256=") for row in streams if row[1] == "a"]
    return Fingerprint(tuple(",".join(part.strip() for part in row[4:6]) for row in rows), sound[0] if sound else "")
