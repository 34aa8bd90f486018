"""``workprint fsck``, ``gc``, ``compact``, ``versions``, ``sql`` and ``lake export``: looking after a lake."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption, OutOption

AtOption = Annotated[int | None, typer.Option("--at", help="The lake as of this version; see 'workprint versions'.", metavar="VERSION")]

_SHOWN = 200

_GROUP = """A lake as a whole, in other table formats.

Examples:

  workprint lake export --to delta --lake lake -o lake-delta
"""


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("fsck")(fsck)
    app.command("gc")(gc)
    app.command("compact")(compact)
    app.command("versions")(versions)
    app.command("sql")(sql)
    group = typer.Typer(no_args_is_help=True, help=_GROUP)
    group.command("export")(export)
    app.add_typer(group, name="lake")


def fsck(lake: LakeOption = DEFAULT_LAKE, as_json: JsonOption = False) -> None:
    """Check every byte of a lake against its digest and every reference against what is there. Changes nothing.

    Examples:

      workprint fsck --lake lake

      workprint fsck --lake lake --json | jq '.findings[] | select(.fault == "damaged")'

    Exit status: 0 sound (orphans and unfinished files are legal, 'workprint gc' removes them), 4 something is damaged or missing.
    """
    from jobs.questions import open_lake

    report = open_lake(lake).fsck()
    if as_json:
        print_json(
            {
                "sound": report.is_sound,
                "data_files": report.data_files,
                "artifacts": report.artifacts,
                "bytes": report.bytes,
                "findings": [{"fault": f.fault.value, "subject": f.subject, "detail": f.detail} for f in report.findings],
            }
        )
    else:
        for f in report.findings[:_SHOWN]:
            typer.echo(f"{f.fault.value:<14}{f.subject}: {f.detail}")
        if len(report.findings) > _SHOWN:
            typer.echo(f"({len(report.findings) - _SHOWN} more; use --json for all)")
        state = "sound" if report.is_sound else "NOT SOUND"
        typer.echo(f"{state}: {report.data_files} data files and {report.artifacts} artifacts, {report.bytes} bytes looked at")
    raise typer.Exit(Exit.OK if report.is_sound else Exit.PARTIAL)


def gc(
    lake: LakeOption = DEFAULT_LAKE,
    keep_versions: Annotated[int | None, typer.Option(min=1, help="Give up older versions than this many. Default: keep all.")] = None,
    grace_hours: Annotated[
        float, typer.Option(min=0.0, help="Leave what is younger: a running stage's artifacts have no reference yet.")
    ] = 24.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; remove nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove artifacts and files that no version of the lake and no unfinished run refers to.

    May run beside runs and readers, and may be killed at any moment.

    Examples:

      workprint gc --lake lake --dry-run

      workprint gc --lake lake --keep-versions 10
    """
    from jobs.questions import open_lake

    done = open_lake(lake).gc(grace_s=grace_hours * 3600, keep_versions=keep_versions, dry_run=dry_run)
    if as_json:
        print_json(
            {
                "dry_run": dry_run,
                "removed": list(done.removed),
                "bytes": done.bytes,
                "young": done.young,
                "versions_given_up": done.versions_given_up,
            }
        )
        return
    verb = "would remove" if dry_run else "removed"
    typer.echo(f"{verb} {len(done.removed)} files, {done.bytes} bytes; gave up {done.versions_given_up} versions")
    if done.young:
        typer.echo(f"left {done.young} unreferenced files that are younger than {grace_hours:g} hours")


def compact(
    lake: LakeOption = DEFAULT_LAKE,
    target_mb: Annotated[int, typer.Option(min=1, help="Size of a merged file, MB.")] = 128,
    as_json: JsonOption = False,
) -> None:
    """Merge the small files of every table, and drop rows that ended. Older versions stay readable until 'workprint gc' gives them up.

    Examples:

      workprint compact --lake lake
    """
    from jobs.questions import open_lake

    done = open_lake(lake).compact(target_bytes=target_mb * 1024 * 1024)
    if as_json:
        print_json({"files_before": done.files_before, "files_after": done.files_after, "versions": list(done.versions)})
        return
    typer.echo(f"{done.files_before} files became {done.files_after}")


def versions(
    lake: LakeOption = DEFAULT_LAKE,
    limit: Annotated[int, typer.Option(min=1, help="The newest so many.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List the versions of a lake that can be opened: every commit is one.

    Examples:

      workprint versions --lake lake --limit 5

      workprint query "select count(*) from examples" --lake lake --at 17
    """
    from datetime import UTC, datetime

    from jobs.questions import open_lake

    found = open_lake(lake).versions()
    rows: list[dict[str, Any]] = [
        {
            "version": v.version,
            "kind": v.kind,
            "stage": v.stage,
            "subject": v.subject,
            "run_id": v.run_id,
            "committed": datetime.fromtimestamp(v.committed_us / 1e6, UTC).isoformat(timespec="seconds"),
        }
        for v in found[-limit:]
    ]
    if as_json:
        print_json(rows)
        return
    for r in rows:
        typer.echo(f"{r['version']:>8}  {r['committed']}  {r['kind']:<11} {r['stage'] or '':<12} {r['subject'] or ''}")
    if len(found) > limit:
        typer.echo(f"({len(found) - limit} older ones; use --limit)", err=True)


def sql(lake: LakeOption = DEFAULT_LAKE, version: AtOption = None, as_json: JsonOption = False) -> None:
    """Ask a lake one question after the other, in DuckDB's SQL; from a terminal or a pipe. It can only read.

    Besides the tables of docs/tables.md there are the summaries 'funnel' and 'costs'.

    Examples:

      workprint sql --lake lake

      echo "from funnel; select role, count(*) from examples group by all;" | workprint sql --lake lake --json

    With --json: one list of objects a statement. From a pipe the first refused statement ends it with exit status 2.
    """
    from jobs.shell import run_shell

    run_shell(lake, version, as_json, sys.stdin)


def export(
    out: OutOption,
    to: Annotated[str, typer.Option("--to", help="delta or ducklake.")],
    lake: LakeOption = DEFAULT_LAKE,
    version: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy all tables of a version into a standard table format.

    delta needs the package deltalake (tried with 1.6.6); ducklake needs DuckDB's extension of that name.

    Examples:

      workprint lake export --to delta --lake lake -o lake-delta

      workprint lake export --to ducklake --lake lake -o lake-ducklake --at 17
    """
    from jobs.questions import open_lake
    from storage.formats import export_tables

    counts = export_tables(open_lake(lake), to, Path(out), version=version)
    if as_json:
        print_json({"to": to, "out": str(out), "rows": counts})
        return
    for name, count in counts.items():
        typer.echo(f"{name:<14}{count} rows")
