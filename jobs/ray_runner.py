"""Projects as Ray tasks: one task a project, its stages inside, a bounded window, nothing kept in Ray.

The only module that imports ray, and therefore a long one: besides the tasks it owns the actors that hold engines (jobs/held.py says what
they answer). Ray retries are at-least-once; exactly-once lives in the ledger. A local Ray has no dashboard, a
small object store, token authentication, and where it can a network of its own, for its ports listen on every interface (see SECURITY.md).
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jobs import held, models
from jobs.chain import ProjectResult, process
from jobs.config import PoolConfig, RayConfig, WorkprintConfig
from jobs.confine import can_be_private, private_network
from jobs.guard import guarded
from jobs.progress import EventLog, last_failure, last_stage
from jobs.sources import SourceGroup
from jobs.tidy import Merge, merged, tidied
from jobs.work import Work
from schemas.errors import ConfigInvalid, EndpointFailed, PipelineError, ToolFailed
from storage.lake import Lake
from storage.place import work_folder

TICK_S = 0.5
TELL_S = 2.0
"""Seconds between two looks at the pools."""
PIECE_BYTES = 16 * 1024 * 1024
"""Sound and pictures go through Ray's object store in pieces of at most this size."""
RISE_S = 300.0
"""Seconds an actor that died is given to be there again."""
STARTS = 3
"""Times a private Ray is started before it is given up."""

RAY_FLOOR = (2, 52)
"""Older releases lack token authentication."""

