"""S2: hosts on which a layer is missing. Every one is refused with SandboxUnavailable; none gets a smaller sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import media.bubblewrap as bubblewrap
import media.seccomp as seccomp
import media.staging as staging
from media.bubblewrap import verify_layers
from media.command import Command
from media.sandbox import BubblewrapSandbox, open_sandbox
from schemas.errors import ConfigInvalid, SandboxUnavailable

pytestmark = pytest.mark.hostile

REAL = {name: shutil.which(name) for name in ("bwrap", "prlimit", "setpriv")}


@pytest.fixture(autouse=True)
def _ask_again() -> Iterator[None]:
    """The look at the layers is remembered; these tests change what there is to see."""
    verify_layers.cache_clear()
    yield
    verify_layers.cache_clear()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole PATH, with the real programs linked in."""
    folder = Path("/tmp") / f"workprint-host-{os.getpid()}-{tmp_path.name}"  # noqa: S108  (uid 65534 must reach it)
    folder.mkdir()
    for name, real in REAL.items():
        if real is not None:
            (folder / name).symlink_to(real)
    monkeypatch.setenv("PATH", str(folder))
    yield folder  # type: ignore[misc]
    shutil.rmtree(folder)


def _stand_in(host: Path, name: str, script: str) -> None:
    (host / name).unlink()
    (host / name).write_text(f"#!/bin/sh\n{script}\n")
    (host / name).chmod(0o755)


def _refused() -> SandboxUnavailable:
    with pytest.raises(SandboxUnavailable) as caught:
        open_sandbox()
    assert caught.value.next_step
    return caught.value


def test_the_whole_host_is_accepted(host: Path) -> None:
    assert open_sandbox().name == "bubblewrap"


@pytest.mark.parametrize("name", ["bwrap", "prlimit", "setpriv"])
def test_a_program_is_missing(host: Path, name: str) -> None:
    if name == "setpriv" and os.geteuid() != 0:
        pytest.skip("setpriv is only needed by root")
    (host / name).unlink()
    assert _refused().code == f"{name}_missing"


def test_bubblewrap_is_too_old(host: Path) -> None:
    _stand_in(host, "bwrap", 'echo "bwrap: Unknown option --disable-userns" >&2; exit 1')
    assert _refused().code == "setup"


def test_user_namespaces_are_forbidden(host: Path) -> None:
    _stand_in(host, "bwrap", 'echo "bwrap: No permissions to create new namespace" >&2; exit 1')
    error = _refused()
    assert error.code == "setup"
    assert "user namespaces" in error.next_step


def _thinned(host: Path, *without: str) -> None:
    """A bubblewrap that quietly leaves out some options (each with its arguments), as a host without that layer might."""
    drop = " ".join(without)
    _stand_in(
        host,
        "bwrap",
        f"""
exec {shutil.which("python3", path="/usr/bin") or "/usr/bin/python3"} -I -S - "$@" <<'END'
import os, sys
argv = sys.argv[1:]
at = argv.index("--args")
given = os.fdopen(int(argv[at + 1]), "rb").read().split(b"\\0")[:-1]
out, skip = [], 0
drop = dict(item.split("=") for item in {drop!r}.split())
for word in given:
    if skip:
        skip -= 1
    elif word.decode("utf-8", "replace") in drop:
        skip = int(drop[word.decode()])
    else:
        out.append(word)
os.execv({REAL["bwrap"]!r}, ["bwrap", *out, *argv[at + 2:]])
END""",
    )


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="needs a system Python")
@pytest.mark.parametrize(
    ("without", "layer"),
    [
        ("--seccomp=1", "system-call filter"),
        ("--unshare-net=0", "namespace"),
        ("--unshare-ipc=0", "namespace"),
        ("--unshare-uts=0 --hostname=1", "namespace"),
        ("--unshare-cgroup=0", "namespace"),
        ("--remount-ro=1", "read-only system"),
    ],
)
def test_a_layer_is_quietly_left_out(host: Path, without: str, layer: str) -> None:
    _thinned(host, without)
    error = _refused()
    assert error.code == "layer_missing"
    assert layer in error.message


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to drop its uid")
def test_root_is_not_dropped(host: Path) -> None:
    _stand_in(host, "setpriv", 'while [ "$1" != "--" ]; do shift; done; shift; exec "$@"')
    assert _refused().code in ("layer_missing", "setup")


def test_a_program_that_merely_runs_the_command_is_no_sandbox(host: Path) -> None:
    _stand_in(host, "bwrap", 'while [ "$1" != "--" ]; do shift; done; shift; exec "$@"')
    assert _refused().code in ("setup", "layer_missing", "look_around")


def test_libseccomp_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> object:
        raise OSError(f"{name}: libseccomp.so.2: cannot open shared object file")

    seccomp.filter_bytes.cache_clear()
    monkeypatch.setattr(seccomp.importlib, "import_module", missing)
    try:
        assert _refused().code == "seccomp_missing"
    finally:
        seccomp.filter_bytes.cache_clear()


def test_the_processor_is_unknown_to_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    seccomp.filter_bytes.cache_clear()
    monkeypatch.setattr(seccomp.platform, "machine", lambda: "riscv64")
    try:
        assert _refused().code == "seccomp_architecture"
    finally:
        seccomp.filter_bytes.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root needs a folder that others can enter")
def test_there_is_no_temporary_folder_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_enterable", lambda folder: False)
    assert _refused().code == "temporary_folder"


def test_a_layer_that_goes_missing_later_is_noticed(host: Path, tmp_path: Path) -> None:
    sandbox = open_sandbox()
    (host / "bwrap").unlink()
    with pytest.raises(SandboxUnavailable):
        sandbox.run(Command(argv=("true",)), tmp_path)


def test_the_mount_that_fails_is_no_result_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "_SYSTEM_FOLDERS", ("/bin", "/lib", "/lib64", "/sbin"))
    original = bubblewrap._bubblewrap_args

    def with_a_bad_mount(*args: object) -> list[str]:
        return [*original(*args), "--ro-bind", "/nowhere/at/all", "/opt/x"]  # type: ignore[arg-type]

    monkeypatch.setattr(bubblewrap, "_bubblewrap_args", with_a_bad_mount)
    with pytest.raises(SandboxUnavailable, match="setup"):
        BubblewrapSandbox().run(Command(argv=("true",)), tmp_path)


def test_process_is_only_had_by_name() -> None:
    assert open_sandbox("process").name == "process"
    with pytest.raises(ConfigInvalid):
        open_sandbox("none")  # type: ignore[arg-type]
