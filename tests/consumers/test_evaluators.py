"""The environment core behind SkyRL, NeMo Gym, Inspect and verifiers (check K): exported rows of a lake that real tools made, scripted
replies, and the rewards that ``workprint reward explain`` tells of the same outputs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from materialize.adapters.starts import read_starts, reward_of
from materialize.config import MaterializeConfig
from materialize.export.api import export
from materialize.export.options import ExportFilters, ExportOptions
from materialize.recorded import LakeRuns
from materialize.tokens import open_counter
from media.assets import asset
from schemas.contract import Role, shown_schema
from schemas.errors import EngineMissing
from storage.lake import Lake
from tests.consumers.conftest import python_of, run_script
from tests.materialize.real_lake import make_lake

pytestmark = pytest.mark.full

TOLD = {"orchestrator": "compose_timeline", "generator": "search_music", "critic": "inspect_quality"}
"""The tool that the decision of each role is about."""

EARLY = [["render_shots", '{"shots":"all"}'], ["compose_timeline", "{}"]]
"""A refused call, and the one that it lacked."""


@dataclass
class Bed:
    """The lake, its rows and the episodes that are played."""

    lake: Path
    rows: Path
    episodes: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    prompts: dict[str, list[list[str]]]

    def written(self, folder: Path, *, one_a_row: bool = False) -> Path:
        """The episodes as JSON; with ``one_a_row`` one for each row and number of calls."""
        kept = list({(e["snapshot_id"], e["calls"]): e for e in self.episodes}.values()) if one_a_row else self.episodes
        path = folder / "episodes.json"
        path.write_text(json.dumps(kept))
        return path


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """Groups of a decision of each role, made and told by the command, and one episode of several calls."""
    root = tmp_path_factory.mktemp("evaluators")
    place = make_lake(root).lake.root
    lake = Lake(place, create=False)
    connection = lake.connect()
    options = ExportOptions(filters=ExportFilters(roles=tuple(Role)))
    for consumer in ("trl", "skyrl", "nemo-gym"):
        export("rl", consumer, connection, root / consumer, options)
    tools = {(t, i): tool for t, i, tool in lake.query("select trajectory_id, call_index, tool from calls").rows}
    rows = list(read_starts(root / "trl"))
    shared = Counter(s.row["snapshot_id"] for s in rows)  # two runs may reach one state by different calls; episodes are told by state
    alone = [s for s in rows if shared[s.row["snapshot_id"]] == 1]
    starts = {s.row["role"]: s for s in alone if tools[s.row["trajectory_id"], s.row["call_index"]] == TOLD[s.row["role"]]}
    assert set(starts) == {role.value for role in Role}
    episodes = []
    for role, start in starts.items():
        snapshot = start.row["snapshot_id"]
        workprint("groups", "--lake", str(place), "--snapshot", snapshot, "-k", "3")
        for group, number in Lake(place, create=False).query(
            "select group_id, candidate_index from candidates join groups using (group_id) where groups.snapshot_id = $1 order by all",
            [snapshot],
        ).rows:  # fmt: skip
            told = json.loads(workprint("reward", "explain", f"{group}.{number}", "--lake", str(place), "--json"))
            output = told["output"]
            said = [[output["tool"], output["arguments_json"]]] if role == "orchestrator" and output["tool"] else []
            text = "Enough." if said else output["text"]
            episodes.append(
                {
                    "name": told["candidate"], "snapshot_id": snapshot, "calls": 1, "said": said, "text": text, "reward": told["reward"],
                    "parts": told["parts"],
                }
            )  # fmt: skip
    start = starts["orchestrator"]
    worth = reward_of(LakeRuns(lake), start.row, [(t, a) for t, a in EARLY], "Enough.")
    episodes.append(
        {
            "name": "early", "snapshot_id": start.row["snapshot_id"], "calls": None, "said": EARLY, "text": "Enough.",
            "reward": worth.value, "parts": worth.parts,
        }
    )  # fmt: skip
    contracts = sorted(LakeRuns(lake).registry.contracts(), key=lambda c: c.name)
    shown = [shown_schema(c.function_schema()) for c in contracts]
    prompts = {s.row["snapshot_id"]: [list(m) for m in s.prompt] for s in starts.values()}
    return Bed(place, root, episodes, shown, prompts)


def workprint(*argv: str) -> str:
    code = "from jobs.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def assert_rewards(found: list[dict[str, Any]], bed: Bed) -> dict[str, dict[str, Any]]:
    """Every episode got the reward and the parts that this project tells."""
    by_name = {row["name"]: row for row in found}
    for episode in bed.episodes:
        if episode["name"] in by_name:
            row = by_name[episode["name"]]
            assert row["reward"] == pytest.approx(episode["reward"], abs=1e-12), episode["name"]
            assert row["parts"] == pytest.approx(episode["parts"], abs=1e-12), episode["name"]
    assert "prerequisite_missing" in by_name["early"]["seen"][0]
    return by_name


def test_the_episodes_can_tell_good_from_bad(bed: Bed) -> None:
    by_state: dict[str, list[float]] = {}
    for episode in bed.episodes:
        by_state.setdefault(episode["snapshot_id"], []).append(episode["reward"])
    assert len(by_state) == 3
    assert all(max(rewards) - min(rewards) > 0.3 for rewards in by_state.values())


def test_skyrl_steps_through_recorded_decisions(bed: Bed, tmp_path: Path) -> None:
    python_of("skyrl")
    try:
        open_counter(MaterializeConfig())
    except EngineMissing as missing:
        pytest.skip(str(missing))
    found = run_script("skyrl", "env_skyrl.py", bed.lake, bed.rows / "skyrl", bed.written(tmp_path), asset("qwen3-tokenizer"), cwd=tmp_path)
    assert_rewards(found, bed)
    assert len(found) == len(bed.episodes)
    assert all(row["same_prompt"] and row["averaged"] == row["reward"] for row in found)


def test_nemo_gyms_server_executes_and_verifies(bed: Bed, tmp_path: Path) -> None:
    found = run_script("nemo-gym", "env_nemo_gym.py", bed.lake, bed.rows / "nemo-gym", bed.written(tmp_path), cwd=tmp_path)
    by_name = assert_rewards(found, bed)
    assert len(found) == len(bed.episodes) + 1
    assert by_name["refused"]["status"] == [400, 400]
    assert all(row["again"] == 400 for row in found if row["name"] != "refused")
    flat = [{"type": "function", **tool["function"], "strict": False} for tool in bed.tools]
    assert by_name["early"]["tools"] == flat


def test_inspect_scores_recorded_decisions_as_we_do(bed: Bed, tmp_path: Path) -> None:
    found = run_script("inspect", "env_inspect.py", bed.lake, bed.rows / "trl", bed.written(tmp_path), cwd=tmp_path)
    by_name = assert_rewards(found, bed)
    assert by_name.pop("command_line")["found"]
    assert len(by_name) == len(bed.episodes)
    for episode in bed.episodes:
        row = by_name[episode["name"]]
        assert (row["again"], row["mean"]) == (row["reward"], row["reward"])
        assert row["first"] == bed.prompts[episode["snapshot_id"]]
    shown = [{**t["function"], "parameters": {"required": [], **t["function"]["parameters"]}} for t in bed.tools]
    assert by_name["early"]["tools"] == shown


def test_verifiers_evaluates_recorded_decisions(bed: Bed, tmp_path: Path) -> None:
    found = run_script("verifiers", "env_verifiers.py", bed.lake, bed.rows / "trl", bed.written(tmp_path, one_a_row=True), cwd=tmp_path)
    by_name = assert_rewards(found, bed)
    assert len(found) == 4
    assert all(row["errors"] == [] for row in found)
    for episode in bed.episodes:
        if episode["name"] in by_name:
            assert by_name[episode["name"]]["first"] == bed.prompts[episode["snapshot_id"]]
    assert json.dumps(by_name["early"]["tools"]) == json.dumps(bed.tools)


def test_inspect_plays_the_benchmark(tmp_path: Path) -> None:
    """From the beginning of a held-out edit: a call that succeeds, one that is refused there, and no call. The frozen policy plays on, and
    the film that it delivers is worth something only when the call was in order."""
    python_of("inspect")
    (tmp_path / "made").mkdir()
    made = make_lake(tmp_path / "made", split="held_out")
    export("benchmark", "hf", made.lake.connect(), tmp_path / "benchmark", store=made.lake.store)
    (start,) = read_starts(tmp_path / "benchmark", "held_out")
    snapshot = start.row["snapshot_id"]
    said = {"begun": [["search_music", "{}"]], "refused": [["render_shots", '{"shots":"all"}']], "mute": []}
    episodes = [{"name": name, "snapshot_id": snapshot, "calls": 1, "said": calls, "text": "Enough."} for name, calls in said.items()]
    (tmp_path / "episodes.json").write_text(json.dumps(episodes))
    found = run_script("inspect", "env_inspect.py", made.lake.root, tmp_path / "benchmark", tmp_path / "episodes.json", cwd=tmp_path)
    rewards = {row["name"]: row["reward"] for row in found if "reward" in row}
    assert rewards == pytest.approx({"begun": 0.9963, "refused": 0.475, "mute": 0.475}, abs=0.001)
    assert all(row["again"] == row["reward"] and row["first"] == [list(m) for m in start.prompt] for row in found if "reward" in row)
