"""The state as it grows under the mends of one repair call: redo, compare, keep the better, book what was done.

Owns the keeping of the best candidate and the book-keeping of a repair. Which mends are asked for, and whether they are allowed, is
decided before.
"""

from __future__ import annotations

from typing import Any

from repair.checks.assets import is_damaged, sound_copy
from repair.findings import FILM
from repair.inspect import product_quality
from repair.mending import Job, excluded, remix_job, render_job, working_state
from repair.respan import respanned
from repair.taxonomy import MENDED, TAXONOMY
from repair.taxonomy import Product as Made
from replay import facts, lineage
from replay.config import ReplayConfig
from replay.contents import MendItem
from replay.state import apply, film_change, plan_change, shot_change
from replay.tool import Contents, Product, Refusal, ToolEnv
from replay.views import ranges
from schemas.artifact import ArtifactRef
from schemas.canonical import canonical_text
from schemas.contract import Fact
from schemas.state import Change, ProductionState
from schemas.verdict import DefectCode, MendCode

_DOWNSTREAM = (
    Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.MUSIC, Fact.TIMELINE, Fact.RENDERS, Fact.INSPECTION,
)  # fmt: skip


_PARTS = (Fact.TIMELINE, Fact.RENDERS, Fact.NARRATION, Fact.MUSIC)
"""What a film is joined from."""


