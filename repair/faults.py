"""Faults put in on purpose, with their cause recorded: the ground truth that diagnosis and recovery are measured against.

Owns the draw (which faults a run gets) and the spoiling of verified products, always by really rendering, filtering or swapping bytes in
the sandbox. A critic never sees what is drawn here. Plan-level faults are in repair.plan_faults.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from repair.config import FaultConfig
from repair.fault_kinds import EXECUTION_KINDS, KINDS, FaultKind
from repair.findings import FILM
from repair.spoil import SPOILERS, Spoiled
from repair.taxonomy import Product as Made
from replay.state import apply
from replay.tool import Product, ToolEnv
from schemas.canonical import canonical_text, digest_of
from schemas.errors import ConfigInvalid
from schemas.state import Change, ProductionState
from schemas.trajectory import InjectedFault


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One fault asked for by name."""

    kind: str
    subject: str


class FaultPlan:
    """The execution-level faults of one run: a filter for the runtime's verified products.

    Stateless on purpose: a fault strikes the first product of its kind that its subject gets, never a later one, so a mended product stays
    mended, and a run that was stopped and resumed meets the same faults. At most one fault is drawn for a subject.

    Args:
        config: kinds to draw from, how many, and the seed. Plan-level kinds are left to repair.plan_faults.
        explicit: faults by name, besides the drawn ones.

    Raises:
        ConfigInvalid: a kind that does not exist.
    """

    def __init__(self, config: FaultConfig | None = None, explicit: Sequence[FaultSpec] = ()) -> None:
        self.config = config or FaultConfig()
        self.explicit = tuple(explicit)
        unknown = [s.kind for s in self.explicit if s.kind not in KINDS]
        if unknown:
            raise ConfigInvalid("unknown_fault", f"there is no fault kind {unknown[0]!r}", f"the kinds are {', '.join(KINDS)}")

    def drawn(self, state: ProductionState) -> tuple[FaultSpec, ...]:
        """The faults that a run with this plan of shots gets. Depends on seed, kinds, count and shots only."""
        out = list(self.explicit)
        used = {s.subject for s in out}
        seed = self.config.seed
        kinds = sorted((k for k in self.config.kinds if k in EXECUTION_KINDS), key=lambda k: digest_of([seed, k]))
        for n in range(self.config.count if kinds else 0):
            kind = KINDS[kinds[n % len(kinds)]]
            eligible = [s for s in subjects(state, kind) if s not in used]
            if eligible:
                chosen = min(eligible, key=lambda s: digest_of([seed, kind.name, s]))
                out.append(FaultSpec(kind.name, chosen))
                used.add(chosen)
        return tuple(out)

    def __call__(
        self, call_index: int, tool: str, product: Product, env: ToolEnv, state: ProductionState
    ) -> tuple[Product, tuple[InjectedFault, ...]]:
        """Spoil what is due in a verified product (signature of the runtime's fault filter)."""
        if not (self.config.count or self.explicit) or not any(isinstance(c.value, dict) for c in product.changes):
            return product, ()
        after = apply(state, product.changes)
        faults: list[InjectedFault] = []
        for spec in self.drawn(after):
            kind = KINDS[spec.kind]
            change = next((c for c in product.changes if c.subject == spec.subject and c.field == kind.field and c.value), None)
            if change is None or _was_made(state, spec.subject, kind):
                continue
            spoiled = SPOILERS[spec.kind](apply(state, product.changes), spec.subject, env)
            if spoiled is None:
                continue
            product = _with(product, change, spoiled)
            faults.append(
                InjectedFault(
                    fault_id=fault_id(self.config.seed, spec.kind, spec.subject, call_index),
                    kind=spec.kind,
                    subject=spec.subject,
                    detail=spoiled.detail,
                )
            )
        return product, tuple(faults)


def subjects(state: ProductionState, kind: FaultKind) -> tuple[str, ...]:
    """Subjects that a fault of this kind can strike, in film order."""
    order = state.film.shot_order
    if kind.product is Made.MUSIC:
        return (FILM,)
    if kind.product is Made.NARRATION:
        return tuple(s for s in order if state.shots[s].planned.text.strip())
    if kind.product is Made.DECORATION:
        return tuple(s for s in order if state.shots[s].planned.spotlight is not None)
    if kind.name == "asset_repeated":
        return order[1:]
    return order


def fault_id(seed: int, kind: str, subject: str, call_index: int) -> str:
    """Stable name of one injected fault."""
    return f"flt_{digest_of([seed, kind, subject, call_index])[:16]}"


def _was_made(state: ProductionState, subject: str, kind: FaultKind) -> bool:
    """The subject had such a product before this call, or lost one to a repair."""
    if subject == FILM:
        return state.film.music is not None
    shot = state.shots.get(subject)
    return shot is not None and (getattr(shot, kind.field) is not None or bool(shot.mends_tried))


def _with(product: Product, change: Change, spoiled: Spoiled) -> Product:
    """The product with one value replaced, and its artifacts accordingly."""
    changes = tuple(c.model_copy(update={"value": spoiled.value}) if c is change else c for c in product.changes)
    text = canonical_text([c.value for c in changes])
    kept = [a for a in product.artifacts if a.sha256 in text or a.sha256 not in canonical_text(change.value)]
    return Product(changes, product.results, (*kept, *spoiled.artifacts), product.verdicts)
