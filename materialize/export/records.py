"""What an export is made of, whatever its kind: rows named by light keys, read shard by shard, and a tally of what they were.

A kind (``sft``, ``pref``, ...) gives :class:`Records`; a consumer writes their items. Reads nothing and writes nothing itself.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import duckdb
from pydantic import Field

from materialize.export.options import LeftOut
from schemas.canonical import Frozen


class Item(Protocol):
    """One row of an export, before it has a form."""

    @property
    def row(self) -> dict[str, Any]:
        """At least ``project_id, split, role, kind, licence``; ``config_digest`` and counts of tokens where there are."""
        ...

    @property
    def ident(self) -> str:
        """Names it in errors and manifests."""
        ...

    @property
    def escaped(self) -> bool:
        """Its prompt held control tokens."""
        ...


class KeyLike(Protocol):
    """Names one row."""

    @property
    def split(self) -> str:
        """Split of its project."""
        ...


I = TypeVar("I", bound=Item)  # noqa: E741 - item
K = TypeVar("K", bound=KeyLike)


EQUAL_ANSWERS = "equal context and completion"
EQUAL_STATES = "equal context, of which one state to start from is made"


@dataclass(slots=True)
class Records(Generic[K, I]):
    """The rows of an export, chosen but not read."""

    kind: str
    connection: duckdb.DuckDBPyConnection
    keys: dict[str, list[K]]
    """By split, in the order in which they are written; no split without rows."""
    read: Callable[[list[K]], Iterator[I | LeftOut]]
    """The rows of some keys, in order; what cannot be said to a trainer comes as ``LeftOut``."""
    digest: str
    """Names the rows and their content."""
    not_taken: dict[str, int]
    repeated: dict[str, str] = field(default_factory=dict)
    """Rows that were not taken because another is equal (``equal``), and that other."""
    equal: str = EQUAL_ANSWERS
    """In what two rows of this kind must agree to be one."""
    overlaps: Sequence[Any] = ()
    """Projects that share words with a held-out one (materialize.leakage.Overlap)."""
    left_out: tuple[LeftOut, ...] = ()
    """Rows that could not be said and that no option can mend: compared outputs of a model."""

    @property
    def total(self) -> int:
        """Number of rows."""
        return sum(len(k) for k in self.keys.values())

    def shards(self, split: str, rows_per_shard: int) -> Iterator[list[K]]:
        """The keys of one split in shards of at most ``rows_per_shard`` rows."""
        keys = self.keys[split]
        for start in range(0, len(keys), rows_per_shard):
            yield keys[start : start + rows_per_shard]


class Tally(Frozen):
    """What the rows of a shard, or of a whole export, were."""

    rows: dict[str, int] = Field(default_factory=dict)
    by_role: dict[str, int] = Field(default_factory=dict)
    by_kind: dict[str, int] = Field(default_factory=dict)
    by_licence: dict[str, int] = Field(default_factory=dict)
    projects: dict[str, str] = Field(default_factory=dict)
    configs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    escaped: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


class Counting:
    """Makes a :class:`Tally`."""

    def __init__(self) -> None:
        self._rows: Counter[str] = Counter()
        self._roles: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._licences: Counter[str] = Counter()
        self._projects: dict[str, str] = {}
        self._configs: set[str] = set()
        self._tools: set[str] = set()
        self._last_tools = ""
        self._escaped = 0
        self._prompt: int | None = 0
        self._completion: int | None = 0
        self.left_out: list[LeftOut] = []

    def add(self, item: Item) -> None:
        """Count one row."""
        row = item.row
        self._rows[row["split"]] += 1
        self._roles[row["role"]] += 1
        self._kinds[row["kind"]] += 1
        self._licences[row["licence"]] += 1
        self._projects[row["project_id"]] = row["split"]
        if row.get("config_digest"):
            self._configs.add(row["config_digest"])
        tools = row.get("tools_json") or "[]"
        if tools not in ("[]", self._last_tools):
            self._last_tools = tools
            self._tools.add(hashlib.sha256(tools.encode()).hexdigest())
        self._escaped += item.escaped
        self._prompt = _plus(self._prompt, row.get("prompt_tokens"))
        self._completion = _plus(self._completion, row.get("completion_tokens"))

    def done(self) -> Tally:
        """The counts so far."""
        return Tally(
            rows=dict(self._rows),
            by_role=_sorted(self._roles),
            by_kind=_sorted(self._kinds),
            by_licence=_sorted(self._licences),
            projects=dict(sorted(self._projects.items())),
            configs=tuple(sorted(self._configs)),
            tools=tuple(sorted(self._tools)),
            left_out=tuple(self.left_out),
            escaped=self._escaped,
            prompt_tokens=self._prompt,
            completion_tokens=self._completion,
        )


def together(tallies: Iterable[Tally]) -> Tally:
    """One tally of several."""
    found = list(tallies)

    def summed(name: str) -> dict[str, int]:
        total: Counter[str] = Counter()
        for tally in found:
            total.update(getattr(tally, name))
        return _sorted(total)

    def every(name: str) -> tuple[str, ...]:
        return tuple(sorted({value for tally in found for value in getattr(tally, name)}))

    prompt: int | None = 0
    completion: int | None = 0
    for tally in found:
        prompt, completion = _plus(prompt, tally.prompt_tokens), _plus(completion, tally.completion_tokens)
    return Tally(
        rows=summed("rows"),
        by_role=summed("by_role"),
        by_kind=summed("by_kind"),
        by_licence=summed("by_licence"),
        projects=dict(sorted(pair for tally in found for pair in tally.projects.items())),
        configs=every("configs"),
        tools=every("tools"),
        left_out=tuple(bad for tally in found for bad in tally.left_out),
        escaped=sum(t.escaped for t in found),
        prompt_tokens=prompt,
        completion_tokens=completion,
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more
