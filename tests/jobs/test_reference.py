"""The reference pages say what the code says, and every command can be learned from its help."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from jobs.cli import app
from jobs.reference import pages

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(pages()))
def test_page_is_current(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run: python -m jobs.reference"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert f"workprint {command}" in result.output.split("Examples:")[1]


def test_promised_commands_exist() -> None:
    promised = {"run", "invert", "replay", "verify", "query", "export", "status", "tools", "report", "doctor"}
    assert promised <= set(COMMANDS)
