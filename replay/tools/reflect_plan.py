"""``reflect_plan``: the critic looks at the shot plan for coverage, pacing and repetition, and may patch it.

A patch changes planned fields only. A shot whose query changes loses the asset that was chosen for the old one; its narration stays.
Long plans are reflected on in parts.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from replay.contents import PlanReflection, content_schema
from replay.state import film_change, plan_change, shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ArgSpec, ContentRequest, Fact, Role, ToolContract
from schemas.state import Change, ProductionState

PART_SHOTS = 60
"""Shots shown in one request."""

TEXT_SHOWN = 90


class ReflectPlan:
    """Asks the critic for findings and a patch of the plan."""

    contract = ToolContract(
        name="reflect_plan",
        version=1,
        summary="Have the critic look at the shot plan for coverage, pacing and repetition; it may patch queries and target durations.",
        args=(
            ArgSpec(
                name="focus",
                type="string",
                description="What to look at: one aspect, or all of them.",
                enum=("all", "coverage", "pacing", "repetition"),
            ),
        ),
        needs=(Fact.SHOT_PLAN,),
        produces=(),
        roles=(Role.CRITIC,),
        checks=("findings and patches name planned shots", "only planned fields change"),
        wall_s=10,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Nothing beyond the facts."""
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the reflection on the next part of the plan."""
        parts = _parts(state)
        if len(given) == len(parts):
            return None
        ids = parts[len(given)]
        focus = arguments["focus"]
        what = "coverage, pacing and repetition" if focus == "all" else focus
        task = state.film.task
        counts = Counter(s.planned.visual_query for s in state.shots.values())
        total = sum(s.planned.target_duration_us for s in state.shots.values())
        return ContentRequest(
            role=Role.CRITIC,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="plan_reflection",
            instruction=(
                f"Look at the {what} of this plan. Name shots that do not serve it, each with a code and a short note, and patch what a "
                "new query or target duration mends. No findings is a good answer for a good plan."
            ),
            content_schema=content_schema("plan_reflection"),
            evidence={
                "focus": focus,
                "shots": [_row(state, sid, counts) for sid in ids],
                "film": {
                    "shots": len(state.film.shot_order),
                    "planned_ms": total // 1000,
                    "feasible_ms": [task.duration_min_us // 1000, task.duration_max_us // 1000],
                    "script_chars": len(task.script),
                    "unplanned_chars": len(task.script) - sum(s.planned.script_end - s.planned.script_start for s in state.shots.values()),
                },
            },
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Every shot named is one of those shown; a patch changes something and names a shot once."""
        shown = set(_parts(state)[len(given)])
        reflection = PlanReflection.model_validate(content)
        out: list[Blocker] = []
        named = [(f"findings.{i}", f.shot_id) for i, f in enumerate(reflection.findings)]
        named += [(f"patch.{i}", p.shot_id) for i, p in enumerate(reflection.patch)]
        for where, sid in named:
            if sid not in shown:
                out.append(_broken(f"{where}.shot_id", f"{clip(sid, 20)} is not among the shots shown"))
        twice = [sid for sid, n in Counter(p.shot_id for p in reflection.patch).items() if n > 1]
        if twice:
            out.append(_broken("patch", f"{clip(twice[0], 20)} is patched twice"))
        for i, patch in enumerate(reflection.patch):
            if patch.visual_query is None and patch.target_ms is None:
                out.append(_broken(f"patch.{i}", "the patch changes nothing"))
            elif patch.visual_query is not None and not patch.visual_query.strip():
                out.append(_broken(f"patch.{i}.visual_query", "the query is empty"))
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Apply the patches to the plan."""
        changes: list[Change] = []
        findings: list[dict[str, Any]] = []
        patched: list[str] = []
        for content in given:
            reflection = PlanReflection.model_validate(content)
            findings += [f.model_dump(mode="json") for f in reflection.findings]
            for patch in reflection.patch:
                shot = state.shots[patch.shot_id]
                update: dict[str, Any] = {}
                if patch.visual_query is not None and patch.visual_query.strip() != shot.planned.visual_query:
                    update["visual_query"] = patch.visual_query.strip()
                    if shot.asset is not None:
                        changes.append(shot_change(patch.shot_id, "asset", None))
                if patch.target_ms is not None and patch.target_ms * 1000 != shot.planned.target_duration_us:
                    update["target_duration_us"] = patch.target_ms * 1000
                if update:
                    changes.append(plan_change(patch.shot_id, shot.planned.model_copy(update=update)))
                    patched.append(patch.shot_id)
        return Product(
            changes=(*changes, film_change("plan_reflected", True)),
            results={"findings": findings[:24], "found": len(findings), "patched": patched},
        )


def _parts(state: ProductionState) -> list[tuple[str, ...]]:
    order = state.film.shot_order
    return [order[i : i + PART_SHOTS] for i in range(0, len(order), PART_SHOTS)]


def _row(state: ProductionState, sid: str, counts: Counter[str]) -> dict[str, Any]:
    """One planned shot as evidence, with the figures that pacing and repetition are judged on."""
    p = state.shots[sid].planned
    row: dict[str, Any] = {
        "shot_id": sid,
        "text": clip(p.text, TEXT_SHOWN),
        "chars": len(p.text),
        "target_ms": p.target_duration_us // 1000,
        "query": p.visual_query,
        "same_query": counts[p.visual_query],
    }
    if p.spotlight is not None:
        row["spotlight"] = p.spotlight.kind.value
    return row


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = ReflectPlan()
