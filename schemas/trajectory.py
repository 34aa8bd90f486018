"""Calls, observations and trajectories: what happened, in order, with nothing rewritten."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from schemas.artifact import ArtifactRef
from schemas.blocker import Blocker
from schemas.canonical import Frozen, Sha256, digest_of
from schemas.contract import ContentRequest, Role
from schemas.state import Change
from schemas.verdict import RepairLink, Verdict

TRAJECTORY_VERSION: Literal["trajectory.1"] = "trajectory.1"


class Provenance(StrEnum):
    """Who authored a role output."""

    SCRIPTED = "scripted"
    SCRIPTED_MISTAKE = "scripted_mistake"
    STUDENT = "student"
    TEACHER = "teacher"
    OUTSIDE = "outside"
    RUNTIME = "runtime"


class Message(Frozen):
    """One chat message of a role context."""

    role: Literal["system", "user"]
    content: str


class RoleContext(Frozen):
    """c_t: exactly what a policy sees, and nothing else.

    ``messages`` and ``tools`` are what a model is given; ``view`` is the data those messages were rendered from, for
    policies that are programs. ``digest`` names the canonical bytes of messages and tools.
    """

    role: Role
    call_index: int
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = Field(description="OpenAI function schemas; empty for generator and critic")
    request: ContentRequest | None
    view: dict[str, Any]

    def visible(self) -> dict[str, Any]:
        """What the model sees, as JSON: this is stored as the context artifact and becomes the example's prompt."""
        return {"messages": [m.model_dump() for m in self.messages], "tools": list(self.tools)}


class RoleOutput(Frozen):
    """z_t: one complete role output, as authored.

    For the orchestrator, ``tool`` and ``arguments_json`` (exact text); for generator and critic, ``text`` holds the JSON content.
    """

    role: Role
    text: str = ""
    tool: str | None = None
    arguments_json: str | None = None
    provenance: Provenance
    text_known: bool = Field(default=True, description="false where an outside agent made the call and its own words were not seen")
    reason: str = Field(default="", description="why a program chose this; never shown to a model")
    usage: dict[str, int] = Field(default_factory=dict, description="prompt_tokens, completion_tokens, cost_microusd where they are known")
    reply: Sha256 | None = Field(default=None, description="artifact: schemas.reply.ModelReply, where a model endpoint answered")

    def digest(self) -> Sha256:
        """Names what was authored. The reply record is left out, for it holds times."""
        return digest_of(self.model_dump(mode="json", exclude={"reply"}))


class ObservationStatus(StrEnum):
    """What became of a role output."""

    COMMITTED = "committed"
    CONTENT_REQUESTED = "content_requested"
    REFUSED = "refused"


class Observation(Frozen):
    """o_t: what the runtime returned. ``results`` on success, ``blockers`` on refusal; never both."""

    status: ObservationStatus
    tool: str | None
    results: dict[str, Any] = Field(default_factory=dict)
    blockers: tuple[Blocker, ...] = ()
    changed: tuple[str, ...] = Field(default=(), description="'subject.field' of every change that was committed")
    finished: bool = False


class InjectedFault(Frozen):
    """Ground truth of a fault that was put in on purpose."""

    fault_id: str
    kind: str
    subject: str
    detail: str


class Call(Frozen):
    """One role output processed by the runtime. Wall-clock values never enter a digest.

    ``key`` names what the call is: the state it met, the output, and everything else that decides what comes of it (tools, prompts,
    settings, engines). Calls with equal keys have equal effects, so executing one twice gives one effect.
    """

    call_index: int
    key: str = Field(default="", description="digest; empty in trajectories of releases that had none")
    role: Role
    tool: str | None
    tool_version: int | None
    context_sha256: Sha256
    prompt_sha256: Sha256 | None = Field(default=None, description="names the role prompt in the context; none in older trajectories")
    output: RoleOutput
    observation: Observation
    changes: tuple[Change, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    snapshot_before: str
    snapshot_after: str
    state_before: Sha256
    state_after: Sha256
    orchestrator_call: int = Field(description="index of the orchestrator call this belongs to (itself for O)")
    faults: tuple[InjectedFault, ...] = ()
    request: ContentRequest | None = Field(default=None, description="what generator or critic were asked for")


class Outcome(StrEnum):
    """How a run ended."""

    DELIVERED = "delivered"
    INCOMPLETE = "incomplete"


class Trajectory(Frozen):
    """The ordered calls of one run."""

    schema_version: Literal["trajectory.1"] = TRAJECTORY_VERSION
    trajectory_id: str
    project_id: str
    policy: str
    seed: int
    budget: int
    outcome: Outcome
    calls: tuple[Call, ...]
    repairs: tuple[RepairLink, ...]
    first_snapshot: str
    last_snapshot: str
    video: ArtifactRef | None
    manifest: ArtifactRef | None
    sandbox: str
    engines: dict[str, str]
    config_digest: Sha256
