"""Projects as Ray tasks: one task a project, its stages inside, a bounded window, nothing kept in Ray.

The only module that imports ray. Ray retries are at-least-once; exactly-once lives in the ledger. A local Ray has no dashboard, token
authentication, a small object store, and listens on loopback only.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jobs.chain import ProjectResult, process
from jobs.config import RayConfig, WorkprintConfig
from jobs.sources import SourceGroup
from schemas.errors import ConfigInvalid

TICK_S = 0.5
RAY_FLOOR = (2, 52)
"""Older releases lack token authentication."""


def run_all(
    groups: Sequence[SourceGroup],
    config: WorkprintConfig,
    lake: Path,
    run_id: str,
    tick: Callable[[], None],
) -> list[ProjectResult]:
    """Run every project on Ray; ``tick`` is called about twice a second.

    A worker that dies takes its project's current stage with it: the task is tried again and continues from the ledger and the
    call journal. After ``config.run.attempts`` deaths the project is reported as failed and the rest goes on.
    """
    ray = _start(config.run.ray)
    try:
        task = ray.remote(
            num_cpus=min(config.run.ray.cpus_per_project, max(1, int(ray.cluster_resources().get("CPU", 1)))),
            max_retries=config.run.attempts - 1,
            retry_exceptions=False,
        )(process)
        waiting = list(groups)
        flying: dict[Any, SourceGroup] = {}
        results: dict[str, ProjectResult] = {}
        while waiting or flying:
            while waiting and len(flying) < config.run.window:
                group = waiting.pop(0)
                flying[task.remote(group, config, lake, run_id)] = group
            ready, _ = ray.wait(list(flying), num_returns=1, timeout=TICK_S)
            for ref in ready:
                group = flying.pop(ref)
                try:
                    results[group.key] = ray.get(ref)
                except ray.exceptions.RayError as error:
                    results[group.key] = _lost(group, lake, run_id, config.run.attempts, error)
            tick()
        return [results[g.key] for g in groups]
    finally:
        ray.shutdown()


def _lost(group: SourceGroup, lake: Path, run_id: str, attempts: int, error: Exception) -> ProjectResult:
    from storage.lake import Lake

    detail = f"the worker process died on every one of {attempts} attempts ({type(error).__name__})"
    Lake(lake).record_failure(
        stage="worker",
        subject=group.key,
        uri=group.items[0].uri,
        error_type=type(error).__name__,
        code="worker_died",
        message=detail,
        attempts=attempts,
        quarantined=True,
        run_id=run_id,
    )
    return ProjectResult(group.key, group.items[0].uri, "failed", group.project_id, "worker_died", detail)


def _start(config: RayConfig) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if config.address == "local":
        os.environ.setdefault("RAY_AUTH_MODE", "token")
    import ray

    version = tuple(int(p) for p in ray.__version__.split(".")[:2])
    if version < RAY_FLOOR:
        raise ConfigInvalid("ray_too_old", f"ray {ray.__version__} is older than 2.52", "install the versions in requirements.lock")
    common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    if config.address != "local":
        return _joined(ray, config.address)
    ray.init(
        address="local",
        num_cpus=os.cpu_count(),
        object_store_memory=config.object_store_bytes,
        _temp_dir=tempfile.mkdtemp(prefix="wpr", dir=tempfile.gettempdir()),
        _node_ip_address="127.0.0.1",
        **common,
    )
    return ray


def _joined(ray: Any, address: str) -> Any:
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    return ray
