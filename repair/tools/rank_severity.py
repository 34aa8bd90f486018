"""``rank_severity``: the critic orders the open defects, so that a bounded number of repairs goes where it counts most."""

from __future__ import annotations

from typing import Any

from repair.inspect import mends_tried, open_defects
from repair.taxonomy import TAXONOMY
from replay.contents import SeverityOrder, content_schema
from replay.state import film_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.state import ProductionState
from schemas.verdict import Defect

SHOWN = 16


class RankSeverity:
    """Puts the open defects in an order of severity."""

    contract = ToolContract(
        name="rank_severity",
        version=1,
        summary="Have the critic order all open defects, most severe first. Repairs take them in that order.",
        args=(),
        needs=(Fact.OPEN_DEFECTS,),
        produces=(),
        roles=(Role.CRITIC,),
        checks=("the order holds every open defect exactly once",),
        wall_s=10,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Nothing beyond the facts."""
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the order."""
        if given:
            return None
        return ContentRequest(
            role=Role.CRITIC,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="severity",
            instruction="Order these open defects, the most severe first. Name every defect id exactly once.",
            content_schema=content_schema("severity"),
            evidence={"defects": [_row(state, d) for d in open_defects(state)]},
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """A permutation of the open defects."""
        order = SeverityOrder.model_validate(content).order
        known = [d.defect_id for d in open_defects(state)]
        out = [_broken(f"order.{i}", f"'{clip(d, 30)}' is no open defect") for i, d in enumerate(order) if d not in known]
        out += [_broken(f"order.{i}", f"'{d}' is named twice") for i, d in enumerate(order) if d in order[:i]]
        out += [_broken("order", f"'{d}' is left out") for d in known if d not in order]
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Record the order."""
        order = SeverityOrder.model_validate(given[0]).order
        by_id = {d.defect_id: d for d in open_defects(state)}
        rows = [{"id": d, "code": by_id[d].code.value, "subject": by_id[d].subject, "severity": by_id[d].severity} for d in order]
        return Product(changes=(film_change("ranked_defects", order),), results={"ranked": len(order), "order": rows[:SHOWN]})


def _row(state: ProductionState, defect: Defect) -> dict[str, Any]:
    return {
        "defect_id": defect.defect_id,
        "subject": defect.subject,
        "code": defect.code.value,
        "severity": defect.severity,
        "measured": clip(defect.measured, 120),
        "taints": [t.value for t in TAXONOMY[defect.code].taints],
        "mends_tried": [m.value for m in mends_tried(state, defect.subject, defect.code)],
    }


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = RankSeverity()
