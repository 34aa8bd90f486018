"""What a tool is: a contract, and four pure-or-sandboxed steps that the runtime calls in order.

The runtime, not the tool, decides order, validates arguments against the contract, checks prerequisites, commits changes,
writes the journal and the snapshot. A tool never sees a policy and never changes a state: it returns ``Product`` or ``Refusal``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from media.command import Sandbox
from replay.config import ReplayConfig
from replay.engines import Engines
from schemas.artifact import ArtifactRef
from schemas.blocker import Blocker
from schemas.canonical import Frozen
from schemas.contract import ContentRequest, ToolContract
from schemas.state import Change, ProductionState
from schemas.verdict import Verdict
from storage.artifacts import ArtifactStore

Arguments = Mapping[str, Any]
Contents = tuple[dict[str, Any], ...]
"""Contents accepted so far for this call, in the order they were asked for."""


@dataclass(frozen=True, slots=True)
class ToolEnv:
    """Everything a tool may touch besides the state."""

    store: ArtifactStore
    sandbox: Sandbox
    engines: Engines
    config: ReplayConfig
    workdir: Path
    """Private empty folder of this call; removed afterwards."""
    note: Callable[[str], None] = field(default=lambda _text: None)
    """Progress for a person; never recorded."""


@dataclass(frozen=True, slots=True)
class Product:
    """A verified result. ``results`` is what the policy reads: short, JSON, no paths, no clock."""

    changes: tuple[Change, ...]
    results: dict[str, Any]
    artifacts: tuple[ArtifactRef, ...] = ()
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """The product did not pass its checks, or the request cannot be met: a policy failure."""

    blockers: tuple[Blocker, ...]


class Tool(Protocol):
    """One production tool.

    A tool whose requests are of a kind that replay.contents does not list brings its form along, as ``contents: dict[str, type[Frozen]]``
    (see :func:`contents_of`).
    """

    contract: ToolContract

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """References and conditions that plain facts cannot tell (unknown shot ids, nothing to repair). Pure."""
        ...

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """The next content to ask for, or None when all is there. May gather evidence in the sandbox."""
        ...

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Conditions on a content that already fits its schema. Pure. No blockers: it is accepted."""
        ...

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Do the work and verify the product's bytes.

        Raises:
            ToolFailed, LimitExceeded, OutputRejected, SandboxUnavailable, StorageFault: ours to handle, never shown to a policy.
        """
        ...


@runtime_checkable
class Inspector(Protocol):
    """A tool that also looks at every delivered film before the run ends; the registry's first one is asked (``Registry.inspector``)."""

    def look_at_delivery(self, state: ProductionState, env: ToolEnv) -> Product:
        """What is seen of the film that is about to be committed: verdicts, and changes of the open defects. Makes no artifact.

        Args:
            state: with the delivery in it.
        """
        ...

    def holds_open(self, before: ProductionState, after: ProductionState) -> bool:
        """The look found what should be mended, so the run goes on. Delivering the very same film once more always ends it."""
        ...


def contents_of(tool: Tool) -> Mapping[str, type[Frozen]]:
    """Content kinds that only this tool knows, with their forms."""
    own: Mapping[str, type[Frozen]] = getattr(tool, "contents", {})
    return own
