"""A small real project: a recovered storyboard of a generated film, its pool, and everything to play it with real engines (flite speech,
hashing embedder, 180 lines), again and again in stores of their own."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
from media.probe import probe
from repair.config import FaultConfig, RepairConfig
from repair.diagnose import ScriptedCritic
from repair.faults import FaultPlan
from repair.plan_faults import FaultyPolicy
from repair.registry import full_registry
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.episode import run_episode
from replay.policies.base import Policy
from replay.policies.scripted import ScriptedPolicy
from replay.pool import cut_pool
from replay.runtime import Runtime
from replay.suite import Suite
from replay.task import build_task
from schemas.artifact import ArtifactKind
from schemas.canonical import canonical_bytes, digest_of
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.journal import Journal
from storage.snapshots import SnapshotStore
from tests.replay.toy import storyboard

FAULTS = FaultConfig(kinds=("render_black", "narration_truncated", "missing_argument"), count=2, seed=5)


class SmallFilm:
    """The project, made once for a test module.

    Args:
        root: an empty folder.
        settings: of ReplayConfig, over the cheap defaults.
    """

    def __init__(
        self, root: Path, sandbox: Sandbox, *, shots: int = 4, spotlight_every: int = 3, faults: FaultConfig | None = None, **settings: Any
    ) -> None:
        self.root, self.sandbox = root, sandbox
        cheap = {
            "speech": {"engine": "flite"},
            "retrieval": {"embedder": "hashing"},
            "render": {"height": 180, "frame_rate": 15, "preset": "ultrafast", "crf": 28},
            "mix": {"music_folder": str(self._music())},
        }
        self.config = ReplayConfig.model_validate({**cheap, **settings})
        self.repair = RepairConfig(faults=faults or FaultConfig())
        board = storyboard(shots, silent_every=4, spotlight_every=spotlight_every, sentences_per_segment=2)
        seconds = board.media.duration_us / 1_000_000
        inputs = ("-f", "lavfi", "-i", f"testsrc2=s=320x180:r=15:d={seconds}", "-f", "lavfi", "-i", f"sine=300:d={seconds}")
        self.source = self._ffmpeg("film.mp4", *inputs, "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac")
        self.board = board.model_copy(update={"media": probe(self.source, sandbox)})
        self.first = ArtifactStore(root / "pool")
        self.pool = cut_pool(self.board, self.source, sandbox=sandbox, store=self.first, config=self.config)
        self._open()
        (root / "film.pickle").write_bytes(pickle.dumps((self.board, self.pool, self.config, self.repair)))

    @classmethod
    def reopen(cls, root: Path, sandbox: Sandbox) -> SmallFilm:
        """The project that was made in ``root``, in another process."""
        film = cls.__new__(cls)
        film.root, film.sandbox, film.first = root, sandbox, ArtifactStore(root / "pool")
        film.board, film.pool, film.config, film.repair = pickle.loads((root / "film.pickle").read_bytes())  # noqa: S301 - our own
        film._open()
        return film

    def _open(self) -> None:
        self.registry = full_registry()
        self.engines = build_engines(self.config, self.sandbox)
        self.task = build_task(self.board, self.pool, self.config, self.engines, self.registry.digest())
        self.settings = {"replay": self.config.model_dump(mode="json"), "repair": self.repair.model_dump(mode="json")}
        self.config_digest = digest_of(self.settings)

    def _ffmpeg(self, name: str, *argv: str) -> Path:
        run_ffmpeg((*argv, f"/out/{name}"), outputs=(name,), sandbox=self.sandbox, workdir=self.root)
        return self.root / name

    def _music(self) -> Path:
        folder = self.root / "music"
        folder.mkdir()
        for mood, frequency in (("calm", 110), ("bright", 330)):
            self._ffmpeg(f"{mood}.flac", "-f", "lavfi", "-i", f"sine=frequency={frequency}:sample_rate=48000:duration=8")
            (self.root / f"{mood}.flac").rename(folder / f"{mood}.flac")
        tracks = [{"file": f"{m}.flac", "title": m, "moods": [m], "licence": "CC0-1.0"} for m in ("calm", "bright")]
        (folder / "music.json").write_text(json.dumps({"name": "tones", "tracks": tracks}))
        return folder

    def suite(self, place: Path) -> Suite:
        """A suite whose store lives in ``place``; a new one holds the pool and the settings and nothing else."""
        store = ArtifactStore(place / "artifacts")
        if not store.has(self.config_digest):
            for clip in self.pool:
                store.put_file(self.first.path(clip.ref.sha256), clip.ref.kind, clip.ref.media_type)
            store.put_bytes(canonical_bytes(self.settings), ArtifactKind.OTHER, "application/json")
        scratch = place / "scratch"
        scratch.mkdir(exist_ok=True)
        return Suite(store, SnapshotStore(store), self.sandbox, self.engines, self.config, scratch)

    def runtime(self, place: Path, journal: Journal | None = None) -> Runtime:
        """A run in ``place``, with the project's faults."""
        return Runtime(self.task, self.registry, self.suite(place), journal=journal, fault_filter=FaultPlan(self.repair.faults))

    def policy(self, seed: int) -> Policy:
        """The scripted policy, spoiled where the project has plan-level faults."""
        return FaultyPolicy(ScriptedPolicy(self.board, seed, self.config, ScriptedCritic()), self.repair.faults)

    def play(
        self, place: Path, seed: int, journal: Journal | None = None, note: Callable[[str], None] = lambda _text: None
    ) -> tuple[Trajectory, Runtime]:
        """One whole run."""
        run = self.runtime(place, journal)
        return self.finish(run, seed, note), run

    def finish(self, run: Runtime, seed: int, note: Callable[[str], None] = lambda _text: None) -> Trajectory:
        """Play a run to its end."""
        return run_episode(run, self.policy(seed), note, config_digest=self.config_digest)
