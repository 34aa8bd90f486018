"""Exit statuses, and how a typed error is told."""

from __future__ import annotations

from enum import IntEnum

import orjson
import typer

from schemas.errors import ConfigInvalid, MediaRejected, PipelineError


class Exit(IntEnum):
    """Exit statuses of every command."""

    OK = 0
    FAULT = 1
    USAGE = 2
    REFUSED = 3
    PARTIAL = 4
    STOPPED = 130


def explain(error: PipelineError, *, as_json: bool) -> Exit:
    """Tell an error: JSON on stdout with ``--json``, else a line on stderr. Returns the exit status."""
    if isinstance(error, MediaRejected):
        return refuse(error.code, error.message, as_json=as_json)
    if as_json:
        typer.echo(orjson.dumps({"error": error.as_json()}, option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(f"{type(error).__name__} {error}", err=True)
    return Exit.USAGE if isinstance(error, ConfigInvalid) else Exit.FAULT


def refuse(code: str, detail: str, *, as_json: bool) -> Exit:
    """Tell a refusal in its documented form."""
    if as_json:
        typer.echo(orjson.dumps({"rejected": {"code": code, "detail": detail}}, option=orjson.OPT_INDENT_2).decode())
    else:
        typer.echo(f"refused: {code}: {detail}", err=True)
    return Exit.REFUSED


def print_json(value: object) -> None:
    """Indented JSON on stdout."""
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS).decode())
