"""The task input of a run (paper, section 3.1), made from a storyboard and its pool.

Owns the canvas. Takes over what a task may state: script, aspect, length, material, tools. What the storyboard recovered beyond that
(shots, queries, spotlights, times) is an answer and never enters a task.
"""

from __future__ import annotations

from collections.abc import Sequence

from replay.config import ReplayConfig
from replay.engines import Engines
from schemas.canonical import Sha256
from schemas.errors import ConfigInvalid
from schemas.state import PoolClip, Task
from schemas.storyboard import Storyboard
from schemas.time import Rate

_ASPECTS: dict[str, tuple[int, int]] = {"16:9": (16, 9), "9:16": (9, 16), "1:1": (1, 1), "4:3": (4, 3)}


def canvas(aspect_ratio: str, short_side: int) -> tuple[int, int]:
    """Width and height of the film in pixels, both even; the shorter one is ``short_side`` (made even).

    Raises:
        ConfigInvalid: an aspect ratio that films are not made in.
    """
    if aspect_ratio not in _ASPECTS:
        raise ConfigInvalid("aspect_ratio", f"there is no canvas for {aspect_ratio!r}", f"known: {', '.join(_ASPECTS)}")
    wide, high = _ASPECTS[aspect_ratio]
    short = _even(short_side, 1)
    if wide >= high:
        return _even(short * wide, high), short
    return short, _even(short * high, wide)


def _even(numerator: int, denominator: int) -> int:
    """The even number nearest to a fraction, at least 2."""
    return max(2, 2 * ((numerator + denominator) // (2 * denominator)))


def build_task(storyboard: Storyboard, pool: Sequence[PoolClip], config: ReplayConfig, engines: Engines, tools_digest: Sha256) -> Task:
    """The task of one project.

    Args:
        pool: clips the visuals are chosen from.
        engines: they name the voice and the music library that the run will use.
        tools_digest: names the tool space (``Registry.digest()``).

    Raises:
        EngineMissing: no voice for the storyboard's language.
    """
    width, height = canvas(storyboard.aspect_ratio, config.render.height)
    return Task(
        project_id=storyboard.project_id,
        title=storyboard.title,
        language=storyboard.language,
        script=storyboard.script,
        aspect_ratio=storyboard.aspect_ratio,
        width=width,
        height=height,
        frame_rate=Rate(num=config.render.frame_rate, den=1),
        duration_min_us=storyboard.duration_min_us,
        duration_max_us=storyboard.duration_max_us,
        pool=tuple(pool),
        music_library=engines.music.name if engines.music.tracks else "",
        music_moods=storyboard.music_moods,
        voice=engines.speech.voice_for(storyboard.language, config.speech.voice),
        tools_digest=tools_digest,
        licence=storyboard.source.licence or "unknown",
        attribution=storyboard.source.attribution,
    )
