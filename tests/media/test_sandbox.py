"""The sandbox as its callers use it."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from media import staging
from media.bubblewrap import verify_layers
from media.command import Command, Limits, Sandbox
from media.sandbox import open_sandbox
from schemas.errors import LimitExceeded, ToolFailed

KINDS = ["bubblewrap", "process"]


@pytest.fixture(params=KINDS)
def either(request: pytest.FixtureRequest) -> Sandbox:
    return open_sandbox(request.param)


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    """A folder only we can enter, as a home folder is."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


def _sh(script: str, **more: object) -> Command:
    return Command(argv=("/bin/sh", "-c", script), **more)  # type: ignore[arg-type]


def test_inputs_texts_and_outputs(either: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("one ")
    script = _sh("cat /in/a /in/sub/b >/out/joined", inputs={"a": tmp_path / "given.txt"}, texts={"sub/b": b"two"}, outputs=("joined",))
    done = either.run(script, tmp_path)
    assert done.returncode == 0
    assert done.outputs == {"joined": tmp_path / "joined"}
    assert (tmp_path / "joined").read_text() == "one two"
    assert (tmp_path / "joined").stat().st_uid == os.geteuid()


def test_exit_status_and_streams(either: Sandbox, tmp_path: Path) -> None:
    done = either.run(_sh("cat; echo err >&2; exit 7", stdin=b"x" * 300_000), tmp_path)
    assert (done.returncode, len(done.stdout), done.stderr) == (7, 300_000, "err\n")
    assert done.wall_us > 0


def test_a_signal_is_128_and_its_number(either: Sandbox, tmp_path: Path) -> None:
    assert either.run(_sh("kill -KILL $$"), tmp_path).returncode == 137


def test_environment_holds_only_what_is_given(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "canary")
    done = sandbox.run(Command(argv=("/usr/bin/env",), env={"GIVEN": "yes"}), tmp_path)
    names = {line.split(b"=")[0] for line in done.stdout.splitlines()}
    assert names == {b"PATH", b"HOME", b"TMPDIR", b"LANG", b"LC_ALL", b"TZ", b"GIVEN", b"PWD"}


@pytest.mark.parametrize(
    "name",
    [
        'it\'s "quoted" $(touch x) & ; [1] {a}.mp4',
        "-show_entries.mp4",
        "line1\nline2.mp4",
        "视频 é😀.mp4",
        "100%03d done.mp4",
        "concat:a.mp4",
        "  spaces ",
        "a:b\\c|d.mp4",
        "." + "x" * 240,
        "*?.mp4",
    ],
)
def test_any_host_name_can_be_an_input(either: Sandbox, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("content")
    assert either.run(Command(argv=("cat", "/in/source"), inputs={"source": tmp_path / name}), tmp_path).stdout == b"content"


def test_an_input_below_a_closed_folder(sandbox: Sandbox, closed_folder: Path, tmp_path: Path) -> None:
    (closed_folder / "film").write_text("content")
    assert sandbox.run(Command(argv=("cat", "/in/source"), inputs={"source": closed_folder / "film"}), tmp_path).stdout == b"content"


def test_an_input_only_we_can_read(sandbox: Sandbox, closed_folder: Path, tmp_path: Path) -> None:
    film = closed_folder / "film"
    film.write_text("first")
    film.chmod(0o600)
    command = Command(argv=("cat", "/in/source"), inputs={"source": film})
    assert sandbox.run(command, tmp_path).stdout == b"first"
    film.write_text("second, longer")
    assert sandbox.run(command, tmp_path).stdout == b"second, longer"
    assert film.stat().st_mode & 0o777 == 0o600


def test_a_folder_below_a_closed_folder(sandbox: Sandbox, closed_folder: Path, tmp_path: Path) -> None:
    parts = closed_folder / "node_modules"
    (parts / "deep" / "er").mkdir(parents=True)
    (parts / "deep" / "er" / "file").write_text("content")
    (parts / "tool").write_text("#!/bin/sh\ncat /opt/parts/link\n")
    (parts / "tool").chmod(0o755)
    (parts / "link").symlink_to("deep/er/file")
    command = Command(argv=("/opt/parts/tool",), folders={"/opt/parts": parts})
    assert sandbox.run(command, tmp_path).stdout == b"content"
    (parts / "deep" / "er" / "file").unlink()
    (parts / "deep" / "er" / "file").write_text("changed content")
    assert sandbox.run(command, tmp_path).stdout == b"changed content"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root stages")
def test_a_folder_is_staged_once(sandbox: Sandbox, closed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = closed_folder / "parts"
    parts.mkdir()
    for n in range(20):
        (parts / str(n)).write_text(str(n))
    copied: list[Path] = []
    original = staging._copy_folder
    monkeypatch.setattr(staging, "_copy_folder", lambda source, target: (copied.append(source), original(source, target))[1])
    for _ in range(3):
        sandbox.run(Command(argv=("ls", "/opt/parts"), folders={"/opt/parts": parts}), tmp_path)
    assert copied == [parts]


def test_inputs_cannot_be_written(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("untouched")
    (tmp_path / "given").chmod(0o666)
    done = sandbox.run(_sh("echo changed >/in/a; rm /in/a; mv /in/a /in/b", inputs={"a": tmp_path / "given"}), tmp_path)
    assert done.returncode != 0
    assert (tmp_path / "given").read_text() == "untouched"


def test_a_missing_input_is_named(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="input 'source'"):
        sandbox.run(Command(argv=("true",), inputs={"source": tmp_path / "none"}), tmp_path)


def test_a_folder_is_no_input(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="no regular file"):
        sandbox.run(Command(argv=("true",), inputs={"source": tmp_path}), tmp_path)


def test_stream_reads_as_it_comes(either: Sandbox) -> None:
    seen: list[bytes] = []

    def consume(pipe: IO[bytes]) -> None:
        seen.append(pipe.read(6))
        seen.append(pipe.read())

    done = either.stream(_sh("echo first; sleep 0.2; echo second; exit 3"), consume)
    assert seen == [b"first\n", b"second\n"]
    assert (done.returncode, done.stdout) == (3, b"")


def test_stream_ends_the_command_when_the_reader_stops(either: Sandbox) -> None:
    start = time.monotonic()
    done = either.stream(Command(argv=("yes",)), lambda pipe: [pipe.read(10)].clear())
    assert done.returncode >= 128
    assert time.monotonic() - start < 5


def test_stream_carries_the_readers_error(either: Sandbox) -> None:
    def consume(pipe: IO[bytes]) -> None:
        pipe.read(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        either.stream(Command(argv=("yes",)), consume)


def test_a_slow_reader_does_not_use_up_the_wall_clock(either: Sandbox) -> None:
    def consume(pipe: IO[bytes]) -> None:
        while pipe.read(1 << 20):
            time.sleep(0.25)

    command = Command(argv=("head", "-c", "4194304", "/dev/zero"), limits=Limits(wall_s=0.6))
    assert either.stream(command, consume).returncode == 0


def test_stream_writes_more_than_a_captured_run_may(either: Sandbox) -> None:
    got: list[int] = []
    command = Command(argv=("head", "-c", "3000000", "/dev/zero"), limits=Limits(stdout_bytes=1000))
    either.stream(command, lambda pipe: got.append(len(pipe.read())))
    assert got == [3_000_000]


def test_many_runs_at_once(sandbox: Sandbox, tmp_path: Path) -> None:
    results: dict[int, bytes] = {}

    def one(n: int) -> None:
        results[n] = sandbox.run(_sh(f"echo {n}"), tmp_path).stdout

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: f"{n}\n".encode() for n in range(8)}


def test_interrupting_the_caller_ends_the_command(sandbox: Sandbox, tmp_path: Path) -> None:
    def consume(pipe: IO[bytes]) -> None:
        pipe.read(1)
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        sandbox.stream(_sh("echo a; sleep 30"), consume)
    assert time.monotonic() - start < 5


def test_layers_are_named() -> None:
    assert {"unprivileged uid", "no capabilities", "system-call filter", "no network", "read-only system"} <= set(verify_layers())


def test_a_limit_message_says_expected_and_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(LimitExceeded, match=r"sleep ran longer than 0\.2 s") as caught:
        sandbox.run(Command(argv=("sleep", "9"), limits=Limits(wall_s=0.2)), tmp_path)
    assert caught.value.code == "wall_clock"


@pytest.fixture
def chinese_name(tmp_path: Path) -> Path:
    path = tmp_path / "中文"
    path.write_text("内容")
    return path


def test_the_process_sandbox_rewrites_paths_in_graphs_but_not_in_captions(tmp_path: Path, chinese_name: Path) -> None:
    command = _sh(
        "cat /in/a.graph; echo; cat /in/caption.txt",
        inputs={"a": chinese_name},
        texts={"a.graph": b"movie=/in/a", "caption.txt": b"see /in/a"},
    )
    graph, caption = open_sandbox("process").run(command, tmp_path).stdout.decode().splitlines()
    assert Path(graph.removeprefix("movie=")).is_absolute()
    assert not graph.endswith("/in/a")
    assert caption == "see /in/a"
