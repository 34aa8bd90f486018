"""The HyperFrames CLI as judge of our templates: its findings on a card, and its own rendering of it.

The templates are HyperFrames compositions. Production draws them in one browser (:mod:`replay.graphics.render`), because the CLI
starts a browser or two for every card; tests and the bench call the CLI to show that it takes the templates as they are and draws the
same pictures. Must not be called by a tool.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from media.assets import asset
from media.command import Command, Completed, Sandbox
from media.ffmpeg import last_words, tool
from replay.graphics.project import CardProject
from replay.graphics.render import LIMITS
from schemas.errors import ToolFailed

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
work=$(mktemp -d)
mkdir "$work/home" "$work/card"
cp "$given"/* "$work/card/"
mv "$work/card/slots.json" "$work/slots.json"
export HOME="$work/home"
cd "$work"
case "$verb" in
  check) exec "$node" "$cli" check "$work/card" --json ;;
  render) exec "$node" "$cli" render "$work/card" -o /out/card.mp4 --variables-file "$work/slots.json" --strict-variables --strict-all \\
    --no-best-effort --no-browser-gpu -w 1 --quiet 1>&2 ;;
esac
"""
"""Copies the project to where the CLI may write."""


def check_card(project: CardProject, sandbox: Sandbox) -> dict[str, Any]:
    """The CLI's findings on a project (lint, runtime, layout, motion, contrast). It looks at declared defaults, so build the project with
    ``as_defaults``.

    Raises:
        ToolFailed: it did not answer with its report.
    """
    with tempfile.TemporaryDirectory() as folder:
        done = _run(project, "check", (), sandbox, Path(folder))
    try:
        report: dict[str, Any] = json.loads(done.stdout[done.stdout.index(b"{") :])
    except ValueError as error:
        raise ToolFailed("card_check", f"the CLI's check gave no report: {last_words(done.stderr)}") from error
    return report


def reference_clip(project: CardProject, sandbox: Sandbox, workdir: Path) -> Path:
    """The CLI's own rendering, ``card.mp4`` in ``workdir``.

    Raises:
        ToolFailed: it failed.
    """
    done = _run(project, "render", ("card.mp4",), sandbox, workdir)
    if done.returncode != 0:
        raise ToolFailed("card_failed", f"the CLI's render ended with {done.returncode}: {last_words(done.stderr, 600)}")
    return workdir / "card.mp4"


def _run(project: CardProject, verb: str, outputs: Sequence[str], sandbox: Sandbox, workdir: Path) -> Completed:
    browser = asset("browser")
    _, mounted = tool("ffmpeg")
    return sandbox.run(
        Command(
            argv=("/bin/sh", "/in/run.sh", "/opt/node/node", _CLI, "/in/card", verb),
            texts={"run.sh": _SCRIPT, **{f"card/{name}": data for name, data in project.texts.items()}},
            inputs={f"card/{name}": path for name, path in project.fonts.items()},
            folders={
                "/opt/node": asset("node").parent,
                "/opt/node_modules": asset("hyperframes"),
                "/opt/browser": browser.parent,
                **mounted,
            },
            outputs=tuple(outputs),
            env={**_ENV, "HYPERFRAMES_BROWSER_PATH": f"/opt/browser/{browser.name}"},
            limits=LIMITS,
        ),
        workdir,
    )
