"""``workprint studio``: narrated films with exact truth, for measuring inversion and for trying the pipeline out."""

from __future__ import annotations

from typing import Annotated

import typer

from jobs.cli.exits import print_json
from jobs.cli.options import JsonOption, OutOption

studio = typer.Typer(no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.add_typer(studio, name="studio")


@studio.callback()
def _studio() -> None:
    """Make narrated films whose truth is known exactly.

    Examples:

      workprint studio make --seed 7 -o film7/
    """


@studio.command("make")
def make(
    out: OutOption,
    seed: Annotated[int, typer.Option(help="Everything about the film follows from it.", min=0)] = 0,
    kind: Annotated[
        str | None,
        typer.Option(help="essay, explainer, captioned, night, gradual, restless, upright or vfr; drawn from the seed if not given."),
    ] = None,
    language: Annotated[str | None, typer.Option(help="en or zh; drawn from the seed if not given.")] = None,
    seconds: Annotated[float, typer.Option(help="Length, to a sentence: 4 to 600.")] = 20.0,
    speech: Annotated[
        str,
        typer.Option(help="kokoro (knows when each word is spoken), flite (fast), or a folder as LJ Speech has it (metadata.csv)."),
    ] = "kokoro",
    as_json: JsonOption = False,
) -> None:
    """Make one film.

    Writes film.mp4 and truth.json into the folder: words, sentences, shots, transitions, lettering with boxes, spotlights,
    credits. The same options give the same bytes. Needs no network.

    Examples:

      workprint studio make --seed 7 -o film7/

      workprint studio make --seed 3 --kind gradual --seconds 40 -o film3/ --json | jq '.joins[].kind'

    Exit status: 0 made, 1 a part is missing, 2 an option that makes no sense.
    """
    from evaluation.studio.make import Order, make_film
    from media.sandbox import open_sandbox

    truth = make_film(Order(seed, kind=kind, language=language, seconds=seconds, speech=speech), out, open_sandbox())
    if as_json:
        print_json(truth.model_dump(mode="json"))
        return
    kinds = ", ".join(sorted({j.kind for j in truth.joins})) or "no joins"
    typer.echo(f"{out / 'film.mp4'}: {truth.kind}, {truth.language}, {truth.width}x{truth.height}, {truth.duration_us / 1e6:.1f} s")
    typer.echo(f"{len(truth.shots)} shots ({kinds}), {len(truth.sentences)} sentences, {len(truth.words)} words; {truth.speech}")
    for credit in truth.credits:
        typer.echo(f"uses {credit.what}, by {credit.author}, {credit.licence}")
