"""``workprint rft``: failed runs finished by the teacher, replayed, checked, admitted."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import DEFAULT_LAKE, ConfigOption, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("rft")(rft)


def rft(
    target: Annotated[str | None, typer.Argument(help="Beginning of a trajectory's or project's id. None: every run.")] = None,
    lake: LakeOption = DEFAULT_LAKE,
    quality: Annotated[float, typer.Option(min=0, max=1, help="q_RFT: lowest final quality of an admitted run.")] = 0.8,
    student_quota: Annotated[int, typer.Option(min=0, help="Complete successes kept of one source project.")] = 4,
    assisted_quota: Annotated[int, typer.Option(min=0, help="Teacher-assisted runs kept of one source project.")] = 4,
    pool: Annotated[int, typer.Option(min=0, help="Hard cases kept in all, classes in turn.")] = 64,
    eta: Annotated[float, typer.Option(min=0, max=1, help="Chance of a later rollout to start from a hard case; recorded.")] = 0.1,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the valid part of every failed run and have the teacher finish it.

    A run is restored from the snapshot before its first failing call, finished by the scripted teacher, executed once more from that
    snapshot, and admitted when eight checks on its bytes and the quality threshold are passed. Rows: table 'rft', the new runs with their
    calls, and the examples of admitted ones.

    Examples:

      workprint rft --lake lake

      workprint rft trj_52bf --lake lake --quality 0.9 --json

      workprint query "select provenance, admitted, reason, count(*) n from rft group by all" --lake lake

    Exit status: 0, whatever was admitted.
    """
    from evaluation.rft import RftConfig
    from jobs.config import load_config
    from jobs.single import printer
    from jobs.teaching import teach

    settings = RftConfig(quality=quality, student_quota=student_quota, assisted_quota=assisted_quota, pool=pool, eta=eta)
    decisions = teach(lake, target, settings, load_config(config), printer(as_json))
    if as_json:
        from evaluation.rft import rft_row

        print_json([rft_row(d, settings) for d in decisions])
        return
    for d in decisions:
        failure = d.case.failure
        what = "complete" if failure is None else f"failed at call {failure.call_index}: {failure.code} of {failure.subject}"
        score = "-" if d.case.quality is None else f"{d.case.quality:.3f}"
        typer.echo(f"{d.case.student.trajectory_id}  {what}; {d.case.provenance}, quality {score}: {d.reason}")
    typer.echo(f"\n{sum(d.admitted for d in decisions)} of {len(decisions)} admitted, {sum(d.pooled for d in decisions)} hard cases kept")
