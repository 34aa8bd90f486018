"""Mends as plans: which defects a repair call may take on, with which mends, and the products that other tools make again for it.

Owns the bounds, the order of mends and the borrowing of other tools. A borrowed tool gets a state in which the tainted product is out of
the way, asks for its own content and verifies its own product, exactly as when it is called by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from repair.checks.assets import alternatives, free_clips, is_damaged
from repair.checks.plan import covered_us, slot_us
from repair.findings import FILM
from repair.inspect import mends_tried, open_defects
from repair.limits import LIMITS
from repair.taxonomy import RANK, TAXONOMY
from replay.config import ReplayConfig
from replay.contents import MendItem
from replay.registry import base_tools
from replay.scope import selected
from replay.state import apply, shot_change
from replay.tool import Contents, Tool, ToolEnv
from schemas.contract import ContentRequest, ToolContract
from schemas.state import ProductionState
from schemas.verdict import Defect, DefectCode, MendCode

TOO_SHORT = DefectCode.ASSET_TOO_SHORT.value

OFFERED = 12
"""Defects that one repair call takes on at most: the critic sees them all in one request."""

BORROWED: dict[MendCode, str] = {
    MendCode.RERETRIEVE: "retrieve_visuals",
    MendCode.REFILL_SLOTS: "decorate_spotlights",
    MendCode.RENARRATE: "synthesize_narration",
    MendCode.NEW_MUSIC: "search_music",
    MendCode.RERENDER: "render_shots",
    MendCode.REMIX: "stitch_video",
}
"""The tool that redoes a mend's product, in the order of work: upstream first."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A defect that may be mended now, and how."""

    defect: Defect
    allowed: tuple[MendCode, ...]
    tried: tuple[MendCode, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """Work for one borrowed tool: its subjects and the state it works in."""

    mend: MendCode
    tool: Tool
    arguments: dict[str, Any]
    subjects: tuple[str, ...]
    too_short: frozenset[str] = frozenset()
    """Subjects whose clip is to be replaced because it was too short: shorter ones than the longest free clip are no help."""


def in_scope(state: ProductionState, scope: str) -> tuple[Defect, ...]:
    """Open defects that a scope names: 'missing' all errors, 'all' everything, ids those of the shots; most severe first."""
    found = open_defects(state)
    if scope.strip() == "missing":
        found = tuple(d for d in found if d.severity == "error")
    elif scope.strip() != "all":
        shots = set(selected(state, scope, ()))
        found = tuple(d for d in found if d.subject in shots)
    ranked = {d: n for n, d in enumerate(state.film.ranked_defects)}
    return tuple(sorted(found, key=lambda d: (ranked.get(d.defect_id, len(ranked)), d.severity != "error", RANK[d.code])))


def offers(state: ProductionState, scope: str, config: ReplayConfig) -> tuple[Offer, ...]:
    """Defects of a scope that may still be mended, at most :data:`OFFERED`; those of shots without repairs left only to be accepted."""
    out: list[Offer] = []
    for defect in in_scope(state, scope):
        exhausted = defect.subject != FILM and state.shots[defect.subject].repairs_used >= config.shot_repairs
        allowed = tuple(
            m for m in TAXONOMY[defect.code].mends if (m is MendCode.ACCEPT or not exhausted) and _is_possible(state, defect, m)
        )
        if allowed:
            out.append(Offer(defect, allowed, mends_tried(state, defect.subject, defect.code)))
    return tuple(out[:OFFERED])


def _is_possible(state: ProductionState, defect: Defect, mend: MendCode) -> bool:
    """The mend could make something else. An error is worth a clip that a shot further away has, a warning is not."""
    subject = defect.subject
    if subject == FILM:
        return True
    shot = state.shots[subject]
    if mend is MendCode.RERETRIEVE:
        if defect.severity == "error":
            return bool(alternatives(state, subject))
        return is_damaged(state, subject) or any(shot.asset is None or c.clip_id != shot.asset.clip_id for c in free_clips(state, subject))
    if mend is MendCode.REFILL_SLOTS:
        return shot.planned.spotlight is not None
    if mend is MendCode.RENARRATE:
        return bool(shot.planned.text.strip())
    return True


def subjects_of(mends: Sequence[MendItem], shown: Mapping[str, Mapping[str, Any]], mend: MendCode) -> tuple[str, ...]:
    """Subjects of one kind of mend, each once, in the order of the request.

    Args:
        shown: the defects of the request's evidence by id.
    """
    return tuple(dict.fromkeys(str(shown[m.defect_id]["subject"]) for m in mends if m.mend is mend))


def jobs(state: ProductionState, mends: Sequence[MendItem], shown: Mapping[str, Mapping[str, Any]]) -> tuple[Job, ...]:
    """The borrowed work that a repair request comes to, upstream first. RERENDER and REMIX need the parts as they are after that: see
    :func:`render_job` and :func:`remix_job`."""
    out: list[Job] = []
    for mend in BORROWED:
        subjects = subjects_of(mends, shown, mend)
        if subjects and mend not in (MendCode.RERENDER, MendCode.REMIX):
            short = {str(shown[m.defect_id]["subject"]) for m in mends if m.mend is mend and shown[m.defect_id]["code"] == TOO_SHORT}
            out.append(_job(mend, _in_order(state, subjects), frozenset(short)))
    return tuple(out)


def render_job(state: ProductionState, subjects: tuple[str, ...]) -> Job:
    """Work for the renderer."""
    return _job(MendCode.RERENDER, _in_order(state, subjects))


def remix_job() -> Job:
    """Work for the tool that joins the film."""
    return _job(MendCode.REMIX, (FILM,))


def working_state(state: ProductionState, job: Job) -> ProductionState:
    """The state a borrowed tool sees: an excluded clip for a new search, the rest as it is."""
    if job.mend is not MendCode.RERETRIEVE:
        return state
    return apply(state, [shot_change(sid, "excluded_clips", excluded(state, sid, job)) for sid in job.subjects])


def excluded(state: ProductionState, shot_id: str, job: Job) -> tuple[str, ...]:
    """Excluded clips of a shot after a search for another: the present one; and where that was too short, all that would be so too.
    Neither where only the shot's copy of the clip is damaged: the pool's is sound."""
    shot = state.shots[shot_id]
    out = list(shot.excluded_clips)
    if is_damaged(state, shot_id):
        return tuple(out)
    if shot.asset is not None:
        out.append(shot.asset.clip_id)
    if shot_id in job.too_short:
        to_fill = (slot_us(state, shot_id) or shot.planned.target_duration_us) - covered_us(state, shot_id)
        longest = max((c.duration_us for c in free_clips(state, shot_id)), default=0)
        enough = min(to_fill, longest) - LIMITS.hold_max_us
        out += [c.clip_id for c in state.film.task.pool if c.duration_us < enough]
    return tuple(dict.fromkeys(out))


def next_request(state: ProductionState, work: Sequence[Job], contents: Contents, env: ToolEnv) -> tuple[Job, ContentRequest] | None:
    """The next content that a borrowed tool needs, given the contents that came after the repair request; None when it has all."""
    left = list(contents)
    for job in work:
        taken: list[dict[str, Any]] = []
        while True:
            request = job.tool.need(working_state(state, job), job.arguments, tuple(taken), env)
            if request is None:
                break
            if not left:
                return job, request
            taken.append(left.pop(0))
    return None


def shares(state: ProductionState, work: Sequence[Job], contents: Contents, env: ToolEnv) -> list[Contents]:
    """Which contents belong to which job, in order. Call when :func:`next_request` is None."""
    left = list(contents)
    out: list[Contents] = []
    for job in work:
        taken: list[dict[str, Any]] = []
        while left and job.tool.need(working_state(state, job), job.arguments, tuple(taken), env) is not None:
            taken.append(left.pop(0))
        out.append(tuple(taken))
    return out


def answering(work: Sequence[Job], contents: Contents, kinds: Sequence[str], kind: str) -> tuple[Job, Contents] | None:
    """The job that a content of some kind belongs to, and what that job was given before.

    Args:
        contents: accepted contents after the repair request.
        kinds: their kinds, in order.
        kind: kind of the content that is being judged.
    """
    for job in work:
        if kind in CONTENT_KINDS[job.mend]:
            return job, tuple(c for c, k in zip(contents, kinds, strict=True) if k == kind)
    return None


CONTENT_KINDS: dict[MendCode, tuple[str, ...]] = {
    MendCode.RERETRIEVE: ("queries",),
    MendCode.REFILL_SLOTS: ("fills",),
    MendCode.NEW_MUSIC: ("music_query",),
    MendCode.RENARRATE: (),
    MendCode.RERENDER: (),
    MendCode.REMIX: (),
}
"""Kinds of content that each borrowed tool asks for."""


def kind_of(content: Mapping[str, Any]) -> str:
    """Kind of an accepted content, by its one characteristic key."""
    return {"queries": "queries", "fills": "fills", "query": "music_query"}[next(k for k in ("queries", "fills", "query") if k in content)]


@cache
def borrowed_tools() -> dict[str, Tool]:
    """The production tools by name."""
    return {t.contract.name: t for t in base_tools()}


def _job(mend: MendCode, subjects: tuple[str, ...], too_short: frozenset[str] = frozenset()) -> Job:
    tool = borrowed_tools()[BORROWED[mend]]
    return Job(mend, tool, _arguments(tool.contract, subjects), subjects, too_short)


def _arguments(contract: ToolContract, subjects: tuple[str, ...]) -> dict[str, Any]:
    """Arguments of a borrowed call: the subjects as its scope; every other required argument at its first allowed value."""
    out: dict[str, Any] = {}
    for spec in contract.args:
        if spec.name == "shots":
            out[spec.name] = ",".join(subjects)
        elif spec.required:
            first: dict[str, Any] = {"string": spec.enum[0] if spec.enum else "", "integer": spec.minimum or 0, "boolean": False}
            out[spec.name] = first[spec.type]
    return out


def _in_order(state: ProductionState, subjects: tuple[str, ...]) -> tuple[str, ...]:
    place = {sid: n for n, sid in enumerate(state.film.shot_order)}
    return tuple(sorted(subjects, key=lambda s: place.get(s, -1)))
