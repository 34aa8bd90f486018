"""The runtime: one role output in, one observation out (eq. 1 of the paper, section 3.1).

Owns the order of a step and the commit. A step parses, checks, executes in the sandbox, lets the tool verify its product, and commits
event, artifacts and snapshot together; the journal line is the commit point. A refused output changes nothing. Faults of ours
(``PipelineError``) propagate with the state as it was; a policy never sees them.

Must not decide anything a policy should decide, and must not know any tool by name except the one that delivers.
A little over 500 lines, because the order of a step is read as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import orjson

from replay import checks, facts
from replay import state as fold
from replay.contexts import build_context, orchestrator_calls, prompt_digest, prompts_digest, refusals_of_request
from replay.registry import Registry
from replay.suite import Allowance, Retried, Suite
from replay.tool import Contents, Product, Refusal, Tool, ToolEnv
from replay.views import clip
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import Sha256, canonical_bytes, digest_of
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.errors import ConfigInvalid, DigestMismatch, LimitExceeded, SchemaMismatch, ToolFailed
from schemas.state import Change, Pending, ProductionState, Task
from schemas.trajectory import Call, InjectedFault, Observation, ObservationStatus, Outcome, Provenance, RoleContext, RoleOutput
from schemas.verdict import Verdict
from storage.journal import Journal

FaultFilter = Callable[[int, str, Product, ToolEnv, ProductionState], tuple[Product | Refusal, tuple[InjectedFault, ...]]]
"""Called with call index, tool, verified product, environment and state; returns the product to commit, or a refusal in its place, and what
it put into it."""


@runtime_checkable
class Remembering(Protocol):
    """A fault filter that is told of the calls that were committed before it was asked for the first time."""

    def resumed(self, calls: Iterable[Call]) -> None:
        """Take note of them."""
        ...


DELIVERY_TOOL = facts.PRODUCERS[Fact.DELIVERY][0]
MAX_NAME = 80
"""Characters of a tool name that nobody knows, in records."""
MAX_PARTS = 256
"""Contents one call may ask for; more is a fault of the tool."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one output led to, before it is committed."""

    status: ObservationStatus
    tool: str | None
    version: int | None
    results: Mapping[str, Any] = field(default_factory=dict)
    blockers: tuple[Blocker, ...] = ()
    changes: tuple[Change, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    faults: tuple[InjectedFault, ...] = ()
    request: ContentRequest | None = None
    orchestrator_call: int | None = None


class Runtime:
    """One run of the production toolchain.

    Args:
        start: a task (a new run), a snapshot id, or a state.
        registry: the tools offered.
        suite: stores, sandbox, engines, settings.
        budget: orchestrator calls allowed; the config's by default.
        history: calls that led to ``start``, when it lies in the middle of a trajectory: they count against the budget, and contexts
            show them, so that a restored run sees what the original saw.
        journal: where committed calls become durable. A journal that already holds calls of this very run is folded again, and the
            run goes on at the next call.
        fault_filter: puts faults into verified products, for repair.faults.

    Raises:
        ConfigInvalid: the journal belongs to another run, or the history does not lead to ``start``.
        SchemaMismatch, StorageFault, DigestMismatch: the snapshot or the journal cannot be read back.
    """

    def __init__(
        self,
        start: Task | ProductionState | str,
        registry: Registry,
        suite: Suite,
        *,
        budget: int | None = None,
        history: Sequence[Call] = (),
        journal: Journal | None = None,
        fault_filter: FaultFilter | None = None,
    ) -> None:
        self.registry = registry
        self.suite = suite
        self.budget = suite.config.budget if budget is None else budget
        self.retried: list[Retried] = []
        self.spent_us: dict[int, int] = {}
        """Clock time of the calls made here, by index; of those of the history or of an earlier process nothing is known."""
        self._since_ns = time.monotonic_ns()
        self._allowance: tuple[int, Allowance] | None = None
        self._journal = journal
        self._fault_filter = fault_filter
        self._context: RoleContext | None = None
        if isinstance(start, Task):
            self._state = fold.initial(start)
        else:
            self._state = suite.snapshots.load(start) if isinstance(start, str) else start
        self._calls = list(history)
        self._digest = suite.snapshots.digest(self._state)
        if self._calls and self._calls[-1].state_after != self._digest:
            raise ConfigInvalid("history_mismatch", "the calls given as history do not end in the state the run starts from")
        self._snapshot = suite.snapshots.save(self._state)
        self._setting = digest_of([registry.digest(), prompts_digest(), suite.config.digest(), suite.engines.versions(), self.budget])
        self.first_snapshot = self._calls[0].snapshot_before if self._calls else self._snapshot
        if journal is not None:
            self._resume(journal)
        if isinstance(fault_filter, Remembering):
            fault_filter.resumed(self._calls)

    # -- what a caller may look at ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> ProductionState:
        """The present state."""
        return self._state

    @property
    def state_digest(self) -> Sha256:
        """Digest of the present state."""
        return self._digest

    @property
    def snapshot_id(self) -> str:
        """Name of the present state's snapshot."""
        return self._snapshot

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, those of the history included."""
        return tuple(self._calls)

    @property
    def orchestrator_calls(self) -> int:
        """Calls counted against the budget."""
        return orchestrator_calls(self._calls)

    @property
    def finished(self) -> bool:
        """The run is over: a film was delivered and its look held nothing against it, or the last delivery attempt was made."""
        return bool(self._calls) and self._calls[-1].observation.finished

    @property
    def outcome(self) -> Outcome:
        """Delivered if there is a validated film of the present state."""
        return Outcome.DELIVERED if facts.holds(Fact.DELIVERY, self._state) else Outcome.INCOMPLETE

    def context(self) -> RoleContext:
        """What the role whose turn it is sees. Built once per call."""
        if self._context is None:
            self._context = build_context(self._state, self._calls, registry=self.registry, config=self.suite.config, budget=self.budget)
        return self._context

    # -- stepping --------------------------------------------------------------------------------------------------------------

    def step(self, output: RoleOutput, *, call_index: int | None = None) -> Observation:
        """Process one role output.

        Args:
            call_index: the call this output answers (``RoleContext.call_index``), for callers whose message may arrive twice: an output
                that is committed already gives its recorded observation again, and has no second effect.

        Returns:
            results if it was committed, or an account of the content now asked for, or blockers if it was refused; ``finished`` when
            the run is over. After the end nothing is recorded any more and every output is refused.

        Raises:
            ConfigInvalid: ``call_index`` names a call that another output answered, or one that is not due yet.
            PipelineError: a fault of ours (tool crash, limit, sandbox, storage). State and journal are as before the call.
        """
        if call_index is not None and call_index != len(self._calls):
            return self._again(output, call_index)
        self.settle()
        if self.finished:
            return self._over(output)
        self._since_ns = time.monotonic_ns()
        pending = self._state.film.pending
        turn = self._orchestrate(output) if pending is None else self._fill(output, pending)
        observation = self._commit(output, turn)
        if pending is not None and turn.status is ObservationStatus.REFUSED:
            self._abandon_if_hopeless(pending)
        self.settle()
        return observation.model_copy(update={"finished": self.finished})

    def _again(self, output: RoleOutput, call_index: int) -> Observation:
        known = self._calls[call_index] if 0 <= call_index < len(self._calls) else None
        if known is None or known.key != self._key(output, known.state_before):
            seen = "is not due yet" if known is None else "was answered by another output"
            raise ConfigInvalid("wrong_call", f"call {call_index} {seen}; the next one is {len(self._calls)}", "ask for the context again")
        over = self.finished and all(c.output.provenance is Provenance.RUNTIME for c in self._calls[call_index + 1 :])
        return known.observation.model_copy(update={"finished": over})

    def _key(self, output: RoleOutput, state: Sha256) -> Sha256:
        """Names one call (see ``Call.key``). Why an output was chosen, and what it cost, decides nothing."""
        said = _storable(output).model_dump(mode="json", exclude={"reason", "usage"})
        return digest_of(["call", self._setting, state, said])

    def settle(self) -> None:
        """Make the delivery attempt that is due when the budget is used up; otherwise nothing.

        The attempt goes through the same checks as anybody's call. Its author is the runtime.

        Raises:
            PipelineError: as :meth:`step`.
        """
        if self.finished or self._state.film.pending is not None or self.orchestrator_calls < self.budget:
            return
        self._since_ns = time.monotonic_ns()
        output = RoleOutput(
            role=Role.ORCHESTRATOR,
            tool=DELIVERY_TOOL,
            arguments_json="{}",
            provenance=Provenance.RUNTIME,
            reason="the budget is used up: deliver what there is",
        )
        turn = self._orchestrate(output)
        if turn.status is ObservationStatus.REFUSED:
            blocker = Blocker(
                code=BlockerCode.DELIVERY_INCOMPLETE,
                subject="film",
                message=f"all {self.budget} calls are used and the film cannot be delivered",
                needs=tuple(dict.fromkeys(n for b in turn.blockers for n in b.needs)),
            )
            turn = _Turn(turn.status, turn.tool, turn.version, blockers=(blocker, *turn.blockers))
        elif turn.status is ObservationStatus.CONTENT_REQUESTED:
            raise ToolFailed("delivery_asks", f"{DELIVERY_TOOL} asked for content; a delivery must be possible without")
        self._commit(output, turn, last=True)

    def _orchestrate(self, output: RoleOutput) -> _Turn:
        checked = checks.orchestrator(output, self._state, self.registry, self.suite.config)
        if not isinstance(checked, checks.ToolCall):
            tool = self.registry.get(output.tool) if output.tool else None
            name = clip(output.tool, MAX_NAME) if output.tool else None
            return _Turn(ObservationStatus.REFUSED, name, tool.contract.version if tool else None, blockers=checked)
        return self._advance(checked.tool, dict(checked.arguments), (), len(self._calls))

    def _fill(self, output: RoleOutput, pending: Pending) -> _Turn:
        tool = self.registry.get(pending.tool, pending.tool_version)
        if tool is None:
            raise SchemaMismatch(
                "tool_version_gone", f"the open call needs {pending.tool} version {pending.tool_version}, which is not registered"
            )
        checked = checks.content(output, pending, self._state, tool, self.registry)
        if isinstance(checked, tuple):
            return _Turn(
                ObservationStatus.REFUSED,
                pending.tool,
                pending.tool_version,
                blockers=checked,
                request=self.context().request,
                orchestrator_call=pending.orchestrator_call,
            )
        return self._advance(tool, pending.arguments, (*pending.given, checked), pending.orchestrator_call, self.context().request)

    def _advance(
        self, tool: Tool, arguments: Mapping[str, Any], given: Contents, orchestrator_call: int, answered: ContentRequest | None = None
    ) -> _Turn:
        """Ask for the next content, or execute."""
        contract = tool.contract
        if len(given) > MAX_PARTS:
            raise ToolFailed("asks_for_ever", f"{contract.name} asked for more than {MAX_PARTS} contents in one call")
        allowed = self._allowed(contract, orchestrator_call)
        request = self._work(allowed, lambda env: tool.need(self._state, arguments, given, env))
        if request is not None:
            pending = Pending(
                tool=contract.name,
                tool_version=contract.version,
                arguments=dict(arguments),
                request=request,
                given=given,
                orchestrator_call=orchestrator_call,
            )
            asked = {"asked": request.role.value, "kind": request.kind, "part": len(given) + 1}
            return _Turn(
                ObservationStatus.CONTENT_REQUESTED,
                contract.name,
                contract.version,
                results=asked,
                changes=(fold.film_change("pending", pending),),
                request=answered,
                orchestrator_call=orchestrator_call,
            )
        product, faults = self._work(allowed, lambda env: self._execute(tool, arguments, given, env))
        if isinstance(product, Refusal):
            return _Turn(
                ObservationStatus.REFUSED,
                contract.name,
                contract.version,
                blockers=product.blockers,
                faults=faults,
                request=answered,
                orchestrator_call=orchestrator_call,
            )
        closing = (fold.film_change("pending", None),) if self._state.film.pending is not None else ()
        return _Turn(
            ObservationStatus.COMMITTED,
            contract.name,
            contract.version,
            results=product.results,
            changes=(*product.changes, *closing),
            artifacts=product.artifacts,
            verdicts=product.verdicts,
            faults=faults,
            request=answered,
            orchestrator_call=orchestrator_call,
        )

    def _execute(
        self, tool: Tool, arguments: Mapping[str, Any], given: Contents, env: ToolEnv
    ) -> tuple[Product | Refusal, tuple[InjectedFault, ...]]:
        product = tool.execute(self._state, arguments, given, env)
        if isinstance(product, Refusal):
            if not product.blockers:
                raise ToolFailed("refused_without_reason", f"{tool.contract.name} refused its product and named no blocker")
            return product, ()
        size = sum(a.size_bytes for a in product.artifacts)
        if size > tool.contract.max_output_bytes:
            raise LimitExceeded("output_bytes", f"{tool.contract.name} made {size} bytes, allowed are {tool.contract.max_output_bytes}")
        made: Product | Refusal = product
        faults: tuple[InjectedFault, ...] = ()
        if self._fault_filter is not None:
            made, faults = self._fault_filter(len(self._calls), tool.contract.name, product, env, self._state)
        return made if isinstance(made, Refusal) else self._looked_at(tool, made, env), faults

    def _looked_at(self, tool: Tool, product: Product, env: ToolEnv) -> Product:
        """A delivering product with what the inspector sees of the very bytes that are about to be committed."""
        inspector = self.registry.inspector
        if Fact.DELIVERY not in tool.contract.produces or inspector is None:
            return product
        seen = inspector.look_at_delivery(fold.apply(self._state, product.changes), env)
        return Product(
            (*product.changes, *seen.changes),
            {**product.results, **seen.results},
            (*product.artifacts, *seen.artifacts),
            (*product.verdicts, *seen.verdicts),
        )

    def _allowed(self, contract: ToolContract, orchestrator_call: int) -> Allowance:
        """The time left to a call over all the outputs that belong to it. A resumed run gives a call its whole allowance again."""
        if self._allowance is None or self._allowance[0] != orchestrator_call:
            self._allowance = (orchestrator_call, Allowance(contract.name, contract.wall_s))
        return self._allowance[1]

    def _work(self, allowance: Allowance, job: Callable[[ToolEnv], T]) -> T:
        return self.suite.work(allowance, len(self._calls), job, self.retried)

    def _abandon_if_hopeless(self, pending: Pending) -> None:
        """Give an open call up when its request was refused too often; the orchestrator reads why."""
        refused = refusals_of_request(self._calls, pending)
        if len(refused) < self.suite.config.content_attempts:
            return
        request = pending.request
        last = refused[-1].blockers[0]
        blocker = Blocker(
            code=BlockerCode.CONTENT_CONTRACT_BROKEN,
            subject=f"content:{request.kind}",
            message=f"{request.kind} was refused {len(refused)} times, so the call was given up; last reason: {last.message}",
            needs=last.needs,
            remedies=(pending.tool,),
        )
        output = RoleOutput(role=request.role, provenance=Provenance.RUNTIME, reason=f"given up after {len(refused)} refused answers")
        turn = _Turn(
            ObservationStatus.COMMITTED,
            pending.tool,
            pending.tool_version,
            blockers=(blocker,),
            changes=(fold.film_change("pending", None),),
            orchestrator_call=pending.orchestrator_call,
        )
        self._commit(output, turn)

    def _over(self, output: RoleOutput) -> Observation:
        if self.outcome is Outcome.DELIVERED:
            code, message = BlockerCode.WRONG_STAGE_ORDER, "the film is delivered and the run is over"
        else:
            code, message = BlockerCode.BUDGET_EXHAUSTED, f"all {self.budget} calls are used and the run is over"
        blocker = Blocker(code=code, subject="film", message=message)
        return Observation(status=ObservationStatus.REFUSED, tool=output.tool, blockers=(blocker,), finished=True)

    # -- committing ------------------------------------------------------------------------------------------------------------

    def _commit(self, output: RoleOutput, turn: _Turn, *, last: bool = False) -> Observation:
        """Make a turn part of the run: context, snapshot, then the journal line, then memory.

        Only the journal line and the tool's products are durable at once; contexts and snapshots follow from them, and are made durable
        together at the end of the run (``ArtifactStore.sync``).
        """
        suite = self.suite
        index = len(self._calls)
        context_ref = suite.store.put_json(self.context().visible(), ArtifactKind.CONTEXT, later=True)
        changes = fold.normal(turn.changes)
        state = fold.apply(self._state, changes)
        snapshot = suite.snapshots.save(state, later=True) if changes else self._snapshot
        digest = suite.snapshots.digest(state) if changes else self._digest
        observation = Observation(
            status=turn.status,
            tool=turn.tool,
            results=orjson.loads(canonical_bytes(dict(turn.results))),
            blockers=turn.blockers,
            changed=fold.names(changes),
            finished=last or self._delivers(turn, state),
        )
        call = Call(
            call_index=index,
            key=self._key(output, self._digest),
            role=output.role,
            tool=turn.tool,
            tool_version=turn.version,
            context_sha256=context_ref.sha256,
            prompt_sha256=prompt_digest(self.context().role),
            output=_storable(output),
            observation=observation,
            changes=changes,
            artifacts=turn.artifacts,
            verdicts=turn.verdicts,
            snapshot_before=self._snapshot,
            snapshot_after=snapshot,
            state_before=self._digest,
            state_after=digest,
            orchestrator_call=index if turn.orchestrator_call is None else turn.orchestrator_call,
            faults=turn.faults,
            request=turn.request,
        )
        if self._journal is not None:
            self._journal.append({"kind": "call", "call": call.model_dump(mode="json")})
        self._calls.append(call)
        self._state, self._digest, self._snapshot, self._context = state, digest, snapshot, None
        now = time.monotonic_ns()
        self.spent_us[index], self._since_ns = (now - self._since_ns) // 1000, now
        return observation

    def _delivers(self, turn: _Turn, state: ProductionState) -> bool:
        if turn.status is not ObservationStatus.COMMITTED or turn.tool is None:
            return False
        tool = self.registry.get(turn.tool, turn.version)
        if tool is None or Fact.DELIVERY not in tool.contract.produces or not facts.holds(Fact.DELIVERY, state):
            return False
        inspector = self.registry.inspector
        return inspector is None or not inspector.holds_open(self._state, state)

    def _resume(self, journal: Journal) -> None:
        """Fold the calls of an earlier, interrupted run of the same start; or open a new journal with what names the run."""
        records = journal.read()
        begin = {
            "kind": "begin",
            "start": self._snapshot,
            "history": digest_of([c.digest() for c in self._calls]),
            "tools": self.registry.digest(),
            "prompts": prompts_digest(),
            "config": self.suite.config.digest(),
            "budget": self.budget,
        }
        if not records:
            journal.append(begin)
            return
        if records[0] != begin:
            wrong = sorted(k for k in begin if records[0].get(k) != begin[k])
            raise ConfigInvalid(
                "journal_mismatch", f"the journal belongs to another run; it differs in: {', '.join(wrong)}", "use a new journal"
            )
        for record in records[1:]:
            call = Call.model_validate(record["call"])
            if call.call_index != len(self._calls):
                raise SchemaMismatch("journal_gap", f"the journal holds call {call.call_index} where {len(self._calls)} was expected")
            context = self.suite.store.put_json(self.context().visible(), ArtifactKind.CONTEXT, later=True)
            self._state = fold.apply(self._state, call.changes)
            snapshot = self.suite.snapshots.save(self._state, later=True)
            self._calls.append(call)
            self._context = None
            if (context.sha256, snapshot) != (call.context_sha256, call.snapshot_after):
                what = f"call {call.call_index} of the journal folds to another state than it recorded"
                raise DigestMismatch("journal_digest", what, "start the run afresh")
            self._digest, self._snapshot = self.suite.snapshots.digest(self._state), snapshot


def _storable(output: RoleOutput) -> RoleOutput:
    """The output as JSON can hold it: lone surrogates, which no text has, become replacement characters."""

    def clean(text: str) -> str:
        return text.encode("utf-8", "replace").decode("utf-8") if any("\ud800" <= c <= "\udfff" for c in text) else text

    tool = None if output.tool is None else clean(output.tool)
    arguments = None if output.arguments_json is None else clean(output.arguments_json)
    return output.model_copy(update={"text": clean(output.text), "tool": tool, "arguments_json": arguments, "reason": clean(output.reason)})
