"""A chat endpoint that hangs: limits hold over all workers, and processors are free for others meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.media.servers import Reply, serve

REPOSITORY = Path(__file__).resolve().parents[2]

SCRIPT = textwrap.dedent(
    """
    import json, sys, time
    import ray
    from pathlib import Path
    from jobs import held, models, ray_pools
    from jobs.config import WorkprintConfig
    from replay.chat.model import ChatRequest

    config = WorkprintConfig.model_validate({
        "replay": {"policy": {"name": "chat", "student": {"model": "m"}}},
        "repair": {"judge": {"model": "j"}},
        "run": {"endpoints": {part: {"endpoint_url": sys.argv[1], "concurrency": 1, "timeout_s": 60, "budget_tokens": 2}
                              for part in ("student", "judge")}},
    })
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    from jobs.progress import EventLog
    pools = ray_pools.Pools(ray, config, EventLog(Path("/dev/null"), ""), "run")  # its members live as long as it does
    ways = pools.ways()

    @ray.remote(num_cpus=1)
    def asks(part):
        held.share(ways, config)
        model = models.model(part, config)
        began = time.time()
        try:
            model.complete(ChatRequest([{"role": "user", "content": "hi"}]))
        except Exception as error:
            return f"{type(error).__name__}: {error}", began, time.time()
        return "answered", began, time.time()

    @ray.remote(num_cpus=1)
    def works():
        return time.time()

    waiting = [asks.remote(sys.argv[2]), asks.remote(sys.argv[2])]
    time.sleep(2)
    worked = ray.get([works.remote() for _ in range(3)], timeout=60)
    done = ray.get(waiting, timeout=120)
    print(json.dumps({"worked": worked, "asked": done}))
    """
)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["student", pytest.param("judge", marks=pytest.mark.full)])
def test_a_worker_that_waits_for_a_model_lends_its_processor(part: str) -> None:
    answer = {"model": "m", "choices": [{"message": {"content": "ok"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    with serve([Reply(json.dumps(answer).encode(), wait_s=18)]) as server:
        done = subprocess.run([sys.executable, "-c", SCRIPT, server.url, part], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert len(server.requests) == 1, seen
    ended = min(end for _, _, end in seen["asked"])
    assert all(moment < ended for moment in seen["worked"]), "other work waited for the endpoint, on the one processor there is"
    assert sorted(what.partition(":")[0] for what, _, _ in seen["asked"]) == ["BudgetSpent", "answered"]
