"""The name under which frameworks find this project: verifiers (``vf-eval workprint``) takes from a top-level module what ``__all__``
names, and Inspect (``inspect eval workprint/edit``) names a task by the top-level module it belongs to. Nothing else belongs here; the
things are those of :mod:`materialize.adapters`, made when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {"WorkprintHarness": "verifiers", "WorkprintTaskset": "verifiers", "edit": "inspect_ai"}

__all__ = ["WorkprintHarness", "WorkprintTaskset"]  # noqa: F822 - what verifiers looks at; given by __getattr__


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"materialize.adapters.{_HOME[name]}"), name)
