"""Light projects: the real chain, ledger and committer with three stages that take no time, and with everything that can go wrong in one.

What goes wrong is said by the name of the source: ``light/17`` is well, ``light/17?crash`` kills its worker in the second stage. Also a
program, ``python -m tests.fault.light LAKE COUNT [ENGINE] [SHUFFLE_SEED]``: a cold process that runs a whole batch.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from jobs import held, models
from jobs.chain import Chain, ProjectResult
from jobs.config import WorkprintConfig
from jobs.sources import SourceGroup
from replay.chat.model import ChatRequest
from schemas.canonical import Frozen, sha256_bytes
from schemas.errors import SchemaMismatch, ToolFailed
from schemas.media import SourceItem
from schemas.stage import Done
from schemas.trajectory import Trajectory
from storage.lake import Lake
from tests.storage.lakes import project, sentence, word

STAGES = ("invert", "replay", "materialize")
WORDS = 3


class Note(Frozen):
    """The output of a light stage."""

    stage: str
    number: int


class LightChain(Chain):
    """The chain with stages of its own; intake, ledger, attempts, quarantine and events are the real ones."""

    def _stages(self) -> list[Trajectory]:
        name, _, fault = self._group.items[0].uri.partition("?")
        number = int(name.rpartition("/")[2])
        before = self._group.sha256 or ""
        for stage in STAGES:
            before = self._stage(
                stage, {"light": 1}, (before,), partial(self._light, stage, number, fault), None if stage == "materialize" else Note
            )
        return []

    def _light(self, stage: str, number: int, fault: str) -> Done[Any]:
        _effect(self._lake.root, stage, number)
        if stage == "replay" and fault:
            _go_wrong(fault, self._lake.root, number, self._config)
        rows: dict[str, list[dict[str, Any]]] = {}
        if stage == "invert":
            rows = {"projects": [project(number) | {"project_id": self._group.project_id}]}
        elif stage == "replay":
            rows = {"words": [word(number, i) | {"project_id": self._group.project_id} for i in range(WORDS)]}
        else:
            rows = {"sentences": [sentence(number, project_id=self._group.project_id)]}
        if fault == "garbage" and stage == "replay":
            rows["words"][0]["text"] = 7
        return Done(() if stage == "materialize" else Note(stage=stage, number=number), rows)


def _go_wrong(fault: str, root: Path, number: int, config: WorkprintConfig) -> None:
    match fault:
        case _ if fault.startswith("sleep"):
            time.sleep(float(fault.removeprefix("sleep")))
        case _ if fault.startswith("reads"):  # not wrong in itself: asks an engine that may be in an actor, before and after its time
            for seconds in (float(fault.removeprefix("reads") or 0), 0):
                if (reader := held.reader()) is not None:
                    reader.read(np.full((90, 320, 3), 255, np.uint8))
                time.sleep(seconds)
        case "chats":
            models.model("student", config).complete(ChatRequest([{"role": "user", "content": "hi"}]))
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # deaf to being told
            time.sleep(600)
        case "slow":
            time.sleep(600)
        case "memory":
            _ballast.append(b"\1" * 700_000_000)
            time.sleep(600)
        case "nothing":
            raise ToolFailed("no_output", "the engine ended with exit status 0 and without its product")
        case "garbage":
            raise SchemaMismatch("not_json", "the engine's product is not what its contract says")
        case "once":  # the first attempt dies
            marker = root / "runs" / f"died-{number}"
            if not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)


_ballast: list[bytes] = []


def _effect(root: Path, stage: str, number: int) -> None:
    """Note that a stage was really executed; one short append, so that none is lost."""
    fd = os.open(root / "runs" / "effects", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, f"{stage} {number}\n".encode())
    os.close(fd)


def effects(root: Path) -> list[str]:
    """Every execution of a stage, in order."""
    path = root / "runs" / "effects"
    return path.read_text().splitlines() if path.exists() else []


def light_work(group: SourceGroup, config: WorkprintConfig, lake: Path, run_id: str) -> ProjectResult:
    """What a runner is given instead of ``jobs.chain.process``."""
    return LightChain(group, config, Lake(lake), run_id).run()


def light_groups(numbers: Sequence[int], faults: dict[int, str] | None = None) -> list[SourceGroup]:
    """Sources that exist by name only."""
    out = []
    for n in numbers:
        fault = (faults or {}).get(n)
        item = SourceItem(uri=f"light/{n}" + (f"?{fault}" if fault else ""))
        digest = sha256_bytes(b"light %d" % n)
        out.append(SourceGroup(f"src_{digest[:24]}", (item,), Path("/nonexistent"), digest, n))
    return out


def config_of(**run: Any) -> WorkprintConfig:
    """A configuration for light runs."""
    settings: dict[str, Any] = {"engine": "local", "attempts": 3, "window": 8}
    return WorkprintConfig.model_validate({"run": settings | run})


def run_light(lake: Path, groups: Sequence[SourceGroup], config: WorkprintConfig, run_id: str = "run_light") -> list[ProjectResult]:
    """Run groups on the engine that the configuration names."""
    (Lake(lake).root / "runs").mkdir(exist_ok=True)
    if config.run.engine == "ray":
        from jobs.ray_runner import run_all as ray_run

        return ray_run(groups, config, lake, run_id, work=light_work)
    from jobs.local_runner import run_all as local_run

    return local_run(groups, config, lake, run_id, work=light_work)


TABLES = ("sources", "projects", "words", "sentences", "stage_runs")


def rows_of(lake: Lake, version: int | None = None) -> dict[str, list[tuple[str, str]]]:
    """(stage key, row digest) of every live row of every table."""
    return {
        t: sorted((str(r["stage_key"]), str(r["row_digest"])) for r in lake.scan(t, version).to_pylist()) for t in (*TABLES, "rejections")
    }


def main(arguments: list[str]) -> int:
    """Run a batch in this process's time; prints 'finished' at the end."""
    lake, count = Path(arguments[0]), int(arguments[1])
    engine = arguments[2] if len(arguments) > 2 else "local"
    numbers = list(range(count))
    if len(arguments) > 3:
        random.Random(int(arguments[3])).shuffle(numbers)  # noqa: S311
    ray = {"cpus_per_project": 1, "network": "machine"}
    print("started", flush=True)
    results = run_light(lake, light_groups(numbers), config_of(engine=engine, ray=ray))
    assert {r.status for r in results} == {"delivered"}
    print("finished", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
