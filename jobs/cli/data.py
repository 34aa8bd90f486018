"""``workprint query``, ``export`` and ``report``: reading a lake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, LARGEST, JsonOption, LakeOption, OutOption


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
    kind: Annotated[str, typer.Argument(help="What: sft, rft, pref, kto, opd, groups, rl or benchmark.")],
    out: OutOption,
    to: Annotated[
        str,
        typer.Option("--to", help="For whom: hf, trl, verl, llamafactory, swift, axolotl, nemo-gym, skyrl, atif or openai-jsonl."),
    ] = "trl",
    lake: LakeOption = DEFAULT_LAKE,
    role: Annotated[list[str] | None, typer.Option(help="Only this role; repeat for several.")] = None,
    kind_of_example: Annotated[
        list[str] | None, typer.Option("--kind", help="Only this kind of example, such as tool_call or shot_plan; repeat for several.")
    ] = None,
    split: Annotated[list[str] | None, typer.Option(help="Only this split; repeat for several. Default: train and validation.")] = None,
    provenance: Annotated[list[str] | None, typer.Option(help="Only outputs of this author, such as scripted or student; repeat.")] = None,
    licence: Annotated[
        list[str] | None, typer.Option("--licence", "--license", help="Only sources of this licence, as the lake or SPDX has it; repeat.")
    ] = None,
    project: Annotated[list[str] | None, typer.Option(help="Only this project id; repeat for several.")] = None,
    quality: Annotated[float | None, typer.Option(min=0, max=1, help="Only runs whose final quality is at least this.")] = None,
    unverified: Annotated[bool, typer.Option("--unverified", help="Also outputs of runs that were not delivered.")] = False,
    bad_rows: Annotated[str, typer.Option(help="Rows that a trainer would read wrongly: refuse (write nothing), or leave-out.")] = "refuse",
    limit: Annotated[int | None, typer.Option(min=1, max=LARGEST, help="At most this many rows.", metavar="N")] = None,
    seed: Annotated[int, typer.Option(min=-LARGEST, max=LARGEST, help="Seed of the choice when a limit is given.", metavar="N")] = 0,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Write sft or rft for trl as tokens: qwen3, or a folder with tokenizer.json and a chat template."),
    ] = None,
    rows_per_shard: Annotated[int, typer.Option(min=1, max=LARGEST, help="Rows of one file.", metavar="N")] = 10_000,
    as_json: JsonOption = False,
) -> None:
    """Write a dataset that a trainer loads with no conversion.

    Not every kind makes sense for every consumer; docs/export.md has the table, and a combination that is not written is refused with the
    reason. The folder appears whole or not at all. A killed export goes on behind its finished shards when it is started again with the
    same options over the same lake.

    Examples:

      workprint export sft --to trl --lake lake -o sft/

      workprint export sft --to hf --lake lake -o dataset/ --quality 0.8 --licence CC-BY-4.0 --bad-rows leave-out

      workprint export sft --to trl --lake lake -o critic/ --role critic --kind verification --limit 1000 --seed 1

      workprint export sft --to trl --tokenizer ./Qwen3-8B --lake lake -o tokens/

      workprint export rl --to verl --lake lake -o rl/

      workprint export benchmark --to hf --lake lake -o benchmark/

    Exit status: 0 written, 1 bad rows or a fault (nothing was written), 2 a combination or a filter that makes no sense.
    """
    from jobs.questions import export_dataset
    from jobs.single import printer
    from materialize.export.options import ExportFilters, ExportOptions, bad_rows_rule

    filters = ExportFilters.of(
        roles=role or (),
        kinds=kind_of_example or (),
        splits=split or (),
        provenance=provenance or (),
        licences=licence or (),
        projects=project or (),
        verified_only=not unverified,
        quality=quality,
    )
    options = ExportOptions(filters=filters, limit=limit, seed=seed, bad_rows=bad_rows_rule(bad_rows), rows_per_shard=rows_per_shard)
    found = export_dataset(lake, kind, to, out, options, printer(as_json), tokenizer)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    for name, count in found.rows.items():
        typer.echo(f"{name:12} {count} rows")
    for reason, count in found.not_taken.items():
        typer.echo(f"not taken    {count} ({reason})")
    if found.left_out:
        typer.echo(f"left out     {len(found.left_out)} (named in manifest.json)")
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
