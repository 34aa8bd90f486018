"""The unit of work of every runner: all stages of one project. Owns the signature alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jobs.chain import ProjectResult
from jobs.config import WorkprintConfig
from jobs.sources import SourceGroup

Work = Callable[[SourceGroup, WorkprintConfig, Path, str], ProjectResult]
"""``work(group, config, lake, run_id)``: never raises for what one source did, only for a broken lake."""
