"""``ray job submit`` of the command itself to a cluster with a dashboard on loopback and token authentication.

Needs Ray's job server, which is no part of the default environment: ``make test-cluster`` installs it.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from media.assets import asset
from media.command import Command, Limits
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing
from storage.lake import Lake
from tests.conftest import Tally

pytestmark = [pytest.mark.slow, pytest.mark.full]

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Head:
    """A running Ray head with its job server."""

    address: str
    environment: dict[str, str]

    def submit(self, *command: str, folder: Path, token: bool = True) -> subprocess.CompletedProcess[str]:
        """``ray job submit``, from a folder that is sent along."""
        environment = {k: v for k, v in self.environment.items() if token or k != "RAY_AUTH_TOKEN"}
        submit = [BIN / "ray", "job", "submit", "--address", self.address, "--working-dir", folder, "--", *command]
        return subprocess.run(submit, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=400)


def _free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return int(door.getsockname()[1])


@pytest.fixture(scope="module")
def head(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Head]:
    """``ray start --head`` with the dashboard on loopback; 8 CPUs and a GPU are claimed, so that configs/cluster.yaml fits."""
    pytest.importorskip("aiohttp_cors", reason="Ray's job server is not installed (make test-cluster)")
    environment = {
        **os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    }  # fmt: skip
    port, dashboard = _free_port(), _free_port()
    start = [BIN / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=8", "--num-gpus=1", "--object-store-memory=80000000",
             "--include-dashboard=true", "--dashboard-host=127.0.0.1", f"--dashboard-port={dashboard}",
             f"--temp-dir=/tmp/wps{os.getpid()}"]  # fmt: skip
    log = tmp_path_factory.mktemp("head") / "log"
    address = f"http://127.0.0.1:{dashboard}"
    with log.open("w") as out, subprocess.Popen(start, env=environment, start_new_session=True, stdout=out, stderr=out) as process:
        try:
            for _ in range(180):
                request = urllib.request.Request(f"{address}/api/version")  # noqa: S310
                request.add_header("Authorization", f"Bearer {environment['RAY_AUTH_TOKEN']}")
                try:
                    with urllib.request.urlopen(request, timeout=5):  # noqa: S310
                        break
                except (OSError, urllib.error.URLError):
                    assert process.poll() is None, log.read_text()
                    time.sleep(1)
            yield Head(address, environment)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def test_a_submitted_job_runs_the_command_with_the_configuration_of_a_cluster(head: Head, tmp_path: Path, tally: Tally) -> None:
    """Sources that are refused, so that it takes seconds; configs/cluster.yaml as it is, with the sources added."""
    videos = tmp_path / "videos"
    videos.mkdir()
    for n in range(3):
        (videos / f"film{n}.mp4").write_bytes(b"no film %d" % n)
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "cluster.yaml").write_text(f"sources: ['{videos}']\n" + (ROOT / "configs" / "cluster.yaml").read_text())
    lake = tmp_path / "lake"
    done = head.submit("workprint", "run", "cluster.yaml", "--lake", str(lake), "--json", folder=folder)
    said = done.stdout + done.stderr
    assert '"rejected"' in said, said[-3000:]
    assert len(Lake(lake, create=False).scan("rejections")) == 3
    assert done.returncode != 0  # every source was refused, and the job says so
    runs = [json.loads(p.read_text()) for p in (lake / "runs").glob("run_*/run.json")]
    assert [r["config"]["run"]["ray"]["address"] for r in runs] == ["auto"]
    again = head.submit("workprint", "run", "cluster.yaml", "--lake", str(lake), "--json", folder=folder)
    assert '"stages_run": 0' in again.stdout + again.stderr
    tally("submit", sources=3, jobs=2, rejections=3, stages_run_by_the_second=0)


def test_without_the_token_nothing_is_taken(head: Head, tmp_path: Path) -> None:
    refused = head.submit("touch", str(tmp_path / "done"), folder=tmp_path, token=False)
    assert refused.returncode != 0
    assert not (tmp_path / "done").exists()


def test_a_submitted_job_delivers_a_film(head: Head, tmp_path: Path) -> None:
    """Ten seconds of a recorded lecture, with the fast configuration and the address of a cluster."""
    try:
        source = asset("demo-video")
    except EngineMissing as e:
        pytest.skip(str(e))
    cut = ("ffmpeg", "-nostdin", "-v", "error", "-i", "/in/source", "-t", "10", "-c", "copy", "/out/talk.webm")
    made = open_sandbox().run(Command(cut, inputs={"source": source}, outputs=("talk.webm",), limits=Limits(wall_s=60)), tmp_path)
    assert made.returncode == 0, made.stderr
    folder = tmp_path / "job"
    folder.mkdir()
    config = (ROOT / "configs" / "ci.yaml").read_text()
    (folder / "fast.yaml").write_text(f"sources: ['{tmp_path}/talk.webm']\n{config}  ray: {{address: auto}}\n")
    lake = tmp_path / "lake"
    done = head.submit("workprint", "run", "fast.yaml", "--lake", str(lake), "--json", folder=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    opened = Lake(lake, create=False)
    assert opened.query("select count(*) from trajectories where outcome = 'delivered'").rows == [(1,)]
    assert len(list((lake / "projects").glob("*/video.mp4"))) == 1
