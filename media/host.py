"""Looks at this machine: the layers of the sandbox and the programs of sound and picture. For ``workprint doctor``.

Owns the questions and what a missing answer means. Changes nothing, and never makes a check pass by doing with less.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from media.bubblewrap import find_program, verify_layers
from media.command import MIB
from media.ffmpeg import AUDIO_CODECS, VIDEO_CODECS, tool_path
from media.seccomp import filter_bytes
from media.staging import privileged, scratch_folder
from schemas.errors import EngineMissing, PipelineError, SandboxUnavailable

BWRAP_FLOOR = (0, 8)
"""``--disable-userns`` came with it."""
FFMPEG_FLOOR = (5, 1)
"""``-fps_mode`` came with it. Distributions mend security faults without raising the number; keep the package up to date."""
ROOM_BYTES = 3 * 1024 * MIB
MEMORY_BYTES = 4 * 1024 * MIB

_NO_SANDBOX = "Nothing that opens media runs on this machine; there is no smaller sandbox that is used instead."
_NO_MEDIA = "Films can neither be read nor made."

_ENCODERS = ("libx264", "aac", "pcm_s16le")
_FILTERS = (
    "scale",
    "aformat",
    "asetpts",
    "settb",
    "setpts",
    "select",
    "ebur128",
    "drawtext",
    "perspective",
    "overlay",
    "fps",
    "tpad",
    "crop",
    "fade",
    "lutyuv",
    "boxblur",
    "zscale",
    "tonemap",
)
_DECODERS = tuple(
    name for names in (VIDEO_CODECS["h264"], VIDEO_CODECS["vp9"], AUDIO_CODECS["aac"], AUDIO_CODECS["opus"]) for name in names[:1]
)


@dataclass(frozen=True, slots=True)
class HostCheck:
    """One question to the machine."""

    name: str
    ok: bool
    seen: str
    expected: str
    consequence: str = ""
    """What does not work where this is missing."""
    next_step: str = ""


def inspect_host() -> list[HostCheck]:
    """All checks, in the order in which a person would mend them."""
    return [check() for check in _CHECKS]


def _bubblewrap() -> HostCheck:
    expected = f"bubblewrap {_dotted(BWRAP_FLOOR)} or newer"
    step = "install the system package bubblewrap"
    try:
        seen = _first_line([find_program("bwrap"), "--version"])
    except SandboxUnavailable as error:
        return HostCheck("bubblewrap", False, error.message, expected, _NO_SANDBOX, step)
    return HostCheck("bubblewrap", _number(seen) >= BWRAP_FLOOR, seen, expected, _NO_SANDBOX, step)


def _util_linux() -> HostCheck:
    names = ("prlimit", "setpriv") if privileged() else ("prlimit",)
    missing = [name for name in names if shutil.which(name) is None]
    seen = f"missing: {', '.join(missing)}" if missing else " and ".join(names)
    return HostCheck("util-linux", not missing, seen, " and ".join(names), _NO_SANDBOX, "install the system package util-linux")


def _seccomp() -> HostCheck:
    step = "install the system package libseccomp2"
    try:
        length = len(filter_bytes()) // 8
    except SandboxUnavailable as error:
        return HostCheck("system-call filter", False, error.message, "libseccomp and its binding", _NO_SANDBOX, error.next_step or step)
    try:
        binding = version("pyseccomp")
    except PackageNotFoundError:
        binding = "unknown"
    return HostCheck(
        "system-call filter", True, f"{length} instructions (pyseccomp {binding})", "libseccomp and its binding", _NO_SANDBOX, step
    )


def _sandbox() -> HostCheck:
    expected = "every layer seen from inside"
    try:
        layers = verify_layers()
    except PipelineError as error:
        return HostCheck("sandbox", False, error.message, expected, _NO_SANDBOX, error.next_step)
    start = "root, dropped to uid 65534 first" if privileged() else f"uid {os.geteuid()}"
    return HostCheck("sandbox", True, f"{len(layers)} layers hold (started by {start})", expected, _NO_SANDBOX, "")


def _temporary() -> HostCheck:
    expected = f"{ROOM_BYTES // MIB // 1024} GiB free"
    step = "free space there, or set TMPDIR to another folder whose parents are open to all (mode o+x)"
    try:
        folder = scratch_folder()
    except SandboxUnavailable as error:
        return HostCheck("temporary folder", False, error.message, expected, _NO_SANDBOX, error.next_step)
    free = shutil.disk_usage(folder).free
    return HostCheck(
        "temporary folder",
        free >= ROOM_BYTES,
        f"{folder}, {free / 1024 / MIB:.1f} GiB free",
        expected,
        "Long films and renders may run out of room.",
        step,
    )


def _memory() -> HostCheck:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    seen = f"{total / 1024 / MIB:.1f} GiB, {os.cpu_count()} processors"
    return HostCheck(
        "memory",
        total >= MEMORY_BYTES,
        seen,
        f"{MEMORY_BYTES // MIB // 1024} GiB",
        "Speech models and the renderer may be ended.",
        "use a larger machine",
    )


def _ffmpeg() -> HostCheck:
    expected = f"ffmpeg and ffprobe {_dotted(FFMPEG_FLOOR)} or newer"
    step = "install the system package ffmpeg"
    try:
        lines = [_first_line([str(tool_path(name)), "-hide_banner", "-version"]) for name in ("ffmpeg", "ffprobe")]
    except EngineMissing as error:
        return HostCheck("ffmpeg", False, error.message, expected, _NO_MEDIA, step)
    seen = " and ".join(re.sub(r" Copyright.*", "", line) for line in lines)
    # a build between releases has no number; it counts as new
    fine = all(_number(line) >= FFMPEG_FLOOR or re.search(r"version (N-|n|git-)", line) for line in lines)
    return HostCheck("ffmpeg", fine, seen, expected, _NO_MEDIA, step)


def _ffmpeg_parts() -> HostCheck:
    expected = "encoders, decoders and filters that the house uses"
    step = "install a full build of ffmpeg (Debian's has all)"
    try:
        program = str(tool_path("ffmpeg"))
    except EngineMissing as error:
        return HostCheck("ffmpeg parts", False, error.message, expected, _NO_MEDIA, step)
    missing = []
    for kind, names in (("encoders", _ENCODERS), ("decoders", _DECODERS), ("filters", _FILTERS)):
        listed = set(re.findall(r"^ ?[A-Z.|]{2,6} (\S+)", _output([program, "-hide_banner", f"-{kind}"]), re.MULTILINE))
        missing += [f"{kind[:-1]} {name}" for name in names if name not in listed]
    return HostCheck("ffmpeg parts", not missing, f"missing: {', '.join(missing)}" if missing else "all there", expected, _NO_MEDIA, step)


_CHECKS: tuple[Callable[[], HostCheck], ...] = (
    _bubblewrap,
    _util_linux,
    _seccomp,
    _sandbox,
    _temporary,
    _memory,
    _ffmpeg,
    _ffmpeg_parts,
)


def _output(argv: list[str]) -> str:
    """What one of our own programs says of itself; it reads nothing from outside."""
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be run: {error}"
    return done.stdout


def _first_line(argv: list[str]) -> str:
    return next(iter(_output(argv).splitlines()), "no answer")


def _number(line: str) -> tuple[int, ...]:
    found = re.search(r"(\d+)\.(\d+)", line)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _dotted(floor: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in floor)
