"""Finds an example in a lake and shows its mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from jobs.questions import open_lake
from materialize.masks import Masked, mask_of_row, page, visible
from schemas.errors import ConfigInvalid

_FIND = 'find one with: workprint query "select example_id, role, kind from examples"'
ENDS = 600
"""Characters shown at either end of a long stretch that is not trained."""


def _find(lake: Path, example: str) -> tuple[str, dict[str, Any]]:
    if not example.isprintable():
        raise ConfigInvalid("unknown_example", f"{example!r} is no id", _FIND)
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
        raise ConfigInvalid("unknown_example", f"{example[:80]!r}: {seen}", _FIND)
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
    return _told(row, found)


def write_page(lake: Path, example: str, template: str, out: Path) -> dict[str, Any]:
    """Write the mask of an example as a page; the JSON form of :func:`show_mask`, which raises the same, with the page's place.

    Raises:
        ConfigInvalid: as :func:`show_mask`; or no file can be written there.
    """
    title, row = _find(lake, example)
    found = mask_of_row(row, template)
    try:
        out.write_text(page(title, found), "utf-8")
    except OSError as error:
        raise ConfigInvalid("page_not_written", f"{out}: {error.strerror}", "name a file in a folder that you may write to") from error
    return {**_told(row, found), "page": str(out)}


def _told(row: dict[str, Any], found: Masked) -> dict[str, Any]:
    return {"example_id": row["example_id"], "role": row["role"], "kind": row["kind"], **found.as_json()}


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
