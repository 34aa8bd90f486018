"""Two sizes of one test: small enough for the gate, and the target (marker ``full``)."""

from __future__ import annotations

from typing import Any

import pytest


def sizes(gate: Any, full: Any) -> list[Any]:
    """Parameters of the two sizes."""
    return [pytest.param(gate, id="gate"), pytest.param(full, id="full", marks=pytest.mark.full)]
