"""The reference page of all tools, made from their contracts: ``python -m replay.reference [--check] [PATH]``."""

from __future__ import annotations

import sys
from pathlib import Path

from replay.facts import PRODUCERS
from replay.registry import Registry, discover
from schemas.blocker import RULES
from schemas.contract import ArgSpec, ToolContract
from storage.durable import write_file

PAGE = Path(__file__).resolve().parent.parent / "docs" / "tools.md"

PACKAGES = ("replay.tools", "repair.tools")
"""Packages of tool modules, by name; each is searched for tools as the runtime's registry is."""

_HEAD = """# Tools

Made from the tools' contracts by `python -m replay.reference`; do not edit. `workprint tools NAME --json` prints the schema a model is
given. An orchestrator calls one tool a turn. The runtime checks arguments, references, prerequisites and limits in this order, executes
in the sandbox, verifies the product, and only then changes the state; whatever it refuses changes nothing and returns blockers.

Per-shot tools share the argument `shots`: `missing` (shots that lack the product or hold a stale one), `all`, or ids and ranges such as
`s001,s004-s007`.
"""

_BLOCKERS = """## Blockers

An output goes through parse, schema, references, prerequisites, budget, execute and commit, and is refused at the first rung it fails.
The codes are closed: a policy, a classifier or a query can rely on there being no others. A refusal changes nothing: not the state, and no
artifact it refers to; the record of the refused call is all that is added."""


def reference_page(contracts: tuple[ToolContract, ...]) -> str:
    """The page as Markdown, for contracts in the order given."""
    parts = [_HEAD, "| tool | roles asked inside | needs | produces |", "| --- | --- | --- | --- |"]
    for c in contracts:
        roles = ", ".join(r.value for r in c.roles)
        parts.append(f"| [`{c.name}`](#{c.name}) | {roles} | {_facts(c.needs)} | {_facts(c.produces)} |")
    parts.append("")
    for c in contracts:
        parts += _section(c)
    parts += ["## Facts and their producers", "", "| fact | brought about by |", "| --- | --- |"]
    parts += [f"| {fact.value} | {', '.join(f'`{n}`' for n in names) or 'the task'} |" for fact, names in PRODUCERS.items()]
    parts += ["", _BLOCKERS, "| code | given at | meaning | subject | needs | remedies |", "| --- | --- | --- | --- | --- | --- |"]
    parts += [f"| `{r.code.value}` | {r.rung} | {r.meaning} | {r.subject} | {r.needs or '-'} | {r.remedies or '-'} |" for r in RULES]
    return "\n".join(parts) + "\n"


def _section(c: ToolContract) -> list[str]:
    out = [f"## {c.name}", "", f"{c.summary} Version {c.version}.", ""]
    if c.args:
        out += ["| argument | type | required | meaning |", "| --- | --- | --- | --- |"]
        out += [f"| `{a.name}` | {_type(a)} | {'yes' if a.required else 'no'} | {_cell(a.description)} |" for a in c.args]
    else:
        out.append("Takes no arguments.")
    out += ["", "Verified before it counts:", ""]
    out += [f"- {check}" for check in c.checks]
    limits = f"Limits: {c.wall_s} s, {c.max_output_bytes:,} bytes of output."
    return [*out, "", limits + (" Counts against the repair limits." if c.repairable else ""), ""]


def _facts(facts: tuple[object, ...]) -> str:
    return ", ".join(str(f) for f in facts) or "nothing"


def _type(a: ArgSpec) -> str:
    if a.enum is not None:
        return " or ".join(f"`{e}`" for e in a.enum)
    if a.minimum is not None or a.maximum is not None:
        return f"{a.type}, {a.minimum} to {a.maximum}"
    return f"{a.type}, at most {a.max_length} characters" if a.max_length is not None else a.type


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` say whether it is up to date (exit status 1 if not)."""
    names = [a for a in arguments if not a.startswith("-")]
    path = Path(names[0]) if names else PAGE
    page = reference_page(Registry(tool for package in PACKAGES for tool in discover(package)).contracts())
    if "--check" in arguments:
        if path.is_file() and path.read_text("utf-8") == page:
            return 0
        sys.stderr.write(f"{path.name} is out of date; run: python -m replay.reference\n")
        return 1
    write_file(path, page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
