"""``inspect_quality``: structured checks and the embedded judge as evidence, the critic's judgement on every finding, verdicts.

The checks run before the critic is asked; what they found is the request's evidence, so the answer is judged against exactly what the
critic saw. Many findings are asked about in parts.
"""

from __future__ import annotations

from typing import Any

from repair.findings import FILM, Finding, defect_id
from repair.inspect import Report, Severity, examine, examine_film, is_accepted, mends_tried, open_defects, shot_seen, unseen, verdicts
from repair.judge import JUDGE_VERSION
from repair.limits import LIMITS
from repair.pictures import TOLD, shown
from repair.taxonomy import TAXONOMY
from repair.taxonomy import Product as MadeOf
from replay import facts, lineage
from replay.contents import Inspection, content_schema
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import apply, film_change, shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import ranges
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.state import Change, ProductionState
from schemas.verdict import Defect, DefectCode, Verdict

PART = 16
"""Findings shown in one request; the evidence of that many stays within what a context shows."""

SHOWN = 16
"""Defects listed in the results."""


class InspectQuality:
    """Looks at what was made and records what is wrong with it."""

    contract = ToolContract(
        name="inspect_quality",
        version=1,
        summary=(
            "Check renders, narration, graphics, clips, music and lengths on their bytes, have the critic judge every finding, and record "
            "verdicts and open defects."
        ),
        args=(
            SHOTS_ARG.model_copy(
                update={
                    "description": (
                        "Which shots: 'missing' (those whose present products no inspection has seen), 'all', or ids and ranges such as "
                        "'s001,s004-s007'. The film as a whole is always checked."
                    )
                }
            ),
        ),
        needs=(Fact.RENDERS,),
        produces=(Fact.INSPECTION, Fact.OPEN_DEFECTS),
        roles=(Role.CRITIC,),
        checks=(
            "every check ran on the present bytes",
            "one judgement for every finding and no other",
            "no measured fact was dismissed",
        ),
        wall_s=900,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Shots exist; with 'missing' there is something that no inspection has seen."""
        problems = scope_blockers(state, arguments["shots"])
        if problems:
            return problems
        nothing_new = not unseen(state) and facts.holds(Fact.INSPECTION, state)
        if arguments["shots"].strip() == "missing" and state.film.shot_order and nothing_new:
            return (
                Blocker(
                    code=BlockerCode.VALUE_NOT_ALLOWED,
                    subject="argument:shots",
                    message="the present products of all shots have been inspected; use 'all' or ids to inspect again",
                ),
            )
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Run the checks, and ask the critic about the next part of what they found."""
        report = examine(state, _scope(state, arguments), env)
        parts = _parts(report)
        if len(given) >= len(parts):
            return None
        part = parts[len(given)]
        pictures = shown(state, _looked_at(part, report if not given else None), env)
        return ContentRequest(
            role=Role.CRITIC,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="inspection",
            instruction=(
                "Judge every finding of this inspection: is it a defect, and how severe? Errors must be mended, warnings may stand. A "
                "finding marked as a fact was measured and cannot be dismissed, only weighed. If there are no findings, answer with an "
                "empty list." + (TOLD if pictures else "")
            ),
            content_schema=content_schema("inspection"),
            evidence={
                "inspected": ranges(report.shots, state.film.shot_order),
                "limits": LIMITS.version,
                "judge": JUDGE_VERSION if env.engines.judge is None else f"{JUDGE_VERSION}; {env.engines.judge.name}",
                "findings": [_row(state, f) for f in part],
                **({"pictures": pictures} if pictures else {}),
            },
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """One judgement for every finding shown, none besides, no fact dismissed."""
        shown = {(f["subject"], f["code"]): f for f in _evidence(state)["findings"]}
        judgements = Inspection.model_validate(content).judgements
        out: list[Blocker] = []
        seen: set[tuple[str, str]] = set()
        for place, one in enumerate(judgements):
            key = (one.subject, one.code.value)
            if key not in shown:
                out.append(_broken(f"judgements.{place}", f"{one.code.value} of {one.subject[:20]} is not among the findings shown"))
            elif key in seen:
                out.append(_broken(f"judgements.{place}", f"{one.code.value} of {one.subject} is judged twice"))
            elif shown[key]["fact"] and not one.confirmed:
                out.append(_broken(f"judgements.{place}", f"{one.code.value} of {one.subject} is a measured fact and cannot be dismissed"))
            seen.add(key)
        out += [_broken("judgements", f"no judgement on {code} of {subject}") for subject, code in shown if (subject, code) not in seen]
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Turn the critic's judgements into verdicts and open defects."""
        report = examine(state, _scope(state, arguments), env)
        confirmed = _confirmed(state, report, given)
        ruled = verdicts(report, confirmed)
        changes = _changes(state, report, ruled)
        after = apply(state, changes)
        if not unseen(after):
            changes.append(film_change("inspected", lineage.renders_digest(after)))
        return Product(changes=tuple(changes), results=_results(state, apply(state, changes), report, ruled), verdicts=ruled)

    def look_at_delivery(self, state: ProductionState, env: ToolEnv) -> Product:
        """The film that is about to be committed, seen on its bytes.

        No critic is asked: facts, and whatever concerns the delivered bytes, are taken at their proposed severity; another finding on the
        film stands only if it stood before.
        """
        report = examine_film(state, env)
        before = {d.defect_id: d.severity for d in state.film.film_defects}
        confirmed: dict[str, Severity] = {}
        for finding in report.findings:
            known = finding.defect_id
            if is_accepted(state, known, FILM):
                confirmed[known] = "warning"
            elif finding.hard or TAXONOMY[finding.code].product is MadeOf.DELIVERY:
                confirmed[known] = before.get(known, finding.severity)
            elif known in before:
                confirmed[known] = before[known]
        ruled = verdicts(report, confirmed)
        errors = [_short(d) for v in ruled for d in v.defects if d.severity == "error"]
        return Product(
            changes=tuple(_changes(state, report, ruled)),
            results={"film_errors": errors[:SHOWN]} if errors else {},
            verdicts=ruled,
        )

    def holds_open(self, before: ProductionState, after: ProductionState) -> bool:
        """The film has an error of its own, and it is not the film that was delivered already."""
        now, then = after.film.delivery, before.film.delivery
        if now is None or (then is not None and then.video.sha256 == now.video.sha256):
            return False
        return any(d.severity == "error" and d.artifact_sha256 == now.video.sha256 for d in after.film.film_defects)


def _scope(state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
    return selected(state, arguments["shots"], unseen(state))


def _parts(report: Report) -> list[tuple[Finding, ...]]:
    """Findings in parts; a clean inspection has one empty part, for the critic to say so."""
    return [report.findings[i : i + PART] for i in range(0, len(report.findings), PART)] or [()]


def _looked_at(part: tuple[Finding, ...], report: Report | None) -> list[str]:
    """Shots whose graphics the critic is shown, if it can see: those with findings on them first, then, once, all that were inspected."""
    found = [f.subject for f in part if TAXONOMY[f.code].product is MadeOf.DECORATION]
    return [*found, *(report.shots if report is not None else ())]


def _row(state: ProductionState, finding: Finding) -> dict[str, Any]:
    if is_accepted(state, finding.defect_id, finding.subject):
        standing = "accepted"
    elif any(d.defect_id == finding.defect_id for d in open_defects(state)):
        standing = "open"
    else:
        standing = "new"
    tried = mends_tried(state, finding.subject, finding.code)
    return {**finding.evidence(), "standing": standing, "mends_tried": [m.value for m in tried]}


def _evidence(state: ProductionState) -> dict[str, Any]:
    """What the critic was shown: the evidence of the open request."""
    pending = state.film.pending
    return {"findings": []} if pending is None else pending.request.evidence


def _confirmed(state: ProductionState, report: Report, given: Contents) -> dict[str, Severity]:
    """Severity by defect id of what the critic confirmed. What was accepted before stays a warning."""
    out: dict[str, Severity] = {}
    by_key: dict[tuple[str, DefectCode], Finding] = {(f.subject, f.code): f for f in report.findings}
    for content in given:
        for one in Inspection.model_validate(content).judgements:
            finding = by_key.get((one.subject, one.code))
            if finding is None or not one.confirmed:
                continue
            known = defect_id(one.code, one.subject, finding.artifact_sha256)
            out[known] = "warning" if is_accepted(state, known, one.subject) else one.severity
    return out


def _changes(state: ProductionState, report: Report, ruled: tuple[Verdict, ...]) -> list[Change]:
    changes: list[Change] = []
    for verdict in ruled:
        kept = tuple(d for d in verdict.defects if not is_accepted(state, d.defect_id, d.subject))
        if verdict.subject == FILM:
            if kept != state.film.film_defects:
                changes.append(film_change("film_defects", kept))
        elif kept != state.shots[verdict.subject].open_defects:
            changes.append(shot_change(verdict.subject, "open_defects", kept))
    for sid in report.shots:
        seen = shot_seen(state, sid)
        if state.shots[sid].inspected != seen:
            changes.append(shot_change(sid, "inspected", seen))
    still_open = {d.defect_id for d in open_defects(apply(state, changes))}
    ranked = tuple(d for d in state.film.ranked_defects if d in still_open)
    if ranked != state.film.ranked_defects:
        changes.append(film_change("ranked_defects", ranked))
    return changes


def _results(state: ProductionState, after: ProductionState, report: Report, ruled: tuple[Verdict, ...]) -> dict[str, Any]:
    found = [d for v in ruled for d in v.defects]
    before = {d.defect_id for d in open_defects(state)}
    still = {d.defect_id for d in open_defects(after)}
    out: dict[str, Any] = {
        "inspected": ranges(report.shots, state.film.shot_order) or "film only",
        "errors": sum(1 for d in found if d.severity == "error"),
        "warnings": sum(1 for d in found if d.severity == "warning"),
        "dismissed": len(report.findings) - len(found),
        "score": round(sum(v.score for v in ruled) / len(ruled), 3),
        "open_defects": [_short(d) for d in found if d.defect_id in still][:SHOWN],
        "mended": len(before - still),
    }
    left = unseen(after)
    if left:
        out["not_inspected"] = ranges(left, state.film.shot_order)
    return out


def _short(defect: Defect) -> dict[str, Any]:
    return {
        "id": defect.defect_id,
        "subject": defect.subject,
        "code": defect.code.value,
        "severity": defect.severity,
        "measured": defect.measured[:100],
    }


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = InspectQuality()
