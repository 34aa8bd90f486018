"""Role contexts: the one function that decides what a policy sees, for the live run and for the examples made of it.

Owns the prompts and the text form. A context is a pure function of the state, the calls before it, the tool space, the settings and the
budget, so it can be rebuilt byte for byte from a snapshot and a trajectory's prefix.

Everything that came from outside (narration, on-screen text, captions, queries, earlier returns) stands inside ``<data>`` tags as JSON
in which every ``<`` is escaped: nothing in it can close the tag or imitate a chat control token.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from replay import views
from replay.config import ReplayConfig
from replay.registry import Registry
from schemas.canonical import Sha256, canonical_text, digest_of
from schemas.contract import ContentRequest, Role
from schemas.state import Pending, ProductionState
from schemas.trajectory import Call, Message, Observation, ObservationStatus, Provenance, RoleContext

PROMPTS = Path(__file__).parent / "prompts"


@cache
def prompt(role: Role) -> tuple[int, str]:
    """Version and text of a role's system prompt."""
    head, _, text = (PROMPTS / f"{role.value}.md").read_text(encoding="utf-8").partition("\n\n")
    return int(head.removeprefix("version:")), text.strip()


@cache
def prompt_digest(role: Role) -> Sha256:
    """Names a role's prompt, version and text; recorded with every call."""
    return digest_of([role.value, *prompt(role)])


@cache
def prompts_digest() -> Sha256:
    """Names the prompts of all roles; recorded in every trajectory."""
    return digest_of([[role.value, *prompt(role)] for role in Role])


def build_context(state: ProductionState, calls: Sequence[Call], *, registry: Registry, config: ReplayConfig, budget: int) -> RoleContext:
    """What the role whose turn it is sees.

    Args:
        state: the present state; ``film.pending`` decides whose turn it is.
        calls: all calls before this one. Without any, the context shows the whole state: a first observation.
        budget: orchestrator calls allowed in the run.
    """
    pending = state.film.pending
    if pending is None:
        return _orchestrator(state, calls, registry, config, budget)
    return _content(state, calls, pending)


def orchestrator_calls(calls: Sequence[Call]) -> int:
    """Calls that count against the budget: every output in an orchestrator's turn, refused ones and other roles' included."""
    return sum(1 for c in calls if c.orchestrator_call == c.call_index and c.output.provenance is not Provenance.RUNTIME)


def refusals_of_request(calls: Sequence[Call], pending: Pending) -> tuple[Observation, ...]:
    """Refusals of the request that is open now, oldest first."""
    out: list[Observation] = []
    for call in reversed(calls):
        if call.orchestrator_call != pending.orchestrator_call or call.observation.status is not ObservationStatus.REFUSED:
            break
        out.append(call.observation)
    return tuple(reversed(out))


def data(name: str, value: Any) -> str:
    """A value as a marked block of material."""
    text = canonical_text(value).replace("<", "\\u003c")
    return f'<data name="{name}">{text}</data>'


def _orchestrator(state: ProductionState, calls: Sequence[Call], registry: Registry, config: ReplayConfig, budget: int) -> RoleContext:
    first = not calls
    used = orchestrator_calls(calls)
    view: dict[str, Any] = {
        "turn": {"call_index": len(calls), "used": used, "budget": budget, "left": budget - used},
        "brief": views.brief(state),
        "progress": views.progress(state),
        "repairs_left": views.repairs_left(state, config),
        "defects": views.fit(views.defect_rows(state), views.DEFECTS_CHARS),
        "segments": views.fit(views.segment_rows(state), views.SEGMENTS_CHARS) if first or _touches(calls, "segments", "record") else [],
        "shots": views.fit([views.shot_row(state, s) for s in views.relevant_shots(state, calls)], views.SHOTS_CHARS),
        "shots_total": len(state.film.shot_order),
        "plan_reflected": state.film.plan_reflected,
        "calls": views.call_rows(calls),
        "latest": None if first else views.observation_view(calls[-1].observation),
        "changed": {} if first else views.changed_view(calls[-1].observation.changed, state.film.shot_order),
        "tools": views.tool_views(registry),
    }
    if first:
        view["pool"] = views.pool_rows(state)
    needs = "\n".join(f"- {name}: {', '.join(t['needs']) or 'nothing'}" for name, t in view["tools"].items())
    system = prompt(Role.ORCHESTRATOR)[1].replace("{needs}", needs)
    return RoleContext(
        role=Role.ORCHESTRATOR,
        call_index=len(calls),
        messages=(Message(role="system", content=system), Message(role="user", content=_orchestrator_text(view))),
        tools=registry.schemas(),
        request=None,
        view=view,
    )


