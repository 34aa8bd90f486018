"""``repair_shots``: the critic asks for bounded mends; exactly the tainted products are made again, everything else keeps its digest.

A mended product is made again inside this call, by the tool that makes it anyway and with that tool's own checks. What lies downstream
becomes stale by lineage and is left to the orchestrator; the results name the tools that are due. A new product that is no better than
the one it would replace is dropped.
"""

from __future__ import annotations

from typing import Any

from repair.bench import Bench
from repair.findings import FILM
from repair.mending import (
    answering,
    in_scope,
    jobs,
    kind_of,
    next_request,
    offers,
    shares,
    subjects_of,
    working_state,
)
from repair.taxonomy import MEANING, TAXONOMY
from replay import facts
from replay.config import ReplayConfig
from replay.contents import MendItem, RepairRequest, content_schema
from replay.scope import SHOTS_ARG, scope_blockers
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.state import ProductionState
from schemas.verdict import Defect, DefectCode, MendCode


class RepairShots:
    """Mends open defects."""

    contract = ToolContract(
        name="repair_shots",
        version=1,
        summary=(
            "Mend open defects: the critic names cause and smallest mend for each, exactly the faulty products are made again, and all "
            "others stay. What depends on them must then be made again by the tools named in the results."
        ),
        args=(
            SHOTS_ARG.model_copy(
                update={
                    "description": (
                        "What to mend: 'missing' (every open error, those of the film too), 'all' (warnings as well), or ids and ranges "
                        "such as 's001,s004-s007'."
                    )
                }
            ),
        ),
        needs=(Fact.OPEN_DEFECTS,),
        produces=(),
        roles=(Role.CRITIC, Role.GENERATOR),
        checks=(
            "every mend is allowed for its defect",
            "each product passed the checks of the tool that made it",
            "a product that is no better than the one before is not kept",
            "no product outside the mends changed",
        ),
        wall_s=1800,
        max_output_bytes=2 * 1024 * 1024 * 1024,
        repairable=True,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Shots exist, and there is an open defect in the scope."""
        problems = scope_blockers(state, arguments["shots"])
        if problems or not facts.holds(Fact.OPEN_DEFECTS, state) or in_scope(state, arguments["shots"]):
            return problems
        hint = "; 'all' takes warnings too" if arguments["shots"].strip() == "missing" else ""
        return (
            Blocker(
                code=BlockerCode.VALUE_NOT_ALLOWED,
                subject="argument:shots",
                message=f"nothing that is open lies in '{clip(arguments['shots'], 60)}'{hint}",
            ),
        )

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """First the critic's repair request, then what the borrowed tools ask of the generator."""
        offered = offers(state, arguments["shots"], env.config)
        if not offered:
            return None
        if not given:
            return ContentRequest(
                role=Role.CRITIC,
                tool=self.contract.name,
                tool_version=self.contract.version,
                kind="repair_request",
                instruction=(
                    "Say for each of these defects what caused it and which of its allowed mends to try; they are listed cheapest first. "
                    "Leave a defect out if it should stay open for now."
                ),
                content_schema=content_schema("repair_request"),
                evidence={
                    "defects": [
                        {
                            **_shown(state, o.defect),
                            "allowed": [{"mend": m.value, "does": MEANING[m]} for m in o.allowed],
                            "tried": [m.value for m in o.tried],
                        }
                        for o in offered
                    ],
                    "shot_repairs_allowed": env.config.shot_repairs,
                    "run_repairs_left": env.config.run_repairs - state.film.repairs_used,
                },
            )
        mends, shown = _request(state, arguments, given)
        due = next_request(state, jobs(state, mends, shown), given[1:], env)
        if due is None:
            return None
        job, request = due
        causes = [
            {"subject": shown[m.defect_id]["subject"], "code": shown[m.defect_id]["code"], "cause": m.cause, "reason": m.reason}
            for m in mends
            if m.mend is job.mend
        ]
        return request.model_copy(
            update={
                "tool": self.contract.name,
                "tool_version": self.contract.version,
                "instruction": request.instruction + " This is a repair: the evidence names the defects to be mended.",
                "evidence": {**request.evidence, "repair": causes},
            }
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """The repair request names defects that were shown, once, with allowed mends; other contents are judged by the borrowed tool."""
        pending = state.film.pending
        if pending is None:
            return (_broken("repair_request", "no request is open"),)
        if not given:
            return _problems(RepairRequest.model_validate(content).mends, pending.request.evidence["defects"])
        mends, shown = _request(state, arguments, given)
        kinds = [kind_of(c) for c in given[1:]]
        found = answering(jobs(state, mends, shown), given[1:], kinds, pending.request.kind)
        if found is None:
            return (_broken(pending.request.kind, "no mend of this call asks for such content"),)
        job, taken = found
        return job.tool.accept(working_state(state, job), job.arguments, taken, content)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Redo what the mends name, keep what is better, record what was done."""
        if not given:
            return Refusal(_exhausted(state, arguments["shots"], env.config))
        mends, shown = _request(state, arguments, given)
        bench = Bench(state, env)
        work = jobs(state, mends, shown)
        for job, contents in zip(work, shares(state, work, given[1:], env), strict=True):
            refusal = bench.redo(job, contents, _codes(mends, shown, job.mend))
            if refusal is not None:
                return refusal
        bench.replan(subjects_of(mends, shown, MendCode.REPLAN))
        bench.retime(subjects_of(mends, shown, MendCode.RETIME))
        again = subjects_of(mends, shown, MendCode.RERENDER)
        if again:
            refusal = bench.rerender(again, _codes(mends, shown, MendCode.RERENDER))
            if refusal is not None:
                return refusal
        if subjects_of(mends, shown, MendCode.REMIX):
            refusal = bench.remix(_codes(mends, shown, MendCode.REMIX))
            if refusal is not None:
                return refusal
        return bench.finish(mends, shown)


def _request(state: ProductionState, arguments: Arguments, given: Contents) -> tuple[tuple[MendItem, ...], dict[str, dict[str, Any]]]:
    """The accepted mends, and the open defects they name by id."""
    mends = RepairRequest.model_validate(given[0]).mends
    shown = {d.defect_id: _shown(state, d) for d in in_scope(state, arguments["shots"])}
    return mends, shown


def _shown(state: ProductionState, defect: Defect) -> dict[str, Any]:
    """A defect as the critic sees it."""
    spec = TAXONOMY[defect.code]
    used = 0 if defect.subject == FILM else state.shots[defect.subject].repairs_used
    return {
        "defect_id": defect.defect_id,
        "subject": defect.subject,
        "code": defect.code.value,
        "severity": defect.severity,
        "measured": clip(defect.measured, 160),
        "taints": [t.value for t in spec.taints],
        "repairs_used": used,
    }


def _codes(mends: tuple[MendItem, ...], shown: dict[str, dict[str, Any]], mend: MendCode) -> dict[str, set[DefectCode]]:
    """Which defects of each subject one kind of mend is for."""
    out: dict[str, set[DefectCode]] = {}
    for m in mends:
        if m.mend is mend:
            out.setdefault(str(shown[m.defect_id]["subject"]), set()).add(DefectCode(shown[m.defect_id]["code"]))
    return out


def _problems(mends: tuple[MendItem, ...], defects: list[dict[str, Any]]) -> tuple[Blocker, ...]:
    by_id = {d["defect_id"]: d for d in defects}
    out: list[Blocker] = []
    seen: set[str] = set()
    for place, m in enumerate(mends):
        where = f"mends.{place}"
        if m.defect_id not in by_id:
            out.append(_broken(f"{where}.defect_id", f"'{clip(m.defect_id, 30)}' is not among the defects shown"))
            continue
        allowed = [a["mend"] for a in by_id[m.defect_id]["allowed"]]
        if m.defect_id in seen:
            out.append(_broken(f"{where}.defect_id", f"'{m.defect_id}' is named twice"))
        if m.mend.value not in allowed:
            out.append(
                _broken(f"{where}.mend", f"{m.mend.value} is not allowed for {by_id[m.defect_id]['code']}; allowed: {', '.join(allowed)}")
            )
        seen.add(m.defect_id)
    return tuple(out)


def _exhausted(state: ProductionState, scope: str, config: ReplayConfig) -> tuple[Blocker, ...]:
    subjects = tuple(dict.fromkeys(d.subject for d in in_scope(state, scope)))
    return tuple(
        Blocker(
            code=BlockerCode.REPAIR_LIMIT_REACHED,
            subject=f"shot:{sid}" if sid != FILM else FILM,
            message=f"{sid} has used its {config.shot_repairs} repairs; its defects stay open and do not hold a delivery back",
            remedies=facts.PRODUCERS[Fact.DELIVERY],
        )
        for sid in subjects
    )


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = RepairShots()
