"""Questions about the examples of a lake as a data set, for the command line."""

from __future__ import annotations

from pathlib import Path

from evaluation.variety import Variety, variety
from jobs.config import load_config
from jobs.questions import open_lake
from materialize.leakage import Leakage, leakage
from schemas.errors import ConfigInvalid


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


def leakage_of(lake: Path, config: str | None, benchmark: list[Path]) -> Leakage:
    """The leakage report of a lake.

    Args:
        config: its thresholds say what near-duplicates are.
        benchmark: text files that must not be trained on.

    Raises:
        ConfigInvalid: there is no lake at this path, or a benchmark text cannot be read.
    """
    settings = load_config(config).materialize
    texts = {}
    for path in benchmark:
        try:
            texts[path.name] = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigInvalid("benchmark_text", f"{path} cannot be read as UTF-8 text: {error}", "name text files") from error
    con = open_lake(lake).connect()
    try:
        return leakage(con, settings, texts)
    finally:
        con.close()
