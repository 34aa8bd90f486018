"""``workprint groups``: several outputs of one decision, executed and compared."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json
from jobs.cli.options import DEFAULT_LAKE, LARGEST, ConfigOption, JsonOption, LakeOption


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("groups")(groups)


def groups(
    lake: LakeOption = DEFAULT_LAKE,
    config: ConfigOption = None,
    snapshot: Annotated[str | None, typer.Option(help="Only the decision made in this state (snapshot_before in table calls).")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Number of decisions, chosen evenly over role, task and tool.")] = 8,
    candidates: Annotated[
        int | None, typer.Option("-k", "--candidates", min=2, max=64, help="Outputs of one group; overrides the configuration.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=-LARGEST, max=LARGEST, metavar="N", help="Seed of the choice of decisions and of the alternatives.")
    ] = 0,
    paired: Annotated[
        int | None, typer.Option(min=1, max=16, help="Number of paired seeds of the continuation; overrides the configuration.")
    ] = None,
    sampler: Annotated[str | None, typer.Option(help="Who proposes outputs: scripted, or chat (the model of the configuration).")] = None,
    continuation: Annotated[str | None, typer.Option(help="Who plays on after every output: scripted, or chat.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="Only this role; repeat for several.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Restore recorded states, execute several outputs in each, and record what they are worth.

    Every output starts from the same state and is continued by the same frozen policy with the same budget and seeds, in the settings of
    the recorded run. Candidates are the recorded output, legal alternatives of other seeds, and mistakes; or, with --sampler chat, samples
    of the model that the configuration names (replay.policy.student, run.endpoints.student). Rows go into the tables groups and
    candidates; a group whose rewards differ too little is queued. The same command again finds its groups known. Weights of the rewards and
    the gate are in the sections 'rewards' and 'groups' of the configuration.

    Examples:

      workprint groups --lake lake --sample 12 -k 4

      workprint groups --lake lake --snapshot snp_3f0a... -k 6 --paired 2 --json

      workprint groups --lake lake --config student.yaml --sampler chat --continuation chat -k 8

    Exit status: 0 all good, 4 some decisions could not be executed for reasons of ours.
    """
    from pydantic import ValidationError

    from jobs.config import load_config
    from jobs.grouping import make_groups
    from jobs.single import printer
    from materialize.config import GroupConfig
    from schemas.errors import ConfigInvalid

    settings = load_config(config)
    changed = {
        "candidates": candidates,
        "seeds": None if paired is None else tuple(range(paired)),
        "sampler": sampler,
        "continuation": continuation,
    }
    wanted = {**settings.groups.model_dump(), **{name: value for name, value in changed.items() if value is not None}}
    try:
        settings = settings.model_copy(update={"groups": GroupConfig.model_validate(wanted)})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        raise ConfigInvalid("option", f"--{name}: {wrong['msg']}", "see: workprint groups --help") from error
    found = make_groups(
        lake, snapshot=snapshot, sample=sample, seed=seed, config=settings, roles=tuple(role or ()), note=printer(quiet=as_json)
    )
    if as_json:
        print_json(found.as_json())
    else:
        for g in found.groups:
            typer.echo(f"{g.key.group_id}  {g.key.role.value:12} {g.trajectory.calls[g.call_index].tool or '-':22} {g.status}")
            for i, c in enumerate(g.candidates):
                typer.echo(f"  {g.name(i)}  {c.outcome.reward.value:7.4f}  {c.origin}{', refused' if c.outcome.refused else ''}")
        typer.echo(f"{len(found.groups)} groups in {found.wall_s:.0f} s, {found.known} known, {len(found.skipped)} failed")
    raise typer.Exit(Exit.PARTIAL if found.skipped else Exit.OK)
