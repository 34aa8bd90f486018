"""Reference pages made from the code: docs/cli.md and docs/config.md. ``python -m jobs.reference`` rewrites them; a test compares."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic.fields import FieldInfo

from jobs.cli import app
from jobs.config import WorkprintConfig
from schemas.canonical import Frozen

PAGES = ("cli.md", "config.md")


def cli_page() -> str:
    """Every command with its help, arguments and options."""
    group: Any = typer.main.get_command(app)
    out = ["# Command line", "", "Made by `python -m jobs.reference`; do not edit.", "", _text(group.help or ""), ""]
    for name, command in _commands(group):
        if command.hidden:
            continue
        out += [f"## workprint {name}", "", _text(command.help or ""), ""]
        for param in command.params:
            label = param.name.upper() if param.param_type_name == "argument" else ", ".join(param.opts)
            text = getattr(param, "help", None) or ""
            if text and param.name != "help":
                out.append(f"- `{label}`: {text}")
        out.append("")
    return "\n".join(out).rstrip() + "\n"


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Every command under its whole name, those of groups behind their group."""
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        yield from _commands(command, f"{before}{name} ") if hasattr(command, "commands") else ()


def config_page() -> str:
    """Every key of the configuration with its type, default and meaning."""
    out = [
        "# Configuration",
        "",
        "Made by `python -m jobs.reference`; do not edit. A configuration is a YAML file.",
        "Every key may be left out. Unknown and repeated keys are refused, with their line; names of models, addresses and what is not",
        "installed are told before any work starts.",
        "Built-in ones: `local` (the default), `cluster`, `ci`, `demo`.",
        "",
    ]
    _section(WorkprintConfig, "", out)
    return "\n".join(out).rstrip() + "\n"


def _section(model: type[Frozen], prefix: str, out: list[str]) -> None:
    plain: list[tuple[str, FieldInfo]] = []
    nested: list[tuple[str, type[Frozen]]] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, Frozen):
            nested.append((name, kind))
        else:
            plain.append((name, info))
    title = prefix.rstrip(".") or "(top level)"
    out += [f"## {title}", "", (model.__doc__ or "").strip().split("\n")[0], ""]
    if plain:
        out += ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
        for name, info in plain:
            meaning = (info.description or "").replace("|", "\\|")
            out.append(f"| `{prefix}{name}` | {_kind(info.annotation)} | `{_default(info)}` | {meaning} |")
        out.append("")
    for name, kind in nested:
        _section(kind, f"{prefix}{name}.", out)
    shared: dict[type[Frozen], list[str]] = {}
    for name, info in plain:
        for kind in _optional(info.annotation):
            shared.setdefault(kind, []).append(name)
    for kind, names in shared.items():
        if len(names) == 1:
            _section(kind, f"{prefix}{names[0]}.", out)
        else:
            _section(kind, f"{prefix}{{{','.join(names)}}}.", out)


def _optional(annotation: Any) -> list[type[Frozen]]:
    """Groups of keys that may be left out as a whole."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return []
    return [a for a in typing.get_args(annotation) if isinstance(a, type) and issubclass(a, Frozen)]


def _kind(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin is typing.Literal:
        return " or ".join(f"`{a}`" for a in args)
    if origin in (typing.Union, types.UnionType):
        return " or ".join("nothing" if a is type(None) else _kind(a) for a in args)
    if origin is tuple:
        return f"list of {_kind(args[0])}"
    if origin is dict:
        return "values by name" if args[1] is Any else f"{_kind(args[1])} by name"
    if isinstance(annotation, type) and issubclass(annotation, Frozen):
        return "keys below"
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(annotation, str(annotation))


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "(must be given)"
    value = info.get_default(call_default_factory=True)
    return "[]" if value == () else ("null" if value is None else str(value))


def _text(help_text: str) -> str:
    out: list[str] = []
    for line in help_text.strip().split("\n"):
        indented = line.startswith("  ")
        mark = "" if indented else "**"
        text = line.replace("[bold]", mark).replace("[/bold]", mark).strip()
        out.append(f"    {text}" if indented else text)
    return "\n".join(out)


def pages() -> dict[str, str]:
    """Page name to its present text."""
    return {"cli.md": cli_page(), "config.md": config_page()}


def main() -> None:
    """Rewrite the pages under docs/ of the current folder."""
    for name, text in pages().items():
        path = Path("docs") / name
        path.write_text(text, "utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
