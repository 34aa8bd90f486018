"""``workprint audit``: stored trajectories executed again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("audit")(audit)


def audit(
    lake: LakeOption = DEFAULT_LAKE,
    sample: Annotated[int | None, typer.Option(min=1, help="Audit at most this many trajectories; all by default.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    sandbox: Annotated[str, typer.Option(help="bubblewrap, or process: no isolation, has to be asked for.")] = "bubblewrap",
    as_json: JsonOption = False,
) -> None:
    """Execute stored trajectories again and compare: every state, and the pictures and the sound of the delivered film.

    Works in a scratch store; the lake is only read. Takes about as long as the replays took. Where a trajectory differs, the first
    difference is named: the call and the fields that changed, the picture, or the sound.

    Examples:

      workprint audit --lake lake

      workprint audit --lake lake --sample 5 --seed 1 --json

    Exit status: 0 all audited trajectories are equal, 4 some are not, or there was none.
    """
    from evaluation.audit import audit_lake
    from jobs.single import printer
    from media.sandbox import open_sandbox
    from storage.lake import Lake

    opened = open_sandbox(cast("Literal['bubblewrap', 'process']", sandbox))
    found = audit_lake(Lake(Path(lake), create=False), opened, sample=sample, seed=seed, note=printer(quiet=as_json))
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
    raise typer.Exit(Exit.OK if found.passed else Exit.PARTIAL)
