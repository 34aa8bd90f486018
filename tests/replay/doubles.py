"""A small production: a task, engines that are never called, and tiny tools whose behaviour a test chooses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from media.command import Command, Completed
from replay.config import ReplayConfig
from replay.engines import Engines
from replay.lineage import delivery_inputs
from replay.registry import Registry
from replay.runtime import Runtime
from replay.state import film_change
from replay.suite import Suite
from replay.tool import Arguments, Contents, Product, Refusal, Tool, ToolEnv
from replay.tools import plan_shots, reflect_plan, segment_article
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ArgSpec, ContentRequest, Fact, Role, ToolContract
from schemas.state import Delivery, PoolClip, ProductionState, Task
from schemas.time import Rate
from schemas.trajectory import Provenance, RoleOutput
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore

SCRIPT = (
    "Tea came to Europe by sea. It was dear at first. Only the rich could buy it. "
    "Then the clippers made the way short. A race from China took a hundred days. "
    "Today a cup costs next to nothing."
)
"""Six sentences."""


class NoSandbox:
    """The planning tools start no process; one that does is a fault of the test."""

    name = "none"

    def run(self, command: Command, workdir: Path) -> Completed:
        raise AssertionError(f"no process expected, got {command.argv}")

    def stream(self, command: Command, consume: Any) -> Completed:
        raise AssertionError(f"no process expected, got {command.argv}")


@dataclass(frozen=True)
class Named:
    """Stands for an engine that only has to have a name."""

    name: str = "none"
    version: str = "1"
    languages: tuple[str, ...] = ("en",)
    tracks: tuple[Any, ...] = ()

    def voice_for(self, language: str, wanted: str) -> str:
        return f"{language}-voice" if wanted == "default" else wanted


def engines() -> Engines:
    """Engines with names and no abilities."""
    return Engines(speech=Named("mute"), embedder=Named("blind"), music=Named("silence"), templates={}, reader=Named("deaf"))  # type: ignore[arg-type]


def ref(content: str = "x", kind: ArtifactKind = ArtifactKind.CLIP) -> ArtifactRef:
    """A reference to bytes that nobody stored."""
    return ArtifactRef(sha256=hashlib.sha256(content.encode()).hexdigest(), kind=kind, media_type="video/mp4", size_bytes=len(content))


def pool_clip(n: int) -> PoolClip:
    """One clip of a pool."""
    r = ref(f"clip {n}")
    return PoolClip(
        clip_id=f"clip_{r.sha256[:12]}",
        ref=r,
        text=f"picture number {n}",
        duration_us=4_000_000,
        width=320,
        height=180,
        rate=Rate(num=30, den=1),
        licence="CC0-1.0",
        origin="source",
    )


def task(script: str = SCRIPT, **changes: Any) -> Task:
    """A small task."""
    values: dict[str, Any] = {
        "project_id": "prj_test",
        "title": "Tea",
        "language": "en",
        "script": script,
        "aspect_ratio": "16:9",
        "width": 1280,
        "height": 720,
        "frame_rate": Rate(num=30, den=1),
        "duration_min_us": 10_000_000,
        "duration_max_us": 60_000_000,
        "pool": tuple(pool_clip(n) for n in range(4)),
        "music_library": "silence",
        "voice": "en-voice",
        "tools_digest": "0" * 64,
        "licence": "CC0-1.0",
    }
    return Task(**{**values, **changes})


def suite(folder: Path, **changes: Any) -> Suite:
    """A suite whose stores live in ``folder``; keyword arguments are settings of ReplayConfig."""
    store = ArtifactStore(folder / "artifacts")
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    return Suite(store, SnapshotStore(store), NoSandbox(), engines(), ReplayConfig(**changes), scratch)


@dataclass
class TinyTool:
    """A tool whose four steps are plain functions."""

    contract: ToolContract
    resolving: Callable[[ProductionState, Arguments], tuple[Blocker, ...]] = lambda _s, _a: ()
    needing: Callable[[ProductionState, Arguments, Contents, ToolEnv], ContentRequest | None] = lambda _s, _a, _g, _e: None
    accepting: Callable[[dict[str, Any]], tuple[Blocker, ...]] = lambda _c: ()
    executing: Callable[[ProductionState, Contents, ToolEnv], Product | Refusal] = lambda _s, _g, _e: Product((), {"ok": True})

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return self.resolving(state, arguments)

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        return self.needing(state, arguments, given, env)

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return self.accepting(content)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        return self.executing(state, given, env)


def contract(name: str, **changes: Any) -> ToolContract:
    """A contract that promises next to nothing."""
    values: dict[str, Any] = {
        "name": name,
        "version": 1,
        "summary": f"Does {name}.",
        "args": (),
        "needs": (),
        "produces": (),
        "checks": (),
        "wall_s": 5,
        "max_output_bytes": 1_000_000,
    }
    return ToolContract(**{**values, **changes})


def count_tool() -> TinyTool:
    """Takes every kind of argument."""
    args = (
        ArgSpec(name="text", type="string", description="words", max_length=10),
        ArgSpec(name="times", type="integer", description="how often", required=False, minimum=1, maximum=9),
        ArgSpec(name="loud", type="boolean", description="shout", required=False),
        ArgSpec(name="mood", type="string", description="a mood", required=False, enum=("calm", "gay")),
    )
    return TinyTool(contract("count", args=args))


def ask(kind: str = "music_query", role: Role = Role.GENERATOR, tool: str = "search_music", **evidence: Any) -> ContentRequest:
    """A request for content."""
    return ContentRequest(
        role=role, tool=tool, tool_version=1, kind=kind, instruction="Say it.", content_schema={"type": "object"}, evidence=evidence
    )


def music_tool(**steps: Any) -> TinyTool:
    """Asks the generator for one music query, then does nothing."""

    def need(state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        return None if given else ask()

    return TinyTool(contract("search_music", roles=(Role.GENERATOR,)), needing=need, **steps)


def stitch_tool(needs: tuple[Fact, ...] = (Fact.SEGMENTS,)) -> TinyTool:
    """Delivers a film of nothing as soon as its needs are met."""

    def execute(state: ProductionState, given: Contents, env: ToolEnv) -> Product | Refusal:
        video = env.store.put_bytes(b"film", ArtifactKind.VIDEO, "video/mp4")
        manifest = env.store.put_json({"ok": True}, ArtifactKind.MANIFEST)
        delivery = Delivery(
            video=video, manifest=manifest, duration_us=1_000_000, loudness_lufs=-16.0, inputs_digest=delivery_inputs(state)
        )
        return Product((film_change("delivery", delivery),), {"duration_ms": 1000}, artifacts=(video, manifest))

    return TinyTool(contract("stitch_video", needs=needs, produces=(Fact.DELIVERY,)), executing=execute)


def registry(*tools: Tool) -> Registry:
    """The three planning tools, a stitcher (unless one is given), and what else a test brings."""
    base: list[Tool] = [segment_article.TOOL, plan_shots.TOOL, reflect_plan.TOOL]
    named = {t.contract.name for t in tools}
    if "stitch_video" not in named:
        base.append(stitch_tool())
    return Registry([*base, *tools])


def runtime(folder: Path, *tools: Tool, start: Any = None, **options: Any) -> Runtime:
    """A runtime on the small task."""
    settings = {k: options.pop(k) for k in list(options) if k in ReplayConfig.model_fields and k != "budget"}
    return Runtime(task() if start is None else start, registry(*tools), suite(folder, **settings), **options)


def call(name: str, provenance: Provenance = Provenance.SCRIPTED, **arguments: Any) -> RoleOutput:
    """An orchestrator output."""
    return RoleOutput(role=Role.ORCHESTRATOR, tool=name, arguments_json=json.dumps(arguments), provenance=provenance)


def content(value: Any, role: Role = Role.GENERATOR) -> RoleOutput:
    """A generator's or critic's output."""
    text = value if isinstance(value, str) else json.dumps(value)
    return RoleOutput(role=role, text=text, provenance=Provenance.SCRIPTED)


SEGMENTS = {
    "segments": [
        {"title": "By sea", "starts_with": "Tea came", "sentences": 3},
        {"title": "Clippers", "starts_with": "Then the clippers", "sentences": 2},
        {"title": "Today", "starts_with": "Today a cup", "sentences": 1},
    ]
}

PLAN = {
    "shots": [
        {"segment": 0, "text": "Tea came to Europe by sea.", "visual_query": "sailing ship", "target_ms": 3000},
        {"segment": 0, "text": "It was dear at first. Only the rich could buy it.", "visual_query": "porcelain cup", "target_ms": 4000},
        {
            "segment": 1,
            "text": "Then the clippers made the way short. A race from China took a hundred days.",
            "visual_query": "clipper at sea",
            "target_ms": 5000,
            "spotlight": "number",
            "spotlight_brief": "100 days",
        },
        {"segment": 2, "text": "", "visual_query": "a street", "target_ms": 1000},
        {"segment": 2, "text": "Today a cup costs next to nothing.", "visual_query": "tea bag", "target_ms": 3000},
    ]
}


def planned(run: Runtime) -> Runtime:
    """The runtime after segmenting and planning the small task."""
    run.step(call("segment_article", max_sentences=3))
    run.step(content(SEGMENTS))
    run.step(call("plan_shots", segments="all"))
    run.step(content(PLAN))
    assert len(run.state.film.shot_order) == 5
    return run


def refused(code: BlockerCode = BlockerCode.PRODUCT_REJECTED, **changes: Any) -> Refusal:
    """A refusal with one blocker."""
    return Refusal((Blocker(code=code, subject="film", message="no", **changes),))
