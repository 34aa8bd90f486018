"""The full tool space: the production tools of replay and the inspection and repair tools of this package."""

from __future__ import annotations

from replay.registry import Registry, base_tools, discover


def full_registry() -> Registry:
    """All tools a policy is offered."""
    return Registry((*base_tools(), *discover("repair.tools")))
