"""``workprint audit``: a seeded sample of trajectories, examples and groups executed again, and the outcome put beside them in the lake.

Owns the choice of what is audited and the commit of table ``audits``; what is compared is said in evaluation.audit and materialize.audit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evaluation.audit import AuditReport, audit_lake, sampled
from jobs.grouping import reward_weights
from materialize.audit import Reexecuted, audit_example, audit_group, is_executable
from materialize.recorded import LakeRuns
from media.sandbox import open_sandbox
from schemas.canonical import derive_id, digest_of, stage_key
from schemas.errors import AlreadyDone, PipelineError, StorageFault
from storage.lake import Lake, StageCommit

Kind = Literal["trajectories", "examples", "groups"]
KINDS: tuple[Kind, ...] = ("trajectories", "examples", "groups")

SAMPLE = 24
"""Examples and groups that are audited when no number is asked for; of trajectories it is all."""

VERSION = 1

Note = Callable[[str], None]


@dataclass(slots=True)
class Audit:
    """What an audit of a lake found."""

    seed: int
    trajectories: AuditReport | None = None
    reexecuted: dict[str, tuple[Reexecuted, ...]] = field(default_factory=dict)
    stored: dict[str, int] = field(default_factory=dict)
    left_out: int = 0
    """Groups that a chat model played on in: nobody can have it say the same again."""
    recorded: bool = False

    @property
    def passed(self) -> bool:
        """All that was executed again is equal; an audit of nothing has not passed."""
        whole = [] if self.trajectories is None else [a.equal for a in self.trajectories.audited]
        seen = [*whole, *(r.equal for found in self.reexecuted.values() for r in found)]
        return bool(seen) and all(seen)

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint audit --json``."""
        out: dict[str, Any] = {} if self.trajectories is None else self.trajectories.as_json()
        for kind, found in self.reexecuted.items():
            equal = sum(r.equal for r in found)
            out[kind] = {
                "stored": self.stored[kind],
                "audited": len(found),
                "equal": equal,
                "equal_share": equal / len(found) if found else 0.0,
                "each": [r.as_json() for r in found],
            }
        if "groups" in out:
            out["groups"]["left_out"] = self.left_out
        return {**out, "passed": self.passed, "recorded": self.recorded}

    def print(self) -> None:
        """For a person."""
        if self.trajectories is not None and self.trajectories.audited:
            self.trajectories.print()
        for kind, found in self.reexecuted.items():
            for r in found:
                if r.difference is not None:
                    print(f"{r.subject}: {r.difference}")
            equal, wall = sum(r.equal for r in found), sum(r.wall_s for r in found)
            more = f", {self.left_out} of a chat model left out" if kind == "groups" and self.left_out else ""
            share = f"{100 * equal / len(found):.1f} %, " if found else ""
            print(f"{equal} of {len(found)} {kind} equal ({share}{self.stored[kind]} stored{more}), {wall:.1f} s")

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """Rows of table ``audits``, by what was audited."""
        out: dict[str, list[dict[str, Any]]] = {}
        if self.trajectories is not None:
            out["trajectories"] = [
                {
                    "kind": "trajectory",
                    "subject": a.trajectory_id,
                    "project_id": a.project_id,
                    "equal": a.equal,
                    "parts": a.calls + 2,
                    "equal_parts": a.equal_states + a.equal_frames + a.equal_sound,
                    "difference": None if a.first is None else f"{a.first.where}: {a.first.what}",
                    "stored": self.trajectories.stored,
                    "seed": self.seed,
                }
                for a in self.trajectories.audited
            ]
        for kind, found in self.reexecuted.items():
            out[kind] = [
                {
                    "kind": r.kind,
                    "subject": r.subject,
                    "project_id": r.project_id,
                    "equal": r.equal,
                    "parts": r.parts,
                    "equal_parts": r.equal_parts,
                    "difference": r.difference,
                    "stored": self.stored[kind],
                    "seed": self.seed,
                }
                for r in found
            ]
        return out


def audit(
    lake: Lake,
    *,
    of: Sequence[Kind] = KINDS,
    sample: int | None = None,
    seed: int = 0,
    sandbox: Literal["bubblewrap", "process"] = "bubblewrap",
    record: bool = True,
    note: Note = lambda _text: None,
) -> Audit:
    """Execute a seeded sample of a lake again.

    Args:
        of: what is audited.
        sample: at most this many of each; by default all trajectories, and ``SAMPLE`` examples and groups.
        record: put the outcome into table ``audits``, in place of the last audit of the same kinds.

    Raises:
        ConfigInvalid: ``sample`` is not positive.
        StorageFault, DigestMismatch: the lake's own files cannot be read.
    """
    found = Audit(seed)
    if "trajectories" in of:
        found.trajectories = audit_lake(lake, open_sandbox(sandbox), sample=sample, seed=seed, note=note)
    runs = LakeRuns(lake, sandbox=sandbox)
    count = SAMPLE if sample is None else sample
    if "examples" in of:
        names = [str(r[0]) for r in lake.query("select example_id from examples").rows]
        found.stored["examples"] = len(names)
        found.reexecuted["examples"] = tuple(_examples(runs, sampled(names, count, seed), note))
    if "groups" in of:
        names = [str(r[0]) for r in lake.query("select group_id from groups").rows]
        found.stored["groups"] = len(names)
        found.reexecuted["groups"] = tuple(_groups(runs, sampled(names, count, seed), found, note))
    if record:
        found.recorded = _record(lake, found, note)
    return found


def _examples(runs: LakeRuns, names: list[str], note: Note) -> list[Reexecuted]:
    asked = runs.lake.query("select * from examples where list_contains($1, example_id) order by trajectory_id, call_index", [names])
    out = []
    for number, values in enumerate(asked.rows):
        row = dict(zip(asked.columns, values, strict=True))
        note(f"example {number + 1} of {len(asked.rows)}: {row['role']} {row['kind']}")
        out.append(audit_example(runs, row))
    return out


def _groups(runs: LakeRuns, names: list[str], found: Audit, note: Note) -> list[Reexecuted]:
    out = []
    for number, name in enumerate(names):
        group = _rows(runs.lake, "select * from groups where group_id = $1", name)[0]
        if not is_executable(runs, group):
            found.left_out += 1
            continue
        note(f"group {number + 1} of {len(names)}: {group['role']} {group['tool']}")
        members = _rows(runs.lake, "select * from candidates where group_id = $1 order by candidate_index", name)
        out.append(audit_group(runs, group, members, reward_weights(runs.lake, str(group["project_id"]), name)))
    return out


def _rows(lake: Lake, sql: str, value: str) -> list[dict[str, Any]]:
    asked = lake.query(sql, [value])
    return [dict(zip(asked.columns, values, strict=True)) for values in asked.rows]


def _record(lake: Lake, found: Audit, note: Note) -> bool:
    """Commit the outcome; a lake that may not be written stays as it is."""
    try:
        for kind, rows in found.rows().items():
            if not rows:
                continue
            key = stage_key("audit", VERSION, digest_of([kind, found.seed]), (digest_of(rows),))
            commit = StageCommit("audit", key, "lake", kind, "done", None, {"audits": rows}, (), derive_id("run", [key]))
            try:
                lake.commit(commit)
            except AlreadyDone:
                continue
    except (StorageFault, PipelineError) as error:
        note(f"the outcome could not be recorded: {error}")
        return False
    return True
