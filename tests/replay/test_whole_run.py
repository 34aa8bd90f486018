"""A small film made from start to end with the production tools themselves: real speech, graphics, renders and delivery."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
from media.probe import probe
from replay import lineage
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.delivery import verify_delivery
from replay.episode import run_episode
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO
from replay.policies.recorded import RecordedPolicy
from replay.policies.scripted import ScriptedPolicy
from replay.pool import cut_pool
from replay.registry import Registry, base_tools
from replay.runtime import Runtime
from replay.suite import Suite
from replay.task import build_task
from schemas.trajectory import ObservationStatus, Outcome, Provenance
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore
from tests.replay.toy import ToyCritic, storyboard

CONFIG = ReplayConfig.model_validate(
    {
        "speech": {"engine": "flite"},
        "retrieval": {"embedder": "hashing"},
        "render": {"height": 180, "preset": "ultrafast", "crf": 28},
    }
)


@pytest.mark.slow
def test_a_film_is_made_delivered_and_made_again_with_equal_states(tmp_path: Path, sandbox: Sandbox) -> None:
    board = storyboard(5, silent_every=4, spotlight_every=3, sentences_per_segment=2)
    seconds = board.media.duration_us / 1_000_000
    sources = ("-f", "lavfi", "-i", f"testsrc2=s=320x180:r=30:d={seconds}", "-f", "lavfi", "-i", f"sine=300:d={seconds}")
    how = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-shortest", "/out/film.mp4")
    source = run_ffmpeg((*sources, *how), outputs=("film.mp4",), sandbox=sandbox, workdir=tmp_path).outputs["film.mp4"]
    board = board.model_copy(update={"media": probe(source, sandbox)})
    registry = Registry(base_tools())
    engines = build_engines(CONFIG, sandbox)
    store = ArtifactStore(tmp_path / "store")
    pool = cut_pool(board, source, sandbox=sandbox, store=store, config=CONFIG)
    task = build_task(board, pool, CONFIG, engines, registry.digest())

    def runtime(place: str) -> Runtime:
        """A run with a store of its own that holds the pool and nothing else."""
        own = ArtifactStore(tmp_path / place)
        for clip in pool:
            own.put_file(store.path(clip.ref.sha256), clip.ref.kind, clip.ref.media_type)
        scratch = tmp_path / f"{place}-scratch"
        scratch.mkdir()
        return Runtime(task, registry, Suite(own, SnapshotStore(own), sandbox, engines, CONFIG, scratch))

    run = runtime("first")
    trajectory = run_episode(run, ScriptedPolicy(board, 2, CONFIG, ToyCritic()))
    assert trajectory.outcome is Outcome.DELIVERED
    for call in trajectory.calls:
        mistake = call.output.provenance is Provenance.SCRIPTED_MISTAKE
        assert (call.observation.status is ObservationStatus.REFUSED) is mistake
    assert all(lineage.render_is_current(run.state, s) for s in run.state.film.shot_order)
    assert not list((tmp_path / "first-scratch").iterdir())

    folder = tmp_path / "delivery"
    folder.mkdir()
    for one in trajectory.calls[-1].artifacts:
        name = {"video/mp4": VIDEO, "application/json": MANIFEST, "text/plain": ATTRIBUTION}.get(one.media_type, CAPTIONS)
        (folder / name).write_bytes(run.suite.store.read(one.sha256))
    assert verify_delivery(folder, sandbox).problems == ()

    again = run_episode(runtime("second"), RecordedPolicy(trajectory))
    assert [c.state_after for c in again.calls] == [c.state_after for c in trajectory.calls]
    assert again.video == trajectory.video
