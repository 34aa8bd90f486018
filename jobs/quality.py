"""Questions about the examples of a lake as a data set, for the command line."""

from __future__ import annotations

from pathlib import Path

from evaluation.variety import Variety, variety
from jobs.questions import open_lake


def variety_of(lake: Path, sample: int) -> Variety:
    """The variety report of a lake.

    Raises:
        ConfigInvalid: there is no lake at this path.
    """
    con = open_lake(lake).connect()
    try:
        return variety(con, sample)
    finally:
        con.close()
