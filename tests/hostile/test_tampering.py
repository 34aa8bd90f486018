"""S17: deliveries that somebody changed, so that they look right. None is verified.

The forger may write the manifest as well: digest and size of the new file are always put into it, and where a case says so the figures
that the new bytes measure. Only a forger who computes a whole new manifest, stream digests and all, makes a folder that is consistent
again; that is another delivery, with another manifest digest than the one in the trajectory.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from media.command import Command, Sandbox
from replay.delivery import verify_delivery
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO
from replay.state import apply, shot_change
from replay.tools import compose_timeline, render_shots, stitch_video, synthesize_narration
from schemas.errors import OutputRejected
from schemas.state import AssetChoice, ProductionState
from tests.replay.studio import SOURCES, Studio

pytestmark = pytest.mark.hostile

Folder = Callable[[], Path]
TEXTS = ("The clock runs on a card.", "A fractal grows.")
OTHER = ("Another film says this.", "And ends with other words.")


def _film(studio: Studio, texts: tuple[str, str]) -> ProductionState:
    """A small delivered film of two shots."""
    state = studio.planned([(text, text, 1500) for text in texts])
    for sid, source in zip(state.film.shot_order, SOURCES, strict=False):
        clip = studio.pool[source]
        chosen = AssetChoice(clip_id=clip.clip_id, ref=clip.ref, query=clip.text, score=1.0, ranked=(clip.clip_id,))
        state = apply(state, [shot_change(sid, "asset", chosen)])
    state, _ = studio.run(synthesize_narration.TOOL, state, {"shots": "all"})
    state, _ = studio.run(compose_timeline.TOOL, state)
    state, _ = studio.run(render_shots.TOOL, state, {"shots": "all"})
    state, _ = studio.run(stitch_video.TOOL, state)
    return state


def _write(state: ProductionState, studio: Studio, folder: Path) -> Path:
    folder.mkdir()
    delivery = state.film.delivery
    assert delivery is not None
    (folder / VIDEO).write_bytes(studio.store.read(delivery.video.sha256))
    (folder / MANIFEST).write_bytes(studio.store.read(delivery.manifest.sha256))
    manifest = json.loads((folder / MANIFEST).read_bytes())
    for name, part in ((CAPTIONS, "captions"), (ATTRIBUTION, "attribution")):
        (folder / name).write_bytes(studio.store.read(manifest[part]["sha256"]))
    return folder


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Studio:
    return Studio(tmp_path_factory.mktemp("tampering"), sandbox)


@pytest.fixture(scope="module")
def honest(studio: Studio) -> Path:
    return _write(_film(studio, TEXTS), studio, studio.root / "honest")


@pytest.fixture(scope="module")
def other(studio: Studio) -> Path:
    """A delivery of other words over the same clips."""
    return _write(_film(studio, OTHER), studio, studio.root / "other")


@pytest.fixture
def folder(honest: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(honest, tmp_path / "film"))


def forge(folder: Path, **changes: Any) -> None:
    """Put digest and size of the file that is there, and further values, into the manifest."""
    data = json.loads((folder / MANIFEST).read_bytes())
    film = (folder / VIDEO).read_bytes()
    data["video"] |= {"sha256": hashlib.sha256(film).hexdigest(), "size_bytes": len(film)}
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = data
        for part in parents:
            at = at[part]
        at[last] = value
    (folder / MANIFEST).write_text(json.dumps(data))


def remade(studio: Studio, folder: Path, *argv: str, name: str = "a.mp4", **inputs: Path) -> None:
    """Replace the film by what ffmpeg makes of it (``/in/film``) and other inputs."""
    made = studio.ffmpeg(name, *argv, f"/out/{name}", inputs={"film": folder / VIDEO, **inputs})
    (folder / VIDEO).write_bytes(made.read_bytes())


def codes(folder: Path, sandbox: Sandbox) -> set[str]:
    report = verify_delivery(folder, sandbox)
    assert report.passed is not bool(report.problems)
    return {p.code for p in report.problems}


def test_the_honest_folder_is_verified(folder: Path, sandbox: Sandbox) -> None:
    assert codes(folder, sandbox) == set()


def test_the_finished_film_it_was_recovered_from_is_no_delivery(studio: Studio, folder: Path, sandbox: Sandbox) -> None:
    source = studio.ffmpeg(
        "a.mp4", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=30:d=9", "-f", "lavfi", "-i", "sine=d=9", "-c:v", "libx264", "-c:a", "aac",
        "/out/a.mp4",
    )  # fmt: skip
    (folder / VIDEO).write_bytes(source.read_bytes())
    forge(folder)
    assert {"wrong_stream", "wrong_length"} <= codes(folder, sandbox)


def test_a_verdict_that_lies_beside_it_counts_for_nothing(folder: Path, sandbox: Sandbox) -> None:
    (folder / VIDEO).write_bytes((folder / VIDEO).read_bytes()[:-2000])
    for name in ("verdict.json", "report.json", "verified"):
        (folder / name).write_text(json.dumps({"passed": True, "problems": []}))
    assert codes(folder, sandbox) == {"wrong_bytes"}


def test_a_blank_film_of_the_right_length(studio: Studio, folder: Path, sandbox: Sandbox) -> None:
    frames = json.loads((folder / MANIFEST).read_bytes())["picture"]["frames"]
    remade(
        studio, folder, "-f", "lavfi", "-i", "color=black:s=320x180:r=30", "-i", "/in/film", "-map", "0:v", "-map", "1:a", "-frames:v",
        str(frames), "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "copy",
    )  # fmt: skip
    forge(folder, picture__black_share=1.0, picture__frozen_share=1.0)
    assert {"black", "wrong_stream"} <= codes(folder, sandbox)


def test_the_right_streams_in_another_container(studio: Studio, folder: Path, sandbox: Sandbox) -> None:
    remade(studio, folder, "-i", "/in/film", "-c", "copy", name="a.mkv")
    forge(folder)
    assert "wrong_container" in codes(folder, sandbox)


@pytest.mark.parametrize(
    "filters",
    ["setts=ts=TS*3/2", "setts=ts=TS+gte(N\\,20)*2048", "setts=ts=if(lt(N\\,30)\\,TS\\,TS+512)"],
    ids=["slower", "a gap", "one frame late"],
)
def test_edited_time_stamps(studio: Studio, folder: Path, sandbox: Sandbox, filters: str) -> None:
    remade(studio, folder, "-i", "/in/film", "-c", "copy", "-bsf:v", filters)
    forge(folder)
    assert codes(folder, sandbox) & {"wrong_timing", "wrong_rate"}


@pytest.mark.parametrize("name", [VIDEO, MANIFEST, CAPTIONS, ATTRIBUTION])
def test_a_link_to_the_right_file(folder: Path, sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    assert codes(folder, sandbox) & {"missing_file", "wrong_captions", "wrong_attribution"}


def test_a_command_that_ends_well_and_leaves_its_stale_product(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"made by an older run")
    for script, code in (("exit 0", "missing"), ("cp /bin/true a.mp4", "name_taken")):
        with pytest.raises(OutputRejected) as caught:
            sandbox.run(Command(argv=("/bin/sh", "-c", script), outputs=("a.mp4",)), tmp_path)
        assert caught.value.code == code


def test_the_last_frame_is_gone(studio: Studio, folder: Path, sandbox: Sandbox) -> None:
    frames = json.loads((folder / MANIFEST).read_bytes())["picture"]["frames"]
    remade(
        studio, folder, "-i", "/in/film", "-c:a", "copy", "-frames:v", str(frames - 1), "-c:v", "libx264", "-pix_fmt", "yuv420p"
    )  # fmt: skip
    forge(folder, picture__frames=frames - 1)
    assert {"wrong_length", "wrong_stream"} <= codes(folder, sandbox)


def test_the_sound_of_another_film(studio: Studio, folder: Path, other: Path, sandbox: Sandbox) -> None:
    remade(studio, folder, "-i", "/in/film", "-i", "/in/other", "-map", "0:v", "-map", "1:a", "-c", "copy", other=other / VIDEO)
    forge(folder)
    assert "wrong_stream" in codes(folder, sandbox)


@pytest.mark.parametrize("name", [VIDEO, MANIFEST, CAPTIONS])
def test_an_older_output_under_a_new_name(folder: Path, other: Path, sandbox: Sandbox, name: str) -> None:
    shutil.copy(other / name, folder / name)
    assert codes(folder, sandbox) & {"wrong_bytes", "wrong_captions"}


@pytest.mark.parametrize(
    "extra",
    [{"tolerance_us": 10**9}, {"sound__max_drift_us": 10**9}, {"picture__tolerance": 99}, {"schema_version": "delivery.99"}],
    ids=["film", "sound", "picture", "version"],
)
def test_a_manifest_sets_no_tolerances(folder: Path, sandbox: Sandbox, extra: dict[str, Any]) -> None:
    forge(folder, **extra)
    assert codes(folder, sandbox) == {"bad_manifest"}


def test_a_shot_that_is_counted_twice(folder: Path, sandbox: Sandbox) -> None:
    shots = json.loads((folder / MANIFEST).read_bytes())["shots"]
    first, second = shots
    half = first["frames"] // 2
    parts = [{**first, "frames": half}, {**first, "start_frame": half, "frames": first["frames"] - half, "narration": None}]
    forge(folder, shots=[*parts, second])
    assert codes(folder, sandbox) == {"shot_twice", "narration_outside"}


def test_a_louder_film_than_is_said(studio: Studio, folder: Path, sandbox: Sandbox) -> None:
    remade(studio, folder, "-i", "/in/film", "-c:v", "copy", "-af", "volume=12dB", "-c:a", "aac", "-b:a", "160k")
    forge(folder)
    assert {"too_loud", "loudness", "wrong_stream"} <= codes(folder, sandbox)


def test_authors_are_struck_out(folder: Path, sandbox: Sandbox) -> None:
    credit = {"kind": "footage", "name": "A film", "licence": "CC-BY-3.0", "attribution": "Somebody"}
    forge(folder, credits=[credit])
    (folder / ATTRIBUTION).unlink()
    assert codes(folder, sandbox) == {"no_attribution"}
