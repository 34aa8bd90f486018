"""Names the task of :mod:`.inspect_ai` to Inspect's command line, which loads this module by its entry point: ``workprint/edit``.

The only module that imports inspect_ai when it is imported; nothing of this project imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def _edit(lake: str, rows: str, split: str | None = None, calls: int | None = None, seed: int = 0, messages: int | None = 200) -> Any:
    """Decide in recorded states of a lake; see make_task of materialize.adapters.inspect_ai."""
    from materialize.adapters.inspect_ai import make_task

    return make_task(lake, rows, split, calls, seed, messages)


edit: Any = import_module("inspect_ai").task(name="edit")(_edit)
"""``inspect eval workprint/edit -T lake=LAKE -T rows=FOLDER``."""