_ENVIRONMENT = {
    "RAY_AUTH_MODE": "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Set before ray is imported, unless the user has set them: token authentication, nothing phoned out, no environment rebuilt."""


_LAKE_ENVIRONMENT = (
    "WORKPRINT_LEDGER",
    "WORKPRINT_CACHE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)


def run_all(
    groups: Sequence[SourceGroup],
    config: WorkprintConfig,
    lake: Path,
    run_id: str,
    *,
    work: Work = process,
) -> list[ProjectResult]:
    """Run every project on Ray.

    A worker that dies takes its project's current stage with it: the task is tried again and continues from the ledger and the
    call journal. After ``config.run.attempts`` deaths the project is recorded as failed and quarantined, and the rest goes on. Projects
    that shared a task with one that died are tried again alone.

    Args:
        work: what is done with one project; the chain of stages.
    """
    settings = config.run.ray
    with _network(config), _session(settings) as ray, tidied(lake, _merging(ray)):
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        task = ray.remote(
            num_cpus=min(settings.cpus_per_project, cpus),
            num_gpus=settings.gpus_per_project,
            memory=settings.memory_per_project_bytes,
            max_retries=config.run.attempts - 1,
            retry_exceptions=False,
        )(_projects)
        shared = {"work": work, "config": config, "lake": lake, "run_id": run_id, "environment": _carried()}
        pools = _Pools(ray, config, EventLog.open(work_folder(lake), run_id, ""), run_id)
        common = ray.put(shared | {"ways": pools.ways()})  # once a run, not once a project
        waiting = deque(tuple(groups[at : at + settings.batch]) for at in range(0, len(groups), settings.batch))
        flying: dict[Any, tuple[SourceGroup, ...]] = {}
        results: dict[str, ProjectResult] = {}
        while waiting or flying:
            while waiting and len(flying) < config.run.window:
                batch = waiting.popleft()
                flying[task.remote(common, batch)] = batch
            ray.wait(list(flying), num_returns=1, timeout=TICK_S)
            pools.tell()
            ready, _ = ray.wait(list(flying), num_returns=len(flying), timeout=0)
            for ref in ready:
                batch = flying.pop(ref)
                try:
                    for result, group in zip(ray.get(ref), batch, strict=True):
                        results[group.key] = _lean(result, group)
                except ray.exceptions.RayTaskError as error:
                    raise error.as_instanceof_cause() from None  # a broken lake: nothing more can be done
                except ray.exceptions.RayError as error:
                    if len(batch) > 1:
                        waiting.extend((group,) for group in batch)
                    else:
                        results[batch[0].key] = _lost(batch[0], lake, run_id, config.run.attempts, error)
        pools.tell(every_s=0.0)
        return [results[g.key] for g in groups]


def _merging(ray: Any) -> Merge:
    """Merge in a worker that ends with it, so that the driver's memory does not grow with the lake."""
    task = ray.remote(num_cpus=0, max_calls=1, max_retries=0)(_merged)

    def merge(lake: Path) -> None:
        try:
            ray.get(task.remote(lake, _carried()))
        except ray.exceptions.RayTaskError as error:
            raise error.as_instanceof_cause() from None
        except ray.exceptions.RayError as error:
            raise ToolFailed(
                "merge_died", f"the process that merges small files ended: {error}", "nothing is lost; it is tried again"
            ) from error

    return merge


def _merged(lake: Path, environment: dict[str, str]) -> None:
    os.environ.update(environment)
    merged(lake)


def _lean(result: ProjectResult, group: SourceGroup) -> ProjectResult:
    """A result from a worker, sharing the texts that this process has already: the driver keeps one for every project."""
    result.key, result.uri = group.key, group.items[0].uri
    result.wall_s = {sys.intern(stage): seconds for stage, seconds in result.wall_s.items()}
    return result


def _projects(shared: dict[str, Any], batch: Sequence[SourceGroup]) -> list[ProjectResult]:
    """In a worker: some projects, their models and such engines as the run holds in actors reached through these."""
    os.environ.update(shared["environment"])
    config, lake, run_id = shared["config"], shared["lake"], shared["run_id"]
    held.share(shared["ways"], config)
    with guarded(config.run.limits, EventLog.open(work_folder(lake), run_id, ""), may_die=True):
        return [shared["work"](group, config, lake, run_id) for group in batch]


class _Member:
    """An actor that holds one engine; it ends with the driver's session, however that ends."""

    def __init__(self, part: held.Part, config: WorkprintConfig, environment: dict[str, str]) -> None:
        os.environ.update(environment)
        self._holder = held.Holder(part, config)

    def answer(self, method: str, arguments: Sequence[Any]) -> Any:
        """Put together what came in pieces, and ask."""
        return self._holder.answer(method, *(a.whole() if isinstance(a, _Pieces) else a for a in arguments))

    def alive(self) -> int:
        """The process."""
        return os.getpid()


@dataclass(frozen=True, slots=True)
class _Pieces:
    """An array in Ray's object store, in pieces of at most :data:`PIECE_BYTES`."""

    refs: tuple[Any, ...]

    @classmethod
    def of(cls, ray: Any, array: NDArray[Any]) -> _Pieces:
        rows = max(1, PIECE_BYTES // max(1, array[:1].nbytes))
        return cls(tuple(ray.put(array[at : at + rows]) for at in range(0, max(1, len(array)), rows)))

    def whole(self) -> NDArray[Any]:
        """The array; read-only where it is one piece."""
        import ray

        pieces = ray.get(list(self.refs))
        return cast(NDArray[Any], pieces[0] if len(pieces) == 1 else np.concatenate(pieces))


class _Pool:
    """The members of one part, their free places, and the counts that people see."""

    def __init__(self, members: Sequence[Any], settings: PoolConfig) -> None:
        self.settings = settings
        self.free: asyncio.Queue[Any] = asyncio.Queue()
        for _ in range(settings.concurrency):
            for member in members:
                self.free.put_nowait(member)
        self.counts: dict[str, int] = dict.fromkeys(("busy", "waiting", "calls", "deaths", "timeouts", "failed"), 0)
        self.seconds = {"busy_s": 0.0, "waited_s": 0.0}

    def figures(self) -> dict[str, Any]:
        """What ``workprint status`` shows of it."""
        own = {"actors": self.settings.count, "slots": self.settings.slots}
        return own | self.counts | {name: round(value, 1) for name, value in self.seconds.items()}


class _Exchange:
    """An actor through which every call to a pool goes: who asks first is answered first, by a member with a free place.

    Holds places, tries and time-outs, so that they hold over all workers and outlive a worker that dies while it waits. Arguments of size
    pass it as references.
    """

    def __init__(self, pools: dict[str, tuple[Sequence[str], PoolConfig]]) -> None:
        import ray

        self._pools = {part: _Pool([ray.get_actor(name) for name in names], settings) for part, (names, settings) in pools.items()}

    async def ask(self, part: str, method: str, arguments: Sequence[Any]) -> Any:
        """One call, from its place in the queue to its answer."""
        pool = self._pools[part]
        pool.counts["waiting"] += 1
        began = time.monotonic()
        try:
            member = await pool.free.get()
        finally:
            pool.counts["waiting"] -= 1
        started = time.monotonic()
        pool.seconds["waited_s"] += started - began
        pool.counts["busy"] += 1
        try:
            return await self._tried(part, pool, member, method, arguments)
        finally:
            pool.counts["busy"] -= 1
            pool.counts["calls"] += 1
            pool.seconds["busy_s"] += time.monotonic() - started
            pool.free.put_nowait(member)

    async def figures(self) -> dict[str, dict[str, Any]]:
        """Every pool by its name."""
        return {part: pool.figures() for part, pool in self._pools.items()}

    async def _tried(self, part: str, pool: _Pool, member: Any, method: str, arguments: Sequence[Any]) -> Any:
        import ray

        settings = pool.settings
        for _ in range(settings.attempts):
            answer = asyncio.ensure_future(_awaited(member.answer.remote(method, arguments)))
            await asyncio.wait({answer}, timeout=settings.timeout_s)
            if not answer.done():
                answer.cancel()
                ray.kill(member, no_restart=False)
                pool.counts["timeouts"] += 1
                raise _fault(part, "timeout", f"a call to the {part} actor took over {settings.timeout_s:g} s")
            try:
                return answer.result()
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, PipelineError):
                    raise error.cause from None
                raise
            except ray.exceptions.RayActorError:
                pool.counts["deaths"] += 1
                await _risen(member)
        pool.counts["failed"] += 1
        raise _fault(part, "died", f"the {part} actor died under a call on every one of {settings.attempts} tries")


async def _awaited(ref: Any) -> Any:
    return await ref


async def _risen(member: Any) -> None:
    """Wait until a member that died is there again, for a while."""
    import ray

    for _ in range(round(RISE_S)):
        try:
            await member.alive.remote()
            return
        except ray.exceptions.RayActorError:
            await asyncio.sleep(1.0)


def _fault(part: str, what: str, message: str) -> PipelineError:
    """What a worker is told of a pool that gave no answer."""
    if part in held.ENGINES:
        return ToolFailed(f"engine_{what}", message, f"see run.ray.actors.{part}, or leave it out: workers then load the engine themselves")
    return EndpointFailed(f"model_actor_{what}", message, "run the same command again")


class _Way:
    """How a worker asks an engine of a pool. A task whose main thread waits lends its processors to others meanwhile."""

    def __init__(self, exchange: Any, part: str, slots: int) -> None:
        self.slots = slots
        self._exchange = exchange
        self._part = part

    def __call__(self, method: str, *arguments: Any) -> Any:
        """One call; the engine's own error is raised again here."""
        import ray

        sent = [_Pieces.of(ray, a) if isinstance(a, np.ndarray) else a for a in arguments]
        try:
            return ray.get(self._exchange.ask.remote(self._part, method, sent))
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PipelineError):
                raise error.cause from error
            raise
        except ray.exceptions.RayActorError as error:
            raise _fault(self._part, "died", f"the process that hands out calls ended: {error}") from error


class _Pools:
    """The engines that a run holds in actors; they end with the driver's session. Nothing is started where none is configured."""

    def __init__(self, ray: Any, config: WorkprintConfig, log: EventLog, run_id: str) -> None:
        self._ray = ray
        self._log = log
        self._settings = held.pools(config)
        self._exchange: Any = None
        self._last: dict[str, Any] = {}
        self._looked = 0.0
        for part in self._settings:
            if part not in held.ENGINES:
                models.connect(cast(models.Part, part), config)  # a wrong address is told here, not by every project
        _fits(ray, config, self._settings)
        self._members = {part: self._started(part, pool, config, run_id) for part, pool in self._settings.items()}
        if self._members:
            named = {part: (list(members), self._settings[part]) for part, members in self._members.items()}
            actor = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=2, max_concurrency=10_000)(_Exchange)
            self._exchange = actor.remote(named)  # by name: an exchange that died finds them again

    def _started(self, part: held.Part, pool: PoolConfig, config: WorkprintConfig, run_id: str) -> dict[str, Any]:
        """Members by their names; they live as long as somebody holds them."""
        actor = self._ray.remote(
            num_cpus=pool.cpus,
            num_gpus=pool.gpus,
            memory=pool.memory_bytes,
            resources=dict(pool.resources),
            max_concurrency=pool.concurrency,
            max_restarts=-1,
            max_task_retries=0,  # tries are counted by the exchange
        )(_Member)
        names = [f"{run_id} {part} {n}" for n in range(pool.count)]
        return {name: actor.options(name=name).remote(part, config, _carried()) for name in names}

    def ways(self) -> dict[str, _Way]:
        """For the workers."""
        return {part: _Way(self._exchange, part, pool.slots) for part, pool in self._settings.items()}

    def tell(self, every_s: float = TELL_S) -> None:
        """Write what the pools are doing into the run's events, where it has changed."""
        if self._exchange is None or time.monotonic() - self._looked < every_s:
            return
        self._looked = time.monotonic()
        try:
            found = self._ray.get(self._exchange.figures.remote(), timeout=TELL_S)
        except (self._ray.exceptions.RayError, TimeoutError):
            return
        if found != self._last:
            self._last = found
            self._log.write("actors", actors=found)


