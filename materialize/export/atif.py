"""ATIF 1.7, one file for each run: the orchestrator's steps, and a sub-agent's trajectory for each content that a tool asked for.

The user message before each step is what the policy saw, byte for byte but for control tokens of chat templates, which are made harmless
as in every export. What ATIF has no field for stands in ``extra``: snapshots, exact text of arguments, who authored an output, and
``learn``: false for outputs that are no examples (refused, mistakes put in on purpose, outputs of the runtime itself).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import orjson

from materialize.export.episodes import Episode
from materialize.export.folder import ExportFolder
from materialize.export.json_lines import one_line, plain_documents
from materialize.export.options import ExportReport
from materialize.export.records import Records
from materialize.export.texts import escape_control, refuse_control
from schemas.canonical import canonical_text
from schemas.contract import Role, shown_schema
from schemas.trajectory import Call, ObservationStatus, Provenance

VERSION = "ATIF-v1.7"

_MODELS = frozenset({Provenance.TEACHER, Provenance.STUDENT, Provenance.OUTSIDE})

_LOADING = f"""Each file under `trajectories/` is one run in the Agent Trajectory Interchange Format ({VERSION}), with the generator's
and the critic's answers as embedded sub-agent trajectories; `index.jsonl` names project and split of each.
Check a folder with Harbor:

```python
from pathlib import Path
from harbor.models.trajectories import Trajectory

for path in sorted(Path("path/to/this/folder/trajectories").rglob("*.json")):
    Trajectory.model_validate_json(path.read_text("utf-8"))
```

