"""The ``shots`` argument that all per-shot tools share: ``missing``, ``all``, or ids such as ``s001,s004-s007``."""

from __future__ import annotations

import re

from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ArgSpec
from schemas.state import ProductionState

SHOTS_ARG = ArgSpec(
    name="shots",
    type="string",
    description=(
        "Which shots: 'missing' (those that lack this product or hold a stale one), 'all', or ids and ranges such as 's001,s004-s007'."
    ),
    max_length=2000,
)

_PART = re.compile(r"s\d{3,4}(-s\d{3,4})?")


def shot_id(index: int) -> str:
    """Id of the shot at a position, from 0: ``s001`` is the first."""
    return f"s{index + 1:03d}"


def selected(state: ProductionState, text: str, missing: tuple[str, ...]) -> tuple[str, ...]:
    """Shot ids in film order. Call :func:`scope_blockers` first.

    Args:
        missing: the shots that lack the product of the calling tool, in film order.
    """
    order = state.film.shot_order
    if text.strip() == "all":
        return order
    if text.strip() == "missing":
        return missing
    wanted: set[str] = set()
    for part in text.replace(" ", "").split(","):
        first, _, last = part.partition("-")
        lo = order.index(first)
        hi = order.index(last) if last else lo
        wanted.update(order[lo : hi + 1])
    return tuple(s for s in order if s in wanted)


def scope_blockers(state: ProductionState, text: str) -> tuple[Blocker, ...]:
    """Blockers for a malformed scope or shots that do not exist."""
    if text.strip() in ("all", "missing"):
        return ()
    known = set(state.film.shot_order)
    out: list[Blocker] = []
    for part in text.replace(" ", "").split(","):
        if not _PART.fullmatch(part):
            out.append(
                Blocker(
                    code=BlockerCode.VALUE_NOT_ALLOWED,
                    subject="argument:shots",
                    message=f"'{part[:40]}' is no shot id or range; expected 'all', 'missing', or ids such as 's001,s004-s007'",
                )
            )
            continue
        for one in part.split("-"):
            if one not in known:
                out.append(
                    Blocker(
                        code=BlockerCode.UNRESOLVED_REFERENCE,
                        subject=f"shot:{one}",
                        message=f"there is no shot {one}; the plan has {len(known)} shots",
                        needs=("shot_plan",) if not known else (),
                        remedies=("plan_shots",) if not known else (),
                    )
                )
    return tuple(out)
