"""The figures that inspection judges by. One place, one version; every figure says its unit and its reason.

Owns numbers only. The checks that use them live in ``repair.checks`` and ``repair.judge``.
"""

from __future__ import annotations

from pydantic import Field

from schemas.canonical import Frozen


class InspectionLimits(Frozen):
    """Limits of the structured checks and of the embedded judge. All of them are choices of ours, not the paper's."""

    version: str = "limits.3"

    # plan
    pacing_factor: float = Field(default=2.0, description="a slot may be this many times its planned length, or 1/this of it")
    pacing_slack_us: int = Field(default=3_000_000, description="... and deviations below this many microseconds never count")
    slot_overrun_us: int = Field(default=60_000, description="narration may reach this far past the end of its slot, microseconds")

    # narration
    silent_share: float = Field(default=0.90, description="a track this silent holds no speech; share of its length")
    silent_lufs: float = Field(default=-50.0, description="quieter than this is silence, LUFS")
    clipped_share: float = Field(default=0.002, description="share of samples at full scale; speech engines leave none")
    loudness_tolerance_lu: float = Field(default=4.0, description="distance of a narration from the configured loudness, LU")
    loudness_min_us: int = Field(default=450_000, description="shorter tracks have no meaningful loudness, microseconds")
    duration_tolerance_us: int = Field(
        default=60_000, description="recorded and measured length of a sound may differ by this, microseconds"
    )
    rate_factor: float = Field(default=1.45, description="a track spoken this much faster than the film's median lacks words")
    rate_min_units: int = Field(default=18, description="shorter texts have no reliable rate, speech units (see repair.checks.sound)")
    rate_least_units: int = Field(default=8, description="... and those below this have none at all, speech units")
    rate_short_factor: float = Field(default=1.9, description="as rate_factor, for texts between the two")
    rate_max: float = Field(default=26.0, description="faster than anyone speaks, speech units a second; used when a film has few tracks")
    end_level_db: float = Field(default=-20.0, description="level of the last 40 ms against the whole; speech ends far below, dB")
    rate_peers: int = Field(default=3, description="tracks needed for a median")

    music_clipped_share: float = Field(default=0.02, description="share of samples at full scale; loud masters leave some")

    # assets
    repeat_distance: int = Field(default=1, description="the same clip this close is an error, further away a warning; shots")
    hold_max_us: int = Field(default=1_500_000, description="longest time a clip shorter than its slot may stand still, microseconds")
    hold_error_us: int = Field(default=5_000_000, description="standing still longer is an error if a free clip is longer, microseconds")
    rank_gap: float = Field(default=0.35, description="how far the chosen clip may rank behind the best one (replay.ranking), 0 to 1")

    # renders
    black_excess: float = Field(default=0.30, description="share of black frames beyond that of the clip and graphic it was made from")
    black_luma: float = Field(default=0.5, description="... and a black render has less than this share of their mean brightness")
    still_excess_us: int = Field(default=800_000, description="still time beyond that of its sources that raises suspicion, microseconds")
    motion_looks: int = Field(default=9, description="pictures at which a suspected render is compared with its clip")
    motion_min: float = Field(default=1.0, description="luma change between two looks that counts as motion of the clip, 0 to 255")
    motion_kept: float = Field(default=0.2, description="share of the clip's change that a healthy render shows at least")
    motion_lost: float = Field(default=0.5, description="share of the clip's moving intervals that a frozen render does not show")

    # graphics on screen
    graphic_like: float = Field(default=0.6, description="a render shows its graphic from this correlation of luma on, -1 to 1")
    graphic_flat: float = Field(
        default=4.0, description="a graphic with less detail has no correlation; standard deviation of luma, 0 to 255"
    )
    graphic_apart: float = Field(default=12.0, description="... and is shown where luma differs by less than this, 0 to 255")

    # embedded judge
    text_wrong: float = Field(default=0.60, description="a slot read back below this similarity is wrong, 0 to 1")
    text_sure: float = Field(default=0.85, description="... at or above this it is right; between them the critic decides")
    edge_share: float = Field(default=0.008, description="text nearer to the border than this share of the picture is cut")
    contrast_min: float = Field(default=3.0, description="WCAG 2 contrast ratio of large text")
    contrast_flat: float = Field(default=1.3, description="a picture in which no line is read hides it below this contrast, else lacks it")
    blank_share: float = Field(default=0.997, description="a graphic with this share of one colour shows nothing")

    # delivery
    drift_us: int = Field(default=80_000, description="picture and sound of the film may differ in length by this, microseconds")
    shift_us: int = Field(default=40_000, description="a sound of the film may be heard this far from its place, microseconds")
    delivery_peak_dbtp: float = Field(default=-1.0, description="highest true peak of a film (EBU R 128), dBTP")
    delivery_lu: float = Field(default=3.0, description="distance of the film from the configured loudness, LU")


LIMITS = InspectionLimits()
"""The limits in force. Their digest is part of every inspection's evidence."""