class Bench:
    """The state as it grows under the mends of one call."""

    def __init__(self, state: ProductionState, env: ToolEnv) -> None:
        self.before = state
        self.state = state
        self.env = env
        self.changes: list[Change] = []
        self.artifacts: list[ArtifactRef] = []
        self.outcomes: dict[tuple[MendCode, str], tuple[str, float | None, float | None]] = {}

    def put(self, changes: list[Change]) -> None:
        """Take changes on."""
        self.changes += changes
        self.state = apply(self.state, changes)

    def redo(self, job: Job, contents: Contents, codes: dict[str, set[DefectCode]]) -> Refusal | None:
        """Let a borrowed tool make its product again for the job's subjects; keep each result only if it is better."""
        made = job.tool.execute(working_state(self.state, job), job.arguments, contents, self.env)
        if isinstance(made, Refusal):
            return made
        product = MENDED[job.mend]
        if product is None:
            raise AssertionError(f"{job.mend.value} makes nothing")
        for subject in job.subjects:
            own = [c for c in made.changes if c.subject == subject]
            if job.mend is MendCode.RERETRIEVE:
                own.append(shot_change(subject, "excluded_clips", excluded(self.state, subject, job)))
            candidate = apply(self.state, own)
            old, had = product_quality(self.state, subject, product, self.env)
            new, has = product_quality(candidate, subject, product, self.env)
            restores = job.mend is MendCode.RERETRIEVE and is_damaged(self.state, subject)
            if restores:
                whole = [shot_change(subject, "asset", sound_copy(self.state, subject))]
                kept = product_quality(apply(self.state, whole), subject, product, self.env)
                if kept[0] >= new:
                    own, candidate, (new, has) = whole, apply(self.state, whole), kept
            asked = codes.get(subject, set())
            elsewhere = all(TAXONOMY[c].product is not product for c in asked)
            no_worse = new == old and not has - had and (elsewhere or not asked & has) and _differs(self.state, candidate, subject)
            better = new > old or no_worse or (restores and new == old and not is_damaged(candidate, subject))
            if better:
                self.put(own)
                text = canonical_text([c.value for c in own])
                self.artifacts += [a for a in made.artifacts if a.sha256 in text]
            self.outcomes[job.mend, subject] = ("redone" if better else "kept_previous", old, new)
        return None

    def rerender(self, subjects: tuple[str, ...], codes: dict[str, set[DefectCode]]) -> Refusal | None:
        """Render again now where the inputs are all there; where they are not, drop the render: it is due later anyway."""
        ready = tuple(
            sid for sid in subjects if lineage.timeline_is_current(self.state) and lineage.render_inputs(self.state, sid) is not None
        )
        late = tuple(sid for sid in subjects if sid not in ready)
        self.put([shot_change(sid, "render", None) for sid in late])
        for sid in late:
            self.outcomes[MendCode.RERENDER, sid] = ("cleared", None, None)
        return self.redo(render_job(self.state, ready), (), codes) if ready else None

    def remix(self, codes: dict[str, set[DefectCode]]) -> Refusal | None:
        """Join and mix the film again now if all its parts are there; else drop it: it is due later anyway."""
        if all(facts.holds(fact, self.state) for fact in _PARTS):
            return self.redo(remix_job(), (), codes)
        self.put([film_change("delivery", None)])
        self.outcomes[MendCode.REMIX, FILM] = ("cleared", None, None)
        return None

    def replan(self, subjects: tuple[str, ...]) -> None:
        """Give the shots the stretches of the script that are theirs, all of them where the film is named; lengths are composed again."""
        due = respanned(self.state)
        shots = due if FILM in subjects else subjects
        changes = [plan_change(sid, due[sid]) for sid in shots if sid in due and due[sid] != self.state.shots[sid].planned]
        if changes:
            self.put([*changes, film_change("timeline", None)])

    def retime(self, subjects: tuple[str, ...]) -> None:
        """Plan the lengths that the spoken tracks need, and have the timeline composed again."""
        if not subjects:
            return
        shots = self.state.film.shot_order if FILM in subjects else subjects
        changes = [
            plan_change(sid, self.state.shots[sid].planned.model_copy(update={"target_duration_us": target}))
            for sid in shots
            if (target := _needed_us(self.state, sid, self.env.config, FILM in subjects))
            != self.state.shots[sid].planned.target_duration_us
        ]
        self.put([*changes, film_change("timeline", None)])

    def finish(self, mends: tuple[MendItem, ...], shown: dict[str, dict[str, Any]]) -> Product:
        """Book-keeping and results."""
        rows = [self._row(m, shown[m.defect_id]) for m in mends]
        settled = {r["defect_id"] for r in rows if r["outcome"] != "kept_previous"}
        for subject in dict.fromkeys(str(shown[m.defect_id]["subject"]) for m in mends):
            entries = tuple(
                f"{shown[m.defect_id]['code']}:{m.mend.value}:{m.defect_id}" for m in mends if shown[m.defect_id]["subject"] == subject
            )
            worked = any(m.mend is not MendCode.ACCEPT for m in mends if shown[m.defect_id]["subject"] == subject)
            if subject == FILM:
                film = self.state.film
                kept = tuple(d for d in film.film_defects if d.defect_id not in settled)
                self.put([film_change("film_defects", kept), film_change("mends_tried", (*film.mends_tried, *entries))])
            else:
                shot = self.state.shots[subject]
                kept = tuple(d for d in shot.open_defects if d.defect_id not in settled)
                changes = [
                    shot_change(subject, "open_defects", kept),
                    shot_change(subject, "mends_tried", (*shot.mends_tried, *entries)),
                ]
                if worked:
                    changes.append(shot_change(subject, "repairs_used", shot.repairs_used + 1))
                self.put(changes)
        ranked = tuple(d for d in self.state.film.ranked_defects if d not in settled)
        if ranked != self.state.film.ranked_defects:
            self.put([film_change("ranked_defects", ranked)])
        self.put([film_change("repairs_used", self.state.film.repairs_used + 1)])
        due = {
            fact.value: {"missing": ranges(missing, self.state.film.shot_order), "tools": list(facts.PRODUCERS[fact])}
            for fact in _DOWNSTREAM
            if (missing := facts.lacking(fact, self.state))
        }
        results = {"mends": rows, "due": due, "run_repairs_left": self.env.config.run_repairs - self.state.film.repairs_used}
        return Product(changes=tuple(self.changes), results=results, artifacts=tuple(dict.fromkeys(self.artifacts)))

    def _row(self, mend: MendItem, defect: dict[str, Any]) -> dict[str, Any]:
        row: dict[str, Any] = {
            "defect_id": mend.defect_id,
            "subject": defect["subject"],
            "code": defect["code"],
            "mend": mend.mend.value,
        }
        if mend.mend is MendCode.ACCEPT:
            return {**row, "outcome": "accepted"}
        if mend.mend in (MendCode.RETIME, MendCode.REPLAN):
            return {**row, "outcome": "cleared"}
        outcome, old, new = self.outcomes[mend.mend, defect["subject"]]
        return {**row, "outcome": outcome, "score_before": old, "score_after": new}


def _needed_us(state: ProductionState, sid: str, config: ReplayConfig, whole_film: bool) -> int:
    """Length that a shot's narration and pause ask for; a silent shot keeps its own, scaled into the film's bounds if those are broken."""
    shot, task, timeline = state.shots[sid], state.film.task, state.film.timeline
    if shot.narration is not None:
        return shot.narration.duration_us + config.mix.gap_us
    own = shot.planned.target_duration_us
    if not whole_film or timeline is None:
        return own
    length = task.frame_rate.us_at(timeline.total_frames)
    bound = min(max(length, task.duration_min_us), task.duration_max_us)
    return own * bound // length if length else own


def _differs(old: ProductionState, new: ProductionState, subject: str) -> bool:
    if subject == FILM:
        return (old.film.music, old.film.delivery) != (new.film.music, new.film.delivery)
    a, b = old.shots[subject], new.shots[subject]
    return any(getattr(a, field.value) != getattr(b, field.value) for field in (Made.ASSET, Made.NARRATION, Made.DECORATION, Made.RENDER))
