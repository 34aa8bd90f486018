"""Write cluster.lock and ducklake.lock, what ``make test-cluster`` needs besides requirements.lock: ``python scripts/cluster_lock.py``.

The test servers' packages are resolved beside the locked ones, and only what differs from those is kept: the environments of these tests
lie over ``.venv`` and hold the difference. (moto wants an older python-dateutil than the one locked there, DuckLake an older DuckDB.)
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FREE = ("python-dateutil",)
"""Packages that the difference may hold in another version."""


def blocks(text: str) -> list[str]:
    """The pinned requirements of a lock, each with its hashes."""
    return [b.rstrip() + "\n" for b in re.split(r"(?m)^(?=[a-z0-9])", text) if re.match(r"[a-z0-9]", b)]


def head(block: str) -> str:
    """``name==version ; marker``."""
    return block.split(" \\")[0].strip()


DUCKLAKE = "duckdb==1.5.5\nduckdb-extension-ducklake==1.5.5\npytz\n"
"""The extension's wheel fits this release of DuckDB alone, which is also the oldest that workprint supports."""


def resolved(*arguments: str) -> list[str]:
    """What uv makes of some requirements."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "all.lock")
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-emit-index-url"]
        subprocess.run([*command, "--no-annotate", "--no-header", *arguments, "-o", str(out)], check=True)  # noqa: S603
        return blocks(out.read_text())


def main() -> None:
    """Resolve, subtract, write."""
    locked = blocks((ROOT / "requirements.lock").read_text())
    known = {head(b) for b in locked}
    with tempfile.TemporaryDirectory() as folder:
        fixed, duck = Path(folder, "fixed.txt"), Path(folder, "duck.in")
        fixed.write_text("".join(b for b in locked if not head(b).startswith(tuple(f"{n}==" for n in FREE))))
        duck.write_text(DUCKLAKE)
        extras = [part for extra in ("cluster", "delta", "cluster-test") for part in ("--extra", extra)]
        servers = resolved(*extras, "-c", str(fixed), str(ROOT / "pyproject.toml"))
        (ROOT / "cluster.lock").write_text("".join(b for b in servers if head(b) not in known))
        (ROOT / "ducklake.lock").write_text("".join(resolved("--python-version", "3.11", str(duck))))


if __name__ == "__main__":
    main()
