"""Examples of runs that the real runtime and the scripted policy made (with tools that produce records without bytes)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.export.api import export
from materialize.rows import example_rows, trajectory_rows
from repair.links import link
from replay.episode import run_episode
from replay.policies.scripted import ScriptedPolicy
from schemas.canonical import canonical_bytes, canonical_text
from schemas.example import Example
from schemas.storyboard import Storyboard
from schemas.tables import TABLE
from schemas.trajectory import RoleContext, RoleOutput, Trajectory
from storage.arrow import finish_rows
from tests.replay.toy import ToyCritic, storyboard, toy_runtime

CONFIG = MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)
HIDDEN = "HIDDEN"
ANSWER = "ANSWER"


@dataclass
class Watched:
    """A policy that keeps what it saw."""

    inner: ScriptedPolicy
    seen: list[bytes] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def seed(self) -> int:
        return self.inner.seed

    def act(self, context: RoleContext) -> RoleOutput:
        self.seen.append(canonical_bytes(context.visible()))
        output = self.inner.act(context)
        output = output.model_copy(update={"reason": f"{HIDDEN} reason {output.reason}", "usage": {f"{HIDDEN}_usage": 1}})
        self.reasons.append(output.reason)
        return output


@dataclass
class Live:
    """One run and its examples."""

    board: Storyboard
    policy: Watched
    runtime: Any
    trajectory: Trajectory
    examples: tuple[Example, ...]


def marked(board: Storyboard) -> Storyboard:
    """Canaries in every field that policies must not see (HIDDEN), and in the decisions that are theirs to make (ANSWER)."""
    shots = tuple(
        s.model_copy(
            update={
                "communicates": f"{HIDDEN} communicates",
                "constraints": (f"{HIDDEN} constraint",),
                "visual_query": f"{ANSWER}query{i:02d}",
                "evidence": s.evidence.model_copy(update={"caption": f"{HIDDEN} caption", "burned_captions": (f"{HIDDEN} burned",)}),
                "spotlight": s.spotlight
                and s.spotlight.model_copy(update={"slots": {"value": f"{ANSWER}value{i:02d}", "label": f"{ANSWER}label{i:02d}"}}),
            }
        )
        for i, s in enumerate(board.shots)
    )
    segments = tuple(s.model_copy(update={"title": f"{ANSWER}title{s.index:02d}"}) for s in board.segments)
    source = board.source.model_copy(update={"uri": f"{HIDDEN}.mp4", "source_url": f"https://{HIDDEN}.example"})
    return board.model_copy(update={"shots": shots, "segments": segments, "source": source, "engines": {"asr": f"{HIDDEN} engine"}})


@pytest.fixture(scope="module", params=[1, 2, 3])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Live:
    """A run of each seed, with two defects to repair."""
    board = marked(storyboard(10))
    runtime = toy_runtime(tmp_path_factory.mktemp("live"), board, errors=2)
    policy = Watched(ScriptedPolicy(board, request.param, runtime.suite.config, ToyCritic()))
    trajectory = run_episode(runtime, policy, config_digest="c" * 64, link=link)
    done = materialize(trajectory, board, runtime.suite.store, runtime.suite.snapshots, CONFIG, None)
    return Live(board, policy, runtime, trajectory, done.output)


def test_the_prompt_is_byte_for_byte_what_the_policy_saw(live: Live) -> None:
    authored = [c for c in live.trajectory.calls if c.output.provenance.value != "runtime"]
    seen = {call.call_index: data for call, data in zip(authored, live.policy.seen, strict=True)}
    assert live.examples
    for e in live.examples:
        assert f'{{"messages":{canonical_text(list(e.prompt))},"tools":{e.tools_json}}}'.encode() == seen[e.call_index]


def test_no_hidden_field_reaches_an_example(live: Live) -> None:
    assert HIDDEN in canonical_text(live.trajectory.model_dump(mode="json"))
    assert not [e.call_index for e in live.examples if HIDDEN in e.canonical().decode()]


def test_no_answer_is_shown_before_it_was_given(live: Live) -> None:
    answers = {a for s in live.board.shots for a in (s.visual_query, *(s.spotlight.slots.values() if s.spotlight else ()))}
    answers |= {s.title for s in live.board.segments}
    authored = iter(live.policy.seen)
    given: set[str] = set()
    for call in live.trajectory.calls:
        if call.output.provenance.value == "runtime":
            continue
        shown = next(authored).decode()
        assert not [a for a in answers - given if a in shown], call.call_index
        given |= {a for a in answers if a in call.output.text or a in (call.output.arguments_json or "")}
    assert given


def test_mistakes_and_refused_outputs_are_never_learnt(live: Live) -> None:
    calls = {c.call_index: c for c in live.trajectory.calls}
    for e in live.examples:
        assert calls[e.call_index].observation.status.value != "refused"
        assert e.provenance.value == "scripted"


def test_every_accepted_authored_output_became_an_example_once(live: Live) -> None:
    accepted = [c for c in live.trajectory.calls if c.observation.status.value != "refused" and c.output.provenance.value == "scripted"]
    different = {(c.context_sha256, c.output.text, c.output.arguments_json, c.output.tool) for c in accepted}
    assert len(live.examples) == len(different) > 20


def test_all_three_roles_speak_and_all_runs_deliver(live: Live) -> None:
    assert {e.role.value for e in live.examples} == {"orchestrator", "generator", "critic"}
    assert {e.verified for e in live.examples if e.kind.value != "repair_request"} == {True}


def test_every_refusal_is_followed_by_a_recovery_or_another_refusal(live: Live) -> None:
    kinds = {e.call_index: e.kind.value for e in live.examples}
    for before, after in pairwise(live.trajectory.calls):
        if before.observation.blockers and after.role.value == "orchestrator" and not after.observation.blockers:
            assert kinds[after.call_index] == "blocker_recovery"


def test_rows_of_a_live_run_fit_the_lake(live: Live) -> None:
    final = live.runtime.suite.snapshots.load(live.trajectory.last_snapshot)
    rows = trajectory_rows(live.trajectory, final_state=final, quality=0.8, trajectory_sha256="5" * 64)
    for name, table in (rows | {"examples": example_rows(live.examples)}).items():
        assert len(finish_rows(TABLE[name], table, stage_key="stg_x", run_id="run_x")) == len(table)
    assert len(rows["calls"]) == len(live.trajectory.calls)
    assert rows["trajectories"][0]["duration_us"] == 1_000_000


def test_every_snapshot_of_an_example_restores_its_state(live: Live) -> None:
    deep = CONFIG.model_copy(update={"check_snapshots": True})
    suite = live.runtime.suite
    assert materialize(live.trajectory, live.board, suite.store, suite.snapshots, deep, None).output == live.examples


def test_tokens_of_a_live_run_equal_the_tokenizers_own(live: Live, counter: Any) -> None:
    suite = live.runtime.suite
    done = materialize(live.trajectory, live.board, suite.store, suite.snapshots, CONFIG, counter)
    for e in done.output[:12]:
        tools = orjson.loads(e.tools_json)
        prompt = counter._tokenizer(counter.render(e.prompt, tools))["input_ids"]
        whole = counter._tokenizer(counter.render(e.prompt, tools, e.completion))["input_ids"]
        assert (e.prompt_tokens, e.completion_tokens) == (len(prompt), len(whole) - len(prompt))


def test_a_live_run_exports_without_a_bad_row(live: Live, build: Any, tmp_path: Path) -> None:
    report = export("sft", "trl", build.table(example_rows(live.examples)), tmp_path / "out")
    assert (report.escaped, report.left_out) == (0, ())
    assert sum(report.rows.values()) == sum(e.verified for e in live.examples)


SHOWN = {
    "title", "language", "licence", "attribution", "aspect_ratio", "schema_version", "project_id",
    "script", "text", "narration", "music_moods", "engines",
}  # fmt: skip
"""Texts of a storyboard that a task may state (script, language, licence) or that name what it is; everything else is an oracle's."""

