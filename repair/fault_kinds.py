"""The closed list of faults that can be put in on purpose: what each harms, which tool's product it spoils, what it looks like.

Owns the ground truth's vocabulary. How a fault is made is in repair.faults; what a critic is told never comes from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from repair.taxonomy import Product
from schemas.verdict import DefectCode as Code


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault.

    ``level`` execution: a verified product is replaced by a faulty one, or refused. ``level`` plan: the orchestrator's output is spoiled
    before the runtime sees it. ``level`` infrastructure: the tool's work breaks down on its first try; that is ours to retry and to
    record, and no policy ever sees it. ``field`` is the record field of the spoiled product, of the film's record where ``on_film``;
    ``symptoms`` are defects that show it, the first one the most likely; plan-level faults show as blockers.
    """

    name: str
    level: Literal["execution", "plan", "infrastructure"]
    what: str
    product: Product | None = None
    field: str = ""
    symptoms: tuple[Code, ...] = ()
    on_film: bool = False


_KINDS = (
    FaultKind(
        "plan_text_lost", "execution", "the plan gives a shot the first half of its text only", Product.PLAN, "record",
        (Code.PLAN_UNCOVERED,),
    ),
    FaultKind(
        "timeline_slot_short", "execution", "the shot's slot on the timeline is half as long as its narration", Product.TIMELINE,
        "timeline", (Code.PACING_TOO_SHORT,), on_film=True,
    ),
    FaultKind(
        "timeline_slot_long", "execution", "the shot's slot on the timeline is several times as long as planned", Product.TIMELINE,
        "timeline", (Code.PACING_TOO_LONG, Code.ASSET_TOO_SHORT), on_film=True,
    ),
    FaultKind("narration_silent", "execution", "the spoken track is silenced", Product.NARRATION, "narration", (Code.NARRATION_SILENT,)),
    FaultKind(
        "narration_truncated", "execution", "the spoken track ends at 45 % of its length", Product.NARRATION, "narration",
        (Code.NARRATION_TRUNCATED,),
    ),
    FaultKind(
        "narration_clipped", "execution", "the spoken track is driven 30 dB over full scale", Product.NARRATION, "narration",
        (Code.NARRATION_CLIPPED, Code.NARRATION_LOUDNESS),
    ),
    FaultKind(
        "narration_quiet", "execution", "the spoken track is 14 dB too quiet", Product.NARRATION, "narration", (Code.NARRATION_LOUDNESS,)
    ),
    FaultKind(
        "asset_repeated", "execution", "the shot gets the clip of a neighbour", Product.ASSET, "asset",
        (Code.ASSET_REPEATED, Code.ASSET_MISMATCH, Code.ASSET_TOO_SHORT),
    ),
    FaultKind(
        "asset_mismatch", "execution", "the shot gets the free clip that is least like its query", Product.ASSET, "asset",
        (Code.ASSET_MISMATCH, Code.ASSET_TOO_SHORT),
    ),
    FaultKind(
        "asset_cut", "execution", "the shot's copy of its clip ends after a fifth of a second", Product.ASSET, "asset",
        (Code.ASSET_TOO_SHORT,),
    ),
    FaultKind(
        "query_repeated", "execution", "the shot's clip is searched for with the query of the shot before it", Product.ASSET, "asset",
        (Code.PLAN_REPETITION, Code.ASSET_MISMATCH, Code.ASSET_TOO_SHORT, Code.ASSET_REPEATED),
    ),
    FaultKind(
        "decoration_wrong_text", "execution", "the graphic is rendered with other words and figures than its slots", Product.DECORATION,
        "decoration", (Code.SPOTLIGHT_TEXT_WRONG, Code.SPOTLIGHT_OVERFLOW, Code.SPOTLIGHT_LOW_CONTRAST),
    ),
    FaultKind(
        "decoration_low_contrast", "execution", "the graphic loses almost all contrast", Product.DECORATION, "decoration",
        (Code.SPOTLIGHT_LOW_CONTRAST, Code.SPOTLIGHT_TEXT_WRONG, Code.SPOTLIGHT_MISSING),
    ),
    FaultKind(
        "decoration_overflow", "execution", "the graphic is enlarged until its text leaves the picture", Product.DECORATION, "decoration",
        (Code.SPOTLIGHT_OVERFLOW, Code.SPOTLIGHT_TEXT_WRONG),
    ),
    FaultKind(
        "decoration_blank", "execution", "the graphic shows one colour", Product.DECORATION, "decoration",
        (Code.SPOTLIGHT_MISSING, Code.SPOTLIGHT_LOW_CONTRAST, Code.SPOTLIGHT_TEXT_WRONG),
    ),
    FaultKind(
        "music_silent", "execution", "the background track is silenced", Product.MUSIC, "music", (Code.MUSIC_SILENT,), on_film=True
    ),
    FaultKind(
        "music_clipped", "execution", "the background track is driven 30 dB over full scale", Product.MUSIC, "music",
        (Code.MUSIC_CLIPPED,), on_film=True,
    ),
    FaultKind("render_black", "execution", "the render is black", Product.RENDER, "render", (Code.RENDER_BLACK,)),
    FaultKind(
        "render_frozen", "execution", "the render repeats its first frame", Product.RENDER, "render",
        (Code.RENDER_FROZEN, Code.RENDER_GRAPHIC_MISSING),
    ),
    FaultKind("render_wrong_size", "execution", "the render has half the size", Product.RENDER, "render", (Code.RENDER_WRONG_SIZE,)),
    FaultKind(
        "render_wrong_length", "execution", "the render ends at 60 % of its frames", Product.RENDER, "render", (Code.RENDER_WRONG_LENGTH,)
    ),
    FaultKind(
        "render_no_graphic", "execution", "the shot is rendered without its graphic", Product.RENDER, "render",
        (Code.RENDER_GRAPHIC_MISSING,),
    ),
    FaultKind(
        "delivery_silent", "execution", "the film loses its sound", Product.DELIVERY, "delivery", (Code.DELIVERY_SILENT,), on_film=True
    ),
    FaultKind(
        "delivery_quiet", "execution", "the film is 12 dB too quiet", Product.DELIVERY, "delivery", (Code.DELIVERY_LOUDNESS,), on_film=True
    ),
    FaultKind(
        "delivery_clipped", "execution", "the film's sound is driven 24 dB over full scale", Product.DELIVERY, "delivery",
        (Code.DELIVERY_CLIPPED, Code.DELIVERY_LOUDNESS), on_film=True,
    ),
    FaultKind(
        "delivery_cut_sound", "execution", "the film's sound ends at 70 % of its length", Product.DELIVERY, "delivery",
        (Code.DELIVERY_DRIFT,), on_film=True,
    ),
    FaultKind(
        "delivery_shifted", "execution", "the film's sound comes 150 ms late", Product.DELIVERY, "delivery", (Code.DELIVERY_DRIFT,),
        on_film=True,
    ),
    FaultKind(
        "delivery_black", "execution", "the film's picture is black", Product.DELIVERY, "delivery", (Code.DELIVERY_BLACK,), on_film=True
    ),
    FaultKind(
        "delivery_no_graphic", "execution", "the film's picture is one grey while graphics should stand", Product.DELIVERY, "delivery",
        (Code.DELIVERY_GRAPHIC_MISSING,), on_film=True,
    ),
    FaultKind("product_rejected", "execution", "a shot's finished render is rejected, and the call with it", Product.RENDER, "render"),
    FaultKind("tool_crash", "infrastructure", "an engine of the call dies", Product.RENDER, "render"),
    FaultKind("time_out", "infrastructure", "an engine of the call runs over its time", Product.NARRATION, "narration"),
    FaultKind("missing_argument", "plan", "a required argument is left out"),
    FaultKind("broken_reference", "plan", "the call names a shot that does not exist"),
    FaultKind("dropped_producer", "plan", "a producing call is skipped and the tool that needs its product is called"),
    FaultKind("wrong_order", "plan", "delivery is asked for before its parts exist"),
)  # fmt: skip

KINDS: dict[str, FaultKind] = {k.name: k for k in _KINDS}
"""All kinds by name."""

INFRASTRUCTURE_KINDS: tuple[str, ...] = tuple(k.name for k in _KINDS if k.level == "infrastructure")
EXECUTION_KINDS: tuple[str, ...] = tuple(k.name for k in _KINDS if k.level == "execution")
PLAN_KINDS: tuple[str, ...] = tuple(k.name for k in _KINDS if k.level == "plan")

SYMPTOMS: dict[str, tuple[Code, ...]] = {k.name: k.symptoms for k in _KINDS if k.level == "execution"}
"""Which defects show an execution-level fault."""
