"""The generated page of tools is current, and the contracts keep the house's promises to trainers."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from replay.contents import Segments
from replay.reference import PACKAGES, PAGE, main, reference_page
from replay.registry import Registry, base_tools, discover
from schemas.canonical import Frozen
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


def test_the_vocabulary_has_the_thirteen_tools(contracts: tuple[ToolContract, ...]) -> None:
    assert {c.name for c in contracts} >= {
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
    }


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


def test_the_tool_space_of_an_old_trajectory_is_offered_again() -> None:
    add1, add2 = TinyTool(contract("add")), TinyTool(contract("add", version=2))
    then = Registry([add1, music_tool()])
    now = Registry([add2, add1, music_tool(), TinyTool(contract("later"))])
    again = now.reproducing(then.digest(), ["add", "search_music"])
    assert again is not None
    assert (again.digest(), again.names(), again.get("add")) == (then.digest(), ("add", "search_music"), add1)
    assert again.get("add", 2) is add2, "open calls of any version can be finished"
    assert now.reproducing(now.digest()) is now


@pytest.mark.parametrize("names", [None, ["add"], ["add", "gone"]])
def test_a_tool_space_that_is_not_all_here_is_none(names: list[str] | None) -> None:
    gone = Registry([TinyTool(contract("add")), TinyTool(contract("gone"))])
    assert Registry([TinyTool(contract("add")), music_tool()]).reproducing(gone.digest(), names) is None


class Chapters(Frozen):
    """A form that only one tool asks for."""

    titles: tuple[str, ...]


def asking(kind: str) -> TinyTool:
    """A tool with a content kind of its own."""
    tool = TinyTool(contract("title_chapters"))
    tool.contents = {kind: Chapters}  # type: ignore[attr-defined]
    return tool


def test_a_tool_brings_its_own_content_kind() -> None:
    registry = Registry([asking("chapter_titles")])
    assert registry.content_model("chapter_titles") is Chapters
    assert registry.content_model("segments") is Segments
    assert registry.content_model("unheard_of") is None


def test_a_known_kind_gets_no_second_meaning() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        Registry([asking("segments")])
    assert caught.value.code == "kind_repeated"


MODULE = """
from tests.replay.doubles import TinyTool, contract

TOOL = TinyTool(contract("add", version={version}))
"""


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"add": MODULE.format(version=1)}, [("add", 1)]),
        ({"add": MODULE.format(version=2), "add_v1": MODULE.format(version=1)}, [("add", 2), ("add", 1)]),
        ({"add": MODULE.format(version=1), "_parts": "X = 1"}, [("add", 1)]),
        ({"sum": MODULE.format(version=1)}, "tool_misnamed"),
        ({"add_v2": MODULE.format(version=1)}, "tool_misnamed"),
        ({"parts": "X = 1"}, "tool_missing"),
    ],
    ids=["one", "an old version", "a private module", "misnamed", "wrong version", "no tool"],
)
def test_what_is_found_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], outcome: list[tuple[str, int]] | str
) -> None:
    package = tmp_path / "some_tools"
    package.mkdir()
    for name, text in {"__init__": "", **files}.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [m for m in sys.modules if m.startswith("some_tools")]:
        monkeypatch.delitem(sys.modules, name)
    try:
        if isinstance(outcome, str):
            with pytest.raises(ConfigInvalid) as caught:
                discover("some_tools")
            assert caught.value.code == outcome
        else:
            assert [(t.contract.name, t.contract.version) for t in discover("some_tools")] == outcome
    finally:
        for name in [m for m in sys.modules if m.startswith("some_tools")]:
            del sys.modules[name]
