"""What the scripted orchestrator reads off a context's view: which tools may run, which would help, and how many calls are still needed.

Pure functions of the view. Nothing here knows a storyboard.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from random import Random
from typing import Any, Literal

View = dict[str, Any]

CHAIN: dict[str, str] = {
    "segments": "segment_article",
    "shot_plan": "plan_shots",
    "assets": "retrieve_visuals",
    "narration": "synthesize_narration",
    "decorations": "decorate_spotlights",
    "music": "search_music",
    "timeline": "compose_timeline",
    "renders": "render_shots",
    "inspection": "inspect_quality",
    "delivery": "stitch_video",
}
"""Production facts in the order of their dependencies, each with the tool that brings it about."""

FACT_OF = {tool: fact for fact, tool in CHAIN.items()}
JUDGING = ("reflect_plan", "rank_severity", "repair_shots")
"""Tools that look at what there is; they have moments of their own."""
MAX_REPAIRS = 4
"""Repair calls the scripted orchestrator asks for at most; what is left then is delivered with its warnings."""

RESERVE = 5
"""Calls kept free for one round of ranking, mending, rendering and inspecting before anything optional is done."""

_RUN = re.compile(r"s(\d{3,4})(?:-s(\d{3,4}))?")

Scope = Literal["missing", "all", "halves", "chunks"]
Moment = Literal["after_plan", "after_assets", "never"]


@dataclass(frozen=True, slots=True)
class Traits:
    """The habits one seed gives: everything in them is legal, and they differ from run to run."""

    order: tuple[str, ...]
    """Tools, preferred first, among those that could come next."""
    steadiness: float
    """How often the preferred tool is taken, 0 to 1."""
    scopes: dict[str, Scope]
    chunk: int
    plan_by_segment: bool
    reflect: Moment
    focus: str
    ranks: bool
    mends_warnings: bool
    remedies: Literal["first", "last", "any", "agenda"]
    inspects_all: bool
    slack: float
    """Share by which a limit given to a tool exceeds what is needed."""
    explores: bool
    """Tries each tool outside the known chain once, when it can be called without asking anybody."""

    @classmethod
    def of(cls, seed: int) -> Traits:
        """Draw the habits of a seed."""
        rng = Random(f"traits:{seed}")  # noqa: S311 - seeded choice, no secret
        order = list(CHAIN.values())
        rng.shuffle(order)
        scopes: dict[str, Scope] = {
            tool: rng.choice(("missing", "all", "halves", "chunks"))
            for tool in ("retrieve_visuals", "synthesize_narration", "decorate_spotlights", "render_shots")
        }
        return cls(
            order=tuple(order),
            steadiness=rng.choice((0.6, 0.8, 0.95)),
            scopes=scopes,
            chunk=rng.choice((4, 6, 9)),
            plan_by_segment=rng.random() < 0.35,
            reflect=rng.choice(("after_plan", "after_plan", "after_assets", "never")),
            focus=rng.choice(("all", "all", "pacing", "repetition", "coverage")),
            ranks=rng.random() < 0.6,
            mends_warnings=rng.random() < 0.3,
            remedies=rng.choice(("first", "first", "last", "any", "agenda")),
            inspects_all=rng.random() < 0.4,
            slack=rng.choice((0.0, 0.2, 0.5)),
            explores=rng.random() < 0.5,
        )


def holds(view: View, fact: str) -> bool:
    """The fact is true, as far as the view tells. Facts of the task (script, pool) are not listed and taken as given."""
    row = view["progress"].get(fact)
    if row is not None:
        return bool(row["holds"])
    return bool(view["defects"]) if fact == "open_defects" else True


def lacks(view: View, tool: str) -> list[str]:
    """Facts the tool needs and the state does not have."""
    return [f for f in view["tools"][tool]["needs"] if not holds(view, f)]


def legal(view: View, tool: str) -> bool:
    """The tool is offered and all it needs is there."""
    return tool in view["tools"] and not lacks(view, tool)


def calls_needed(view: View) -> int:
    """Fewest calls from here to a delivered film."""
    return sum(1 for fact, tool in CHAIN.items() if tool in view["tools"] and not holds(view, fact))


def spare(view: View) -> int:
    """Calls left over if everything goes the shortest way."""
    return int(view["turn"]["left"]) - calls_needed(view)


def times(view: View, tool: str, *, refused: bool = False) -> int:
    """How often a tool was called and committed (or refused)."""
    return sum(1 for c in view["calls"] if c["tool"] == tool and (c["status"] == "refused") is refused)


def refused_in_a_row(view: View, tool: str) -> int:
    """How often the tool was refused since it was last committed."""
    count = 0
    for call in reversed(view["calls"]):
        if call["tool"] == tool:
            if call["status"] != "refused":
                break
            count += 1
    return count


def errors(view: View) -> list[dict[str, Any]]:
    """Open defects that should be mended."""
    return [d for d in view["defects"] if d.get("severity") == "error"]


def wants_repair(view: View, traits: Traits) -> bool:
    """Something is open, was looked at in its present form, and may still be mended."""
    if not holds(view, "inspection") or view["repairs_left"] <= 0 or times(view, "repair_shots") >= MAX_REPAIRS:
        return False
    if errors(view):
        return spare(view) >= 3
    return bool(view["defects"]) and traits.mends_warnings and times(view, "repair_shots") == 0 and spare(view) >= 5


def wants_reflection(view: View, traits: Traits) -> bool:
    """The habit says it is time to look at the plan."""
    if view["plan_reflected"] or traits.reflect == "never" or times(view, "reflect_plan") > 0 or not holds(view, "shot_plan"):
        return False
    due = traits.reflect == "after_plan" or holds(view, "assets")
    return due and not holds(view, "timeline") and spare(view) > RESERVE


def explorable(view: View) -> list[str]:
    """Tools nobody here knows that may run, were not tried yet, ask nobody, and take only arguments that any value of their kind fits."""
    if spare(view) <= RESERVE:
        return []
    tried = {c["tool"] for c in view["calls"]}
    return [
        tool
        for tool, one in view["tools"].items()
        if tool not in FACT_OF
        and tool not in JUDGING
        and tool not in tried
        and not one["asks"]
        and legal(view, tool)
        and all(n == "shots" or a.get("enum") or a["type"] != "string" for n, a in one["args"].items() if a.get("required", True))
    ]


def useful(view: View, traits: Traits) -> list[str]:
    """Tools that may run now and would bring the film forward, preferred first."""
    out: list[str] = []
    repairing = legal(view, "repair_shots") and wants_repair(view, traits)
    if repairing:
        ranked = any(c["tool"] == "rank_severity" and c["status"] != "refused" for c in view["calls"])
        if traits.ranks and not ranked and len(view["defects"]) > 1 and legal(view, "rank_severity"):
            return ["rank_severity"]
        return ["repair_shots"]
    if legal(view, "reflect_plan") and wants_reflection(view, traits):
        out.append("reflect_plan")
    rushed = spare(view) < 0
    for fact, tool in CHAIN.items():
        if fact == "delivery" or holds(view, fact) or not legal(view, tool) or (fact == "inspection" and rushed):
            continue
        out.append(tool)
    if traits.explores:
        out += explorable(view)
    if not out and legal(view, "stitch_video"):
        return ["stitch_video"]
    place = {tool: i for i, tool in enumerate(traits.order)}
    return sorted(out, key=lambda t: (t != "reflect_plan", place.get(t, -1)))


def runs(text: str) -> list[list[str]]:
    """Shot ids of a short form such as ``s001-s004,s009``, run by run. What is only counted (``+12``) is left out."""
    out: list[list[str]] = []
    for part in text.split(","):
        match = _RUN.fullmatch(part)
        if match is not None:
            first, last = int(match[1]), int(match[2] or match[1])
            out.append([f"s{n:03d}" for n in range(first, last + 1)] if last >= first else [f"s{first:03d}"])
    return out


def scope(view: View, tool: str, traits: Traits, rng: Random) -> str:
    """The ``shots`` argument: everything, what is missing, or the next part of it."""
    fact = FACT_OF.get(tool, "")
    row = view["progress"].get(fact, {})
    style = traits.scopes.get(tool, "missing")
    missing = runs(str(row.get("missing", "")))
    count = sum(len(r) for r in missing)
    if tool in ("inspect_quality", "repair_shots"):
        return _judging_scope(view, tool, traits, rng)
    if row.get("holds") or (style == "all" and not row.get("have")):
        return "all"
    parts = 2 if style == "halves" else -(-count // traits.chunk) if style == "chunks" else 1
    if parts < 2 or count < 4 or spare(view) < parts + RESERVE or "+" in str(row.get("missing", "")):
        return "missing"
    take = -(-count // parts)
    if times(view, tool) >= parts - 1:
        return "missing"
    return _first(missing, take)


def _judging_scope(view: View, tool: str, traits: Traits, rng: Random) -> str:
    if tool == "inspect_quality":
        return "all" if traits.inspects_all or (times(view, tool) > 0 and rng.random() < 0.3) else "missing"
    found = errors(view)
    if not found:
        return "all"
    subjects = sorted({d["subject"] for d in found})
    if "film" not in subjects and len(subjects) <= 6 and rng.random() < 0.5:
        return ",".join(subjects)
    return "missing"


def _first(missing: list[list[str]], take: int) -> str:
    """The first ``take`` ids, run by run, in short form."""
    parts: list[str] = []
    for run in missing:
        if take <= 0:
            break
        some = run[:take]
        take -= len(some)
        parts.append(some[0] if len(some) == 1 else f"{some[0]}-{some[-1]}")
    return ",".join(parts)


def last_refusal(view: View) -> dict[str, Any] | None:
    """The observation of the call just before, if it was refused."""
    latest = view["latest"]
    return latest if latest is not None and latest.get("blockers") else None


def last_arguments(view: View) -> dict[str, Any]:
    """Arguments of the orchestrator's latest call, as far as they can be read."""
    try:
        value = json.loads(view["calls"][-1].get("arguments", "{}")) if view["calls"] else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
