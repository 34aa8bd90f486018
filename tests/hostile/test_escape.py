"""S1: attempts to get out. Each must fail for the reason we expect, and the same attempt outside must not, or it proves nothing."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from media.command import Command, Limits, Sandbox

pytestmark = pytest.mark.hostile

SCRIPT = Path(__file__).with_name("attempts.py")
CANARY = "CANARY-7f3a91"

EXPECTED: dict[str, str] = {
    "read host file": "ENOENT",
    "read /etc/passwd": "ENOENT",
    "read host file through pid 1": "ENOENT",
    "enter /root": "ENOENT",
    "enter /sys": "ENOENT",
    "write into /usr": "EACCES EROFS",
    "write into /": "EROFS",
    "write into /in": "EROFS EACCES",
    "write over an input": "EACCES EROFS",
    "write into /dev": "EROFS",
    "open core_pattern": "EACCES EROFS",
    "open modprobe": "EACCES EROFS ENOENT",
    "open sysrq-trigger": "EACCES EROFS ENOENT",
    "open kmsg": "ENOENT",
    "connect to loopback": "ECONNREFUSED",
    "connect to a unix socket file": "ENOENT",
    "connect to an abstract unix socket": "ECONNREFUSED",
    "send to the world": "ENETUNREACH",
    "make a vsock": "EAFNOSUPPORT",
    "make a packet socket": "EAFNOSUPPORT",
    "make a raw socket": "EPERM",
    "make a crypto socket": "EAFNOSUPPORT",
    "make an audit netlink socket": "EAFNOSUPPORT",
    "signal the parent": "ESRCH",
    "see other processes": "ESRCH",
    "find open descriptors": "EBADF",
    "find a secret in an environment": "ENOENT",
    "find a host path in a command line": "ENOENT",
    "become root": "EINVAL EPERM",
    "raise a limit": "EPERM",
    "set the setuid bit": "EPERM",
    "create with the setuid bit": "EPERM",
    "make a device": "EPERM",
    "inject into a terminal": "EPERM",
    "trace": "EPERM",
    "read memory of a process": "EPERM",
    "write memory of a process": "EPERM",
    "compare processes": "EPERM",
    "steal a descriptor": "EPERM",
    "make a user namespace": "EPERM",
    "make a user namespace by clone": "EPERM",
    "make a user namespace by clone3": "ENOSYS",
    "enter a namespace": "EPERM",
    "mount": "EPERM",
    "mount by the new interface": "EPERM",
    "clone a mount": "EPERM",
    "unmount": "EPERM",
    "change the root": "EPERM",
    "pivot the root": "EPERM",
    "load a bpf map": "EPERM",
    "open a performance counter": "EPERM",
    "load a kernel": "EPERM",
    "load a module": "EPERM",
    "remove a module": "EPERM",
    "read the kernel log": "EPERM",
    "set up io_uring": "EPERM",
    "handle page faults": "EPERM",
    "read a keyring": "EPERM",
    "add a key": "EPERM",
    "take a file handle": "EPERM",
    "listen to the file system": "EPERM",
    "reach ports": "EPERM",
    "change descriptors of the processor": "EPERM",
    "swap": "EPERM",
    "account": "EPERM",
    "ask for quotas": "EPERM",
    "set the clock": "EPERM",
    "tune the clock": "EPERM",
    "name the host": "EPERM",
    "share memory the old way": "EPERM",
    "make a semaphore": "EPERM",
    "make a message queue": "EPERM",
    "make a memory file": "ENOSYS",
    "place memory": "EPERM",
    "change the personality": "EPERM",
    "give pages to a pipe": "EPERM",
    "call something newer than known": "ENOSYS",
    "call in the x32 way": "ENOSYS",
    "call in the 32-bit way": "SIGSYS",
}

NO_CONTROL = frozenset(
    {
        "read host file through pid 1",  # the host's first process may be closed to us
        "raise a limit",  # a root without that capability
        "open modprobe",  # kernels without modules
        "open sysrq-trigger",
        "open kmsg",
        "make a vsock",  # kernels without the family
        "make a packet socket",
        "make a crypto socket",
        "make an audit netlink socket",
        "call in the x32 way",  # kernels built without it
    }
)
"""Attempts that some kernels refuse to anybody: no control is asked for."""

ROOT_CONTROL = frozenset(
    {
        *("enter /root", "write into /usr", "write into /", "write into /dev", "open core_pattern", "make a raw socket", "become root"),
        *("make a device", "inject into a terminal", "read memory of a process", "write memory of a process"),
        *("make a user namespace", "make a user namespace by clone", "make a user namespace by clone3", "enter a namespace", "mount"),
        *("mount by the new interface", "clone a mount", "unmount", "change the root", "pivot the root", "load a bpf map"),
        *("open a performance counter", "load a kernel", "load a module", "remove a module", "read the kernel log", "handle page faults"),
        *(
            "listen to the file system",
            "reach ports",
            "swap",
            "account",
            "ask for quotas",
            "set the clock",
            "tune the clock",
            "name the host",
        ),
    }
)
"""Attempts that the host itself refuses to everybody but root."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Real targets outside: a file, a loopback server, unix sockets, a secret in the environment and in a folder's name."""
    folder = tmp_path_factory.mktemp(CANARY)
    (folder / "secret.txt").write_text(CANARY)
    shutil.copy(SCRIPT, folder / "attempts.py")
    tcp, unix, abstract = socket.socket(), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    name = f"workprint-{os.getpid()}"
    tcp.bind(("127.0.0.1", 0))
    path = f"/tmp/{name}.sock"  # noqa: S108
    unix.bind(path)
    abstract.bind(f"\0{name}")
    for listener in (tcp, unix, abstract):
        listener.listen(8)
    yield {
        "pid": os.getpid(),
        "folder": str(folder),
        "inputs": str(folder),
        "tcp": tcp.getsockname()[1],
        "unix": path,
        "abstract": name,
        "canary": CANARY,
        "host_file": str(folder / "secret.txt"),
        "cmdline": "/proc/self/cmdline",
    }
    for listener in (tcp, unix, abstract):
        listener.close()
    os.unlink(path)


