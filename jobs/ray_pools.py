"""Engines that a run holds in Ray actors: the members, the exchange that hands out calls, and the way a worker asks.

Owns places, tries, time-outs and what is seen of them; jobs/held.py says what an engine answers, jobs/ray_runner.py owns the tasks that
ask. These two are the only modules that import ray. Where no pool is configured nothing is started.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from jobs import held, models
from jobs.config import PoolConfig, WorkprintConfig
from jobs.guard import undisturbed
from jobs.progress import EventLog
from media.crew import away, lend_with
from schemas.errors import ConfigInvalid, EndpointFailed, PipelineError, ToolFailed

TELL_S = 2.0
"""Seconds between two looks at the pools."""
PIECE_BYTES = 16 * 1024 * 1024
"""Sound and pictures go through Ray's object store in pieces of at most this size."""
LISTEN_S = 0.5
"""Longest wait in which a task's main thread is deaf."""
AGAIN_S = 10.0
"""Seconds between two looks at an actor that was given up."""

_LAKE_ENVIRONMENT = (
    "WORKPRINT_LEDGER",
    "WORKPRINT_CACHE",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
)


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
    """The members of one part, their free places, and the counts that people see.

    A member that died is waited for a while by the call that it died under; then its places are taken out of the queue until it is there
    again. With no member left, every call fails at once.
    """

    def __init__(self, part: str, members: Mapping[str, Any], settings: PoolConfig) -> None:
        self.settings = settings
        self._part = part
        self._members = members
        self._free: asyncio.Queue[str | None] = asyncio.Queue()
        self._kept: dict[str, int] = {}
        """Members that are gone, and how many of their places are kept back."""
        self._rising: dict[str, asyncio.Task[bool]] = {}
        for _ in range(settings.concurrency):
            for name in members:
                self._free.put_nowait(name)
        self.counts: dict[str, int] = dict.fromkeys(("busy", "waiting", "calls", "deaths", "timeouts", "failed"), 0)
        self.seconds = {"busy_s": 0.0, "waited_s": 0.0}

    def figures(self) -> dict[str, Any]:
        """What ``workprint status`` shows of it."""
        own = {"actors": self.settings.count, "slots": self.settings.slots}
        return own | self.counts | {"gone": len(self._kept)} | {name: round(value, 1) for name, value in self.seconds.items()}

    async def place(self) -> tuple[str, Any]:
        """The next free place: a member and its name; whoever takes it gives it back.

        Raises:
            ToolFailed, EndpointFailed: no member is left.
        """
        while True:
            name = None if self._is_dead() else await self._free.get()
            if name is None:
                message = f"all {len(self._members)} {self._part} actors died and none started again within {self.settings.rise_s:g} s"
                raise _fault(self._part, "died", message)
            if name not in self._kept:
                return name, self._members[name]
            self._kept[name] += 1

    def give_back(self, name: str) -> None:
        """A place is free again."""
        if name in self._kept:
            self._kept[name] += 1
        else:
            self._free.put_nowait(name)

    async def risen(self, name: str) -> bool:
        """Whether a member that died is there again after at most ``rise_s``."""
        if name in self._kept:
            return False
        if name not in self._rising:
            self._rising[name] = asyncio.ensure_future(self._rise(name))
        return await asyncio.shield(self._rising[name])

    async def _rise(self, name: str) -> bool:
        is_there = await _reached(self._members[name], self.settings.rise_s, 1.0)
        del self._rising[name]
        if not is_there:
            self._kept[name] = 0
            if self._is_dead():
                for _ in range(self.counts["waiting"]):  # each of them hears of it
                    self._free.put_nowait(None)
            self._returning = asyncio.ensure_future(self._return(name))
        return is_there

    async def _return(self, name: str) -> None:
        await _reached(self._members[name], None, AGAIN_S)
        for _ in range(self._kept.pop(name)):
            self._free.put_nowait(name)

    def _is_dead(self) -> bool:
        return len(self._kept) == len(self._members)


