"""Renders a card project with the HyperFrames CLI inside the sandbox and brings it into the house profile.

Owns the renderer's command line and environment. The sandbox has no network; the renderer's browser runs without its own sandbox,
so ours is the only one and never optional.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from media.assets import asset
from media.command import MIB, Command, Completed, Limits, Sandbox
from media.ffmpeg import TO_HOUSE_COLOUR, house_video, last_words, tool
from replay.encoder import ffmpeg_version
from replay.graphics.fonts import FAMILIES
from replay.graphics.project import CardProject
from schemas.errors import ToolFailed
from schemas.time import Rate

RATE = 30
"""Frames per second that the renderer draws; the encoder drops or repeats frames for other films."""
CRF = 14
"""Graphics are encoded once more in the shot's render, so they are kept near to lossless here."""

LIMITS = Limits(
    wall_s=240, cpu_s=400, data_bytes=3072 * MIB, tree_bytes=3072 * MIB, tmp_bytes=2048 * MIB, file_bytes=512 * MIB, open_files=4096
)

_VERSIONS: dict[str, str] = {}
_CLI = "/opt/node_modules/hyperframes/bin/hyperframes.mjs"
_ENV = {
    "CI": "1",
    "DO_NOT_TRACK": "1",
    "HYPERFRAMES_NO_TELEMETRY": "1",
    "HYPERFRAMES_NO_UPDATE_CHECK": "1",
    "PRODUCER_FORCE_SCREENSHOT": "false",
}

_SCRIPT = b"""set -eu
node=$1 cli=$2 given=$3 verb=$4
shift 4
work=$(mktemp -d)
mkdir "$work/home" "$work/card"
cp "$given"/* "$work/card/"
mv "$work/card/slots.json" "$work/slots.json"
export HOME="$work/home"
cd "$work"
case "$verb" in
  check) exec "$node" "$cli" check "$work/card" --json ;;
  still) "$node" "$cli" snapshot "$work/card" --at "$1" 1>&2
         exec cp "$(find "$work/card" -name '*.png' | head -n 1)" "$2" ;;
esac
"$node" "$cli" render "$work/card" -o "$work/raw.mp4" --variables-file "$work/slots.json" --strict-variables --strict-all \\
  --no-best-effort --no-browser-gpu -w 1 --quiet 1>&2
exec "$@"
"""
"""Copies the project to where the renderer may write, draws it, then runs the encoder given as the remaining words."""


def font_folders() -> dict[str, Path]:
    """Family name to the folder of its font package. Raises EngineMissing."""
    return dict(zip(FAMILIES, (asset("fonts-inter").parent, asset("fonts-noto-sc").parent), strict=True))


def render_card(project: CardProject, duration_us: int, rate: Rate, sandbox: Sandbox, workdir: Path) -> Path:
    """Draw a project as a clip of the house profile, picture only.

    Args:
        duration_us: length of the template's animation.
        rate: frame rate of the film; the clip has exactly ``rate.frame_at(duration_us)`` frames.
        workdir: gets ``card.mp4``; must not hold one.

    Raises:
        ToolFailed: the renderer or the encoder failed.
        LimitExceeded, OutputRejected, SandboxUnavailable: as the sandbox.
    """
    program, mounted = tool("ffmpeg")
    encode = (
        program, "-nostdin", "-hide_banner", "-v", "error", "-i", "raw.mp4",
        "-vf", f"fps={rate.num}/{rate.den},tpad=stop_mode=clone:stop=-1,{TO_HOUSE_COLOUR}", "-frames:v", str(rate.frame_at(duration_us)),
        "-an", *house_video(crf=CRF), "/out/card.mp4",
    )  # fmt: skip
    _run(project, "render", encode, ("card.mp4",), sandbox, workdir, mounted)
    return workdir / "card.mp4"


def check_card(project: CardProject, sandbox: Sandbox) -> dict[str, Any]:
    """The renderer's own findings on a project (lint, runtime, layout, motion, contrast). It looks at declared defaults, so build the
    project with ``as_defaults``.

    Raises:
        ToolFailed: it did not answer with its report.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = _run(project, "check", (), (), sandbox, Path(folder), {}, fails=False)
    try:
        report: dict[str, Any] = json.loads(done.stdout[done.stdout.index(b"{") :])
    except ValueError as error:
        raise ToolFailed("card_check", f"the renderer's check gave no report: {last_words(done.stderr)}") from error
    return report


def still_card(project: CardProject, at_s: float, sandbox: Sandbox, workdir: Path) -> Path:
    """One frame of a project as ``card.png`` in ``workdir``. Build the project with ``as_defaults``. Raises as :func:`render_card`."""
    _run(project, "still", (f"{at_s:.3f}", "/out/card.png"), ("card.png",), sandbox, workdir, {})
    return workdir / "card.png"


def renderer_version(sandbox: Sandbox) -> str:
    """Versions of everything that decides a graphic's pixels besides the project: renderer, browser, encoder. Asked once a process."""
    if sandbox.name not in _VERSIONS:
        browser = asset("browser")
        package = json.loads((asset("hyperframes") / "hyperframes" / "package.json").read_text(encoding="utf-8"))
        argv = ("/bin/sh", "-c", 'exec "$1" --version', "version", f"/opt/browser/{browser.name}")
        with tempfile.TemporaryDirectory() as folder:
            done = sandbox.run(Command(argv=argv, folders={"/opt/browser": browser.parent}, limits=LIMITS), Path(folder))
        if done.returncode != 0:
            raise ToolFailed("renderer_version", f"the browser does not tell its version: {last_words(done.stderr)}")
        browser_version = done.stdout.decode("utf-8", "replace").strip()[:120]
        _VERSIONS[sandbox.name] = f"hyperframes {package['version']}; {browser_version}; {ffmpeg_version(sandbox)}"
    return _VERSIONS[sandbox.name]


def _run(
    project: CardProject,
    verb: str,
    words: Sequence[str],
    outputs: tuple[str, ...],
    sandbox: Sandbox,
    workdir: Path,
    mounted: dict[str, Path],
    *,
    fails: bool = True,
) -> Completed:
    browser = asset("browser")
    command = Command(
        argv=("/bin/sh", "/in/run.sh", "/opt/node/node", _CLI, "/in/card", verb, *words),
        texts={"run.sh": _SCRIPT, **{f"card/{name}": data for name, data in project.texts.items()}},
        inputs={f"card/{name}": path for name, path in project.fonts.items()},
        folders={"/opt/node": asset("node").parent, "/opt/node_modules": asset("hyperframes"), "/opt/browser": browser.parent, **mounted},
        outputs=outputs,
        env={**_ENV, "HYPERFRAMES_BROWSER_PATH": f"/opt/browser/{browser.name}"},
        limits=LIMITS,
    )
    done = sandbox.run(command, workdir)
    if fails and done.returncode != 0:
        raise ToolFailed("card_failed", f"drawing the graphic ended with {done.returncode}: {last_words(done.stderr, 600)}")
    return done
