"""The tool registry on the command line."""

from __future__ import annotations

from typing import Any

import typer

from repair.registry import full_registry
from schemas.errors import ConfigInvalid


def show_tools(as_json: bool) -> list[dict[str, Any]]:
    """All contracts: printed as a table, or returned as the schemas a model is given."""
    contracts = list(full_registry().contracts())
    if not as_json:
        for c in contracts:
            inside = f" asks {' and '.join(r.value for r in c.roles)}" if c.roles else ""
            typer.echo(f"{c.name}\n  {c.summary}")
            typer.echo(f"  needs {', '.join(c.needs) or 'nothing'}; produces {', '.join(c.produces) or 'nothing'}{inside and ';' + inside}")
    return [c.function_schema() for c in contracts]


def show_tool(name: str, as_json: bool) -> dict[str, Any]:
    """One contract: printed in words, or returned as the schema a model is given.

    Raises:
        ConfigInvalid: no such tool.
    """
    contracts = {c.name: c for c in full_registry().contracts()}
    if name not in contracts:
        raise ConfigInvalid("unknown_tool", f"there is no tool {name!r}", f"the tools are {', '.join(sorted(contracts))}")
    c = contracts[name]
    if not as_json:
        lines = [
            f"{c.name}, version {c.version}",
            f"  {c.summary}",
            f"  needs     {', '.join(c.needs) or '-'}",
            f"  produces  {', '.join(c.produces) or '-'}",
        ]
        if c.roles:
            lines.append(f"  inside    asks the {' and the '.join(r.value for r in c.roles)} for content")
        lines.append(f"  limits    {c.wall_s} s, {c.max_output_bytes // (1024 * 1024)} MiB")
        lines += [f"  argument  {a.name}: {a.type}{'' if a.required else ', optional'}. {a.description}" for a in c.args]
        lines += [f"  check     {k}" for k in c.checks]
        typer.echo("\n".join(lines))
    return c.function_schema()