def _fits(ray: Any, config: WorkprintConfig, pools: Mapping[held.Part, PoolConfig]) -> None:
    """Refuse pools beside which no project could run.

    Raises:
        ConfigInvalid: a private Ray has less than they and one project reserve. (A cluster may still grow: there it is only said.)
    """
    here = ray.cluster_resources()
    wanted: dict[str, float] = {
        "CPU": min(config.run.ray.cpus_per_project, max(1.0, here.get("CPU", 1.0))),
        "GPU": config.run.ray.gpus_per_project,
    }
    for pool in pools.values():
        for name, amount in {"CPU": pool.cpus, "GPU": pool.gpus, **pool.resources}.items():
            wanted[name] = wanted.get(name, 0.0) + amount * pool.count
    short = {name: amount for name, amount in wanted.items() if amount > here.get(name, 0.0)}
    engines = [part for part in pools if part in held.ENGINES or pools[part].cpus or pools[part].gpus or pools[part].resources]
    if not short or not engines:
        return
    told = ", ".join(f"{amount:g} {name} of {here.get(name, 0.0):g}" for name, amount in short.items())
    message = f"the actors ({', '.join(engines)}) and one project reserve {told}"
    if config.run.ray.address == "local":
        raise ConfigInvalid("actors_too_big", message, "lower run.ray.actors or run.ray.cpus_per_project, or take an actor out")
    print(f"workprint: {message}; nothing runs until the cluster has grown", file=sys.stderr)


