"""How varied the recorded runs are: how many different tool sequences, argument shapes, blockers, repairs and examples a lake holds.

Counts are given for 1,000 trajectories, so that lakes of different sizes can be compared: the mean number of different things in a random
thousand of the trajectories, computed exactly (rarefaction, Hurlbert 1971), never extrapolated: a smaller lake is reported at its own
size. Reads the rows of a lake and changes nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import duckdb
import orjson

from evaluation.shingles import likeness, shingles

SAMPLE = 1000
"""Trajectories that a figure is given for."""

NEAR = 0.9
"""Share of word 5-grams that two prompts have in common when examples with equal completions count as near-duplicates."""

_SHOTS = re.compile(r"s\d{3,4}")
_RANGE = re.compile(r"[sg]\d{2,4}-[sg]\d{2,4}")
_QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, slots=True)
class Spread:
    """How different things are spread over the trajectories."""

    kinds: int
    """Different things in all trajectories."""
    expected: float
    """Mean number of different things in a random sample of ``Variety.sample`` trajectories."""
    top_share: float
    """Share of the trajectories that hold the commonest one."""


@dataclass(frozen=True, slots=True)
class Variety:
    """The variety report of a lake. ``sample`` is the number of trajectories that ``expected`` figures are for."""

    trajectories: int
    projects: int
    sample: int
    spreads: dict[str, Spread]
    lengths: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Tokens of a prompt by role: 5th percentile, median, 95th; empty where no tokenizer counted."""
    yields: dict[str, int] = field(default_factory=dict)
    """Examples by 'role kind'."""
    per_project: tuple[int, float, int] = (0, 0.0, 0)
    """Fewest, mean and most examples of a project."""
    per_trajectory: float = 0.0
    """Mean number of examples of a trajectory."""
    near_duplicates: int = 0
    """Examples that say the same as an earlier one of their project under nearly the same prompt."""

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint dataset variety --json``."""
        return {
            "trajectories": self.trajectories,
            "projects": self.projects,
            "sample": self.sample,
            "spreads": {
                n: {"kinds": s.kinds, "expected": round(s.expected, 2), "top_share": round(s.top_share, 4)} for n, s in self.spreads.items()
            },
            "prompt_tokens": {role: {"p05": a, "p50": b, "p95": c} for role, (a, b, c) in self.lengths.items()},
            "examples": self.yields,
            "examples_per_project": {"min": self.per_project[0], "mean": round(self.per_project[1], 2), "max": self.per_project[2]},
            "examples_per_trajectory": round(self.per_trajectory, 2),
            "near_duplicates": self.near_duplicates,
        }


def variety(con: duckdb.DuckDBPyConnection, sample: int = SAMPLE) -> Variety:
    """The report over all trajectories of a lake.

    Args:
        con: a connection with the lake's views (``Lake.connect``).
        sample: trajectories that expected figures are given for; all when there are fewer.
    """
    runs = con.execute("select trajectory_id, project_id, tool_sequence from trajectories").fetchall()
    held: dict[str, dict[str, set[Any]]] = {
        "tool sequences": {str(t): {tuple(s)} for t, _, s in runs},
        "argument shapes": _collect(
            (t, argument_shape(tool, text))
            for t, tool, text in con.execute(
                "select trajectory_id, tool, arguments_json from calls where role = 'orchestrator' and arguments_json is not null"
            ).fetchall()
        ),
        "blockers": _collect(
            (t, (code, tool))
            for t, code, tool in con.execute(
                "select b.trajectory_id, b.code, c.tool from blockers b join calls c using (trajectory_id, call_index)"
            ).fetchall()
        ),
        "repairs": _collect(
            (t, (code, mend, outcome))
            for t, code, mend, outcome in con.execute("select trajectory_id, code, mend, outcome from repairs").fetchall()
        ),
        "tools chosen after a refusal": _collect(
            (t, (before, tool))
            for t, before, tool in con.execute(
                "select c.trajectory_id, b.code, c.tool from calls c join blockers b on b.trajectory_id = c.trajectory_id "
                "and b.call_index = c.call_index - 1 where c.role = 'orchestrator' and c.status != 'refused'"
            ).fetchall()
        ),
    }
    total = len(runs)
    size = min(sample, total)
    spreads = {name: spread([by.get(str(t), set()) for t, _, _ in runs], size) for name, by in held.items()}
    yields = con.execute("select role || ' ' || kind, count(*) from examples group by 1 order by 2 desc, 1").fetchall()
    by_project = "select count(e.example_id) from projects p left join examples e using (project_id) group by p.project_id"
    counts = [int(n) for (n,) in con.execute(by_project).fetchall()]
    examples = sum(int(n) for _, n in yields)
    return Variety(
        trajectories=total,
        projects=len({p for _, p, _ in runs}),
        sample=size,
        spreads=spreads,
        lengths=_lengths(con),
        yields={str(k): int(n) for k, n in yields},
        per_project=(min(counts, default=0), sum(counts) / len(counts) if counts else 0.0, max(counts, default=0)),
        per_trajectory=examples / total if total else 0.0,
        near_duplicates=near_duplicates(con),
    )


def spread(held: list[set[Any]], sample: int) -> Spread:
    """How things are spread over trajectories.

    Args:
        held: for each trajectory the different things it holds.
        sample: size of the random sample, at most their number.
    """
    count: Counter[Any] = Counter(thing for things in held for thing in things)
    total = len(held)
    expected = math.fsum(1.0 - _missed(total, n, sample) for n in sorted(count.values()))
    return Spread(len(count), expected, max(count.values(), default=0) / total if total else 0.0)


def _missed(total: int, having: int, sample: int) -> float:
    """Chance that a sample without replacement meets none of ``having`` trajectories: C(total-having, sample) / C(total, sample)."""
    if total - having < sample:
        return 0.0
    logs = math.lgamma(total - having + 1) - math.lgamma(total - having - sample + 1)
    return math.exp(logs - math.lgamma(total + 1) + math.lgamma(total - sample + 1))


def argument_shape(tool: str | None, arguments_json: str) -> str:
    """Tool and arguments with everything replaced that only names a subject: ``retrieve_visuals(shots=range)``.

    Words of a closed choice stay, numbers become ``#``, shots and segments become ``one``, ``range``, ``several``; other texts ``text``.
    Text that is no JSON object becomes ``unreadable``.
    """
    try:
        arguments = orjson.loads(arguments_json)
    except orjson.JSONDecodeError:
        arguments = None
    if not isinstance(arguments, dict):
        return f"{tool or '-'}(unreadable)"
    return f"{tool or '-'}({', '.join(f'{name}={_class(value)}' for name, value in sorted(arguments.items()))})"


def _class(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    if isinstance(value, int | float):
        return "#"
    if not isinstance(value, str):
        return type(value).__name__
    parts = value.split(",")
    if all(_SHOTS.fullmatch(p) or _RANGE.fullmatch(p) or re.fullmatch(r"g\d{2,3}", p) for p in parts):
        return "several" if len(parts) > 1 else "range" if "-" in value else "one"
    return value if re.fullmatch(r"[a-z_]{1,20}", value) else "text"


def near_duplicates(con: duckdb.DuckDBPyConnection, threshold: float = NEAR) -> int:
    """Examples that an earlier one of their project nearly repeats: equal role, kind and completion (the call's id aside), and prompts
    whose last messages share at least ``threshold`` of their word 5-grams. Exact repetitions never enter a lake."""
    rows = con.execute(
        "select project_id, role, kind, regexp_replace(completion_json, '\"id\":\"call_[0-9]+\"', '') as said, list(prompt_json order by "
        "trajectory_id, call_index) from examples group by all having count(*) > 1"
    ).fetchall()
    found = 0
    for *_, prompts in rows:
        kept: list[frozenset[int]] = []
        for prompt in prompts:
            grams = shingles(orjson.loads(prompt)[-1]["content"], 5)
            if any(likeness(grams, other) >= threshold for other in kept):
                found += 1
            else:
                kept.append(grams)
    return found


def _collect(pairs: Iterable[tuple[Any, Any]]) -> dict[str, set[Any]]:
    out: defaultdict[str, set[Any]] = defaultdict(set)
    for trajectory, thing in pairs:
        out[str(trajectory)].add(thing)
    return dict(out)


def _lengths(con: duckdb.DuckDBPyConnection) -> dict[str, tuple[int, int, int]]:
    low, mid, high = _QUANTILES
    rows = con.execute(
        f"select role, quantile_disc(prompt_tokens, [{low}, {mid}, {high}]) from examples where prompt_tokens is not null "  # noqa: S608 - numbers of ours
        "group by role order by role"
    ).fetchall()
    return {str(role): (int(q[0]), int(q[1]), int(q[2])) for role, q in rows}
