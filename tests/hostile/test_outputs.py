"""S8: what a hostile command may leave behind. Refused by kind before it is opened; a link's target is never read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest

from media.command import MIB, Command, Limits, Sandbox
from schemas.errors import ConfigInvalid, OutputRejected

pytestmark = pytest.mark.hostile


def _leave(sandbox: Sandbox, folder: Path, script: str, outputs: tuple[str, ...] = ("a",), cap: int = 64 * MIB) -> None:
    sandbox.run(Command(argv=("/bin/sh", "-c", script), outputs=outputs, limits=Limits(wall_s=20, file_bytes=cap)), folder)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("true", "missing"),
        ("ln -s /etc/passwd a", "link"),
        ("ln -s a a", "link"),
        ("ln -s /nowhere a", "link"),
        ("echo x >b; ln b a; rm b; ln a /out/c", "undeclared"),
        ("mkfifo a", "not_a_file"),
        ("mkdir a", "not_a_file"),
        ("mkdir a; chmod 0 a", "not_a_file"),
        ("echo x >a; echo y >b", "undeclared"),
        ("echo x >a; echo y >A", "undeclared"),
        ("echo x >a; echo y >.a", "undeclared"),
        ("printf x >a; printf y >\"$(printf 'a\\314\\201')\"", "undeclared"),
        ("echo x >a; mkdir -p ../out/..b", "undeclared"),
        ("echo x >a; ln -s / 'a b'", "undeclared"),
        ("echo x >a; printf y >\"$(printf 'bad\\nname')\"", "undeclared"),
    ],
)
def test_refused(sandbox: Sandbox, tmp_path: Path, script: str, code: str) -> None:
    with pytest.raises(OutputRejected) as caught:
        _leave(sandbox, tmp_path, script)
    assert caught.value.code == code
    assert list(tmp_path.iterdir()) == []


def test_two_names_of_one_file_are_refused(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(OutputRejected) as caught:
        _leave(sandbox, tmp_path, "echo x >a; ln a b", outputs=("a", "b"))
    assert caught.value.code == "hard_link"


def test_a_socket_is_refused(inside: object) -> None:
    script = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('/out/a')"
    with pytest.raises(OutputRejected) as caught:
        inside(script, outputs=("a",))  # type: ignore[operator]
    assert caught.value.code == "not_a_file"


def test_a_sparse_giant_is_refused_by_its_size(sandbox: Sandbox, tmp_path: Path) -> None:
    from media.collect import collect

    with open(tmp_path / "a", "wb") as file:
        file.truncate(10 * 1024 * MIB)
    goal = tmp_path / "goal"
    goal.mkdir()
    source = tmp_path / "out"
    source.mkdir()
    os.rename(tmp_path / "a", source / "a")
    with pytest.raises(OutputRejected) as caught:
        collect(source, ("a",), goal, 64 * MIB)
    assert caught.value.code == "too_large"


@pytest.mark.parametrize("name", ["../a", "/a", "a/b", "..", ".a", "a\nb", "-a", "a\0b", ""])
def test_a_declared_name_must_be_plain(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputRejected):
        _leave(sandbox, tmp_path, "true", outputs=(name,))


@pytest.mark.parametrize("name", ["../a", "/a", "..", ".a/b", "a//b", "a\nb"])
def test_an_input_name_must_be_plain(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigInvalid):
        sandbox.run(Command(argv=("true",), texts={name: b""}), tmp_path)


@pytest.mark.parametrize("place", ["/usr/x", "/proc/x", "/in/x", "relative", "/opt/../etc", "/tmp/x", "/"])  # noqa: S108
def test_a_folder_goes_only_to_a_free_place(sandbox: Sandbox, tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigInvalid):
        sandbox.run(Command(argv=("true",), folders={place: tmp_path}), tmp_path)


def test_a_name_that_is_taken_is_not_written_over(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("older")
    with pytest.raises(OutputRejected) as caught:
        _leave(sandbox, tmp_path, "echo newer >a")
    assert caught.value.code == "name_taken"
    assert (tmp_path / "a").read_text() == "older"


def test_a_setuid_mode_is_not_taken_over(sandbox: Sandbox, tmp_path: Path) -> None:
    _leave(sandbox, tmp_path, "echo x >a; chmod 777 a")
    info = (tmp_path / "a").stat()
    assert info.st_mode & 0o7777 == 0o644
    assert info.st_uid == os.geteuid()


def test_outputs_of_a_failed_command_are_not_collected(sandbox: Sandbox, tmp_path: Path) -> None:
    done = sandbox.run(Command(argv=("/bin/sh", "-c", "ln -s /etc/passwd a; exit 3"), outputs=("a",)), tmp_path)
    assert done.returncode == 3
    assert done.outputs == {}
    assert list(tmp_path.iterdir()) == []


def test_nothing_can_be_changed_after_the_command_has_ended(sandbox: Sandbox, tmp_path: Path) -> None:
    """A process left behind would swap the checked file for a link; it must be dead before anything is looked at."""
    script = "echo good >a; (setsid sh -c 'while :; do ln -sf /etc/passwd a; rm -f a; echo x >a; done' >/dev/null 2>&1 &); sleep 0.1"
    for turn in range(5):
        goal = tmp_path / str(turn)
        goal.mkdir()
        with contextlib.suppress(OutputRejected):  # the moment at which it died may have left a link, or nothing
            _leave(sandbox, goal, script)
        assert [path.read_bytes() for path in goal.iterdir() if not path.is_symlink()] in ([], [b"x\n"], [b"good\n"])
        assert not any(path.is_symlink() for path in goal.iterdir())


def test_the_scratch_folder_goes_whatever_was_left_in_it(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path("/tmp") / f"workprint-scrub-{os.getpid()}"  # noqa: S108  (uid 65534 must reach it)
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    script = "mkdir -p d/e/f; ln -s / d/link; touch d/e/f/x; chmod 0 d/e/f d/e d; exit 1"
    sandbox.run(Command(argv=("/bin/sh", "-c", script)), tmp_path)
    assert list(own.iterdir()) == []
    own.rmdir()
