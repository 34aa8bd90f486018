"""Makes small films with ffmpeg in the sandbox, for the tests of media and of hostile input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from media.command import Sandbox
from media.ffmpeg import run_ffmpeg

PICTURE = "testsrc2=size=160x90:rate=25:duration={seconds}"
TONE = "sine=frequency=440:sample_rate={rate}:duration={seconds}"


def make(
    sandbox: Sandbox, goal: Path, argv: Sequence[str], *, inputs: dict[str, Path] | None = None, texts: dict[str, bytes] | None = None
) -> Path:
    """Run ffmpeg with ``/out/<goal's name>`` as its last word, and leave the product at ``goal``."""
    goal.parent.mkdir(parents=True, exist_ok=True)
    run_ffmpeg([*argv, f"/out/{goal.name}"], inputs=inputs, texts=texts, outputs=(goal.name,), sandbox=sandbox, workdir=goal.parent)
    return goal


def picture(seconds: float = 2.0, size: str = "160x90", rate: str = "25") -> list[str]:
    """Input options of a moving test picture."""
    return ["-f", "lavfi", "-i", f"testsrc2=size={size}:rate={rate}:duration={seconds}"]


def tone(seconds: float = 2.0, rate: int = 48_000, hertz: int = 440) -> list[str]:
    """Input options of a tone."""
    return ["-f", "lavfi", "-i", f"sine=frequency={hertz}:sample_rate={rate}:duration={seconds}"]


FAST = ["-c:v", "libx264", "-preset", "ultrafast", "-threads", "1", "-pix_fmt", "yuv420p"]
"""A quick encoder."""
