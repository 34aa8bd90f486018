"""``workprint audit``: stored trajectories, examples and groups executed again."""

from __future__ import annotations

from typing import Annotated, Literal, cast

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, LARGEST, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("audit")(audit)


def audit(
    lake: LakeOption = DEFAULT_LAKE,
    of: Annotated[list[str] | None, typer.Option(help="trajectories, examples or groups; repeat for several. All by default.")] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="At most this many of each. By default all trajectories, 24 examples and 24 groups.")
    ] = None,
    seed: Annotated[int, typer.Option(min=-LARGEST, max=LARGEST, metavar="N", help="Seed of the sample.")] = 0,
    sandbox: Annotated[str, typer.Option(help="bubblewrap, or process: no isolation, has to be asked for.")] = "bubblewrap",
    record: Annotated[bool, typer.Option(help="Put the outcome into table 'audits', which dataset cards show.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Execute a seeded sample of what a lake holds again, and compare.

    Of a trajectory every state, and the pictures and the sound of the delivered film; of an example the prompt, built anew, and what its
    completion leads to; of a group the matched key, and the reward of every candidate with its parts. All of it in scratch stores that
    begin with the restored snapshot; nothing that was made before is used. Takes about as long as making them took. Where something
    differs, the first difference is named.

    Examples:

      workprint audit --lake lake

      workprint audit --lake lake --of examples --of groups --sample 50 --seed 1 --json

      workprint query "select kind, count(*) audited, avg(equal::int) share from audits group by kind" --lake lake

    Exit status: 0 all that was audited is equal, 4 some is not, or there was nothing.
    """
    from jobs.auditing import KINDS, Kind
    from jobs.auditing import audit as run
    from jobs.questions import open_lake
    from jobs.single import printer
    from schemas.errors import ConfigInvalid

    asked = tuple(of or KINDS)
    unknown = [name for name in asked if name not in KINDS]
    if unknown:
        raise ConfigInvalid("audit_of", f"there is no {unknown[0]!r} to audit", f"one of {', '.join(KINDS)}")
    found = run(
        open_lake(lake),
        of=cast("tuple[Kind, ...]", asked),
        sample=sample,
        seed=seed,
        sandbox=cast("Literal['bubblewrap', 'process']", sandbox),
        record=record,
        note=printer(quiet=as_json),
    )
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
    raise typer.Exit(Exit.OK if found.passed else Exit.PARTIAL)
