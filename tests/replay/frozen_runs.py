"""Freezes twenty recorded runs of today: ``python -m tests.replay.frozen_runs NAME`` writes ``tests/replay/frozen/NAME.tar``.

Run it once for each release that changes a trajectory, a state record or what the runtime decides, before the change; what it wrote is
never made again. The runs are made by the scripted policy on tools that need no media, over films of several lengths, with mistakes on
purpose, errors to be found, and budgets that run out. The archive holds each run's trajectory and the artifacts that its first snapshot
refers to: what is needed to execute it again from nothing else.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

from replay.config import PolicyConfig, ReplayConfig
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from replay.runtime import Runtime
from schemas.trajectory import Provenance, Trajectory
from storage.durable import write_file
from storage.reach import reachable
from storage.snapshots import snapshot_sha256
from tests.replay.doubles import suite
from tests.replay.toy import ToyCritic, storyboard, toy_registry, toy_runtime

FROZEN = Path(__file__).resolve().parent / "frozen"
RUNS = 20


@dataclass(frozen=True)
class Kind:
    """What tells one run from the next."""

    seed: int

    @property
    def errors(self) -> int:
        """Errors that inspection will find."""
        return self.seed % 3

    @property
    def budget(self) -> int:
        """Calls of the orchestrator; every fifth run has too few."""
        return 6 if self.seed % 5 == 4 else 40

    def play(self, folder: Path) -> Trajectory:
        """The run itself."""
        board = storyboard(4 + self.seed)
        policy = ScriptedPolicy(board, self.seed, ReplayConfig(policy=PolicyConfig(mistake_rate=0.3)), ToyCritic())
        return run_episode(toy_runtime(folder, board, errors=self.errors, budget=self.budget), policy)

    def again(self, folder: Path, recorded: Trajectory) -> Runtime:
        """The recorded outputs given to a runtime of today, in a folder that holds the artifacts of the first snapshot."""
        run = Runtime(recorded.first_snapshot, toy_registry(self.errors), suite(folder), budget=recorded.budget)
        run.settle()
        while not run.finished and len(run.calls) < len(recorded.calls):
            output = recorded.calls[len(run.calls)].output
            if output.provenance is Provenance.RUNTIME:
                break
            run.step(output)
        return run


def main(arguments: list[str]) -> int:
    """Write the archive."""
    (name,) = arguments
    with tempfile.TemporaryDirectory() as text, io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
            for seed in range(RUNS):
                folder = Path(text, str(seed))
                run = Kind(seed).play(folder)
                store = suite(folder).store
                members = {"trajectory.json": run.canonical()}
                for sha in sorted(reachable(store, [snapshot_sha256(run.first_snapshot)])):
                    members[store.key(sha)] = store.read(sha)
                for path, data in members.items():
                    info = tarfile.TarInfo(f"{seed}/{path}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
        write_file(FROZEN / f"{name}.tar", buffer.getvalue())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
