"""Makes the small films of the shot tests: an edit list drawn by the studio, encoded by ffmpeg in the sandbox."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from evaluation.studio.edit import Cutaway, frames
from evaluation.studio.pictures import Picture
from inversion.config import InversionConfig, ShotConfig
from inversion.shots import ShotTrack, detect_shots
from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
from media.probe import probe

SIZE = (192, 108)


def encode(
    sandbox: Sandbox,
    goal: Path,
    pictures: Iterable[Picture],
    *,
    size: tuple[int, int] = SIZE,
    rate: int = 25,
    crf: int = 23,
    options: Sequence[str] = (),
) -> Path:
    """Write pictures as H.264 (mp4, or what ``goal`` says); ``options`` go before the output."""
    raw = goal.with_suffix(".rgb")
    with raw.open("wb") as out:
        for picture in pictures:
            out.write(np.ascontiguousarray(picture).tobytes())
    run_ffmpeg(
        [
            *("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-framerate", str(rate), "-i", "/in/frames"),
            *("-c:v", "libx264", "-preset", "ultrafast", "-crf", str(crf), "-pix_fmt", "yuv420p", "-threads", "1", *options),
            f"/out/{goal.name}",
        ],
        inputs={"frames": raw},
        outputs=(goal.name,),
        sandbox=sandbox,
        workdir=goal.parent,
    )
    raw.unlink()
    return goal


def make_film(sandbox: Sandbox, goal: Path, edit: list[Cutaway], *, rate: int = 25, crf: int = 23, options: Sequence[str] = ()) -> Path:
    """Draw and encode an edit list."""
    return encode(sandbox, goal, frames(edit, SIZE), rate=rate, crf=crf, options=options)


def shots_of(path: Path, sandbox: Sandbox, **settings: object) -> ShotTrack:
    """Detect the shots of a file; ``settings`` are those of ShotConfig."""
    config = InversionConfig(shots=ShotConfig.model_validate(settings))
    return detect_shots(path, probe(path, sandbox), sandbox, config)


def found(track: ShotTrack) -> list[str]:
    """Boundaries as text: ``cut@50`` or ``dissolve@50`` (first frame of the new shot)."""
    return [f"{s.transition_in.value}@{s.start_frame}" for s in track.shots[1:]]
