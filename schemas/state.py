"""The production state: what is planned and what is produced, never in one field. Only the runtime changes it.

The state is the fold of ``Change`` values. Records are immutable and shared between states; the digest of a state is taken over
the digests of its records, so a snapshot costs what changed.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from schemas.artifact import ArtifactRef
from schemas.canonical import Frozen, Sha256
from schemas.contract import ContentRequest
from schemas.storyboard import SpotlightKind
from schemas.time import Rate
from schemas.verdict import Defect

STATE_VERSION: Literal["state.1"] = "state.1"


class PoolClip(Frozen):
    """One candidate in the source pool. ``text`` is searchable; it is data, never an instruction."""

    clip_id: str = Field(description="first 12 hex digits of the clip's sha256, prefixed 'clip_'")
    ref: ArtifactRef
    text: str
    duration_us: int
    width: int
    height: int
    rate: Rate
    licence: str
    attribution: str | None = None
    luma: float = 0.5
    colour: tuple[int, int, int] = (128, 128, 128)
    origin: str = Field(description="'source' or the name of the user's folder entry")


class Task(Frozen):
    """The task input x of the paper: fixed script, aspect, feasible duration, source assets, tool space."""

    project_id: str
    title: str
    language: str
    script: str
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3"]
    width: int
    height: int
    frame_rate: Rate
    duration_min_us: int
    duration_max_us: int
    pool: tuple[PoolClip, ...]
    music_library: str = Field(description="name and version of the library that search_music looks in")
    music_moods: tuple[str, ...] = ()
    voice: str = Field(description="name of the configured voice")
    tools_digest: Sha256
    licence: str
    attribution: str | None = None


class Segment(Frozen):
    """A range of script characters, half-open."""

    index: int
    title: str
    script_start: int
    script_end: int


class SpotlightPlan(Frozen):
    """Planned graphic for a shot; text slots are filled later by the generator."""

    kind: SpotlightKind
    brief: str = Field(description="what the graphic must say, in words")


class PlannedShot(Frozen):
    """What a shot should be."""

    segment: int
    script_start: int
    script_end: int
    text: str
    visual_query: str
    target_duration_us: int
    spotlight: SpotlightPlan | None = None


class AssetChoice(Frozen):
    """The clip chosen for a shot, with its ranked competitors (best first, the chosen one included)."""

    clip_id: str
    ref: ArtifactRef
    query: str
    score: float
    ranked: tuple[str, ...]


class Narration(Frozen):
    """The spoken track of one shot: PCM WAV, mono."""

    ref: ArtifactRef
    duration_us: int
    sample_rate: int
    voice: str
    loudness_lufs: float
    text_sha256: Sha256


class Decoration(Frozen):
    """A rendered graphic."""

    ref: ArtifactRef
    template: str
    template_digest: Sha256
    slots: dict[str, str]
    placement: Literal["full_frame", "lower_third"]
    duration_us: int
    width: int
    height: int


class Render(Frozen):
    """The finished picture of one shot: video only, house profile."""

    ref: ArtifactRef
    frames: int
    inputs_digest: Sha256 = Field(description="replay.lineage.render_inputs at the time of rendering; another value now means stale")


class MusicChoice(Frozen):
    """The background track."""

    track_id: str
    ref: ArtifactRef
    title: str
    licence: str
    query: str
    duration_us: int


class TimelineItem(Frozen):
    """One shot on the timeline, in frames of the task's rate."""

    shot_id: str
    start_frame: int
    frames: int
    narration_offset_us: int


class Timeline(Frozen):
    """Exact frames of the whole film, and the OpenTimelineIO file."""

    ref: ArtifactRef
    items: tuple[TimelineItem, ...]
    total_frames: int
    inputs_digest: Sha256


class Delivery(Frozen):
    """The stitched film and its manifest."""

    video: ArtifactRef
    manifest: ArtifactRef
    duration_us: int
    loudness_lufs: float
    inputs_digest: Sha256


class ShotRecord(Frozen):
    """Everything about one shot. The planned part and the produced parts are separate fields."""

    shot_id: str
    planned: PlannedShot
    asset: AssetChoice | None = None
    narration: Narration | None = None
    decoration: Decoration | None = None
    render: Render | None = None
    open_defects: tuple[Defect, ...] = ()
    repairs_used: int = 0
    mends_tried: tuple[str, ...] = Field(default=(), description="'code:mend:defect_id' of every mend tried on this shot, in order")
    excluded_clips: tuple[str, ...] = ()
    inspected: Sha256 | None = Field(default=None, description="digest over the artifacts that the last inspection of this shot saw")


class Pending(Frozen):
    """A tool call that waits for content from another role."""

    tool: str
    tool_version: int
    arguments: dict[str, Any]
    request: ContentRequest
    given: tuple[dict[str, Any], ...] = Field(default=(), description="contents already accepted for this call, in order")
    orchestrator_call: int


class GlobalRecord(Frozen):
    """Records that concern the whole film."""

    task: Task
    segments: tuple[Segment, ...] | None = None
    shot_order: tuple[str, ...] = ()
    plan_reflected: bool = False
    music: MusicChoice | None = None
    timeline: Timeline | None = None
    delivery: Delivery | None = None
    inspected: Sha256 | None = Field(default=None, description="digest over the renders that the last inspection saw")
    film_defects: tuple[Defect, ...] = ()
    ranked_defects: tuple[str, ...] = ()
    repairs_used: int = 0
    mends_tried: tuple[str, ...] = Field(default=(), description="'code:mend:defect_id' of every mend tried on the film, in order")
    pending: Pending | None = None


class Change(Frozen):
    """One assignment: ``subject`` is 'film' or a shot id, ``field`` a field of GlobalRecord or ShotRecord, ``value`` its JSON.

    ``field == 'record'`` with a value creates or replaces a whole shot record; with ``None`` it removes the shot.
    """

    subject: str
    field: str
    value: Any = None


class ProductionState(Frozen):
    """s_t of the paper. ``shots`` is keyed by shot id; order is ``film.shot_order``."""

    schema_version: Literal["state.1"] = STATE_VERSION
    film: GlobalRecord
    shots: dict[str, ShotRecord] = Field(default_factory=dict)
