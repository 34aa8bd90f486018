"""Faults put in on purpose, with their cause recorded: the ground truth that diagnosis and recovery are measured against.

Owns the draw (which faults a run gets), the spoiling of verified products, always by really rendering, filtering or swapping bytes in
the sandbox, their refusal, and the breaking down of a tool's first try. A critic never sees what is drawn here. Plan-level faults are in
repair.plan_faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from media.command import Limits
from media.ffmpeg import run_ffmpeg
from repair.config import FaultConfig
from repair.fault_kinds import KINDS, PLAN_KINDS, FaultKind
from repair.findings import FILM
from repair.spoil import SPOILERS, Spoiled
from repair.taxonomy import Product as Made
from replay.state import apply
from replay.tool import Product, Refusal, ToolEnv
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import canonical_text, digest_of
from schemas.errors import ConfigInvalid
from schemas.state import Change, ProductionState
from schemas.trajectory import Call, InjectedFault

REJECTED = "product_rejected"


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One fault asked for by name."""

    kind: str
    subject: str


class FaultPlan:
    """The execution-level and infrastructure faults of one run: a filter for the runtime's verified products.

    A fault strikes the first product of its kind that its subject gets, never a later one, so a mended product stays mended, and a run
    that was stopped and resumed meets the same faults. At most one fault is drawn for a subject. A refusal leaves no trace in the state, so
    it is remembered here (``resumed`` tells the plan what an earlier part of the run met); so is a break-down, which leaves none anywhere.

    Args:
        config: kinds to draw from, how many, and the seed. Plan-level kinds are left to repair.plan_faults.
        explicit: faults by name, besides the drawn ones.

    Raises:
        ConfigInvalid: a kind that does not exist.
    """

    def __init__(self, config: FaultConfig | None = None, explicit: Sequence[FaultSpec] = ()) -> None:
        self.config = config or FaultConfig()
        self.explicit = tuple(explicit)
        self.broken_down: list[InjectedFault] = []
        """Infrastructure faults that struck. No trajectory holds them."""
        self._refused: set[FaultSpec] = set()
        unknown = [s.kind for s in self.explicit if s.kind not in KINDS]
        if unknown:
            raise ConfigInvalid("unknown_fault", f"there is no fault kind {unknown[0]!r}", f"the kinds are {', '.join(KINDS)}")

    def resumed(self, calls: Iterable[Call]) -> None:
        """Tell the plan of calls that were committed before: what they met does not strike again."""
        self._refused |= {FaultSpec(f.kind, f.subject) for c in calls for f in c.faults if f.kind == REJECTED}

    def drawn(self, state: ProductionState, taken: Iterable[str] = ()) -> tuple[FaultSpec, ...]:
        """The faults that a run with this plan of shots gets. Depends on seed, kinds, count and shots only.

        Args:
            taken: subjects that are left out.
        """
        out = list(self.explicit)
        used = {s.subject for s in out} | set(taken)
        seed = self.config.seed
        kinds = sorted((k for k in self.config.kinds if k not in PLAN_KINDS), key=lambda k: digest_of([seed, k]))
        for n in range(self.config.count if kinds else 0):
            kind = KINDS[kinds[n % len(kinds)]]
            eligible = [s for s in subjects(state, kind) if s not in used]
            if eligible:
                chosen = min(eligible, key=lambda s: digest_of([seed, kind.name, s]))
                out.append(FaultSpec(kind.name, chosen))
                used.add(chosen)
        named = (FaultSpec(*one.split("@", 1)) for one in self.config.explicit)
        return tuple(dict.fromkeys((*out, *named)))

    def __call__(
        self, call_index: int, tool: str, product: Product, env: ToolEnv, state: ProductionState
    ) -> tuple[Product | Refusal, tuple[InjectedFault, ...]]:
        """Spoil what is due in a verified product (signature of the runtime's fault filter).

        Raises:
            ToolFailed, LimitExceeded: an infrastructure fault strikes.
        """
        if not (self.config.count or self.explicit or self.config.explicit) or not any(isinstance(c.value, dict) for c in product.changes):
            return product, ()
        healthy = product
        after = apply(state, product.changes)
        faults: list[InjectedFault] = []
        for spec in self.drawn(after):
            kind = KINDS[spec.kind]
            record = FILM if kind.on_film else spec.subject
            change = next((c for c in product.changes if c.subject == record and c.field == kind.field and c.value), None)
            if change is None or _was_made(state, spec.subject, kind):
                continue
            name = fault_id(self.config.seed, spec.kind, spec.subject, call_index)
            if kind.level == "infrastructure":
                self._break_down(InjectedFault(fault_id=name, kind=kind.name, subject=spec.subject, detail=kind.what), env)
            elif kind.name == REJECTED:
                if spec not in self._refused:
                    self._refused.add(spec)
                    return _rejected(spec, tool), (InjectedFault(fault_id=name, kind=kind.name, subject=spec.subject, detail=kind.what),)
            else:
                spoiled = SPOILERS[spec.kind](apply(state, product.changes), spec.subject, env)
                if spoiled is not None:
                    product = _with(product, change, spoiled)
                    faults.append(InjectedFault(fault_id=name, kind=spec.kind, subject=spec.subject, detail=spoiled.detail))
        return (product, tuple(faults)) if faults else (healthy, ())

    def _break_down(self, fault: InjectedFault, env: ToolEnv) -> None:
        """On the first try, let an engine of the call really die, or really run out of time; the next try goes well."""
        if any((f.kind, f.subject) == (fault.kind, fault.subject) for f in self.broken_down):
            return
        self.broken_down.append(fault)
        folder = Path(env.workdir) / "break-down"
        folder.mkdir()
        if fault.kind == "tool_crash":
            run_ffmpeg(("-i", "/in/missing.mp4", "-f", "null", "-"), sandbox=env.sandbox, workdir=folder)
        else:
            endless = ("-re", "-f", "lavfi", "-i", "anullsrc", "-f", "null", "-")
            run_ffmpeg(endless, sandbox=env.sandbox, workdir=folder, limits=Limits(wall_s=0.2))