def _touches(calls: Sequence[Call], *fields: str) -> bool:
    return any(name.partition(".")[2] in fields for name in calls[-1].observation.changed)


def _orchestrator_text(view: dict[str, Any]) -> str:
    turn = view["turn"]
    parts = ["# Task", data("task", view["brief"])]
    if view["latest"] is not None:
        parts += ["# Latest observation", data("observation", view["latest"])]
        if view["changed"]:
            parts.append(
                "Changed: "
                + "; ".join(f"{field} of {ids}" if field != "film" else f"film: {ids}" for field, ids in view["changed"].items())
            )
    parts += ["# Progress", _progress_text(view)]
    if view["segments"]:
        parts += ["# Segments", data("segments", view["segments"])]
    if view["defects"]:
        parts += ["# Open defects", data("defects", view["defects"])]
    if view["shots"]:
        shown, total = sum(1 for s in view["shots"] if "id" in s), view["shots_total"]
        parts += [f"# Shots ({shown} of {total} shown)" if shown < total else f"# Shots ({total})", data("shots", view["shots"])]
    if view.get("pool"):
        parts += ["# Source pool (some of it)", data("pool", view["pool"])]
    if view["calls"]:
        parts += ["# Calls so far", data("calls", view["calls"])]
    parts.append(f"# Your turn\nCall {turn['used'] + 1} of {turn['budget']}. Choose one tool.")
    return "\n".join(parts)


def _progress_text(view: dict[str, Any]) -> str:
    lines: list[str] = []
    for fact, row in view["progress"].items():
        if row["holds"]:
            state = "done" if row["of"] <= 1 else f"done, {row['of']} of {row['of']}"
        elif row["of"] > 1 or "missing" in row:
            state = f"{row['have']} of {row['of']}" + (f", missing {row['missing']}" if "missing" in row else "")
        else:
            state = "none"
        lines.append(f"- {fact}: {state}")
    if view["shots_total"]:
        lines.append(f"- plan reflected on: {'yes' if view['plan_reflected'] else 'no'}")
    lines.append(f"- repair calls left: {view['repairs_left']}")
    return "\n".join(lines)


def _short_schema(node: Any) -> Any:
    """A JSON Schema without the titles that repeat its property names."""
    if isinstance(node, dict):
        return {k: _short_schema(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}
    return [_short_schema(v) for v in node] if isinstance(node, list) else node


def _content(state: ProductionState, calls: Sequence[Call], pending: Pending) -> RoleContext:
    refused = refusals_of_request(calls, pending)
    asked = pending.request
    request: ContentRequest = asked.model_copy(
        update={"attempt": len(refused) + 1, "evidence": views.fit(asked.evidence, views.EVIDENCE_CHARS)}
    )
    shots = views.named_shots(request.evidence, state)
    view: dict[str, Any] = {
        "turn": {"call_index": len(calls), "attempt": request.attempt, "part": len(pending.given) + 1},
        "brief": views.brief(state),
        "request": {
            "role": request.role.value,
            "tool": request.tool,
            "kind": request.kind,
            "instruction": request.instruction,
            "evidence": request.evidence,
        },
        "arguments": views.fit(pending.arguments, views.ARGUMENT_CHARS * 4),
        "spans": [[s, state.shots[s].planned.script_start, state.shots[s].planned.script_end] for s in shots],
        "latest": views.observation_view(refused[-1]) if refused else None,
    }
    parts = [
        "# Task",
        data("task", view["brief"]),
        f"# Request: {request.kind} for {request.tool}",
        request.instruction,
        "Arguments of the call: " + data("arguments", view["arguments"]),
        "# Evidence",
        data("evidence", request.evidence),
        "# Schema of your answer",
        canonical_text(_short_schema(request.content_schema)),
    ]
    if view["latest"] is not None:
        parts += [f"# Your answer was refused (attempt {request.attempt} now)", data("observation", view["latest"])]
    return RoleContext(
        role=request.role,
        call_index=len(calls),
        messages=(Message(role="system", content=prompt(request.role)[1]), Message(role="user", content="\n".join(parts))),
        tools=(),
        request=request,
        view=view,
    )
