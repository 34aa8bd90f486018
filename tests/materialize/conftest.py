"""A run made by hand from the schema classes: every role, refusals, a mistake, a repair that holds and one that does not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from materialize.config import MaterializeConfig
from materialize.examples import materialize
from materialize.tokens import TokenCounter, open_counter
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import canonical_bytes
from schemas.contract import ContentRequest, Role
from schemas.errors import EngineMissing
from schemas.example import Example
from schemas.media import MediaInfo, SourceItem
from schemas.state import Change, GlobalRecord, ProductionState, Task
from schemas.storyboard import Admission, Storyboard
from schemas.tables import TABLE
from schemas.time import Rate
from schemas.trajectory import (
    Call,
    InjectedFault,
    Observation,
    ObservationStatus,
    Outcome,
    Provenance,
    RoleOutput,
    Trajectory,
)
from schemas.verdict import Defect, DefectCode, Diagnosis, MendCode, RepairLink, Verdict
from storage.arrow import finish_rows, table_of
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore

CANARY = "CANARY"
"""Stands in every field that no policy may see."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"The tool {name}.",
            "parameters": {"type": "object", "properties": {"shots": {"type": "string", "description": "Which shots."}}},
        },
    }
    for name in ("retrieve_visuals", "segment_article", "stitch_video")
]

REF = ArtifactRef(sha256="a" * 64, kind=ArtifactKind.NARRATION, media_type="audio/wav", size_bytes=10)

ORCH, GEN, CRIT = Role.ORCHESTRATOR, Role.GENERATOR, Role.CRITIC
DONE, ASKED, REFUSED = ObservationStatus.COMMITTED, ObservationStatus.CONTENT_REQUESTED, ObservationStatus.REFUSED


@dataclass
class Run:
    """Builds a trajectory call by call, with real context artifacts and snapshots."""

    root: Path
    project_id: str = "prj_one"
    prompt_note: str = ""
    calls: list[Call] = field(default_factory=list)
    repairs: list[RepairLink] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = ArtifactStore(self.root)
        self.snapshots = SnapshotStore(self.store)
        self.states = [_state(self.project_id), _state(self.project_id, inspected="b" * 64)]
        self.snapshot_ids = [self.snapshots.save(s) for s in self.states]
        self.owner = 0

    def say(
        self,
        role: Role,
        status: ObservationStatus,
        *,
        tool: str | None = None,
        args: str = "{}",
        kind: str = "",
        text: str = "",
        provenance: Provenance = Provenance.SCRIPTED,
        blocked: bool = False,
        user: str | None = None,
        **more: Any,
    ) -> Call:
        """One call. ``kind`` is the content asked for; ``user`` replaces the text of the user message."""
        index = len(self.calls)
        if role is ORCH:
            self.owner = index
        content = user if user is not None else f'{{"progress":"call {index}{self.prompt_note}","script":"夜空 has stars.\nMany."}}'
        context = {
            "messages": [{"role": "system", "content": f"You are the {role.value}."}, {"role": "user", "content": content}],
            "tools": TOOLS if role is ORCH else [],
        }
        sha = self.store.put_bytes(canonical_bytes(context), ArtifactKind.CONTEXT, "application/json").sha256
        output = RoleOutput(
            role=role,
            text=text,
            tool=tool if role is ORCH else None,
            arguments_json=args if role is ORCH else None,
            provenance=provenance,
            reason=f"{CANARY} reason",
            usage={f"{CANARY}_usage": 1},
        )
        blockers = (
            (Blocker(code=BlockerCode.PREREQUISITE_MISSING, subject=f"tool:{tool}", message=f"{CANARY} not yet", needs=("renders",)),)
            if status is REFUSED or blocked
            else ()
        )
        at = 1 if self.repairs else 0
        call = Call(
            call_index=index,
            role=role,
            tool=tool,
            tool_version=1,
            context_sha256=sha,
            output=output,
            observation=Observation(
                status=status, tool=tool, results={"seen": f"{CANARY} later"} if status is DONE else {}, blockers=blockers
            ),
            snapshot_before=self.snapshot_ids[at],
            snapshot_after=self.snapshot_ids[at],
            state_before=self.snapshots.digest(self.states[at]),
            state_after=self.snapshots.digest(self.states[at]),
            orchestrator_call=self.owner,
            faults=(InjectedFault(fault_id=f"f{index}", kind="render_black", subject="s001", detail=f"{CANARY} fault"),),
            request=None
            if role is ORCH
            else ContentRequest(role=role, tool=tool or "", tool_version=1, kind=kind, instruction=f"{CANARY} request", content_schema={}),
            **more,
        )
        self.calls.append(call)
        return call

    def ask(self, tool: str, role: Role, kind: str, text: str, *, refused_first: bool = False, **more: Any) -> tuple[int, int]:
        """A tool call that needs one content; returns the indices of both calls."""
        o = self.say(ORCH, ASKED, tool=tool).call_index
        if refused_first:
            self.say(role, REFUSED, tool=tool, kind=kind, text='{"bad":1}')
        return o, self.say(role, DONE, tool=tool, kind=kind, text=text, **more).call_index

    def mend(self, found: int, mended: int, verified: int | None, outcome: str) -> None:
        """Add a failure-repair link."""
        defect = Defect(defect_id=f"d{len(self.repairs)}", code=DefectCode.RENDER_BLACK, subject="s001", severity="error", measured="98 %")
        diagnosis = Diagnosis(defect_id=defect.defect_id, subject="s001", cause="fade", mend=MendCode.RERENDER, reason=f"{CANARY} why")
        self.repairs.append(
            RepairLink(
                defect=defect,
                diagnosis=diagnosis,
                call_found=found,
                call_mended=mended,
                call_verified=verified,
                artifact_before="c" * 64,
                artifact_after="d" * 64,
                score_before=0.2,
                score_after=None if verified is None else 0.9,
                outcome=outcome,  # type: ignore[arg-type]
            )
        )

    def trajectory(self, outcome: Outcome = Outcome.DELIVERED, seed: int = 0) -> Trajectory:
        """The run so far."""
        return Trajectory(
            trajectory_id=f"trj_{self.project_id}_{seed}",
            project_id=self.project_id,
            policy="scripted",
            seed=seed,
            budget=40,
            outcome=outcome,
            calls=tuple(self.calls),
            repairs=tuple(self.repairs),
            first_snapshot=self.snapshot_ids[0],
            last_snapshot=self.snapshot_ids[1],
            video=REF,
            manifest=REF,
            sandbox="bubblewrap",
            engines={"speech": f"{CANARY} engine"},
            config_digest="e" * 64,
        )

    def examples(self, config: MaterializeConfig | None = None, outcome: Outcome = Outcome.DELIVERED, **more: Any) -> tuple[Example, ...]:
        """The examples of the run, without token counts."""
        config = config or MaterializeConfig(tokenizer="none", validation_share=0, held_out_share=0)
        return materialize(self.trajectory(outcome), storyboard(self.project_id), self.store, self.snapshots, config, None, **more).output