def _carried() -> dict[str, str]:
    """Settings of where the lake is, for workers on other machines. (They stay in Ray's memory and out of its logs.)"""
    return {k: v for k, v in os.environ.items() if k in _LAKE_ENVIRONMENT}


def _lost(group: SourceGroup, lake: Path, run_id: str, attempts: int, error: Exception) -> ProjectResult:
    """Record a project whose worker died on every attempt, under the stage it died in."""
    told = last_failure(work_folder(lake), run_id, group.key) or {}
    stage, code = str(told.get("stage", "worker")), str(told.get("code", "worker_died"))
    if "message" not in told:
        stage = last_stage(work_folder(lake), run_id, group.key) or stage
    detail = str(told.get("message") or f"the worker process died on every one of {attempts} attempts ({type(error).__name__})")
    Lake(lake).record_failure(
        stage=stage,
        subject=group.project_id or group.key,
        uri=group.items[0].uri,
        error_type=type(error).__name__,
        code=code,
        message=detail,
        attempts=attempts,
        quarantined=True,
        run_id=run_id,
    )
    return ProjectResult(group.key, group.items[0].uri, "failed", group.project_id, code, detail)


@contextmanager
def _network(config: WorkprintConfig) -> Iterator[None]:
    """The network that Ray gets, as configured.

    Raises:
        ConfigInvalid: a private network is demanded and cannot be had.
    """
    wanted = config.run.ray.network
    obstacle = _obstacle(config) if wanted != "machine" else "not wanted"
    if obstacle is None:
        with private_network():
            yield
        return
    if wanted == "private":
        raise ConfigInvalid(
            "network_not_private",
            f"run.ray.network is 'private', which cannot be had: {obstacle}",
            "run as root without engines on the network, or set run.ray.network to 'auto' and keep the machine's ports closed to others",
        )
    yield


def _obstacle(config: WorkprintConfig) -> str | None:
    if config.run.ray.address != "local":
        return f"run.ray.address is {config.run.ray.address!r}, a Ray that others started"
    outside = config.reaches_out()
    if outside:
        return f"{', '.join(outside)} needs the network"
    possible, answer = can_be_private()
    return None if possible else f"this process may not have one: {answer}"


@contextmanager
def _session(config: RayConfig) -> Iterator[Any]:
    """A private local Ray, or a connection to a running cluster; shut down at the end."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import ray

    version = tuple(int(p) for p in ray.__version__.split(".")[:2])
    if version < RAY_FLOOR:
        raise ConfigInvalid("ray_too_old", f"ray {ray.__version__} is older than 2.52", "install the versions in requirements.lock")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    with tempfile.TemporaryDirectory(prefix="wpr", ignore_cleanup_errors=True) as folder:
        if config.address == "local":
            _start_local(ray, config, folder, quiet)
        else:
            ray.init(address=config.address, **quiet)
        try:
            yield ray
        finally:
            ray.shutdown()


def _start_local(ray: Any, config: RayConfig, folder: str, quiet: dict[str, Any]) -> None:
    """Start a private Ray. On a busy machine its own 30 seconds may not be enough: then once more, with what is in memory by now.

    Raises:
        ToolFailed: it does not come up.
    """
    for attempt in range(1, STARTS + 1):
        try:
            ray.init(
                address="local",
                num_cpus=os.cpu_count(),
                object_store_memory=config.object_store_bytes,
                include_dashboard=False,
                _temp_dir=folder,
                _node_ip_address="127.0.0.1",
                **quiet,
            )
            return
        except Exception as error:  # Ray raises the bare class
            ray.shutdown()
            if "timed out" not in str(error) or attempt == STARTS:
                raise ToolFailed("ray_start", f"Ray does not start: {error}", "free the machine, or use --engine local") from error
