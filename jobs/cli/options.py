"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LakeOption = Annotated[Path, typer.Option("--lake", help="Folder of the lake.", envvar="WORKPRINT_LAKE", show_default=True)]
ConfigOption = Annotated[
    str | None, typer.Option("--config", help="Configuration: a YAML file, or one of local, cluster, ci. Default: local.", metavar="FILE")
]
OutOption = Annotated[Path, typer.Option("-o", "--out", help="Folder to write into; made if it does not exist.", metavar="DIR")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on standard output; messages go to standard error.")]
DEFAULT_LAKE = Path("lake")
LARGEST = 2**63 - 1
"""The largest number that tables, JSON and seeds hold."""
