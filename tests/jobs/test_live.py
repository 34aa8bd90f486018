"""Progress in a real terminal: right counts, one table at the end, the cursor back; plain lines where there is none."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
_SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])")


def command(lake: Path, stage_s: float) -> list[str]:
    return [sys.executable, "-m", "tests.fault.long_stages", str(lake), "3", "local", str(stage_s), "5", "--show"]


def _at_the_keyboard() -> None:
    """In the foreground of its terminal, ctrl-C heeded also where these tests run in the background of a shell."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def in_a_terminal(arguments: list[str], *, type_when: str | None = None) -> tuple[int, str]:
    """Run with a pseudo-terminal of 30 lines as its controlling terminal; exit status and all that it wrote. Ctrl-C is typed once, when a
    text has been seen."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    with subprocess.Popen(
        arguments, cwd=REPOSITORY, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=_at_the_keyboard,
    ) as process:  # fmt: skip
        os.close(slave)
        said = b""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            if not select.select([master], [], [], 0.1)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            said += piece
            if type_when is not None and type_when.encode() in said:
                os.write(master, b"\x03")
                type_when = None
        status = process.wait(30)
    os.close(master)
    return status, said.decode()


def screen(said: str) -> list[str]:
    """What stands on the terminal at the end, top to bottom."""
    lines = [""]
    row = column = at = 0
    while at < len(said):
        found = _SEQUENCE.match(said, at)
        if found:
            number = int(found[1] or 1) if found[1].isdigit() or not found[1] else 0
            if found[2] == "A":
                row = max(0, row - number)
            elif found[2] == "K":
                lines[row] = ""
            at = found.end()
            continue
        character = said[at]
        at += 1
        if character == "\r":
            column = 0
        elif character == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        else:
            lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


@pytest.mark.slow
def test_a_terminal_shows_right_counts_and_one_table_at_the_end(tmp_path: Path) -> None:
    status, said = in_a_terminal(command(tmp_path / "lake", 0.8))
    assert status == 0, said
    counts = [int(n) for n in re.findall(r"(\d) of 3 finished", said)]
    assert counts == sorted(counts)
    assert {0, 3} <= set(counts)
    assert len(set(counts)) > 2  # some in between
    shown = screen(said)
    assert [line.split()[0] for line in shown if line.endswith("delivered")] == ["light/0?sleep0.8", "light/1?sleep0.8", "light/2?sleep0.8"]
    assert sum("3 of 3 finished" in line for line in shown) == 1
    assert not any("0 of 3" in line for line in shown)
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") > 0  # the cursor is back
    assert shown[-1] == ""


@pytest.mark.slow
@pytest.mark.full
def test_ctrl_c_on_a_terminal_says_what_happens_now_and_what_did_not_come(tmp_path: Path) -> None:
    status, said = in_a_terminal(command(tmp_path / "lake", 1.5), type_when="replay")
    assert status == 130, said
    shown = screen(said)
    assert any(line.startswith("stopping: no further project is started, those under way have 5 s to end") for line in shown), shown
    assert any("0 of 3 finished" in line for line in shown), shown
    assert [line.split()[0] for line in shown if line.endswith("stopped")] == ["light/0?sleep1.5"]
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") > 0


def test_without_a_terminal_there_are_plain_lines(tmp_path: Path) -> None:
    done = subprocess.run(command(tmp_path / "lake", 0.1), cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr + done.stdout
    lines = done.stderr.splitlines()
    assert all(re.match(r"\[ *\d+\.\d s\] light/\d\?sleep0\.1  \S", line) for line in lines), lines
    assert [line.split("] ")[1] for line in lines if line.endswith("delivered")] == [f"light/{n}?sleep0.1  delivered" for n in range(3)]
    assert sum("replay: started" in line for line in lines) == 3
