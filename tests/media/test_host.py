"""What doctor is told of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from media import host
from media.bubblewrap import verify_layers
from media.host import inspect_host


def test_this_machine_is_whole() -> None:
    checks = inspect_host()
    assert {c.name: c.seen for c in checks if not c.ok} == {}
    assert len({c.name for c in checks}) == len(checks)


def test_a_bare_machine_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify_layers.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    try:
        missing = {c.name: c for c in inspect_host() if not c.ok}
    finally:
        verify_layers.cache_clear()
    assert {"bubblewrap", "util-linux", "sandbox", "ffmpeg", "ffmpeg parts"} <= set(missing)
    assert missing["bubblewrap"].next_step == "install the system package bubblewrap"
    assert all(c.next_step and c.consequence and c.expected for c in missing.values())


@pytest.mark.parametrize(
    ("line", "ok"),
    [
        ("ffmpeg version 5.1.9-0+deb12u1 Copyright (c) 2000-2026 the FFmpeg developers", True),
        ("ffmpeg version 8.0 Copyright", True),
        ("ffmpeg version n9.0.2-1-g123 Copyright", True),
        ("ffmpeg version N-118000-gabc Copyright", True),
        ("ffmpeg version 4.4.2-0ubuntu0.22.04.1 Copyright", False),
        ("no answer", False),
    ],
)
def test_the_floor_of_ffmpeg(monkeypatch: pytest.MonkeyPatch, line: str, ok: bool) -> None:
    monkeypatch.setattr(host, "_first_line", lambda argv: line)
    assert host._ffmpeg().ok is ok


@pytest.mark.parametrize(
    ("line", "ok"), [("bubblewrap 0.8.0", True), ("bubblewrap 0.11.0", True), ("bubblewrap 0.4.1", False), ("no answer", False)]
)
def test_the_floor_of_bubblewrap(monkeypatch: pytest.MonkeyPatch, line: str, ok: bool) -> None:
    monkeypatch.setattr(host, "_first_line", lambda argv: line)
    assert host._bubblewrap().ok is ok