CLOSED = {"kind", "origin", "caption_source", "transition_in", "timing", "sha256", "rate_kind"}
"""Words of closed sets and digests: they cannot hold a canary. A spotlight's kind reaches a context only through a plan."""


VIDEO = {
    "index": 0, "codec": "c", "pix_fmt": "p", "coded_width": 16, "coded_height": 10, "rotation": 0, "sar_num": 1, "sar_den": 1,
    "display_width": 16, "display_height": 10, "rate": {"num": 30, "den": 1}, "is_vfr": False, "start_us": 0, "duration_us": 1, "frames": 1,
}  # fmt: skip


def planted(value: Any, path: str, planted_at: list[str]) -> Any:
    """A storyboard's JSON with a canary of its own in every free text that no policy may see before it was authored."""
    if isinstance(value, dict):
        kept = CLOSED if ".evidence" in path else SHOWN | CLOSED  # text on screen is evidence, the narration's text is the task's
        return {k: v if k in kept else planted(v, f"{path}.{k}", planted_at) for k, v in value.items()}
    if isinstance(value, list):
        return [planted(v, f"{path}.{i}", planted_at) for i, v in enumerate(value)]
    if isinstance(value, str):
        planted_at.append(path)
        return f"ORACLE{len(planted_at):04d}"
    return value


