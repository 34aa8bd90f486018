"""The generated page of tools is current, and the contracts keep the house's promises to trainers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.reference import PACKAGES, PAGE, main, reference_page
from replay.registry import Registry, base_tools, discover
from schemas.contract import ToolContract
from schemas.errors import ConfigInvalid
from tests.replay.doubles import TinyTool, contract, music_tool


@pytest.fixture(scope="module")
def contracts() -> tuple[ToolContract, ...]:
    return Registry(tool for package in PACKAGES for tool in discover(package)).contracts()


def test_the_page_is_current(contracts: tuple[ToolContract, ...]) -> None:
    assert PAGE.read_text("utf-8") == reference_page(contracts), "run: python -m replay.reference"


def test_an_old_page_fails_the_check(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "tools.md"
    page.write_text("old")
    assert main(["--check", str(page)]) == 1
    assert "python -m replay.reference" in capsys.readouterr().err
    assert main([str(page)]) == 0
    assert main(["--check", str(page)]) == 0


def test_the_vocabulary_is_the_thirteen_tools(contracts: tuple[ToolContract, ...]) -> None:
    assert [c.name for c in contracts] == [
        "compose_timeline",
        "decorate_spotlights",
        "inspect_quality",
        "plan_shots",
        "rank_severity",
        "reflect_plan",
        "render_shots",
        "repair_shots",
        "retrieve_visuals",
        "search_music",
        "segment_article",
        "stitch_video",
        "synthesize_narration",
    ]


def test_schemas_are_flat_and_portable(contracts: tuple[ToolContract, ...]) -> None:
    for c in contracts:
        function = c.function_schema()["function"]
        assert set(function["parameters"]) == {"type", "properties", "required"}
        assert list(function["parameters"]["properties"]) == sorted(function["parameters"]["properties"])
        for spec in function["parameters"]["properties"].values():
            assert set(spec) <= {"type", "description", "enum"}
            assert spec["type"] in ("string", "integer", "boolean")


def test_schemas_are_offered_in_alphabetical_order_as_canonical_text() -> None:
    registry = Registry([music_tool(), TinyTool(contract("add"))])
    assert [t["function"]["name"] for t in json.loads(registry.tools_json())] == ["add", "search_music"]
    assert registry.tools_json() == Registry([TinyTool(contract("add")), music_tool()]).tools_json()


def test_the_digest_names_the_tool_space() -> None:
    one = Registry([TinyTool(contract("add"))])
    assert one.digest() == Registry([TinyTool(contract("add"))]).digest()
    assert one.digest() != Registry([TinyTool(contract("add", summary="Adds."))]).digest()
    assert one.digest() != Registry([TinyTool(contract("add")), music_tool()]).digest()


def test_the_newest_version_is_offered_and_older_ones_stay() -> None:
    old, new = TinyTool(contract("add")), TinyTool(contract("add", version=2))
    registry = Registry([new, old])
    assert registry.get("add") is new
    assert registry.get("add", 1) is old
    assert registry.names() == ("add",)


def test_a_tool_cannot_be_there_twice() -> None:
    with pytest.raises(ConfigInvalid):
        Registry([TinyTool(contract("add")), TinyTool(contract("add"))])


def test_tools_are_found_by_their_modules() -> None:
    assert {"plan_shots", "segment_article", "reflect_plan"} <= {t.contract.name for t in base_tools()}
