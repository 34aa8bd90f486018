"""Rows of an export as starts of episodes, and the reward of an episode that is known by what was said in it.

For frameworks that score a finished transcript (verifiers, Inspect, NeMo Gym), so that a saved one can be scored again later. Reads what
``workprint export rl`` and ``export benchmark`` write for any consumer; knows no framework.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from materialize.recorded import RecordedRuns
from materialize.rewards import Reward
from materialize.rollout import Rollout
from schemas.contract import Role
from schemas.errors import ConfigInvalid

NAMES = ("trajectory_sha256", "trajectory_id", "call_index", "snapshot_id", "role")
"""Columns by which a decision is restored; nothing else of a row reaches an episode."""

_EXPORT = "make the folder by: workprint export rl --to trl --lake LAKE -o FOLDER"


@dataclass(frozen=True, slots=True)
class Start:
    """What one episode begins with: the prompt that is seen, and the decision that is restored."""

    ident: str
    prompt: tuple[tuple[str, str], ...]
    row: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The prompt as chat messages."""
        return [{"role": role, "content": content} for role, content in self.prompt]


def read_starts(folder: str | Path, split: str | None = None) -> Iterator[Start]:
    """Starts of an exported folder, in its order.

    Args:
        folder: what ``export rl`` wrote for hf, trl, verl, skyrl or nemo-gym, or ``export benchmark`` for hf.
        split: only rows of this split (train, validation, held_out); all by default.

    Raises:
        ConfigInvalid: there is no such folder, or it holds other rows.
    """
    place = Path(folder)
    parquet = sorted(place.glob("**/*.parquet"))
    lines = [] if parquet else sorted(p for p in place.glob("*.jsonl") if p.name != "sources.jsonl" and not p.stem.endswith(".origins"))
    if not parquet and not lines:
        raise ConfigInvalid("no_rows", f"{place} holds no exported rows", _EXPORT)
    for path in parquet or lines:
        for raw in _parquet(path) if parquet else _lines(path):
            start = _start(raw, path)
            if split in (None, raw.get("split") or _split_of(path)):
                yield start


def reward_of(
    runs: RecordedRuns, row: dict[str, Any], said: Sequence[tuple[str, str]], text: str, *, calls: int | None = None, seed: int = 0
) -> Reward:
    """Execute again what an agent said from a restored decision; the frozen policy plays the run to its end.

    What was made in the episode is found in the lake's store and not made again.

    Args:
        said: names and argument texts of its tool calls, in order.
        text: its last text; the content, at a decision of the generator or the critic.
        calls: calls that count before the frozen policy plays on.
        seed: of the frozen policy.

    Raises:
        ConfigInvalid: the row names no decision.
        PipelineError: a fault of ours. It is never part of a reward.
    """
    with Rollout(runs, seed) as rollout:
        rollout.reset(row, calls=calls)
        for name, arguments in said if rollout.role is Role.ORCHESTRATOR else ():
            rollout.call(name, arguments)
        if not rollout.made:
            rollout.say(text)
        return rollout.reward()


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    file = pq.ParquetFile(path)
    found = set(file.schema_arrow.names)
    wanted = [name for name in ("prompt", "extra_info", "split", "task_id", "example_id", *NAMES) if name in found]
    for batch in file.iter_batches(256, columns=wanted):
        yield from batch.to_pylist()


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as opened:
        for line in opened:
            yield orjson.loads(line)


def _split_of(path: Path) -> str:
    """The split that the files of an export are named by: ``held_out-00000-of-00001.parquet``, ``train.jsonl``."""
    return path.name.partition("-")[0].partition(".")[0]


def _start(raw: dict[str, Any], path: Path) -> Start:
    extra = raw.get("extra_info") or {}
    raw.update(extra)
    prompt = raw["responses_create_params"]["input"] if "responses_create_params" in raw else raw.get("prompt")
    row = {name: raw[name] for name in NAMES if raw.get(name) is not None}
    if prompt is None or not {"call_index", "snapshot_id"} & set(row):
        raise ConfigInvalid("no_rows", f"{path} does not hold states to start from", _EXPORT)
    ident = (
        raw.get("task_id") or raw.get("example_id") or f"{row.get('trajectory_id') or row.get('snapshot_id')}.{row.get('call_index', 0)}"
    )
    return Start(str(ident), tuple((m["role"], m["content"]) for m in prompt), row)
