"""A private Ray listens where no other process of the machine can reach it, and lets nobody in without its token."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from jobs.config import WorkprintConfig
from jobs.confine import can_be_private, private_network
from schemas.errors import ConfigInvalid

REPOSITORY = Path(__file__).resolve().parents[2]
needs_root = pytest.mark.skipif(not can_be_private()[0], reason="this process may not make network namespaces (needs root)")

LISTEN = "0A"


def listeners(table: Path) -> set[str]:
    return {row.split()[1] for row in table.read_text().splitlines()[1:] if row.split()[3] == LISTEN}


@needs_root
def test_a_port_of_the_private_network_is_not_reachable_from_outside() -> None:
    with private_network():
        server = socket.create_server(("0.0.0.0", 0))  # noqa: S104  as Ray does
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port)).close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    server.close()


@needs_root
def test_the_thread_returns_to_the_network_of_the_machine() -> None:
    before = os.readlink("/proc/thread-self/ns/net")
    with private_network():
        assert os.readlink("/proc/thread-self/ns/net") != before
    assert os.readlink("/proc/thread-self/ns/net") == before


SESSION = textwrap.dedent(
    """
    import json, os, subprocess, sys
    from pathlib import Path
    from jobs.config import WorkprintConfig
    from jobs.ray_runner import _network, _session

    def listening(path):
        rows = [r.split() for r in Path(path).read_text().splitlines()[1:]]
        return sorted({r[1] for r in rows if r[3] == "0A"})

    def family(old):
        parents = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
        young = [p for p, parent in parents.items() if parent == old]
        return young + [p for y in young for p in family(y)]

    def network(pid):
        return os.readlink(f"/proc/{pid}/ns/net")

    config = WorkprintConfig()
    home = network(os.getpid())
    with _network(config), _session(config.run.ray) as ray:
        address = ray.get_runtime_context().gcs_address
        stranger = subprocess.run(
            [sys.executable, "-c", f"import ray; ray.init(address={address!r}); print('INSIDE')"],
            env={**os.environ, "RAY_AUTH_TOKEN": "0" * 64}, capture_output=True, text=True, timeout=60,
        )
        addresses = [node["NodeManagerAddress"] for node in ray.nodes()]
        networks = sorted({network(p) for p in family(os.getpid()) if Path(f'/proc/{p}/ns/net').exists()})
        own = os.readlink("/proc/thread-self/ns/net")
        inside = listening("/proc/thread-self/net/tcp") + listening("/proc/thread-self/net/tcp6")
    print(json.dumps({"only_own": networks == [own] and own != home, "inside": len(inside), "addresses": addresses,
                      "mode": os.environ["RAY_AUTH_MODE"],
                      "version": ray.__version__, "stranger": "INSIDE" in stranger.stdout, "said": stranger.stderr[-2000:]}))
    """
)


@needs_root
@pytest.mark.slow
def test_all_of_ray_is_in_a_network_of_its_own_and_refuses_a_wrong_token() -> None:
    import json

    done = subprocess.run([sys.executable, "-c", SESSION], cwd=REPOSITORY, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen["only_own"], "a process of Ray is in the network of the machine"
    assert seen["inside"] > 3
    assert seen["addresses"] == ["127.0.0.2"]
    assert done.stderr == ""  # Ray asks no network for an address, and tells of none that it did not get
    assert (seen["mode"], seen["stranger"]) == ("token", False)
    assert "uthentication" in seen["said"]


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({}, ()),
        ({"replay": {"speech": {"engine": "endpoint", "endpoint_url": "http://speech:8000/v1"}}}, ("replay.speech.endpoint_url",)),
        ({"inversion": {"asr": {"engine": "endpoint", "endpoint_url": "http://asr:8000/v1"}}}, ("inversion.asr.endpoint_url",)),
        ({"inversion": {"asr": {"model": "large-v3"}}}, ("inversion.asr.model",)),
    ],
)
def test_a_configuration_knows_what_makes_it_reach_out(changes: dict[str, object], keys: tuple[str, ...]) -> None:
    assert WorkprintConfig.model_validate(changes).reaches_out() == keys


def test_a_private_network_that_cannot_be_had_is_refused() -> None:
    from jobs.ray_runner import _network

    config = WorkprintConfig.model_validate({"inversion": {"asr": {"model": "large-v3"}}, "run": {"ray": {"network": "private"}}})
    with pytest.raises(ConfigInvalid, match=r"inversion\.asr\.model needs the network"), _network(config):
        pass
