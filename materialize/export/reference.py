"""The table of exports in docs/export.md, made from the registry: ``python -m materialize.export.reference`` writes it anew."""

from __future__ import annotations

from pathlib import Path

from materialize.export.api import REFUSED, Consumer, ExportKind, writes
from storage import durable

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
_START, _END = "<!-- exports: made by python -m materialize.export.reference -->", "<!-- end of exports -->"


def table() -> str:
    """Which combinations are written, and why the others are not."""
    consumers = list(Consumer)
    lines = [
        "| | " + " | ".join(f"`{c.value}`" for c in consumers) + " |",
        "| --- |" + " :---: |" * len(consumers),
        *(f"| `{k.value}` | " + " | ".join("yes" if writes(k, c) else "" for c in consumers) + " |" for k in ExportKind),
        "",
        "Refused, with the reason that the command gives:",
        "",
        "| combinations | reason |",
        "| --- | --- |",
    ]
    reasons: dict[str, list[str]] = {}
    for k in ExportKind:
        for c in consumers:
            if not writes(k, c):
                reasons.setdefault(REFUSED[k, c], []).append(f"`{k.value} --to {c.value}`")
    lines += [f"| {', '.join(pairs)} | {reason} |" for reason, pairs in reasons.items()]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """A page's text with the table in its place."""
    head, rest = text.split(_START)
    return f"{head}{_START}\n\n{table()}\n{_END}{rest.split(_END)[1]}"


if __name__ == "__main__":
    durable.write_file(PAGE, page(PAGE.read_text("utf-8")).encode())
