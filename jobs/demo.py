"""The demonstration: the whole job on a real lecture film that a package brings, with faults put in on purpose."""

from __future__ import annotations

from pathlib import Path

from jobs.batch import BatchReport, run_located
from jobs.config import WorkprintConfig, load_config
from jobs.sources import Located
from media.assets import asset
from schemas.media import SourceItem

DEMO_ATTRIBUTION = (
    "'Physicsworks', MIT OpenCourseWare 8.01 lecture 11 (clip), Walter Lewin, CC BY 3.0, from Wikimedia Commons 'Physicsworks.ogv'"
)


def demo_source() -> Located:
    """The film with its licence.

    Raises:
        EngineMissing: the film has not been fetched; says how.
    """
    path = asset("demo-video")
    item = SourceItem(
        uri=str(path),
        title="Physics works",
        language="en",
        licence="CC-BY-3.0",
        attribution=DEMO_ATTRIBUTION,
        source_url="https://commons.wikimedia.org/wiki/File:Physicsworks.ogv",
    )
    return Located(item, path)


def run_demo(lake: Path, config_name: str | None, *, quiet: bool) -> BatchReport:
    """Run the demonstration into a lake."""
    config: WorkprintConfig = load_config(config_name or "demo")
    return run_located([demo_source()], lake, config, quiet=quiet)
