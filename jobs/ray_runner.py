"""Projects as Ray tasks: one task a project, its stages inside, a bounded window, nothing kept in Ray.

Owns the tasks and Ray's session; the actors that hold engines are in jobs/ray_pools.py, and no third module imports ray. Ray retries are
at-least-once; exactly-once lives in the ledger. A local Ray has no dashboard, a small object store, token authentication, and where it can
a network of its own, for its ports listen on every interface (see SECURITY.md).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from jobs import stopping
from jobs.chain import ProjectResult, not_begun, process
from jobs.config import RayConfig, WorkprintConfig
from jobs.confine import can_be_private, private_network
from jobs.guard import guarded
from jobs.progress import EventLog, last_failure, last_stage
from jobs.ray_pools import Pools, ask_through, carried
from jobs.sources import SourceGroup
from jobs.tidy import Merge, merged, tidied
from jobs.work import Work
from schemas.errors import ConfigInvalid, ToolFailed
from storage.lake import Lake
from storage.place import work_folder

TICK_S = 0.5
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

_LOOPBACK = "127.0.0.2"
"""The private Ray's own address. 127.0.0.1 Ray replaces by an address that other machines can reach, after asking the network for one."""


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
    that shared a task with one that died are tried again alone. After a stop was asked for none is begun any more, and those under way end
    with the stage they are in, or with the time that is allowed.

    Args:
        work: what is done with one project; the chain of stages.
    """
    settings = config.run.ray
    with _aside(lake, run_id), _network(config), _session(settings) as ray, tidied(lake, _merging(ray)):
        stopping.listen()
        cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))
        task = ray.remote(
            num_cpus=min(settings.cpus_per_project, cpus),
            num_gpus=settings.gpus_per_project,
            memory=settings.memory_per_project_bytes,
            max_retries=config.run.attempts - 1,
            retry_exceptions=False,
        )(_projects)
        shared = {"work": work, "config": config, "lake": lake, "run_id": run_id, "environment": carried()}
        pools = Pools(ray, config, EventLog.open(work_folder(lake), run_id, ""), run_id)
        common = ray.put(shared | {"ways": pools.ways()})  # once a run, not once a project
        waiting = deque(tuple(groups[at : at + settings.batch]) for at in range(0, len(groups), settings.batch))
        flying: dict[Any, tuple[SourceGroup, ...]] = {}
        told: set[Any] = set()
        results: dict[str, ProjectResult] = {}
        while flying or waiting:
            if stopping.asked():
                waiting.clear()
                if not pools.end():
                    for ref in set(flying) - told:
                        ray.cancel(ref, force=False, recursive=False)  # to a worker that is at it: end after this stage (jobs/stopping.py)
                    told |= set(flying)
                if not flying or stopping.left_s() <= 0:
                    break
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
                    if stopping.asked():
                        continue
                    if len(batch) > 1:
                        waiting.extend((group,) for group in batch)
                    else:
                        results[batch[0].key] = _lost(batch[0], lake, run_id, config.run.attempts, error)
        for group in (group for batch in flying.values() for group in batch):  # cut short
            EventLog.open(work_folder(lake), run_id, group.key).write("finished", status="stopped")
        pools.tell(every_s=0.0)
        return [results[g.key] if g.key in results or not stopping.asked() else not_begun(g) for g in groups]


@contextmanager
def _aside(lake: Path, run_id: str) -> Iterator[None]:
    """Ray tells of every worker that died on standard output, where results are written: into a file of the run's folder instead."""
    with EventLog.open(work_folder(lake), run_id, "").path.parent.with_name("ray.log").open("a") as file, redirect_stdout(file):
        yield


def _merging(ray: Any) -> Merge:
    """Merge in a worker that ends with it, so that the driver's memory does not grow with the lake."""
    task = ray.remote(num_cpus=0, max_calls=1, max_retries=0)(_merged)

    def merge(lake: Path) -> None:
        try:
            ray.get(task.remote(lake, carried()))
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
    ways = shared["ways"]
    ask_through(ways, config)
    elsewhere = next(iter(ways.values())).ending if ways else None
    with stopping.heeding(elsewhere), guarded(config.run.limits, EventLog.open(work_folder(lake), run_id, ""), may_die=True):
        return [shared["work"](group, config, lake, run_id) for group in batch]


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
    EventLog.open(work_folder(lake), run_id, group.key).write("finished", status="failed", code=code, detail=detail)
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
                _node_ip_address=_LOOPBACK,
                **quiet,
            )
            return
        except Exception as error:  # Ray raises the bare class
            ray.shutdown()
            if "timed out" not in str(error) or attempt == STARTS:
                raise ToolFailed("ray_start", f"Ray does not start: {error}", "free the machine, or use --engine local") from error
