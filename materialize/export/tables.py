"""The tables of the canonical form: which columns the rows of each kind have, and what they mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from materialize.export.hub_parquet import (
    BOOL,
    FLOAT,
    INT,
    TEXT,
    Table,
    TableColumn,
    answer_column,
    integers,
    list_of,
    messages_column,
    plain,
    struct,
    tools_column,
    value,
)
from materialize.export.licences import spdx
from materialize.tokens import THINKING_OFF
from schemas.canonical import sha256_bytes

PROMPT = messages_column("prompt", "system and user message, as the policy saw them", lambda i: i.prompt)
TOOLS = tools_column("tools", "tool schemas the policy was given; null for generator and critic", lambda i: i.tools)
KWARGS = struct(
    "chat_template_kwargs",
    {"enable_thinking": BOOL},
    "template variables: thinking is off, because completions hold no reasoning",
    lambda _i: THINKING_OFF,
)
ESCAPED = plain(
    "escaped", BOOL, "the prompt held control tokens; each got a zero-width space after its first character", lambda i: i.escaped
)


def _of_row(name: str, kind: Any, doc: str, lake: str = "", *, few: bool = False) -> TableColumn:
    key = lake or name
    return plain(name, kind, doc, lambda i: i.row[key], few_values=few)


_PROJECT = _of_row("source_project", TEXT, "source video (project_id in the lake); the unit of the split", "project_id", few=True)
_TRAJECTORY = _of_row("trajectory_id", TEXT, "run of the production toolchain", few=True)
_CALL = _of_row("call_index", INT, "position of the output in its run")
_ROLE = _of_row("role", TEXT, "orchestrator, generator or critic", few=True)
_KIND = _of_row("kind", TEXT, "what the decision is about", few=True)
_LICENCE = plain(
    "license",
    TEXT,
    "SPDX name of the source video's licence; NOASSERTION when nobody stated one",
    lambda i: spdx(i.row["licence"]),
    few_values=True,
)
_GIVEN = _of_row("license_given", TEXT, "the licence as the lake has it", "licence", few=True)
_ATTRIBUTION = _of_row("attribution", TEXT, "who must be named; null if nobody", few=True)
_SPLIT = _of_row("split", TEXT, "train, validation or held_out", few=True)
_SNAPSHOT = _of_row("snapshot_id", TEXT, "restorable state the output was authored in")
_CONTEXT = _of_row("context_sha256", TEXT, "digest of exactly what the policy saw")
_CONFIG = _of_row("config_digest", TEXT, "configuration of the run", few=True)
_PROMPT_TOKENS = _of_row("prompt_tokens", INT, "tokens of the rendered prompt (Qwen3); null if not counted")
_QUALITY = _of_row("quality", FLOAT, "final quality of the run, 0 to 1; null if it is not known")

_EXAMPLE: tuple[TableColumn, ...] = (
    _of_row("example_id", TEXT, "id of the example, stable over exports"),
    _PROJECT,
    _TRAJECTORY,
    _CALL,
    _ROLE,
    _KIND,
    _of_row("provenance", TEXT, "who authored the completion", few=True),
    _LICENCE,
    _GIVEN,
    _ATTRIBUTION,
    _of_row("verified", BOOL, "accepted by the runtime in a run that delivered, or, in rft, in an admitted run"),
    _QUALITY,
    _SNAPSHOT,
    _CONTEXT,
    _CONFIG,
    _PROMPT_TOKENS,
)
_COMPLETION_TOKENS = _of_row("completion_tokens", INT, "tokens of the completion; null if not counted")
_COMPLETION_JSON = _of_row("completion_json", TEXT, "the completion with the arguments as exact text, for replay")


def _example_table(name: str) -> Table:
    completion = answer_column(
        "completion",
        "one assistant message: text, or a tool call with its arguments as an object; the loss lies here and nowhere else",
        lambda i: i,
    )
    return Table(name, (PROMPT, completion, TOOLS, KWARGS, *_EXAMPLE, _COMPLETION_TOKENS, _COMPLETION_JSON, ESCAPED))


def _lifted(column: TableColumn) -> TableColumn:
    """A column of a conversation as one of the comparison that holds it."""
    of = column.of
    return TableColumn(
        column.name,
        column.type,
        column.feature,
        column.doc,
        lambda rows: column.fill([r.item for r in rows]),
        column.few_values,
        None if of is None else lambda row: of(row.item),
    )


def _token_table(name: str) -> Table:
    ids = (
        _tokens("input_ids", "tokens of prompt and completion, rendered by the tokenizer's chat template", lambda i: i.input_ids),
        _tokens("labels", "the same where the loss lies, behind the rendered prompt; -100 elsewhere", lambda i: i.labels),
    )
    counts = (
        _of_row("prompt_tokens", INT, "tokens without loss"),
        _of_row("completion_tokens", INT, "tokens that are trained"),
    )
    return Table(name, (*ids, *(c for c in _EXAMPLE if c.name != "prompt_tokens"), *counts, ESCAPED))


def _tokens(name: str, doc: str, of: Callable[[Any], list[int]]) -> TableColumn:
    kind = pa.list_(pa.int32())
    return TableColumn(name, kind, list_of(value("int32")), doc, lambda items: pa.array([of(i) for i in items], kind))


_GROUP = plain("group_id", TEXT, "executed group the outputs are from, or the name of a repair", lambda r: r.group_id)
_REWARD = plain("reward", FLOAT, "executed reward of the chosen output, or of the only one; null for repairs", lambda r: r.reward)

_PREF = Table(
    "pref",
    (
        _lifted(PROMPT),
        answer_column("chosen", "the better output: one assistant message", lambda r: r.item),
        answer_column("rejected", "the worse output in the same state", lambda r: r.rejected),
        _lifted(TOOLS),
        _lifted(KWARGS),
        *(_lifted(c) for c in _EXAMPLE if c.name != "quality"),
        _lifted(_COMPLETION_JSON),
        _lifted(ESCAPED),
        _GROUP,
        _REWARD,
        plain("rejected_reward", FLOAT, "executed reward of the rejected output; null for repairs", lambda r: r.other_reward),
    ),
)
_KTO = Table(
    "kto",
    (
        _lifted(PROMPT),
        answer_column("completion", "one assistant message", lambda r: r.item),
        _lifted(TOOLS),
        plain("label", BOOL, "desirable: worth more than its group's mean and accepted, or a repair that held", lambda r: r.label),
        _lifted(KWARGS),
        *(_lifted(c) for c in _EXAMPLE if c.name != "quality"),
        _lifted(_COMPLETION_JSON),
        _lifted(ESCAPED),
        _GROUP,
        _REWARD,
    ),
)
_REPLY: tuple[TableColumn, ...] = (
    _of_row("model", TEXT, "the model that answered; null if no endpoint was asked", few=True),
    _of_row("sampling_json", TEXT, "sampling settings that were sent"),
    _of_row("logprobs_json", TEXT, "log probability of each token of the output under its author, exact"),
    integers("prompt_token_ids", "tokens of the prompt; null if the endpoint gave none", lambda i: i.row["prompt_token_ids"]),
    integers("completion_token_ids", "tokens of the output; null if the endpoint gave none", lambda i: i.row["completion_token_ids"]),
)
_OPD = Table(
    "opd",
    (
        PROMPT,
        TOOLS,
        KWARGS,
        _PROJECT,
        _TRAJECTORY,
        _CALL,
        _ROLE,
        _of_row("turn_owner", TEXT, "teacher or student: whose turn it was", few=True),
        _of_row("data_source", TEXT, "the same; trainers with several teachers choose by it", "turn_owner", few=True),
        _of_row("beta", FLOAT, "chance that the turn was the teacher's (eq. 6); null when one model took all"),
        _of_row("update", INT, "training update the run belongs to"),
        _of_row("status", TEXT, "what became of the output", few=True),
        _LICENCE,
        _GIVEN,
        _ATTRIBUTION,
        _SNAPSHOT,
        _CONTEXT,
        _of_row("completion_json", TEXT, "the output as authored, exact"),
        *_REPLY,
        ESCAPED,
    ),
)
_RESTORE: tuple[TableColumn, ...] = (
    _of_row("trajectory_sha256", TEXT, "artifact of the run that is restored", few=True),
    _TRAJECTORY,
    _of_row("call_index", INT, "the run is restored before this call"),
    _of_row("snapshot_id", TEXT, "state of the production there"),
    _CONTEXT,
    plain("tools_sha256", TEXT, "digest of the exact text of the tool schemas", lambda i: tools_digest(i.row), few_values=True),
)
_RL = Table(
    "rl",
    (
        PROMPT,
        TOOLS,
        plain("environment", TEXT, "role that acts; chooses among several environments", lambda i: i.row["role"], few_values=True),
        *_RESTORE,
        _of_row("group_id", TEXT, "recorded group of this decision; empty when none was executed"),
        plain("reward_spec", TEXT, "how it is scored: executed in the restored state", lambda _i: REWARD_SPEC, few_values=True),
        KWARGS,
        _of_row("example_id", TEXT, "recorded decision of this state"),
        _PROJECT,
        _ROLE,
        _KIND,
        _LICENCE,
        _GIVEN,
        _ATTRIBUTION,
        _SPLIT,
        _CONFIG,
        _PROMPT_TOKENS,
        ESCAPED,
    ),
)
_GROUPS = Table(
    "groups",
    (
        PROMPT,
        TOOLS,
        _of_row("group_id", TEXT, "set of outputs of one restored state"),
        _of_row("candidate_id", TEXT, "group and position"),
        _of_row("candidate_index", INT, "position in the group, from 0"),
        _of_row("origin", TEXT, "recorded, alternative, mistake or sample", few=True),
        _of_row("provenance", TEXT, "who authored the output", few=True),
        _of_row("completion_json", TEXT, "the output as an assistant message, exact"),
        _of_row("output_json", TEXT, "the role output, exact"),
        _of_row("refused", BOOL, "the runtime refused it"),
        _of_row("observation_json", TEXT, "what the runtime answered to the output, exact; null if it was executed before this was kept"),
        _of_row("state_after", TEXT, "digest of the state that the output led to, before the continuation; null in the same case"),
        _of_row("calls", INT, "calls of its branches, continuations included"),
        _of_row("reward", FLOAT, "executed reward"),
        _of_row("reward_parts_json", TEXT, "its parts"),
        _of_row("advantage", FLOAT, "reward normalised inside its group; null when the group is queued"),
        _of_row("status", TEXT, "of the group: accepted, or queued because its rewards hardly differ", few=True),
        _of_row("variance", FLOAT, "of the group's rewards"),
        _of_row("rounds", INT, "times candidates were drawn"),
        _of_row("matched_key_json", TEXT, "what all candidates share: state, tools, budget, continuation, seeds"),
        _of_row("snapshot_id", TEXT, "restored state"),
        _of_row("state_digest", TEXT, "digest of that state"),
        *_REPLY,
        _CONTEXT,
        _PROJECT,
        _TRAJECTORY,
        _CALL,
        _ROLE,
        _of_row("tool", TEXT, "tool called in the recorded run, or that asked for the content", few=True),
        _LICENCE,
        _GIVEN,
        _ATTRIBUTION,
        _CONFIG,
        ESCAPED,
    ),
)
_BENCHMARK = Table(
    "benchmark",
    (
        PROMPT,
        TOOLS,
        _of_row("task_id", TEXT, "names the task: project, state and context"),
        *_RESTORE,
        plain("reward_spec", TEXT, "how it is scored: executed in the restored state", lambda _i: REWARD_SPEC, few_values=True),
        KWARGS,
        _PROJECT,
        _of_row("language", TEXT, "language of the narration", few=True),
        _LICENCE,
        _GIVEN,
        _ATTRIBUTION,
        ESCAPED,
    ),
)

REWARD_SPEC = '{"kind":"executed"}'
"""Rewards are executed in the environment, never looked up."""

TABLES: dict[str, Table] = {
    "sft": _example_table("sft"),
    "rft": _example_table("rft"),
    "pref": _PREF,
    "kto": _KTO,
    "opd": _OPD,
    "rl": _RL,
    "groups": _GROUPS,
    "benchmark": _BENCHMARK,
}
"""By kind of export."""

TOKENISED: dict[str, Table] = {kind: _token_table(kind) for kind in ("sft", "rft")}
"""By kind of export, of rows that are tokens."""


def tools_digest(row: dict[str, Any]) -> str:
    """sha256 of the exact text of a row's tool schemas."""
    return _digest(row["tools_json"])


@lru_cache(maxsize=64)
def _digest(text: str) -> str:
    return sha256_bytes(text.encode())
