"""``workprint query``, ``export`` and ``report``: reading a lake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption, OutOption


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("query")(query)
    app.command("export")(export)
    app.command("report")(report)


def query(
    sql: Annotated[str, typer.Argument(help="A DuckDB query over the tables of docs/tables.md.")],
    lake: LakeOption = DEFAULT_LAKE,
    version: Annotated[
        int | None, typer.Option("--at", "--version", help="The lake as of this version; see 'workprint versions'.", metavar="VERSION")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Ask the lake a question in SQL.

    Examples:

      workprint query "select title, shots, sentences from projects" --lake lake

      workprint query "select code, count(*) n from blockers group by code order by n desc" --lake lake --json

      workprint query "from examples select role, kind, avg(prompt_tokens) group by all" --lake lake

      workprint query "from funnel" --lake lake --at 17

    With --json: a list of objects, one a row.
    """
    from jobs.questions import ask

    found = ask(lake, sql, version)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()


def export(
    kind: Annotated[str, typer.Argument(help="What to export: sft (see docs/export.md for all).")],
    out: OutOption,
    to: Annotated[str, typer.Option("--to", help="Consumer: trl, hf, openai-jsonl, llamafactory, swift, axolotl.")] = "trl",
    lake: LakeOption = DEFAULT_LAKE,
    role: Annotated[list[str] | None, typer.Option(help="Only this role; repeat for several.")] = None,
    split: Annotated[list[str] | None, typer.Option(help="Only this split; repeat for several. Default: train and validation.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many examples.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order when a limit is given.")] = 0,
    unverified: Annotated[bool, typer.Option("--unverified", help="Also examples of runs that were not delivered.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Write a dataset that a trainer loads with no conversion.

    Examples:

      workprint export sft --to trl --lake lake -o sft/

      workprint export sft --to trl --lake lake -o critic/ --role critic --limit 1000 --seed 1
    """
    from jobs.questions import export_dataset

    found = export_dataset(lake, kind, to, out, roles=role, splits=split, limit=limit, seed=seed, verified_only=not unverified)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for name, count in found.rows.items():
        typer.echo(f"{name:12} {count} examples")
    for reason, count in found.not_taken.items():
        if count:
            typer.echo(f"not taken    {count} ({reason})")
    typer.echo(f"written to   {out}")


def report(
    project: Annotated[str, typer.Argument(help="Project id, or the beginning of one.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="HTML file to write.", metavar="FILE.html")],
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Show one project as a page: film strip, narration, calls, blockers and repairs. One file, no network.

    Examples:

      workprint report prj_3f0a --lake lake -o talk.html
    """
    from jobs.report import write_report

    path = write_report(lake, project, out)
    typer.echo(str(path))
