"""Splits by source project. Owns the rule that says which split a project belongs to; looks at no data.

The unit is the project: all trajectories, roles, repairs and later groups of a project lie in its split. Projects that are
near-duplicates of one another share a key and so a split.
"""

from __future__ import annotations

import hashlib

from materialize.config import MaterializeConfig
from schemas.errors import ConfigInvalid
from schemas.example import Split

_STEPS = 1 << 64


def split_of(project_id: str, config: MaterializeConfig, duplicate_group: str | None = None) -> Split:
    """The split of a project: a hash of its id, so that adding other projects never moves it.

    Args:
        project_id: the source project.
        config: ``validation_share``, ``held_out_share``, ``split_seed``, and ``pinned`` for projects whose split is decided by hand.
        duplicate_group: key shared by all near-duplicates of this project, None if it has none. The key must stay the same when
            more projects join the group (take the id of the member that was admitted first).

    Raises:
        ConfigInvalid: the shares leave nothing to train on.
    """
    if config.validation_share + config.held_out_share >= 1:
        raise ConfigInvalid(
            "split_shares",
            f"validation_share {config.validation_share} and held_out_share {config.held_out_share} leave no share for training",
            "make their sum smaller than 1",
        )
    unit = duplicate_group or project_id
    pinned = config.pinned.get(unit)
    if pinned is not None:
        return Split(pinned)
    point = int.from_bytes(hashlib.sha256(f"{config.split_seed}\n{unit}".encode()).digest()[:8], "big")
    held_out = int(config.held_out_share * _STEPS)
    if point < held_out:
        return Split.HELD_OUT
    if point < held_out + int(config.validation_share * _STEPS):
        return Split.VALIDATION
    return Split.TRAIN
