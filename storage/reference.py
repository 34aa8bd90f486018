"""The reference page of all tables, made from their specs: ``python -m storage.reference [--check] [PATH]``."""

from __future__ import annotations

import sys
from pathlib import Path

from schemas.tables import PROVENANCE, TABLES, Column
from storage.arrow import DUCKDB
from storage.durable import write_file
from storage.views import SUMMARIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tables.md"

_HEAD = """# Tables of the lake

Made from `schemas/tables.py` by `python -m storage.reference`; do not edit. Ask with `workprint query "select ..." --lake DIR`, or from
Python with `storage.lake.Lake(path).connect()`. Columns named `*_json` hold exact JSON text. Times are integer microseconds (`_us`),
ranges are half-open, indices count from 0. A column may be null only where a meaning of null is given.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _rows(columns: tuple[Column, ...]) -> list[str]:
    out = ["| column | type | meaning | null means |", "| --- | --- | --- | --- |"]
    for c in columns:
        meaning = c.doc if c.allowed is None else f"{c.doc} (one of: {', '.join(c.allowed)})"
        out.append(f"| `{c.name}` | {DUCKDB[c.type]} | {_cell(meaning)} | {_cell(c.null or '')} |")
    return out


def reference_page() -> str:
    """The page as Markdown."""
    parts = [_HEAD, "## Columns that every table has", "", *_rows(PROVENANCE), ""]
    for spec in TABLES:
        keys = ", ".join(f"`{k}`" for k in spec.key)
        parts += [f"## {spec.name}", "", f"{spec.doc} Version {spec.version}. Key: {keys}.", "", *_rows(spec.columns), ""]
    parts += ["## Summaries", "", "Views over several tables.", ""]
    for name, (doc, sql) in SUMMARIES.items():
        parts += [f"### {name}", "", doc, "", "```sql", sql.strip(), "```", ""]
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is up to date (exit status 1 if not)."""
    names = [a for a in arguments if not a.startswith("-")]
    path = Path(names[0]) if names else PAGE
    page = reference_page()
    if "--check" in arguments:
        if path.is_file() and path.read_text("utf-8") == page:
            return 0
        sys.stderr.write(f"{path.name} is out of date; run: python -m storage.reference\n")
        return 1
    write_file(path, page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
