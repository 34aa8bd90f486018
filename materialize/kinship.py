"""Which projects belong together, and which split each one is in. Pure: prints and earlier decisions in, decisions out.

Two projects are kin when their pictures, their sound or their narration are nearly the same, wholly or for the larger part of the shorter
one. A decision that was made stays: projects that come later join the group and the split of their kin. When their kin lie in several
splits, they go where nothing is trained on, and the leakage report names the pairs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.fingerprints import Print, pictures_shared, sound_shared, text_shared
from evaluation.shingles import candidates
from materialize.config import MaterializeConfig
from materialize.splits import split_of
from schemas.canonical import canonical_text
from schemas.example import Split

_STRICT = (Split.HELD_OUT, Split.VALIDATION, Split.TRAIN)

PICTURE_VOTES, SOUND_VOTES = 2, 3
"""Codes two films must have in common before they are compared."""

COMMON_CODE = 64
"""A code that more projects than this have says nothing (silence, a station's logo) and proposes no pair."""


@dataclass(frozen=True, slots=True)
class Kin:
    """Two projects that are nearly the same, with what they share, each 0 to 1."""

    first: str
    second: str
    picture: float
    sound: float
    text: float


@dataclass(frozen=True, slots=True)
class Decision:
    """The split of a project."""

    project_id: str
    split: Split
    group_id: str
    kin: tuple[Kin, ...] = ()

    def row(self) -> dict[str, Any]:
        """Row of table ``splits``."""
        return {
            "project_id": self.project_id,
            "split": self.split.value,
            "group_id": self.group_id,
            "kin_json": canonical_text(
                [
                    {
                        "project_id": k.second if k.first == self.project_id else k.first,
                        "picture": round(k.picture, 3),
                        "sound": round(k.sound, 3),
                        "text": round(k.text, 3),
                    }
                    for k in self.kin
                ]
            ),
        }


def find_kin(prints: Iterable[Print], config: MaterializeConfig) -> tuple[Kin, ...]:
    """All pairs of kin, in order of their names. Compares only pairs that share a picture code's quarter, a sound code or a text band."""
    known = {p.project_id: p for p in prints}
    out = []
    for first, second in sorted(_pairs(known)):
        a, b = known[first], known[second]
        kin = Kin(first, second, pictures_shared(a, b), sound_shared(a, b), text_shared(a, b))
        if kin.picture >= config.same_pictures or kin.sound >= config.same_sound or kin.text >= config.same_text:
            out.append(kin)
    return tuple(out)


def _pairs(prints: Mapping[str, Print]) -> set[tuple[str, str]]:
    """Pairs worth a comparison: enough to connect all that share codes, not every pair of a large group."""
    names = sorted(prints)
    quarters = [
        np.unique(np.array([(code >> (16 * q) & 0xFFFF) | q << 16 for code in prints[n].pictures for q in range(4)], np.uint64))
        for n in names
    ]
    sounds = [np.unique(prints[n].sound).astype(np.uint64) for n in names]
    linked = _linked(quarters, PICTURE_VOTES) | _linked(sounds, SOUND_VOTES)
    texts = candidates({n: text for n in names if (text := prints[n].text) is not None})
    return {(names[a], names[b]) for a, b in linked} | set(texts)


def _linked(codes: Sequence[NDArray[np.uint64]], least: int) -> set[tuple[int, int]]:
    """Neighbours among the holders of each code, in their order, that are neighbours at ``least`` times. Sorting, so that a lake of
    thousands of films fits into memory."""
    if not codes:
        return set()
    values = np.concatenate(codes)
    owners = np.repeat(np.arange(len(codes), dtype=np.int64), [len(c) for c in codes])
    order = np.lexsort((owners, values))
    values, owners = values[order], owners[order]
    starts = np.flatnonzero(np.r_[True, values[1:] != values[:-1]]) if len(values) else np.zeros(0, np.int64)
    sizes = np.repeat(np.diff(np.r_[starts, len(values)]), np.diff(np.r_[starts, len(values)]))
    near = np.flatnonzero((values[1:] == values[:-1]) & (sizes[1:] <= COMMON_CODE)) if len(values) else np.zeros(0, np.int64)
    pairs, counts = np.unique(owners[near] * len(codes) + owners[near + 1], return_counts=True)
    return {divmod(int(pair), len(codes)) for pair in pairs[counts >= least]}


def decide(
    projects: Sequence[str], kin: Sequence[Kin], before: Mapping[str, tuple[Split, str]], config: MaterializeConfig
) -> tuple[Decision, ...]:
    """The split of every project, in order of their names.

    Args:
        projects: all projects of the lake.
        kin: pairs of near-duplicates among them.
        before: split and group of the projects that were decided already; these stay as they are.
    """
    near: defaultdict[str, list[Kin]] = defaultdict(list)
    for k in kin:
        near[k.first].append(k)
        near[k.second].append(k)
    decided = {p: before[p] for p in projects if p in before}
    for component in _components([p for p in projects if p not in before], kin):
        elders = sorted(
            {k.first if k.second == p else k.second for p in component for k in near[p]} & set(decided),
            key=lambda e: (_STRICT.index(decided[e][0]), e),
        )
        if elders:
            split, group = decided[elders[0]]
        else:
            group = component[0]
            split = split_of(group, config, group if len(component) > 1 else None)
        decided |= {p: (split, group) for p in component}
    return tuple(Decision(p, *decided[p], tuple(near[p])) for p in sorted(projects))


def _components(projects: Sequence[str], kin: Sequence[Kin]) -> list[list[str]]:
    """New projects that hang together among themselves, each sorted."""
    root = {p: p for p in projects}

    def find(p: str) -> str:
        while root[p] != p:
            root[p] = root[root[p]]
            p = root[p]
        return p

    for k in kin:
        if k.first in root and k.second in root:
            a, b = sorted((find(k.first), find(k.second)))
            root[b] = a
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for p in sorted(projects):
        groups[find(p)].append(p)
    return list(groups.values())


def leaks(kin: Sequence[Kin], split_of_project: Mapping[str, str]) -> tuple[Kin, ...]:
    """Pairs of kin whose projects lie in different splits."""
    return tuple(k for k in kin if split_of_project.get(k.first) != split_of_project.get(k.second))
