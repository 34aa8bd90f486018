"""A table's rows as JSON Schema, as ``datasets`` gives them: JSON columns as objects."""

from __future__ import annotations

from typing import Any

from materialize.export.hub_parquet import Table

_TYPES = {"string": "string", "int64": "integer", "float64": "number", "bool": "boolean"}


def row_schema(table: Table) -> dict[str, Any]:
    """JSON Schema (2020-12) of one row. Everything but prompts may be null."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"workprint {table.name} row",
        "type": "object",
        "properties": {c.name: _of(c.feature, nullable=c.name != "prompt") | {"description": c.doc} for c in table.columns},
        "required": [c.name for c in table.columns],
        "additionalProperties": False,
    }


def _of(feature: Any, *, nullable: bool = True) -> dict[str, Any]:
    if "_type" not in feature:
        return _named("object", nullable) | {
            "properties": {name: _of(part) for name, part in feature.items()},
            "required": list(feature),
            "additionalProperties": False,
        }
    if feature["_type"] == "Value":
        return _named(_TYPES[feature["dtype"]], nullable)
    if feature["_type"] == "Json":
        return {"type": "object"}
    return _named("array", nullable) | {"items": _of(feature["feature"], nullable=False)}


def _named(name: str, nullable: bool) -> dict[str, Any]:
    return {"type": [name, "null"] if nullable else name}
