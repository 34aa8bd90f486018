"""Whether anything of one split can be learnt from another: near-duplicate projects apart, and runs of words in common.

Reads the lake's rows; decides nothing. A training project whose narration shares ``GRAM`` words in a row with a held-out one is
contaminated: exports leave all its examples out, because its narration stands in their prompts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from evaluation.fingerprints import Print
from evaluation.shingles import shingles
from materialize.config import MaterializeConfig
from materialize.kinship import Kin, find_kin, leaks
from schemas.example import Split

GRAM = 12
"""Words in a row."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """A training project that shares runs of words with the benchmark."""

    project_id: str
    held_out: str
    """The held-out project, or the name of the benchmark text."""
    grams: int
    """Different runs of ``GRAM`` words in common."""


@dataclass(frozen=True, slots=True)
class Leakage:
    """The leakage report of a lake."""

    projects: dict[str, int]
    """Projects by split, as their examples have it."""
    mixed: tuple[str, ...]
    """Projects with examples in more than one split; there must be none."""
    kin: tuple[Kin, ...]
    across: tuple[Kin, ...]
    """Near-duplicates whose projects lie in different splits."""
    overlaps: tuple[Overlap, ...]

    @property
    def clean(self) -> bool:
        """Nothing that exports would not leave out: no project in two splits, no near-duplicates apart."""
        return not self.mixed and not self.across

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint dataset leakage --json``."""

        def pair(k: Kin) -> dict[str, Any]:
            return {
                "first": k.first,
                "second": k.second,
                "picture": round(k.picture, 3),
                "sound": round(k.sound, 3),
                "text": round(k.text, 3),
            }

        return {
            "clean": self.clean,
            "projects": self.projects,
            "mixed": list(self.mixed),
            "near_duplicates": [pair(k) for k in self.kin],
            "across_splits": [pair(k) for k in self.across],
            "contaminated": [{"project_id": o.project_id, "held_out": o.held_out, "grams": o.grams} for o in self.overlaps],
        }


def leakage(con: duckdb.DuckDBPyConnection, config: MaterializeConfig, benchmark: Mapping[str, str] | None = None) -> Leakage:
    """The report over all projects of a lake.

    Args:
        con: a connection with the lake's views (``Lake.connect``).
        config: thresholds of near-duplicates.
        benchmark: further texts that must not be trained on, by name.
    """
    rows = con.execute("select distinct project_id, split from examples order by all").fetchall()
    splits: defaultdict[str, list[str]] = defaultdict(list)
    for project, split in rows:
        splits[str(project)].append(str(split))
    kin = find_kin((Print.of_row(r) for r in con.sql("select * from fingerprints").to_arrow_table().to_pylist()), config)
    of_project = {p: s[0] for p, s in splits.items()}
    return Leakage(
        projects={s.value: sum(1 for v in of_project.values() if v == s.value) for s in Split},
        mixed=tuple(p for p, s in splits.items() if len(s) > 1),
        kin=kin,
        across=leaks([k for k in kin if k.first in of_project and k.second in of_project], of_project),
        overlaps=contaminated(con, benchmark),
    )


def contaminated(con: duckdb.DuckDBPyConnection, benchmark: Mapping[str, str] | None = None) -> tuple[Overlap, ...]:
    """Training projects that share a run of ``GRAM`` words with a held-out one or with a benchmark text, in order of their names.

    Texts shorter than ``GRAM`` words are compared as a whole.
    """
    scripts = con.execute(
        "select s.project_id, s.script, any_value(e.split) = 'held_out' from storyboards s join examples e using (project_id) "
        "group by all order by s.project_id"
    ).fetchall()
    reserved: dict[int, str] = {}
    for name, text in {**{str(p): str(t) for p, t, held in scripts if held}, **(benchmark or {})}.items():
        for gram in shingles(text, GRAM):
            reserved.setdefault(gram, name)
    if not reserved:
        return ()
    out = []
    for project, script, held in scripts:
        if held:
            continue
        shared: defaultdict[str, int] = defaultdict(int)
        for gram in shingles(str(script), GRAM):
            if gram in reserved:
                shared[reserved[gram]] += 1
        out += [Overlap(str(project), name, count) for name, count in sorted(shared.items())]
    return tuple(out)
