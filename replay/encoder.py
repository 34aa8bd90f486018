"""Which encoder made a picture: part of the keys under which products are kept, so that another ffmpeg makes its own.

Owns the one question asked of the program, and remembers the answer for the process.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from media.command import Command, Sandbox
from media.ffmpeg import last_words, tool
from schemas.errors import ToolFailed

_VERSIONS: dict[str, str] = {}


def ffmpeg_version(sandbox: Sandbox) -> str:
    """First words of ``ffmpeg -version``, asked once a process.

    Raises:
        EngineMissing: it is not installed.
        ToolFailed: it does not answer.
    """
    if sandbox.name not in _VERSIONS:
        program, mounted = tool("ffmpeg")
        with tempfile.TemporaryDirectory() as folder:
            done = sandbox.run(Command(argv=(program, "-hide_banner", "-version"), folders=mounted), Path(folder))
        words = done.stdout.decode("utf-8", "replace").split()
        if done.returncode != 0 or words[:2] != ["ffmpeg", "version"]:
            raise ToolFailed("ffmpeg_version", f"ffmpeg does not tell its version: {last_words(done.stderr)}")
        _VERSIONS[sandbox.name] = " ".join(words[:3])
    return _VERSIONS[sandbox.name]