def subjects(state: ProductionState, kind: FaultKind) -> tuple[str, ...]:
    """Subjects that a fault of this kind can strike, in film order."""
    order = state.film.shot_order
    if kind.product in (Made.MUSIC, Made.DELIVERY):
        return (FILM,)
    if kind.product in (Made.NARRATION, Made.PLAN, Made.TIMELINE):
        return tuple(s for s in order if state.shots[s].planned.text.strip())
    if kind.product is Made.DECORATION or kind.name == "render_no_graphic":
        return tuple(s for s in order if state.shots[s].planned.spotlight is not None)
    if kind.name in ("asset_repeated", "query_repeated"):
        return order[1:]
    return order


def fault_id(seed: int, kind: str, subject: str, call_index: int) -> str:
    """Stable name of one injected fault."""
    return f"flt_{digest_of([seed, kind, subject, call_index])[:16]}"


def _was_made(state: ProductionState, subject: str, kind: FaultKind) -> bool:
    """The subject had such a product before this call, or lost one to a repair."""
    if kind.field == "record":
        return subject in state.shots
    if kind.on_film:
        shot = state.shots.get(subject)
        tried = state.film.mends_tried if subject == FILM or shot is None else shot.mends_tried
        own = {code.value for code in kind.symptoms}
        return getattr(state.film, kind.field) is not None or any(t.split(":")[0] in own for t in tried)
    shot = state.shots.get(subject)
    return shot is not None and (getattr(shot, kind.field) is not None or bool(shot.mends_tried))


def _rejected(spec: FaultSpec, tool: str) -> Refusal:
    return Refusal(
        (
            Blocker(
                code=BlockerCode.PRODUCT_REJECTED,
                subject=f"shot:{spec.subject}",
                message=f"the render of {spec.subject} did not pass its checks and was dropped; nothing was kept of this call",
                remedies=(tool,),
            ),
        )
    )


def _with(product: Product, change: Change, spoiled: Spoiled) -> Product:
    """The product with one value replaced, and its artifacts accordingly."""
    changes = tuple(c.model_copy(update={"value": spoiled.value}) if c is change else c for c in product.changes)
    text = canonical_text([c.value for c in changes])
    kept = [a for a in product.artifacts if a.sha256 in text or a.sha256 not in canonical_text(change.value)]
    return Product(changes, product.results, (*kept, *spoiled.artifacts), product.verdicts)
