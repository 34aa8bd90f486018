"""One YAML file as plain data, and the line on which each key stands. What makes no sense as a configuration is refused with its line.

Owns reading; jobs/config.py owns what the keys mean. YAML allows more than a configuration needs: repeated keys (the last one wins in
silence), nesting without end, aliases that grow without end, numbers that are none. None of it gets through.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from schemas.errors import ConfigInvalid

MOST_BYTES = 16_000_000
"""Sources may be listed in a configuration; more of them belong into a manifest."""
MOST_DEPTH = 32
MOST_VALUES = 1_000_000
"""Values of a file with its aliases written out."""
_EXAMPLE = "see configs/local.yaml for an example"

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """What a file says."""

    data: dict[str, Any]
    lines: dict[Key, int]
    """Line of each key, from 1; items of lists by their number."""

    def line_of(self, place: Key) -> int | None:
        """The line of a key, or of the nearest one above it that is in the file."""
        return next((self.lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in self.lines), None)


def read_settings(path: Path) -> Settings:
    """Read one file.

    Raises:
        ConfigInvalid: it cannot be read, is no YAML, no mapping, repeats a key, nests too deep, grows too large, or holds a number that no
            setting can have. Says the line.
    """
    text = _text(path)
    try:
        _measure(path, text)
        loader = yaml.SafeLoader(text)
        try:
            root = loader.get_single_node()
            if root is None or root.tag == "tag:yaml.org,2002:null":
                return Settings({}, {})
            if not isinstance(root, yaml.MappingNode):
                what = "a list" if isinstance(root, yaml.SequenceNode) else "a single value"
                raise ConfigInvalid("config_shape", f"{path} must hold a mapping of keys to values, it holds {what}", _EXAMPLE)
            _grown(path, root, {})
            lines: dict[Key, int] = {}
            for place, line, node in _walk(path, root, ()):
                lines[place] = line
                if isinstance(node, yaml.ScalarNode):
                    _sound(path, place, node, loader)
            return Settings(loader.construct_document(root), lines)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
        raise ConfigInvalid(
            "config_unreadable", f"{path}{where}: this is no YAML: {e.problem or e.context or 'it does not end'}", _EXAMPLE
        ) from e
    except yaml.reader.ReaderError as e:
        line = text.count("\n", 0, e.position) + 1
        raise ConfigInvalid(
            "config_unreadable", f"{path}, line {line}: character U+{ord(text[e.position]):04X} is not allowed", _EXAMPLE
        ) from e


def _text(path: Path) -> str:
    if path.suffix.lower() in (".toml", ".json", ".ini"):
        raise ConfigInvalid("config_unreadable", f"{path}: configurations are YAML files", f"rewrite it as YAML; {_EXAMPLE}")
    try:
        with path.open("rb") as f:
            data = f.read(MOST_BYTES + 1)
    except OSError as e:
        raise ConfigInvalid("config_unreadable", f"{path} cannot be read: {e.strerror or e}", "look at its permissions") from e
    if len(data) > MOST_BYTES:
        raise ConfigInvalid("config_unreadable", f"{path} is larger than {MOST_BYTES} bytes", "name sources by a folder or a manifest")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ConfigInvalid("config_unreadable", f"{path} is UTF-16 text", "save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ConfigInvalid("config_unreadable", f"{path}, line {line}: byte {data[e.start]:#04x} is no UTF-8", "save it as UTF-8") from e


def _measure(path: Path, text: str) -> None:
    """Refuse what a parser that calls itself could not bear; events come without."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                line = 1 + (event.start_mark.line if event.start_mark else 0)
                raise ConfigInvalid("config_depth", f"{path}, line {line}: more than {MOST_DEPTH} levels inside one another", _EXAMPLE)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _grown(path: Path, node: yaml.Node, known: dict[int, int]) -> int:
    """Values under a node with its aliases written out."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) in known:
        if known[id(node)] < 0:
            raise ConfigInvalid("config_alias", f"{path}, line {_line(node)}: an alias stands inside of what it names", "write it out")
        return known[id(node)]
    known[id(node)] = -1
    below = [part for pair in node.value for part in pair] if isinstance(node, yaml.MappingNode) else node.value
    total = 1 + sum(_grown(path, part, known) for part in below)
    if total > MOST_VALUES:
        raise ConfigInvalid(
            "config_alias", f"{path}, line {_line(node)}: more than {MOST_VALUES} values with aliases written out", _EXAMPLE
        )
    known[id(node)] = total
    return total


def _walk(path: Path, node: yaml.Node, place: Key) -> Iterator[tuple[Key, int, yaml.Node]]:
    """Every key or item with its line and its value."""
    if isinstance(node, yaml.SequenceNode):
        for n, item in enumerate(node.value):
            yield (*place, str(n)), _line(item), item
            yield from _walk(path, item, (*place, str(n)))
    elif isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = _line(key)
            if not isinstance(key, yaml.ScalarNode) or key.tag not in ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"):
                shown = key.value if isinstance(key, yaml.ScalarNode) else "a list or mapping"
                raise ConfigInvalid("config_key", f"{path}, line {line}: {shown!r} is no name of a setting", "see docs/config.md for keys")
            if key.value in seen:
                where = ".".join((*place, key.value))
                raise ConfigInvalid(
                    "config_duplicate",
                    f"{path}, line {line}: '{where}' stands there again, first on line {seen[key.value]}",
                    "keep one of the two",
                )
            seen[key.value] = line
            yield (*place, key.value), line, value
            yield from _walk(path, value, (*place, key.value))


def _sound(path: Path, place: Key, node: yaml.ScalarNode, loader: yaml.SafeLoader) -> None:
    """Refuse a scalar that is not what it looks like, or that no setting can have."""
    try:
        value = loader.construct_object(node)
    except yaml.YAMLError:
        raise
    except (ValueError, OverflowError, TypeError) as e:
        raise ConfigInvalid("config_value", f"{path}, line {_line(node)}: '{'.'.join(place)}': {e}", _EXAMPLE) from e
    told = None
    if isinstance(value, float) and not math.isfinite(value):
        told = f"{node.value} is no number that a setting can have"
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        told = f"{node.value[:40]} is larger than any setting can be"
    elif isinstance(value, str) and "\0" in value:
        told = "a text may not hold the character U+0000"
    if told is not None:
        raise ConfigInvalid("config_value", f"{path}, line {_line(node)}: '{'.'.join(place)}': {told}", _EXAMPLE)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
