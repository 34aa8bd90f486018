"""Tool contracts as data."""

from __future__ import annotations

import json

from schemas.contract import shown_schema


def test_a_schema_is_shown_in_one_order_of_keys_and_without_an_empty_required() -> None:
    stored = {
        "function": {
            "description": "Cut.",
            "name": "cut",
            "parameters": {
                "properties": {
                    "shots": {"description": "Which.", "enum": ["a", "b"], "type": "string"},
                    "count": {"description": "How many.", "type": "integer"},
                },
                "required": ["shots"],
                "type": "object",
            },
        },
        "type": "function",
    }
    assert json.dumps(shown_schema(stored)) == (
        '{"type": "function", "function": {"name": "cut", "description": "Cut.", "parameters": {"type": "object", "properties": '
        '{"count": {"type": "integer", "description": "How many."}, "shots": {"type": "string", "enum": ["a", "b"], '
        '"description": "Which."}}, "required": ["shots"]}}}'
    )
    empty = {"type": "function", "function": {"name": "go", "parameters": {"required": [], "type": "object", "properties": {}}}}
    assert json.dumps(shown_schema(empty)) == (
        '{"type": "function", "function": {"name": "go", "parameters": {"type": "object", "properties": {}}}}'
    )
