"""Facts about a production state: what holds, for which shots it does not, and which tools could mend that.

Owns the answer to "may this tool run" and "what is missing"; both are read off the state, never from a flag. Staleness is decided
in replay.lineage alone. Pure.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from replay import lineage
from schemas.contract import Fact
from schemas.state import ProductionState

FILM = ("film",)
NONE: tuple[str, ...] = ()

PRODUCERS: dict[Fact, tuple[str, ...]] = {
    Fact.SCRIPT: (),
    Fact.SEGMENTS: ("segment_article",),
    Fact.SHOT_PLAN: ("plan_shots",),
    Fact.SOURCE_POOL: (),
    Fact.MUSIC_LIBRARY: (),
    Fact.ASSETS: ("retrieve_visuals",),
    Fact.NARRATION: ("synthesize_narration",),
    Fact.DECORATIONS: ("decorate_spotlights",),
    Fact.MUSIC: ("search_music",),
    Fact.TIMELINE: ("compose_timeline",),
    Fact.RENDERS: ("render_shots",),
    Fact.INSPECTION: ("inspect_quality",),
    Fact.OPEN_DEFECTS: ("inspect_quality",),
    Fact.DELIVERY: ("stitch_video",),
}
"""Tools that bring a fact about, in a sensible order; the remedies that blockers name. Facts of the task have none."""

PER_SHOT = frozenset({Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.RENDERS})
"""Facts that are asked of every shot; the others concern the film."""


def segment_name(index: int) -> str:
    """How a segment is named to a policy: ``g01`` is the first."""
    return f"g{index + 1:02d}"


def _film(holds: bool) -> tuple[str, ...]:
    return NONE if holds else FILM


def _shots(state: ProductionState, holds: Callable[[ProductionState, str], bool]) -> tuple[str, ...]:
    if not state.film.shot_order:
        return FILM
    return tuple(sid for sid in state.film.shot_order if not holds(state, sid))


def _plan(state: ProductionState) -> tuple[str, ...]:
    if state.film.segments is None or not state.film.shot_order:
        return FILM
    planned = {record.planned.segment for record in state.shots.values()}
    return tuple(segment_name(s.index) for s in state.film.segments if s.index not in planned)


def _has_asset(state: ProductionState, shot_id: str) -> bool:
    shot = state.shots[shot_id]
    return shot.asset is not None and shot.asset.clip_id not in shot.excluded_clips


def _delivered(state: ProductionState) -> bool:
    delivery = state.film.delivery
    return delivery is not None and delivery.inputs_digest == lineage.delivery_inputs(state)


def open_defects(state: ProductionState) -> tuple[str, ...]:
    """Ids of all open defects, the film's first, then by shot."""
    own = [d.defect_id for d in state.film.film_defects]
    return tuple(own + [d.defect_id for sid in state.film.shot_order for d in state.shots[sid].open_defects])


_LACKING: dict[Fact, Callable[[ProductionState], tuple[str, ...]]] = {
    Fact.SCRIPT: lambda s: _film(bool(s.film.task.script.strip())),
    Fact.SEGMENTS: lambda s: _film(s.film.segments is not None),
    Fact.SHOT_PLAN: _plan,
    Fact.SOURCE_POOL: lambda s: _film(bool(s.film.task.pool)),
    Fact.MUSIC_LIBRARY: lambda s: _film(bool(s.film.task.music_library)),
    Fact.ASSETS: lambda s: _shots(s, _has_asset),
    Fact.NARRATION: lambda s: _shots(s, lineage.narration_is_current),
    Fact.DECORATIONS: lambda s: _shots(s, lineage.decoration_is_current),
    Fact.MUSIC: lambda s: _film(s.film.music is not None or not s.film.task.music_library),  # without a library a film has no music
    Fact.TIMELINE: lambda s: _film(bool(s.film.shot_order) and lineage.timeline_is_current(s)),
    Fact.RENDERS: lambda s: _shots(s, lineage.render_is_current),
    Fact.INSPECTION: lambda s: _film(s.film.inspected is not None and s.film.inspected == lineage.renders_digest(s)),
    Fact.OPEN_DEFECTS: lambda s: _film(bool(open_defects(s))),
    Fact.DELIVERY: lambda s: _film(_delivered(s)),
}

_REMEMBERED = 8


class _Memory(threading.local):
    """Answers for the last few states of this thread, by identity: a state is immutable, and one step asks the same facts often."""

    def __init__(self) -> None:
        self.entries: OrderedDict[int, tuple[ProductionState, dict[Fact, tuple[str, ...]]]] = OrderedDict()

    def of(self, state: ProductionState) -> dict[Fact, tuple[str, ...]]:
        """What is known of a state."""
        entry = self.entries.get(id(state))
        if entry is None or entry[0] is not state:
            entry = (state, {})
            self.entries[id(state)] = entry
            while len(self.entries) > _REMEMBERED:
                self.entries.popitem(last=False)
        return entry[1]


_MEMORY = _Memory()


def lacking(fact: Fact, state: ProductionState) -> tuple[str, ...]:
    """What lacks a fact.

    Returns:
        Shot ids, segment names (``g02``, for the shot plan), or ``('film',)``; empty when the fact holds. Per-shot facts of a film
        without shots lack ``('film',)``: nothing has been made of nothing.
    """
    known = _MEMORY.of(state)
    if fact not in known:
        known[fact] = _LACKING[fact](state)
    return known[fact]


def holds(fact: Fact, state: ProductionState) -> bool:
    """The fact is true of the state."""
    return not lacking(fact, state)


def concerned(fact: Fact, state: ProductionState) -> int:
    """How many subjects the fact is asked of: shots, segments, or 1 for the film."""
    if fact is Fact.SHOT_PLAN:
        return len(state.film.segments or ())
    if fact is Fact.NARRATION:
        return sum(1 for s in state.shots.values() if s.planned.text.strip())
    if fact is Fact.DECORATIONS:
        return sum(1 for s in state.shots.values() if s.planned.spotlight is not None)
    return len(state.film.shot_order) if fact in PER_SHOT else 1