@pytest.fixture(scope="module")
def inside_results(scene: dict[str, Any], sandbox: Sandbox, inside_python: tuple[str, Mapping[str, Path]]) -> dict[str, str]:
    os.environ["WORKPRINT_SECRET"] = CANARY
    try:
        program, folders = inside_python
        given = {**scene, "folder": "/out", "inputs": "/in", "cmdline": "/proc/1/cmdline"}
        command = Command(
            argv=(program, "-I", "-S", "/in/attempts.py", "/in/given.json"),
            inputs={"attempts.py": Path(scene["folder"]) / "attempts.py"},
            texts={"given.json": json.dumps(given).encode()},
            folders=folders,
            limits=Limits(wall_s=60),
        )
        done = sandbox.run(command, Path(scene["folder"]))
    finally:
        del os.environ["WORKPRINT_SECRET"]
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def outside_results(scene: dict[str, Any], inside_python: tuple[str, Mapping[str, Path]]) -> dict[str, str]:
    given = Path(scene["folder"]) / "given.json"
    given.write_text(json.dumps(scene))
    with open(scene["host_file"]) as extra:
        done = subprocess.run(
            [sys.executable, "-I", "-S", scene["folder"] + "/attempts.py", str(given)],
            capture_output=True,
            check=True,
            env={"WORKPRINT_SECRET": CANARY},
            pass_fds=(extra.fileno(),),
        )
    return dict(json.loads(done.stdout))


def _names(results: Mapping[str, str]) -> list[str]:
    return [name for name in EXPECTED if name in results]


def test_every_attempt_fails_for_the_expected_reason(
    inside_results: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    wrong = {n: inside_results[n] for n in _names(inside_results) if inside_results[n] not in EXPECTED[n].split()}
    assert wrong == {}
    record_property("attempts", len(inside_results))


def test_at_least_43_attempts_are_made_and_all_are_judged(inside_results: dict[str, str]) -> None:
    assert set(inside_results) <= set(EXPECTED)
    assert len(inside_results) >= (43 if "trace" in inside_results else 30)


def test_the_same_attempts_succeed_or_fail_otherwise_outside(
    inside_results: dict[str, str], outside_results: dict[str, str], record_property: Callable[[str, object], None]
) -> None:
    exempt = NO_CONTROL | (frozenset() if os.geteuid() == 0 else ROOT_CONTROL)
    same = {n: outside_results[n] for n in _names(inside_results) if n not in exempt and outside_results[n] == inside_results[n]}
    assert same == {}
    record_property("controlled", sum(1 for n in _names(inside_results) if n not in exempt))


UNPRIVILEGED = """
import json, sys
from pathlib import Path
from media.command import Command, Limits
from media.sandbox import open_sandbox
folder, given = Path(sys.argv[1]), json.loads(sys.argv[2])
command = Command(
    argv=("/usr/bin/python3", "-I", "-S", "/in/attempts.py", "/in/given.json"),
    inputs={"attempts.py": folder / "attempts.py"}, texts={"given.json": json.dumps(given).encode()}, limits=Limits(wall_s=60))
done = open_sandbox().run(command, folder)
sys.stdout.write(done.stdout.decode())
sys.stderr.write(done.stderr)
"""


def test_the_same_holds_when_an_ordinary_user_starts_it(
    scene: dict[str, Any], tmp_path_factory: pytest.TempPathFactory, record_property: Callable[[str, object], None]
) -> None:
    if os.geteuid() != 0:
        pytest.skip("this run is an ordinary user's already")
    root = Path(__file__).resolve().parents[2]
    site = Path(next(p for p in sys.path if p.endswith("site-packages")))
    if not Path("/usr/bin/python3").exists():
        pytest.skip("no system Python for uid 65534")
    folder = Path(f"/tmp/{CANARY}-{os.getpid()}")  # noqa: S108
    folder.mkdir()
    try:
        shutil.copy(SCRIPT, folder / "attempts.py")
        os.chown(folder, 65534, 65534)
        given = {**scene, "folder": "/out", "inputs": "/in", "cmdline": "/proc/1/cmdline"}
        done = subprocess.run(
            [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--",
                "/usr/bin/python3",
                "-c",
                UNPRIVILEGED,
                str(folder),
                json.dumps(given),
            ],
            capture_output=True,
            text=True,
            check=False,
            cwd="/tmp",  # noqa: S108
            env={"PATH": os.environ["PATH"], "PYTHONPATH": f"{root}:{site}", "WORKPRINT_SECRET": CANARY, "PYTHONDONTWRITEBYTECODE": "1"},
        )
    finally:
        shutil.rmtree(folder)
    if "PermissionError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip("the checkout cannot be read by uid 65534")
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert {n: r for n, r in results.items() if r not in EXPECTED[n].split()} == {}
    record_property("attempts", len(results))
