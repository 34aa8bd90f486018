"""Finds an example in a lake and shows its mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jobs.questions import open_lake
from materialize.masks import Masked, mask_of_row, page, visible
from schemas.errors import ConfigInvalid

ENDS = 600
"""Characters shown at either end of a long stretch that is not trained."""


def _find(lake: Path, example: str) -> tuple[str, dict[str, Any]]:
    con = open_lake(lake).connect()
    try:
        rows = con.execute(
            "select example_id, role, kind, prompt_json, tools_json, completion_json from examples where starts_with(example_id, $id) "
            "order by example_id limit 2",
            {"id": example},
        ).fetchall()
    finally:
        con.close()
    if len(rows) != 1:
        seen = "no example begins with it" if not rows else "several examples begin with it"
        step = 'find one with: workprint query "select example_id, role, kind from examples"'
        raise ConfigInvalid("unknown_example", f"{example!r}: {seen}", step)
    names = ("example_id", "role", "kind", "prompt_json", "tools_json", "completion_json")
    row = dict(zip(names, rows[0], strict=True))
    return f"{row['example_id']} ({row['role']}, {row['kind']})", row


def show_mask(lake: Path, example: str, template: str, *, whole: bool, quiet: bool) -> dict[str, Any]:
    """Print the mask of an example; its documented JSON form.

    Raises:
        ConfigInvalid: no such example or template.
        EngineMissing: the template's tokenizer is not installed.
    """
    title, row = _find(lake, example)
    found = mask_of_row(row, template)
    if not quiet:
        _print(title, found, whole=whole)
    return {"example_id": row["example_id"], "role": row["role"], "kind": row["kind"], **found.as_json()}


def write_page(lake: Path, example: str, template: str, out: Path) -> Path:
    """Write the mask of an example as a page; raises as :func:`show_mask`."""
    title, row = _find(lake, example)
    out.write_text(page(title, mask_of_row(row, template)), "utf-8")
    return out


def _print(title: str, found: Masked, *, whole: bool) -> None:
    console = Console()
    console.print(Text(title, style="bold"))
    for note in found.notes:
        console.print(Text(note, style="yellow"))
    for trained, run in found.spans():
        text = visible("".join(t.text for t in run))
        if not trained and not whole and len(text) > 3 * ENDS:
            text = f"{text[:ENDS]}\n… {len(text) - 2 * ENDS} characters, --whole shows them …\n{text[-ENDS:]}"
        console.print(Text(text, style="bold green" if trained else "bright_black"), end="", soft_wrap=True)
    console.print(Text(f"\n{found.total} tokens, {found.trained} of them trained ({found.template})", style="bold"))