Steps whose `extra.learn` is false are there for the story (refusals, mistakes put in on purpose) and are not meant to be imitated.
`workprint import FILE --snapshot SNAPSHOT --lake LAKE` executes such a file's calls again.
"""


def atif_of(episode: Episode) -> dict[str, Any]:
    """One run as an ATIF document."""
    run = episode.trajectory
    steps: list[dict[str, Any]] = []
    inner: list[dict[str, Any]] = []
    system = ""
    tools: list[Any] = []
    asked: dict[int, list[str]] = {}
    for call in run.calls:
        if call.role is not Role.ORCHESTRATOR:
            asked.setdefault(call.orchestrator_call, []).append(_inner_id(run.trajectory_id, call))
    for call in run.calls:
        context = episode.context(call.context_sha256)
        if call.role is Role.ORCHESTRATOR:
            tools = tools or [shown_schema(t) for t in context["tools"]]
            system = _said(context["messages"], system, steps)
            steps.append(_agent(episode, call, asked.get(call.call_index, ())))
        else:
            own: list[dict[str, Any]] = []
            _said(context["messages"], "", own)
            own.append(_agent(episode, call, ()))
            inner.append(
                {
                    "schema_version": VERSION,
                    "trajectory_id": _inner_id(run.trajectory_id, call),
                    "agent": {"name": f"workprint-{call.role.value}", "version": version("workprint")},
                    "steps": _numbered(own),
                    "extra": {"role": call.role.value, "content": call.request.kind if call.request else None, "tool": call.tool},
                }
            )
    row = episode.row
    about = {
        "project_id": run.project_id, "split": row["split"], "license": row["licence"], "attribution": row["attribution"],
        "outcome": run.outcome.value, "quality": row["quality"], "policy": run.policy, "seed": run.seed, "budget": run.budget,
        "first_snapshot": run.first_snapshot, "last_snapshot": run.last_snapshot, "trajectory_sha256": row["trajectory_sha256"],
        "config_digest": run.config_digest,
        "repairs": [
            {
                "defect": r.defect.code.value, "subject": r.defect.subject, "mend": r.diagnosis.mend.value, "call_found": r.call_found,
                "call_mended": r.call_mended, "call_verified": r.call_verified, "outcome": r.outcome,
            }
            for r in run.repairs
        ],
    }  # fmt: skip
    out: dict[str, Any] = {
        "schema_version": VERSION,
        "session_id": run.trajectory_id,
        "trajectory_id": run.trajectory_id,
        "agent": {"name": "workprint-orchestrator", "version": version("workprint"), "tool_definitions": tools},
        "steps": _numbered(steps),
        "final_metrics": {"total_steps": len(steps)},
        "extra": about,
    }
    return out | ({"subagent_trajectories": inner} if inner else {})


def _inner_id(trajectory: str, call: Call) -> str:
    return f"{trajectory}.{call.call_index}"


def _numbered(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"step_id": number, **step} for number, step in enumerate(steps, 1)]


def _said(messages: Sequence[dict[str, str]], system: str, steps: list[dict[str, Any]]) -> str:
    """Add what a policy saw; the system message only when it is another than before. Returns the system message."""
    for message in messages:
        text = escape_control(message["content"])
        if message["role"] == "system":
            if text == system:
                continue
            system = text
        steps.append({"source": message["role"], "message": text})
    return system


def _agent(episode: Episode, call: Call, refs: Sequence[str]) -> dict[str, Any]:
    output = call.output
    by_model = output.provenance in _MODELS
    learn = (
        output.provenance not in (Provenance.SCRIPTED_MISTAKE, Provenance.RUNTIME)
        and call.observation.status is not ObservationStatus.REFUSED
        and not call.observation.blockers
    )
    extra: dict[str, Any] = {
        "call_index": call.call_index, "provenance": output.provenance.value, "status": call.observation.status.value, "learn": learn,
        "snapshot_before": call.snapshot_before, "snapshot_after": call.snapshot_after, "state_before": call.state_before,
        "state_after": call.state_after, "context_sha256": call.context_sha256,
    }  # fmt: skip
    step: dict[str, Any] = {"source": "agent", "message": output.text, "llm_call_count": int(by_model)}
    result: dict[str, Any] = {"content": _observed(call)}
    if call.role is Role.ORCHESTRATOR:
        extra["arguments_json"] = output.arguments_json
        arguments = _object(output.arguments_json)
        if output.tool and arguments is not None:
            name = f"call_{call.call_index}"
            step["tool_calls"] = [{"tool_call_id": name, "function_name": output.tool, "arguments": arguments}]
            result["source_call_id"] = name
        else:
            extra["tool"] = output.tool
    if refs:
        result["subagent_trajectory_ref"] = [{"trajectory_id": r} for r in refs]
    step["observation"] = {"results": [result]}
    if by_model and output.reply is not None:
        reply = episode.reply(output.reply)
        step["model_name"] = reply.model
        step |= {"reasoning_content": reply.reasoning} if reply.reasoning else {}
        metrics = {
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "cost_usd": None if reply.cost_microusd is None else reply.cost_microusd / 1e6,
            "prompt_token_ids": None if reply.prompt_token_ids is None else list(reply.prompt_token_ids),
            "completion_token_ids": None if reply.completion_token_ids is None else list(reply.completion_token_ids),
            "logprobs": None if reply.logprobs is None else [p.logprob for p in reply.logprobs],
        }
        step["metrics"] = {k: v for k, v in metrics.items() if v is not None} | {"extra": {"sampling": reply.sampling}}
    return step | {"extra": extra}


def _observed(call: Call) -> str:
    """What the runtime returned, as text."""
    seen = call.observation
    return canonical_text(
        {"status": seen.status.value, "results": seen.results, "blockers": [b.model_dump(mode="json") for b in seen.blockers]}
    )


def _object(arguments: str | None) -> dict[str, Any] | None:
    try:
        found = orjson.loads(arguments or "")
    except orjson.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


class _Files:
    def __init__(self, folder: ExportFolder, split: str, index: int) -> None:
        self._folder, self._split, self._index = folder, split, index

    def write(self, items: Sequence[Episode]) -> None:
        """One file for each."""
        for item in items:
            name = f"trajectories/{self._split}/{self._index:05d}/{item.ident}.json"
            self._folder.write(name, orjson.dumps(atif_of(item), option=orjson.OPT_APPEND_NEWLINE), 1)


class Atif:
    """``export sft --to atif`` and ``export rft --to atif``."""

    name = "atif"

    def accept(self, item: Episode) -> None:
        """Refuse a run in which a control token would be trained.

        Raises:
            BadText: an output that may be learned from holds one.
        """
        for call in item.trajectory.calls:
            if call.observation.status is not ObservationStatus.REFUSED:
                refuse_control(call.output.text, f"output {call.call_index}")
                refuse_control(call.output.arguments_json or "", f"output {call.call_index}")

    @contextmanager
    def shard(self, folder: ExportFolder, split: str, index: int, count: int) -> Iterator[_Files]:
        """``trajectories/SPLIT/00000/TRAJECTORY.json``."""
        yield _Files(folder, split, index)

    def documents(self, folder: ExportFolder, report: ExportReport, records: Records[Any, Any]) -> None:
        """Card, sources, licences, and the index."""
        plain_documents(folder, report, records, _LOADING)
        lines = []
        names = {n.rsplit("/", 1)[1].removesuffix(".json"): n for n in folder.names() if n.startswith("trajectories/")}
        left_out = {bad.example_id for bad in report.left_out}
        for keys in records.keys.values():
            lines += [
                one_line({"trajectory_id": k.trajectory_id, "path": names[k.ident], "source_project": k.project_id, "split": k.split})
                for k in keys
                if k.ident not in left_out
            ]
        folder.write("index.jsonl", b"".join(lines))
