"""Engines in actors: the same answers as at hand, no more calls at once than declared, and a death that costs a try."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from jobs import held
from jobs.config import WorkprintConfig
from schemas.errors import ConfigInvalid

REPOSITORY = Path(__file__).resolve().parents[2]


def config_of(actors: dict[str, Any], **more: Any) -> WorkprintConfig:
    return WorkprintConfig.model_validate({"run": {"ray": {"actors": actors, "cpus_per_project": 1}}} | more)


def test_nothing_is_held_apart_by_default() -> None:
    assert held.pools(WorkprintConfig()) == {}


def test_a_judge_is_an_actor_with_the_places_that_are_declared() -> None:
    judge = {"repair": {"judge": {"model": "j"}}}
    assert held.pools(config_of({}, **judge))["judge"].slots > 4
    assert held.pools(config_of({"judge": {"concurrency": 2}}, **judge))["judge"].slots == 2


def test_a_judge_that_is_no_model_has_no_actor() -> None:
    with pytest.raises(ConfigInvalid, match=r"run\.ray\.actors\.ocr"):
        held.pools(config_of({"judge": {}}))


def test_limits_of_a_judge_are_not_multiplied() -> None:
    with pytest.raises(ValidationError, match=r"judge\.count must be 1"):
        config_of({"judge": {"count": 2}})


def test_an_engine_is_asked_only_what_its_protocol_has() -> None:
    with pytest.raises(ValueError, match="is not asked"):
        held.Holder("ocr", WorkprintConfig()).answer("__init__")


HEAD = """
import json, os, signal, sys, threading, time
from pathlib import Path
import numpy as np
from jobs import held, ray_pools
from jobs.config import WorkprintConfig
from jobs.progress import EventLog
import ray

class Slow:
    name = "slow"
    def read(self, image):
        began = time.time()
        time.sleep(float(image[0, 0, 0]) / 10)
        return (os.getpid(), began, time.time())

def slow(self):
    return Slow()

def pools(config, **nodes):
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR", **nodes)
    return ray_pools.Pools(ray, config, EventLog(Path("/dev/null"), ""), "run")
"""

SAME = HEAD + textwrap.dedent(
    """
    config = WorkprintConfig.model_validate({
        "inversion": {"asr": {"model": "whisper-tiny-en"}}, "replay": {"speech": {"engine": "flite"}},
        "run": {"ray": {"cpus_per_project": 1, "actors": {
            "asr": {"cpus": 0.5, "resources": {"ears": 1}}, "ocr": {"cpus": 0.25}, "tts": {"cpus": 0.25}}}}})
    here = {part: held.Holder(part, config) for part in held.ENGINES}
    speech, rate = here["tts"].answer("speak", "Seven of nine films were cut by hand.", "en", "slt", 1.0)
    sound = np.repeat(np.asarray(speech), 1).astype(np.float32)
    picture = np.full((90, 320, 3), 255, np.uint8)
    run = pools(config, num_cpus=2, resources={"ears": 1})
    held.share(run.ways(), config)
    ears, reader, voice = held.recogniser(config.inversion.asr), held.reader(), held.speech()
    asked = ray.available_resources()
    heard = ears.recognise(sound, "en")
    print(json.dumps({
        "heard": heard == here["asr"].answer("recognise", sound, "en", False), "words": len(heard.segments),
        "read": reader.read(picture) == here["ocr"].answer("read", picture),
        "spoken": bool(np.array_equal(voice.speak("Seven of nine films were cut by hand.", "en", "slt", 1.0)[0], speech)),
        "named": [e.name for e in (ears, reader, voice)] == [here[p].answer("about")["name"] for p in held.ENGINES],
        "left": {"CPU": asked.get("CPU", 0), "ears": asked.get("ears", 0)},
    }))
    """
)


def ran(script: str) -> dict[str, Any]:
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found


@pytest.mark.slow
def test_an_engine_in_an_actor_answers_as_one_at_hand_and_reserves_what_is_declared() -> None:
    assert ran(SAME) == {"heard": True, "words": 1, "read": True, "spoken": True, "named": True, "left": {"CPU": 1, "ears": 0}}


BOUNDS = HEAD + textwrap.dedent(
    """
    held.Holder._open = slow
    from ray import cloudpickle
    cloudpickle.register_pickle_by_value(held)  # the actors get this engine too
    cloudpickle.register_pickle_by_value(ray_pools)
    config = WorkprintConfig.model_validate({"run": {"ray": {"cpus_per_project": 1, "actors": {
        "ocr": {"count": 2, "cpus": 0.25, "timeout_s": 3, "attempts": 2}}}}})
    run = pools(config, num_cpus=2)
    ask = run.ways()["ocr"]
    def picture(tenths):
        return np.full((8, 8, 3), tenths, np.uint8)
    spans, faults = [], []
    def call(tenths):
        try:
            spans.append(ask("read", picture(tenths)))
        except Exception as error:
            faults.append(error.code)
    def all_of(*tenths):
        threads = [threading.Thread(target=call, args=(t,)) for t in tenths]
        [t.start() for t in threads]
        return threads
    [t.join() for t in all_of(5, 5, 5, 5, 5, 5)]
    most = max(sum(1 for _, b, e in spans if b <= began < e) for _, began, _ in spans)
    pids = {pid for pid, _, _ in spans}
    going = all_of(15)
    time.sleep(0.7)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    [t.join() for t in going]
    deaths = ray.get(run._exchange.figures.remote())["ocr"]["deaths"]
    ray.kill(run._exchange, no_restart=False)
    [t.join() for t in all_of(2)]
    after = len(spans)
    [t.join() for t in all_of(200)]
    figures = ray.get(run._exchange.figures.remote())["ocr"]
    print(json.dumps({"most": most, "processes": len(pids), "repeated": after, "faults": faults,
                      "deaths": deaths, "timeouts": figures["timeouts"]}))
    """
)


@pytest.mark.slow
def test_calls_are_bounded_and_a_death_costs_a_try_and_a_hang_is_a_typed_fault() -> None:
    assert ran(BOUNDS) == {
        "most": 2, "processes": 2, "repeated": 8, "faults": ["engine_timeout"], "deaths": 1, "timeouts": 1
    }  # fmt: skip


def test_pools_beside_which_no_project_could_run_are_refused() -> None:
    from jobs.ray_pools import fits

    class Machine:
        @staticmethod
        def cluster_resources() -> dict[str, float]:
            return {"CPU": 2.0}

    with pytest.raises(ConfigInvalid, match="3 CPU of 2"):
        fits(Machine, (c := config_of({"asr": {"cpus": 2}})), held.pools(c))
    with pytest.raises(ConfigInvalid, match="1 GPU of 0"):
        fits(Machine, (c := config_of({"asr": {"cpus": 1, "gpus": 1}})), held.pools(c))
    fits(Machine, (c := config_of({"asr": {"cpus": 1}})), held.pools(c))