def free_texts(schema: dict[str, Any]) -> set[str]:
    """Names of all fields of a JSON schema that hold free text."""
    found: set[str] = set()

    def walk(part: dict[str, Any], name: str, seen: frozenset[str]) -> None:
        reference = part.get("$ref", "").rpartition("/")[2]
        if reference and reference not in seen:
            walk(schema["$defs"][reference], name, seen | {reference})
        if part.get("type") == "string" and not {"enum", "const"} & part.keys():
            found.add(name)
        for inner in [*part.get("anyOf", ()), *part.get("prefixItems", ()), part.get("items"), part.get("additionalProperties")]:
            if isinstance(inner, dict):
                walk(inner, name, seen)
        for inner_name, inner in part.get("properties", {}).items():
            walk(inner, inner_name, seen)

    walk(schema, "", frozenset())
    return found


def test_a_canary_in_every_oracle_text_is_never_seen_before_it_was_authored(tmp_path: Path) -> None:
    """Walks the storyboard's own schema, so that a text field added later has to be planted here, or named as shown."""
    at: list[str] = []
    filled = storyboard(8).model_dump(mode="json")
    filled["source"] |= {"source_url": "u", "subtitles": "s", "script": None}
    for shot in filled["shots"]:
        shot["constraints"] = ["c"]
        shot["evidence"] |= {"text": [{"text": "on screen", "x": 0, "y": 0, "width": 1, "height": 1, "confidence": 1.0}]}
        shot["evidence"]["burned_captions"] = ["b"]
    for sentence in filled["sentences"]:
        sentence["flags"] = ["f"]
    filled["media"] |= {"video": VIDEO, "ignored_streams": ["i"]}
    board = Storyboard.model_validate(planted(filled, "", at))
    names = {part for p in at for part in p.split(".")}
    assert free_texts(Storyboard.model_json_schema()) - SHOWN - CLOSED <= names
    assert {"communicates", "visual_query", "caption", "value", "label", "uri", "evidence"} <= names
    assert [p for p in at if ".evidence.text." in p]
    runtime = toy_runtime(tmp_path, board, errors=2)
    policy = Watched(ScriptedPolicy(board, 1, runtime.suite.config, ToyCritic()))
    trajectory = run_episode(runtime, policy, link=link)
    authored = ""
    seen: set[str] = set()
    for call, shown in zip((c for c in trajectory.calls if c.output.provenance.value != "runtime"), policy.seen, strict=True):
        fresh = set(re.findall(r"ORACLE\d{4}", shown.decode()))
        early = sorted(at[int(name[6:]) - 1] for name in fresh if name not in authored)
        assert not early, (call.call_index, early)
        authored += call.output.text + (call.output.arguments_json or "")
        seen |= fresh
    assert seen  # what was authored does come back: the watch works
