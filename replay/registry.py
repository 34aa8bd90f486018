"""The closed, versioned set of tools of a run.

Owns discovery, look-up by name and version, the content kinds tools may ask for, the schemas shown to policies, and the digest that names
the tool space. Executes nothing.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
from collections.abc import Iterable, Mapping
from typing import Any

from replay.contents import CONTENTS
from replay.tool import Inspector, Tool, contents_of
from schemas.canonical import Frozen, Sha256, canonical_text, digest_of
from schemas.contract import Fact, ToolContract
from schemas.errors import ConfigInvalid


class Registry:
    """Tools by name and version. The newest version of a name is offered; older ones stay so that old trajectories replay.

    Args:
        tools: in any order; offered in alphabetical order of their names, which is the order every consumer can keep.

    Raises:
        ConfigInvalid: two tools with the same name and version, or a tool that gives a known content kind another meaning.
    """

    def __init__(self, tools: Iterable[Tool], *, offered: Mapping[str, int] | None = None) -> None:
        self._all: dict[tuple[str, int], Tool] = {}
        self._kinds: dict[str, type[Frozen]] = dict(CONTENTS)
        for tool in tools:
            key = (tool.contract.name, tool.contract.version)
            if key in self._all:
                raise ConfigInvalid("tool_repeated", f"the tool {key[0]} version {key[1]} is registered twice")
            self._all[key] = tool
            for kind, model in contents_of(tool).items():
                if self._kinds.setdefault(kind, model) is not model:
                    raise ConfigInvalid(
                        "kind_repeated",
                        f"{key[0]} gives the content kind {kind!r} a second meaning",
                        "give the tool's own kind another name",
                    )
        self._newest: dict[str, Tool] = {}
        for name, version in sorted(self._all):
            if offered is None or offered.get(name) == version:
                self._newest[name] = self._all[name, version]
        self._schemas = tuple(tool.contract.function_schema() for tool in self._newest.values())
        self._digest = digest_of(["tools", [c.model_dump(mode="json") for c in self.contracts()]])

    def get(self, name: str, version: int | None = None) -> Tool | None:
        """The tool of that name, in the version offered unless one is asked for; None when there is none."""
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

    @property
    def inspector(self) -> Inspector | None:
        """The offered tool that looks at delivered films; None when there is none."""
        return next((t for t in self._newest.values() if isinstance(t, Inspector)), None)

    def content_model(self, kind: str) -> type[Frozen] | None:
        """The form of a content kind; None when no tool and no list knows it."""
        return self._kinds.get(kind)

    def reproducing(self, digest: Sha256, names: Iterable[str] | None = None) -> Registry | None:
        """The same tools, offering exactly the versions of the tool space that ``digest`` names; None if they are not all here.

        So a trajectory replays on the tools it was made with, whatever was added or raised since.

        Args:
            names: tools that were offered then; today's by default.
        """
        if digest == self._digest:
            return self
        known: dict[str, list[int]] = {}
        for name, version in sorted(self._all):
            known.setdefault(name, []).append(version)
        wanted = sorted(set(self._newest if names is None else names))
        if any(name not in known for name in wanted):
            return None
        for versions in itertools.product(*(reversed(known[name]) for name in wanted)):
            found = Registry(self._all.values(), offered=dict(zip(wanted, versions, strict=True)))
            if found.digest() == digest:
                return found
        return None


def discover(package: str) -> tuple[Tool, ...]:
    """Tools of a package of tool modules, by module name: every module that does not begin with ``_`` offers one tool as ``TOOL``.

    A module is named as its tool, and an older version that is kept as ``<name>_v<version>``; so what is registered can be read off the
    folder, and the newest version is always in the module of the plain name.

    Args:
        package: dotted name, such as ``replay.tools``.

    Raises:
        ConfigInvalid: a module without a tool, or named otherwise than its tool.
    """
    found: list[Tool] = []
    parent = importlib.import_module(package)
    for module in sorted(pkgutil.iter_modules(parent.__path__), key=lambda m: m.name):
        if module.name.startswith("_"):
            continue
        tool = getattr(importlib.import_module(f"{package}.{module.name}"), "TOOL", None)
        if tool is None:
            raise ConfigInvalid("tool_missing", f"the module {package}.{module.name} offers no TOOL", "see docs/adding-a-tool.md")
        contract = tool.contract
        if module.name not in (contract.name, f"{contract.name}_v{contract.version}"):
            what = f"the module {package}.{module.name} offers the tool {contract.name} version {contract.version}"
            raise ConfigInvalid(
                "tool_misnamed", what, f"name it {contract.name}.py, or {contract.name}_v{contract.version}.py once it is old"
            )
        found.append(tool)
    return tuple(found)


def base_tools() -> tuple[Tool, ...]:
    """The production tools of replay.tools. Inspection and repair live in repair.tools."""
    return discover("replay.tools")
