"""The closed, versioned set of tools of a run.

Owns look-up by name and version, the schemas shown to policies, and the digest that names the tool space. Executes nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Any

from replay.tool import Tool
from schemas.canonical import Sha256, canonical_text, digest_of
from schemas.contract import Fact, ToolContract
from schemas.errors import ConfigInvalid


class Registry:
    """Tools by name and version. The newest version of a name is offered; older ones stay so that old trajectories replay.

    Args:
        tools: in any order; offered in alphabetical order of their names, which is the order every consumer can keep.

    Raises:
        ConfigInvalid: two tools with the same name and version.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._all: dict[tuple[str, int], Tool] = {}
        for tool in tools:
            key = (tool.contract.name, tool.contract.version)
            if key in self._all:
                raise ConfigInvalid("tool_repeated", f"the tool {key[0]} version {key[1]} is registered twice")
            self._all[key] = tool
        self._newest: dict[str, Tool] = {}
        for name, version in sorted(self._all):
            self._newest[name] = self._all[name, version]
        self._schemas = tuple(tool.contract.function_schema() for tool in self._newest.values())
        self._digest = digest_of(["tools", [c.model_dump(mode="json") for c in self.contracts()]])

    def get(self, name: str, version: int | None = None) -> Tool | None:
        """The tool of that name, newest version unless one is asked for; None when there is none."""
        return self._newest.get(name) if version is None else self._all.get((name, version))

    def names(self) -> tuple[str, ...]:
        """Names of the offered tools, alphabetical."""
        return tuple(self._newest)

    def contracts(self) -> tuple[ToolContract, ...]:
        """Contracts of the offered tools, alphabetical."""
        return tuple(tool.contract for tool in self._newest.values())

    def producers(self, fact: Fact) -> tuple[str, ...]:
        """Offered tools whose contract promises the fact, alphabetical."""
        return tuple(c.name for c in self.contracts() if fact in c.produces)

    def schemas(self) -> tuple[dict[str, Any], ...]:
        """OpenAI function schemas of the offered tools, alphabetical: what an orchestrator sees."""
        return self._schemas

    def tools_json(self) -> str:
        """:meth:`schemas` as canonical JSON text."""
        return canonical_text(list(self._schemas))

    def digest(self) -> Sha256:
        """Names this tool space: over the contracts of all offered tools."""
        return self._digest


def discover(package: str) -> tuple[Tool, ...]:
    """Tools of a package of tool modules: the ``TOOL`` of every module that has one, by module name.

    Args:
        package: dotted name, such as ``replay.tools``.
    """
    found: list[Tool] = []
    parent = importlib.import_module(package)
    for module in sorted(pkgutil.iter_modules(parent.__path__), key=lambda m: m.name):
        tool = getattr(importlib.import_module(f"{package}.{module.name}"), "TOOL", None)
        if tool is not None:
            found.append(tool)
    return tuple(found)


def base_tools() -> tuple[Tool, ...]:
    """The production tools of replay.tools. Inspection and repair live in repair.tools."""
    return discover("replay.tools")
