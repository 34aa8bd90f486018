"""What the adapters have in common, without any framework: starts of exports, scored transcripts, written calls, sessions, refusals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import workprint
from materialize.adapters import inspect_ai, nemo_gym, openenv, skyrl, verifiers, verl
from materialize.adapters.nemo_gym import Sessions
from materialize.adapters.starts import read_starts, reward_of
from materialize.adapters.written import answer_of, first_call, with_tools
from materialize.rollout import Rollout
from schemas.contract import Role
from schemas.errors import ConfigInvalid, EngineMissing
from tests.materialize.test_groups import World, world  # noqa: F401 - the fixture
from tests.materialize.test_trl_environment import ToyRuns

CANARY = "xq7-canary"
PROMPT = [{"role": "system", "content": "You edit."}, {"role": "user", "content": "Next?"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "cut",
            "parameters": {"properties": {"n": {"type": "integer"}, "all": {"type": "boolean"}, "to": {"type": "string"}}},
        },
    }
]


@pytest.mark.parametrize(
    ("package", "ask"),
    [
        ("openenv", lambda: openenv.application(None)),  # type: ignore[arg-type]
        ("verl", lambda: verl.agent_loop(None)),  # type: ignore[arg-type]
        ("skyrl_gym", lambda: skyrl.register("lake", tokenizer="t")),
        ("nemo_gym", nemo_gym.server_class),
        ("inspect_ai", lambda: inspect_ai.make_task("lake", "rows")),
        ("inspect_ai", lambda: workprint.edit),
        ("verifiers", lambda: workprint.WorkprintTaskset),
        ("verifiers", lambda: verifiers.WorkprintHarness),
    ],
)
def test_a_missing_framework_is_named_with_the_command_that_installs_it(
    package: str, ask: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineMissing) as error:
        ask()
    assert error.value.next_step.startswith("pip install ")


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ('<tool_call>\n{"name": "cut", "arguments": {"n": 3}}\n</tool_call><|im_end|>', ("cut", '{"n":3}')),
        ('<think>\n<tool_call>\n{"name": "no"}\n</tool_call></think>\n<tool_call>{"name": "cut"}</tool_call>', ("cut", "{}")),
        ('<tool_call>{"name": "cut", "arguments": "{broken"}</tool_call>', ("cut", "{broken")),
        ('<tool_call>{"name": 3}</tool_call><tool_call>{"name": "cut", "arguments": {}}</tool_call>', ("cut", "{}")),
        (
            "<tool_call>\n<function=cut>\n<parameter=n>\n12\n</parameter>\n<parameter=all>\nTrue\n</parameter>\n"
            "<parameter=to>\n7\n</parameter>\n</function>\n</tool_call>",
            ("cut", '{"all":true,"n":12,"to":"7"}'),
        ),
        ("<tool_call><function=cut><parameter=n>many</parameter></function></tool_call>", ("cut", '{"n":"many"}')),
        ("<tool_call>\n{cut}\n</tool_call>", None),
        ('{"name": "cut"}', None),
        ("I am done.", None),
    ],
)
def test_calls_are_read_as_models_write_them(text: str, call: tuple[str, str] | None) -> None:
    assert first_call(text, TOOLS) == call


def test_an_answer_is_without_thinking_and_stops() -> None:
    assert answer_of("<think>\na\n</think>\n\n{}\n<|im_end|>\n") == "{}"


class Template:
    """A tokenizer whose template puts tools where it is told to."""

    def __init__(self, place: str) -> None:
        self.place = place

    def apply_chat_template(self, messages: list[dict[str, str]], tools: Any = None, **_: Any) -> str:
        told = f"\n{orjson.dumps(tools).decode()}" if tools else ""
        texts = [f"<{m['role']}>{m['content']}{told if m['role'] == self.place else ''}</>" for m in messages]
        return "".join(texts)


def test_tools_are_shown_as_the_template_shows_them() -> None:
    shown = with_tools(Template("system"), PROMPT, TOOLS)
    assert shown[0]["content"] == f"You edit.\n{orjson.dumps(TOOLS).decode()}"
    assert shown[1:] == PROMPT[1:]


def test_a_template_that_shows_tools_elsewhere_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="template"):
        with_tools(Template("user"), PROMPT, TOOLS)


ROW = {"trajectory_id": "trj_1", "call_index": 4, "snapshot_id": "snp_1", "role": "orchestrator"}
FLAT = {**ROW, "prompt": PROMPT, "split": "train", "completion": CANARY, "reward": CANARY, "label": CANARY}


@pytest.mark.parametrize(
    "line",
    [
        FLAT,
        {"prompt": PROMPT, "extra_info": {**ROW, "split": "train", "answer": CANARY}, "reward_model": {"ground_truth": CANARY}},
    ],
)
def test_starts_hold_the_prompt_and_the_decision_and_nothing_else(line: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist([line]), tmp_path / "data" / "train-00000-of-00001.parquet")
    (start,) = read_starts(tmp_path, "train")
    assert (start.messages, start.row) == (PROMPT, ROW)
    assert CANARY not in repr(start)
    assert list(read_starts(tmp_path, "held_out")) == []


def test_rows_without_a_split_have_that_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(pa.Table.from_pylist([{**ROW, "prompt": PROMPT}]), tmp_path / "data" / "held_out-00000-of-00001.parquet")
    (start,) = read_starts(tmp_path, "held_out")
    assert start.row == ROW
    assert list(read_starts(tmp_path, "train")) == []


def test_lines_of_nemo_gym_are_starts(tmp_path: Path) -> None:
    line = {"responses_create_params": {"input": [{**m, "type": "message"} for m in PROMPT], "tools": []}, **ROW, "answer": CANARY}
    (tmp_path / "train.jsonl").write_bytes(orjson.dumps(line))
    (tmp_path / "sources.jsonl").write_bytes(b'{"source_project":"p"}')
    (start,) = read_starts(tmp_path)
    assert (start.messages, start.row, CANARY in repr(start)) == (PROMPT, ROW, False)


@pytest.mark.parametrize("made", [None, {"prompt": PROMPT, "text": "x"}])
def test_a_folder_without_starts_is_refused(made: dict[str, Any] | None, tmp_path: Path) -> None:
    if made is not None:
        pq.write_table(pa.Table.from_pylist([made]), tmp_path / "a.parquet")
    with pytest.raises(ConfigInvalid, match="no_rows"):
        list(read_starts(tmp_path))


def row_of(world: World, tool: str, role: Role) -> dict[str, Any]:  # noqa: F811
    return {"call_index": world.index(tool, role)}


def test_a_transcript_is_worth_what_the_rollout_was(world: World) -> None:  # noqa: F811
    runs, row = ToyRuns(world), row_of(world, "compose_timeline", Role.ORCHESTRATOR)
    said = [("render_shots", '{"shots":"all"}'), ("compose_timeline", "{}")]
    with Rollout(runs) as rollout:
        rollout.reset(row)
        for tool, arguments in said:
            rollout.call(tool, arguments)
        lived = rollout.reward()
    assert reward_of(runs, row, said, "Enough.") == lived
    assert reward_of(runs, row, said[1:], "", calls=1).value > 0.5 >= reward_of(runs, row, [], "I am done.").value


def test_a_transcript_of_content_is_worth_its_last_text(world: World) -> None:  # noqa: F811
    row = row_of(world, "retrieve_visuals", Role.GENERATOR)
    text = world.trajectory.calls[row["call_index"]].output.text
    assert reward_of(ToyRuns(world), row, [], text).value > 0.9
    assert reward_of(ToyRuns(world), row, [("cut", "{}")], text[:9]).value == 0.0


def test_sessions_at_once_have_states_of_their_own(world: World) -> None:  # noqa: F811
    sessions = Sessions(ToyRuns(world), 1, 0, 8)
    row = row_of(world, "compose_timeline", Role.ORCHESTRATOR)

    def one(name: str) -> float:
        sessions.seed(name, row)
        sessions.call(name, "compose_timeline" if name < "c" else "render_shots", "{}")
        return float(sessions.verify(name, [], "").value)

    with ThreadPoolExecutor(4) as pool:
        a, b, c, d = pool.map(one, "abcd")
    assert a == b > 0.5 > c == d


def test_a_call_that_never_arrived_is_rewarded_as_the_refusal_it_is(world: World) -> None:  # noqa: F811
    sessions = Sessions(ToyRuns(world), 1, 0, 8)
    row = row_of(world, "compose_timeline", Role.ORCHESTRATOR)
    sessions.seed("a", row)
    with Rollout(ToyRuns(world)) as rollout:
        rollout.reset(row, calls=1)
        rollout.call("render_shots", "{broken")
        worth = rollout.reward()
    assert sessions.verify("a", [("render_shots", "{broken")], "") == worth


def test_a_session_ends_with_its_reward_and_old_ones_make_room(world: World) -> None:  # noqa: F811
    sessions = Sessions(ToyRuns(world), 1, 0, 2)
    row = row_of(world, "compose_timeline", Role.ORCHESTRATOR)
    for name in "abc":
        sessions.seed(name, row)
    for name in ("a", "never"):
        with pytest.raises(KeyError):
            sessions.verify(name, [], "")
    assert sessions.verify("c", [], "I am done.").value <= 0.5
    with pytest.raises(KeyError):
        sessions.call("c", "stitch_video", "{}")
