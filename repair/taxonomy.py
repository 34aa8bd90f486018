"""The closed taxonomy of defects: how each is detected, what it taints, which mends are allowed, and who else could help.

Owns the table and the page docs/defects.md that is generated from it (``python -m repair.taxonomy``). Measures and decides nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from repair.limits import LIMITS, InspectionLimits
from schemas.verdict import DefectCode, MendCode


class Product(StrEnum):
    """What a shot or a film is made of, upstream first. ``plan`` is decided, the others are produced."""

    PLAN = "plan"
    ASSET = "asset"
    NARRATION = "narration"
    DECORATION = "decoration"
    MUSIC = "music"
    TIMELINE = "timeline"
    RENDER = "render"
    DELIVERY = "delivery"


MENDED: dict[MendCode, Product | None] = {
    MendCode.REMIX: Product.DELIVERY,
    MendCode.RENARRATE: Product.NARRATION,
    MendCode.RERENDER: Product.RENDER,
    MendCode.REFILL_SLOTS: Product.DECORATION,
    MendCode.RERETRIEVE: Product.ASSET,
    MendCode.NEW_MUSIC: Product.MUSIC,
    MendCode.RETIME: Product.PLAN,
    MendCode.REPLAN: Product.PLAN,
    MendCode.ACCEPT: None,
}
"""The one product that a mend makes again. Everything downstream of it becomes stale by lineage; nothing else is touched."""

MEND_TOOLS: dict[MendCode, tuple[str, ...]] = {
    MendCode.REMIX: ("stitch_video",),
    MendCode.RENARRATE: ("synthesize_narration",),
    MendCode.RERENDER: ("render_shots",),
    MendCode.REFILL_SLOTS: ("decorate_spotlights",),
    MendCode.RERETRIEVE: ("retrieve_visuals",),
    MendCode.NEW_MUSIC: ("search_music",),
    MendCode.RETIME: ("compose_timeline",),
    MendCode.REPLAN: ("synthesize_narration", "compose_timeline", "render_shots"),
    MendCode.ACCEPT: (),
}
"""Tools whose work a mend redoes or calls for."""

MEANING: dict[MendCode, str] = {
    MendCode.REMIX: "mix the sound and join the film again from the same renders",
    MendCode.RENARRATE: "speak the shot's text again",
    MendCode.RERENDER: "render the shot again from the same clip, graphic and length",
    MendCode.REFILL_SLOTS: "fill the shot's template again and render the graphic",
    MendCode.RERETRIEVE: "exclude the shot's clip, if it was too short all that are, and choose another; or take a damaged one anew",
    MendCode.NEW_MUSIC: "choose the background track again",
    MendCode.RETIME: "set the planned length to what the narration needs",
    MendCode.REPLAN: "give every stretch of the script to exactly one shot again; shots whose text changes are spoken again",
    MendCode.ACCEPT: "leave it as a known warning",
}
"""What each mend does, in words that a critic reads."""


@dataclass(frozen=True, slots=True)
class DefectSpec:
    """One kind of defect.

    ``product`` is the artifact that a defect of this kind names; ``taints`` are the artifacts of the same subject that cannot be trusted
    while it stands; ``mends`` are cheapest first; ``remedies`` are tools that help where no mend can; ``hard`` marks a measured fact
    that a critic may weigh but not dismiss.
    """

    code: DefectCode
    product: Product
    subject: Literal["shot", "film", "shot or film"]
    detection: str
    severity: Literal["warning", "error"]
    taints: tuple[Product, ...]
    mends: tuple[MendCode, ...]
    hard: bool
    cause: str
    remedies: tuple[str, ...] = ()


def _specs(at: InspectionLimits) -> tuple[DefectSpec, ...]:
    code, mend, p = DefectCode, MendCode, Product
    ms = 1000
    picture = (p.RENDER, p.DELIVERY)
    sound = (p.NARRATION, p.DELIVERY)
    return (
        DefectSpec(
            code.PLAN_UNCOVERED, p.PLAN, "shot or film",
            "the planned spans, in film order, leave script characters out, repeat them, or their texts differ from the script; named on "
            "the shots that do not carry the stretch up to the next one",
            "error", (p.PLAN, p.NARRATION, p.TIMELINE, *picture), (mend.REPLAN,), True,
            "the shot plan does not carry the whole script", ("plan_shots",),
        ),
        DefectSpec(
            code.PLAN_REPETITION, p.ASSET, "shot",
            "the shot's clip was searched for with the query of the shot before it, word for word (an error where the plan gives the shot "
            "a query of its own)",
            "warning", (p.ASSET, *picture), (mend.RERETRIEVE, mend.ACCEPT), False,
            "two neighbouring shots share one visual query", ("reflect_plan",),
        ),
        DefectSpec(
            code.PACING_TOO_LONG, p.TIMELINE, "shot or film",
            f"a slot is more than {at.pacing_factor:g} times its planned length and over {at.pacing_slack_us // ms} ms longer (an error "
            "over twice that, or where the film is longer than the task allows); or the film is longer than the task allows",
            "warning", (p.PLAN, p.TIMELINE, *picture), (mend.RETIME, mend.ACCEPT), False,
            "the length on the timeline exceeds what was planned",
        ),
        DefectSpec(
            code.PACING_TOO_SHORT, p.TIMELINE, "shot or film",
            f"a slot is less than 1/{at.pacing_factor:g} of its planned length and over {at.pacing_slack_us // ms} ms shorter; the "
            f"narration runs more than {at.slot_overrun_us // ms} ms past its slot (an error); or the film is shorter than the task allows",
            "warning", (p.PLAN, p.TIMELINE, *picture), (mend.RETIME, mend.ACCEPT), False,
            "the slot is too short for what it must carry",
        ),
        DefectSpec(
            code.NARRATION_SILENT, p.NARRATION, "shot",
            f"at least {at.silent_share:.0%} of the track is silence, or it is quieter than {at.silent_lufs:g} LUFS",
            "error", sound, (mend.RENARRATE,), True,
            "the spoken track holds no speech",
        ),
        DefectSpec(
            code.NARRATION_CLIPPED, p.NARRATION, "shot",
            f"at least {at.clipped_share:.1%} of the samples are at full scale",
            "error", sound, (mend.RENARRATE,), True,
            "the spoken track was driven over full scale",
        ),
        DefectSpec(
            code.NARRATION_TRUNCATED, p.NARRATION, "shot",
            f"the track speaks its text {at.rate_factor:g} times faster than the film's median ({at.rate_short_factor:g} times for a short "
            f"text), or faster than {at.rate_max:g} units a "
            f"second, or breaks off above {at.end_level_db:g} dB of its own level, or is over {at.duration_tolerance_us // ms} ms shorter "
            "than its record says",
            "error", (p.NARRATION, p.TIMELINE, *picture), (mend.RENARRATE,), False,
            "the end of the text is not spoken",
        ),
        DefectSpec(
            code.NARRATION_LOUDNESS, p.NARRATION, "shot",
            f"loudness is over {at.loudness_tolerance_lu:g} LU away from the configured one (an error over twice that)",
            "warning", sound, (mend.RENARRATE, mend.ACCEPT), False,
            "the spoken track was not levelled",
        ),
        DefectSpec(
            code.ASSET_REPEATED, p.ASSET, "shot",
            f"the clip is also that of an earlier shot; an error within {at.repeat_distance} shot(s)",
            "warning", (p.ASSET, *picture), (mend.RERETRIEVE, mend.ACCEPT), False,
            "retrieval chose a clip that was already in use",
        ),
        DefectSpec(
            code.ASSET_MISMATCH, p.ASSET, "shot",
            "the clip is not in the source pool (an error), or ranks more than "
            f"{at.rank_gap:g} behind the clip that its query would find now (an error over twice that)",
            "warning", (p.ASSET, *picture), (mend.RERETRIEVE, mend.ACCEPT), False,
            "the clip does not show what the query asks for",
        ),
        DefectSpec(
            code.ASSET_TOO_SHORT, p.ASSET, "shot",
            f"the clip is so much shorter than its slot that the picture stands still over {at.hold_max_us // ms} ms (an error over "
            f"{at.hold_error_us // ms} ms if a longer clip is free, or if the pool's own copy of the clip is longer)",
            "warning", (p.ASSET, *picture), (mend.RERETRIEVE, mend.ACCEPT), False,
            "the clip ends before its slot does",
        ),
        DefectSpec(
            code.SPOTLIGHT_MISSING, p.DECORATION, "shot",
            f"a planned graphic was not made, or at least {at.blank_share:.1%} of it is one colour and no text is read",
            "error", (p.DECORATION, *picture), (mend.REFILL_SLOTS,), True,
            "the graphic shows nothing",
        ),
        DefectSpec(
            code.SPOTLIGHT_TEXT_WRONG, p.DECORATION, "shot",
            f"text recognition of the graphic reads a slot back with a similarity below {at.text_wrong:g} "
            f"(between that and {at.text_sure:g} the critic decides)",
            "error", (p.DECORATION, *picture), (mend.REFILL_SLOTS,), False,
            "the graphic does not show the text of its slots",
        ),
        DefectSpec(
            code.SPOTLIGHT_OVERFLOW, p.DECORATION, "shot",
            f"text of the graphic lies within {at.edge_share:.1%} of the border, or only the beginning of a slot is read back",
            "error", (p.DECORATION, *picture), (mend.REFILL_SLOTS,), False,
            "the text is larger than its place",
        ),
        DefectSpec(
            code.SPOTLIGHT_LOW_CONTRAST, p.DECORATION, "shot",
            f"WCAG contrast between the text and what lies behind it is below {at.contrast_min:g} "
            f"(an error below {(1 + at.contrast_min) / 2:g})",
            "warning", (p.DECORATION, *picture), (mend.REFILL_SLOTS, mend.ACCEPT), False,
            "text and background are too alike",
        ),
        DefectSpec(
            code.MUSIC_SILENT, p.MUSIC, "film",
            f"at least {at.silent_share:.0%} of the track is silence, or it is quieter than {at.silent_lufs:g} LUFS",
            "error", (p.MUSIC, p.DELIVERY), (mend.NEW_MUSIC,), True,
            "the background track holds no sound",
        ),
        DefectSpec(
            code.MUSIC_CLIPPED, p.MUSIC, "film",
            f"at least {at.music_clipped_share:.0%} of the samples are at full scale",
            "error", (p.MUSIC, p.DELIVERY), (mend.NEW_MUSIC,), True,
            "the background track was driven over full scale",
        ),
        DefectSpec(
            code.RENDER_BLACK, p.RENDER, "shot",
            f"the share of black frames exceeds that of its clip and graphic by {at.black_excess:g}, and it has less than "
            f"{at.black_luma:g} of their brightness",
            "error", picture, (mend.RERENDER, mend.RERETRIEVE), True,
            "the picture was lost in rendering",
        ),
        DefectSpec(
            code.RENDER_FROZEN, p.RENDER, "shot",
            f"it stands still over {at.still_excess_us // ms} ms longer than its clip and graphic explain, and compared with its clip at "
            f"{at.motion_looks} moments at least {at.motion_lost:.0%} of the clip's motion is missing",
            "error", picture, (mend.RERENDER, mend.RERETRIEVE, mend.ACCEPT), False,
            "the picture stands still although its clip moves",
        ),
        DefectSpec(
            code.RENDER_WRONG_SIZE, p.RENDER, "shot",
            "width or height differ from the task's",
            "error", picture, (mend.RERENDER,), True,
            "the render was made for another picture size",
        ),
        DefectSpec(
            code.RENDER_WRONG_LENGTH, p.RENDER, "shot",
            "the number of frames differs from the timeline's",
            "error", picture, (mend.RERENDER,), True,
            "the render does not fill its slot exactly",
        ),
        DefectSpec(
            code.RENDER_GRAPHIC_MISSING, p.RENDER, "shot",
            f"at the moment before its graphic leaves, the render is like the graphic by less than {at.graphic_like:g} (correlation of "
            f"luma; over {at.graphic_apart:g} luma steps apart where it is one colour), and text recognition does not read its slots "
            "there (if it does, the critic decides)",
            "error", picture, (mend.RERENDER,), True,
            "the shot was rendered without its graphic",
        ),
        DefectSpec(
            code.DELIVERY_BLACK, p.DELIVERY, "film",
            f"the share of black frames exceeds that of its renders by {at.black_excess:g}",
            "error", (p.DELIVERY,), (mend.REMIX,), True,
            "the picture was lost in joining",
        ),
        DefectSpec(
            code.DELIVERY_SILENT, p.DELIVERY, "film",
            f"at least {at.silent_share:.0%} of the film's sound is silence, or there is none",
            "error", (p.DELIVERY,), (mend.REMIX,), True,
            "the sound was lost in the mix",
        ),
        DefectSpec(
            code.DELIVERY_DRIFT, p.DELIVERY, "film",
            f"picture and sound of the film differ in length by over {at.drift_us // ms} ms, the picture differs from the timeline, or a "
            f"sound is heard over {at.shift_us // ms} ms away from its place (correlation with the mix of its parts)",
            "error", (p.DELIVERY,), (mend.REMIX,), True,
            "picture and sound do not run together",
        ),
        DefectSpec(
            code.DELIVERY_CLIPPED, p.DELIVERY, "film",
            f"the true peak of the sound is above {at.delivery_peak_dbtp:g} dBTP",
            "error", (p.DELIVERY,), (mend.REMIX,), True,
            "the mix was driven over its ceiling",
        ),
        DefectSpec(
            code.DELIVERY_LOUDNESS, p.DELIVERY, "film",
            f"loudness of the film is over {at.delivery_lu:g} LU away from the configured one (an error over twice that)",
            "warning", (p.DELIVERY,), (mend.REMIX, mend.ACCEPT), False,
            "the mix was not levelled",
        ),
        DefectSpec(
            code.DELIVERY_GRAPHIC_MISSING, p.DELIVERY, "film",
            "a graphic that stands in its shot's render is not on screen at that moment of the film; compared as render_graphic_missing",
            "error", (p.DELIVERY,), (mend.REMIX,), True,
            "a graphic was lost in joining",
        ),
    )  # fmt: skip


TAXONOMY: dict[DefectCode, DefectSpec] = {s.code: s for s in _specs(LIMITS)}
"""Every defect code, in order of production."""

RANK: dict[DefectCode, int] = {code: n for n, code in enumerate(TAXONOMY)}
"""Position in the order of production: an upstream defect comes before those it causes."""

MEND_ORDER: tuple[MendCode, ...] = tuple(MendCode)
"""Cheapest first."""


def page() -> str:
    """The text of docs/defects.md."""
    lines = [
        "# Defects and mends",
        "",
        "Generated by `python -m repair.taxonomy`; do not edit. The codes are a closed set (`schemas.verdict.DefectCode`). The taxonomy",
        "and all limits are this project's own: the appendices of the paper that would define its checks are not published.",
        "",
        "Severity is the default that inspection proposes; a critic confirms or weighs each finding. A finding marked *fact* can be",
        "weighed but not dismissed. *Taints* are the artifacts of the same subject that cannot be trusted while the defect stands; every",
        "other artifact keeps its digest through the repair. *Mends* are allowed in this order, cheapest first.",
        "",
        "| code | of | how it is detected | severity | taints | mends | else |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for spec in TAXONOMY.values():
        severity = spec.severity + (", fact" if spec.hard else "")
        row = (
            f"`{spec.code.value}`",
            spec.subject,
            spec.detection,
            severity,
            ", ".join(t.value for t in spec.taints),
            ", ".join(f"`{m.value}`" for m in spec.mends),
            ", ".join(f"`{t}`" for t in spec.remedies) or "-",
        )
        lines.append("| " + " | ".join(row) + " |")
    lines += ["", "## Mends", "", "| mend | what it does | makes again | tool |", "| --- | --- | --- | --- |"]
    for mend in MEND_ORDER:
        product = MENDED[mend]
        tools = ", ".join(f"`{t}`" for t in MEND_TOOLS[mend]) or "-"
        lines.append(f"| `{mend.value}` | {MEANING[mend]} | {product.value if product else '-'} | {tools} |")
    lines += ["", "## Limits", "", f"Version `{LIMITS.version}`.", "", "| limit | value | meaning |", "| --- | --- | --- |"]
    for name, info in InspectionLimits.model_fields.items():
        if name != "version":
            lines.append(f"| `{name}` | {getattr(LIMITS, name)} | {info.description} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
