"""Engines in actors that do not answer: a project lends its processors while all of its threads wait, and keeps them while one computes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from media.assets import asset
from media.command import Command, Limits
from media.sandbox import open_sandbox
from schemas.errors import EngineMissing

REPOSITORY = Path(__file__).resolve().parents[2]

SCRIPT = textwrap.dedent(
    """
    import json, os, signal, sys, time
    from pathlib import Path
    import ray
    from jobs import held, ray_pools
    from jobs.config import WorkprintConfig
    from jobs.progress import EventLog
    from media.crew import Crew, result

    film, folder = Path(sys.argv[1]), Path(sys.argv[2])
    config = WorkprintConfig.model_validate({
        "inversion": {"asr": {"model": "whisper-tiny-en"}}, "replay": {"speech": {"engine": "flite"}},
        "run": {"ray": {"cpus_per_project": 1, "actors": {part: {"cpus": 0} for part in held.ENGINES}}}})
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    pools = ray_pools.Pools(ray, config, EventLog(Path("/dev/null"), ""), "run")
    ways = pools.ways()

    @ray.remote(num_cpus=1)
    def project(part, computes=False):
        from inversion.invert import invert
        from media.sandbox import open_sandbox
        from schemas.media import SourceItem
        from storage.artifacts import ArtifactStore

        ray_pools.ask_through(ways, config)
        ears, reader, voice = held.recogniser(config.inversion.asr), held.reader(), held.speech()
        (folder / f"ready {part}").touch()
        while not (folder / f"go {part}").exists():
            time.sleep(0.02)
        if part == "tts":
            def busy():
                end = time.monotonic() + 3
                while computes and time.monotonic() < end:
                    pass
            with Crew(2) as crew:
                other = crew.submit(busy)
                return len(crew.gather(lambda text: voice.speak(text, "en", "slt", 1.0), ["One of two."])) + (result(other) or 0)
        item = SourceItem(uri="talk", language="en", subtitles=str(folder / "talk.srt") if part == "ocr" else None)
        store = ArtifactStore(folder / "store")
        reads = reader if part == "ocr" else None
        done = invert(item, film, config.inversion, sandbox=open_sandbox(), store=store, reader=reads, open_recogniser=lambda _: ears)
        return len(done.rows["words"])

    @ray.remote(num_cpus=1)
    def works():
        return True

    def until(seen, seconds=60):
        end = time.monotonic() + seconds
        while not seen() and time.monotonic() < end:
            time.sleep(0.05)
        assert seen()

    def lent(part, seconds, computes=False):
        (member,) = pools._members[part].values()
        process = ray.get(member.alive.remote())
        (folder / f"ready {part}").unlink(missing_ok=True)
        (folder / f"go {part}").unlink(missing_ok=True)
        going = project.remote(part, computes)
        until(lambda: (folder / f"ready {part}").exists())
        os.kill(process, signal.SIGSTOP)
        try:
            (folder / f"go {part}").touch()
            until(lambda: ray.get(pools._exchange.figures.remote())[part]["busy"] == 1)
            other = works.remote()
            ran, _ = ray.wait([other], timeout=seconds)
            still = not ray.wait([going], timeout=0)[0]
        finally:
            os.kill(process, signal.SIGCONT)
        return [bool(ran), still, ray.get(going, timeout=90) > 0 and ray.get(other, timeout=60)]

    if sys.argv[3] == "computes":
        print(json.dumps(lent("tts", 2, computes=True)))
    else:
        print(json.dumps(lent(sys.argv[3], 40)))
    """
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "lends"),
    [
        ("asr", True),
        pytest.param("ocr", True, marks=pytest.mark.full),
        pytest.param("tts", True, marks=pytest.mark.full),
        pytest.param("computes", False, marks=pytest.mark.full),
    ],
)
def test_a_project_lends_its_processors_while_all_of_its_threads_wait_for_an_actor(tmp_path: Path, part: str, lends: bool) -> None:
    try:
        source = asset("demo-video")
    except EngineMissing as e:
        pytest.skip(str(e))
    cut = ("ffmpeg", "-nostdin", "-v", "error", "-i", "/in/source", "-t", "8", "-c", "copy", "/out/talk.webm")
    made = open_sandbox().run(Command(cut, inputs={"source": source}, outputs=("talk.webm",), limits=Limits(wall_s=60)), tmp_path)
    assert made.returncode == 0, made.stderr
    (tmp_path / "talk.srt").write_text("1\n00:00:00,500 --> 00:00:06,000\nA talk on how physics works is given here today, in words.\n")
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "talk.webm"), str(tmp_path), part],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ran, still_waited, both_done = json.loads(done.stdout.splitlines()[-1])
    assert (ran, still_waited, both_done) == (lends, True, True)