class _Exchange:
    """An actor through which every call to a pool goes: who asks first is answered first, by a member with a free place.

    Holds places, tries and time-outs, so that they hold over all workers and outlive a worker that dies while it waits. Arguments of size
    pass it as references.
    """

    def __init__(self, pools: dict[str, tuple[Sequence[str], PoolConfig]]) -> None:
        import ray

        self._ending = False
        self._pools = {
            part: _Pool(part, {name: ray.get_actor(name) for name in names}, settings) for part, (names, settings) in pools.items()
        }

    async def ask(self, part: str, method: str, arguments: Sequence[Any]) -> Any:
        """One call, from its place in the queue to its answer."""
        pool = self._pools[part]
        pool.counts["waiting"] += 1
        began = time.monotonic()
        try:
            name, member = await pool.place()
        finally:
            pool.counts["waiting"] -= 1
        started = time.monotonic()
        pool.seconds["waited_s"] += started - began
        pool.counts["busy"] += 1
        try:
            return await self._tried(part, pool, name, member, method, arguments)
        finally:
            pool.counts["busy"] -= 1
            pool.counts["calls"] += 1
            pool.seconds["busy_s"] += time.monotonic() - started
            pool.give_back(name)

    async def end(self) -> None:
        """The run is to end: whoever asks is told so."""
        self._ending = True

    async def ending(self) -> bool:
        """Whether the run is to end."""
        return self._ending

    async def figures(self) -> dict[str, dict[str, Any]]:
        """Every pool by its name."""
        return {part: pool.figures() for part, pool in self._pools.items()}

    async def _tried(self, part: str, pool: _Pool, name: str, member: Any, method: str, arguments: Sequence[Any]) -> Any:
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
                if not await pool.risen(name):
                    pool.counts["failed"] += 1
                    raise _fault(part, "died", f"the {part} actor died under a call and did not start again") from None
        pool.counts["failed"] += 1
        raise _fault(part, "died", f"the {part} actor died under a call on every one of {settings.attempts} tries")


async def _awaited(ref: Any) -> Any:
    return await ref


async def _reached(member: Any, within_s: float | None, every_s: float) -> bool:
    """Ask a member for a sign of life again and again, for so long."""
    import ray

    end = None if within_s is None else time.monotonic() + within_s
    while end is None or time.monotonic() < end:
        try:
            await member.alive.remote()
            return True
        except ray.exceptions.RayActorError:
            await asyncio.sleep(every_s)
    return False


def _fault(part: str, what: str, message: str) -> PipelineError:
    """What a worker is told of a pool that gave no answer."""
    if part in held.ENGINES:
        return ToolFailed(f"engine_{what}", message, f"see run.ray.actors.{part}, or leave it out: workers then load the engine themselves")
    return EndpointFailed(f"model_actor_{what}", message, "run the same command again")


class Way:
    """How a worker asks an engine of a pool.

    Ray lends out the processors of a task whose main thread waits. A question of another thread counts as away (media.crew), and the main
    thread lends when it has nothing to do but to wait for such threads (:func:`lend`).
    """

    def __init__(self, exchange: Any, part: str, slots: int) -> None:
        self.slots = slots
        self._exchange = exchange
        self._part = part

    def __call__(self, method: str, *arguments: Any) -> Any:
        """One call; the engine's own error is raised again here."""
        import ray

        sent = [_Pieces.of(ray, a) if isinstance(a, np.ndarray) else a for a in arguments]
        try:
            answer = self._exchange.ask.remote(self._part, method, sent)
            with away(answer):
                if threading.current_thread() is threading.main_thread():
                    while not lend([answer]):
                        pass
                return ray.get(answer)
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, PipelineError):
                raise error.cause from error
            raise
        except ray.exceptions.RayActorError as error:
            raise _fault(self._part, "died", f"the process that hands out calls ended: {error}") from error

    def ending(self) -> bool:
        """Whether the run is to end. (A cancelled task may ask no actor any more, so a run with actors tells its workers in this way.)"""
        import ray

        try:
            return bool(ray.get(self._exchange.ending.remote(), timeout=TELL_S))
        except (ray.exceptions.RayError, TimeoutError):
            return False


def lend(answers: Sequence[Any]) -> bool:
    """Lend this task's processors until one of these answers is there, or for a moment; whether one is. From the main thread alone."""
    import ray

    with undisturbed():
        ready, _ = ray.wait(list(answers), num_returns=1, timeout=LISTEN_S, fetch_local=False)
    return bool(ready)


def ask_through(ways: Mapping[str, Way], config: WorkprintConfig) -> None:
    """Ask the run's actors from now on in this process, and lend its processors while it waits for them."""
    held.share(ways, config)
    lend_with(lend if ways else None)


class Pools:
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
        fits(ray, config, self._settings)
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
        return {name: actor.options(name=name).remote(part, config, carried()) for name in names}

    def ways(self) -> dict[str, Way]:
        """For the workers."""
        return {part: Way(self._exchange, part, pool.slots) for part, pool in self._settings.items()}

    def end(self) -> bool:
        """Tell the workers that the run is to end; False where there are no actors through which they could hear it."""
        if self._exchange is not None:
            self._exchange.end.remote()
        return self._exchange is not None

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


def fits(ray: Any, config: WorkprintConfig, pools: Mapping[held.Part, PoolConfig]) -> None:
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


def carried() -> dict[str, str]:
    """Settings of where the lake is, for workers on other machines. (They stay in Ray's memory and out of its logs.)"""
    return {k: v for k, v in os.environ.items() if k in _LAKE_ENVIRONMENT}