def whole_run(root: Path, project_id: str = "prj_one", prompt_note: str = "") -> Run:
    """A run with one output of every kind."""
    run = Run(root, project_id, prompt_note)
    run.say(ORCH, REFUSED, tool="stitch_video", provenance=Provenance.SCRIPTED_MISTAKE)
    run.ask("segment_article", GEN, "segments", '{"segments":[{"title":"Sky"}]}')
    run.ask("plan_shots", GEN, "shot_plan", '{"shots":[]}', refused_first=True)
    run.ask("reflect_plan", CRIT, "plan_reflection", '{"findings":[]}')
    run.ask("retrieve_visuals", GEN, "queries", '{"queries":[{"shot_id":"s001","query":"stars"}]}')
    run.say(
        ORCH,
        DONE,
        tool="synthesize_narration",
        args='{"shots": "all"}',
        artifacts=(REF,),
        changes=(Change(subject="s001", field="narration", value={"ref": {"sha256": "a" * 64}}),),
    )
    run.ask("decorate_spotlights", GEN, "fills", '{"fills":[]}')
    run.ask("search_music", GEN, "music_query", '{"query":"calm"}')
    verdict = Verdict(subject="s001", passed=False, score=0.2, defects=(), judge="structured")
    found, _ = run.ask("inspect_quality", CRIT, "inspection", '{"judgements":[1]}', verdicts=(verdict,))
    run.ask("rank_severity", CRIT, "severity", '{"order":["d0"]}')
    held, _ = run.ask("repair_shots", CRIT, "repair_request", '{"mends":[0]}')
    lost, _ = run.ask("repair_shots", CRIT, "repair_request", '{"mends":[1]}')
    verified, _ = run.ask("inspect_quality", CRIT, "inspection", '{"judgements":[]}')
    run.mend(found, held, verified, "verified")
    run.mend(found, lost, verified, "not_verified")
    run.say(ORCH, DONE, tool="stitch_video")
    return run


