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

from evaluation.fingerprints import Print, pictures_shared, sound_shared, text_shared
from evaluation.shingles import candidates
from materialize.config import MaterializeConfig
from materialize.splits import split_of
from schemas.canonical import canonical_text
from schemas.example import Split

_STRICT = (Split.HELD_OUT, Split.VALIDATION, Split.TRAIN)

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
    found = set(candidates({name: p.text for name, p in prints.items() if p.text is not None}))
    holders: defaultdict[tuple[str, int, int], set[str]] = defaultdict(set)
    for name, p in prints.items():
        for code in p.pictures:
            for quarter in range(4):
                holders["picture", quarter, code >> (16 * quarter) & 0xFFFF].add(name)
        for code in p.sound.tolist():
            holders["sound", 0, code].add(name)
    votes: defaultdict[tuple[str, str], int] = defaultdict(int)
    for names in holders.values():
        if 1 < len(names) <= COMMON_CODE:
            ordered = sorted(names)
            for i, first in enumerate(ordered):
                for second in ordered[i + 1 :]:
                    votes[first, second] += 1
    return found | {pair for pair, count in votes.items() if count >= 2}


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
