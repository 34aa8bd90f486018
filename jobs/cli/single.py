"""``workprint invert``, ``replay`` and ``verify``: one video, one folder, no lake."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs.cli.exits import Exit, print_json, refuse
from jobs.cli.options import LARGEST, ConfigOption, JsonOption, OutOption


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command("invert")(invert)
    app.command("replay")(replay)
    app.command("verify")(verify)


def invert(
    video: Annotated[str, typer.Argument(help="A finished narrated video.")],
    out: OutOption,
    config: ConfigOption = None,
    title: Annotated[str | None, typer.Option(help="Title of the film.")] = None,
    language: Annotated[str | None, typer.Option(help="Language of the narration, ISO 639-1; detected if not given.")] = None,
    licence: Annotated[str | None, typer.Option(help="Licence of the film.")] = None,
    subtitles: Annotated[
        str | None, typer.Option(help="Sidecar subtitles (SRT, VTT, WhisperX or whisper.cpp JSON) to use instead of recognition.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recover narration, shots, alignment and intent of one video.

    Writes storyboard.json, storyboard.srt, storyboard.otio and key frames into the folder.

    Examples:

      workprint invert talk.mp4 -o talk/

      workprint invert talk.mp4 -o talk/ --json | jq '.shots[].transition_in'

    With --json a refused input prints {"rejected": {"code", "detail"}}. Exit status 3: input refused.
    """
    from jobs.single import invert_one
    from jobs.sources import shown_name
    from schemas.media import SourceItem
    from schemas.stage import Rejected

    about = SourceItem(uri=shown_name(video), title=title, language=language, licence=licence, subtitles=subtitles)
    found = invert_one(video, about, out, config, quiet=as_json)
    if isinstance(found, Rejected):
        raise typer.Exit(refuse(found.code.value, found.detail, as_json=as_json))
    if as_json:
        print_json(found.public)
    else:
        found.print()


def replay(
    storyboard: Annotated[Path, typer.Argument(help="storyboard.json written by 'workprint invert'.", exists=True, dir_okay=False)],
    out: OutOption,
    source: Annotated[
        Path | None, typer.Option(help="The source video, if it is not where the storyboard says.", exists=True, dir_okay=False)
    ] = None,
    config: ConfigOption = None,
    seed: Annotated[
        int | None, typer.Option(min=-LARGEST, max=LARGEST, metavar="N", help="Seed of the policy's choices; overrides the configuration.")
    ] = None,
    pool: Annotated[
        Path | None,
        typer.Option(help="Folder of your own clips that join the source pool (docs/retrieval.md).", exists=True, file_okay=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Produce the film of a storyboard again with real tools, recording every call.

    Writes video.mp4, manifest.json, captions.srt, ATTRIBUTION.txt and trajectory.json into the folder. A run that was killed
    continues at the next call.

    Examples:

      workprint replay talk/storyboard.json -o film/

      workprint replay talk/storyboard.json -o film/ --seed 7 --json

      workprint replay talk/storyboard.json -o film/ --pool my-clips/

    Exit status: 0 delivered, 4 incomplete (the trajectory is kept).
    """
    from jobs.single import replay_one

    found = replay_one(storyboard, out, source, config, seed, quiet=as_json, pool=pool)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
    raise typer.Exit(Exit.OK if found.delivered else Exit.PARTIAL)


def verify(folder: Annotated[Path, typer.Argument(help="Folder with video.mp4 and manifest.json.")], as_json: JsonOption = False) -> None:
    """Check a delivered film against its manifest, on the bytes.

    Examples:

      workprint verify film/

    Exit status: 0 valid, 3 not valid.
    """
    from jobs.single import verify_one

    found = verify_one(folder)
    if as_json:
        print_json(found.as_json())
    else:
        found.print()
    raise typer.Exit(Exit.OK if found.passed else Exit.REFUSED)