def _state(project_id: str, inspected: str | None = None) -> ProductionState:
    task = Task(
        project_id=project_id,
        title="t",
        language="en",
        script="s",
        aspect_ratio="16:9",
        width=16,
        height=10,
        frame_rate=Rate(num=30, den=1),
        duration_min_us=1,
        duration_max_us=2,
        pool=(),
        music_library="m",
        voice="v",
        tools_digest="f" * 64,
        licence="CC-BY-3.0",
    )
    return ProductionState(film=GlobalRecord(task=task, inspected=inspected))


def storyboard(project_id: str, licence: str | None = "CC-BY-3.0") -> Storyboard:
    """A storyboard whose answers are canaries."""
    return Storyboard(
        project_id=project_id,
        source=SourceItem(uri=f"{CANARY}.mp4", licence=licence, attribution="Walter Lewin"),
        media=MediaInfo(sha256="1" * 64, size_bytes=1, container="mp4", video=None, audio=None, audio_choice="", duration_us=1),
        frame_rate=Rate(num=30, den=1),
        language="en",
        title=f"{CANARY} title",
        script=f"{CANARY} script",
        words=(),
        sentences=(),
        shots=(),
        segments=(),
        aspect_ratio="16:9",
        duration_min_us=1,
        duration_max_us=2,
        music_moods=(f"{CANARY} mood",),
        admission=Admission(narration_share=1, mean_confidence=None, speech_covered=1),
        engines={"asr": f"{CANARY} engine"},
    )


def table_from(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as the examples table of a lake."""
    return table_of(TABLE["examples"], finish_rows(TABLE["examples"], rows, stage_key="stg_x", run_id="run_x"))


def plain_row(index: int, *, completion: dict[str, Any] | str, user: str = "go", **more: Any) -> dict[str, Any]:
    """One row of the examples table, made directly."""
    row = {
        "example_id": f"exa_{index:04d}",
        "project_id": f"prj_{index // 4:03d}",
        "trajectory_id": "trj_1",
        "call_index": index,
        "role": "orchestrator",
        "kind": "tool_call",
        "provenance": "scripted",
        "licence": "CC-BY-4.0",
        "attribution": None,
        "split": "train",
        "config_digest": "e" * 64,
        "verified": True,
        "snapshot_id": "snp_" + "0" * 64,
        "context_sha256": f"{index:064x}",
        "prompt_json": json.dumps([{"content": "Edit.", "role": "system"}, {"content": user, "role": "user"}], ensure_ascii=False),
        "tools_json": json.dumps(TOOLS),
        "completion_json": completion if isinstance(completion, str) else json.dumps(completion, ensure_ascii=False),
        "prompt_tokens": 100,
        "completion_tokens": 10,
    }
    return row | more


def tool_call(name: str, arguments: str) -> dict[str, Any]:
    """An assistant message with one call; ``arguments`` is exact JSON text."""
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the artifact store that all runs share: what is there already is not written again."""
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="session")
def real_lake(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A small lake made with real tools (tests.materialize.real_lake). Tests may add groups and audits to it, nothing else."""
    from tests.materialize.real_lake import make_lake

    return make_lake(tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="session")
def counter() -> TokenCounter:
    """The Qwen3 token counter; skips where the tokenizer is not installed."""
    try:
        found = open_counter(MaterializeConfig())
    except EngineMissing as missing:
        pytest.skip(str(missing))
    assert found is not None
    return found


@pytest.fixture
def run(root: Path) -> Run:
    """The whole run."""
    return whole_run(root)


@pytest.fixture
def make_run(root: Path) -> Any:
    """``make_run(project_id, note)``: more runs in one store."""
    return lambda project_id="prj_one", note="": whole_run(root, project_id, note)


@pytest.fixture
def empty_run(root: Path) -> Run:
    """A run without calls, to be filled by the test."""
    return Run(root)


@pytest.fixture
def build() -> Any:
    """Functions that make rows and tables directly: ``row``, ``call``, ``table``, ``storyboard``."""

    class Build:
        row = staticmethod(plain_row)
        call = staticmethod(tool_call)
        table = staticmethod(table_from)
        storyboard = staticmethod(storyboard)
        whole_run = staticmethod(whole_run)
        tools = TOOLS
        canary = CANARY
        orchestrator, generator, critic = ORCH, GEN, CRIT
        done, asked, refused = DONE, ASKED, REFUSED

    return Build
