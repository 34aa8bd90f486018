"""A toy production: tools with the real names, needs and requests, whose products are records without bytes; and a storyboard to play.

For tests of policies and the runtime, where hundreds of runs must be cheap. The real tools have their own tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replay import facts
from replay.lineage import frames_of, render_inputs, renders_digest, text_digest, timeline_inputs
from replay.registry import Registry
from replay.runtime import Runtime
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import apply, film_change, shot_change
from replay.tool import Arguments, Product, Refusal, ToolEnv
from replay.tools import plan_shots, reflect_plan, segment_article
from schemas.artifact import ArtifactKind
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.media import MediaInfo, SourceItem
from schemas.state import AssetChoice, Decoration, MusicChoice, Narration, ProductionState, Render, Task, Timeline, TimelineItem
from schemas.storyboard import (
    Admission,
    BoardSegment,
    BoardShot,
    Evidence,
    Sentence,
    Shot,
    Spotlight,
    SpotlightKind,
    Storyboard,
    Transition,
)
from schemas.time import Rate
from schemas.trajectory import RoleContext
from schemas.verdict import Defect, DefectCode
from tests.replay.doubles import contract, ref, stitch_tool, suite, task

US = 1_000_000


class PerShot:
    """A tool that makes one record for every chosen shot that lacks it."""

    def __init__(self, name: str, fact: Fact, kind: str | None, needs: tuple[Fact, ...] = (Fact.SHOT_PLAN,)) -> None:
        roles = (Role.GENERATOR,) if kind else ()
        self.contract: ToolContract = contract(name, args=(SHOTS_ARG,), needs=needs, produces=(fact,), roles=roles)
        self.fact, self.kind = fact, kind

    def chosen(self, state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
        missing = tuple(s for s in facts.lacking(self.fact, state) if s in state.shots)
        ids = selected(state, arguments["shots"], missing)
        if self.fact is Fact.NARRATION:
            return tuple(s for s in ids if state.shots[s].planned.text)
        return tuple(s for s in ids if self.fact is not Fact.DECORATIONS or state.shots[s].planned.spotlight)

    def parts(self, state: ProductionState, arguments: Arguments) -> list[tuple[str, ...]]:
        ids = self.chosen(state, arguments)
        return [ids[i : i + 24] for i in range(0, len(ids), 24)]

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        problems = scope_blockers(state, arguments["shots"])
        if problems or not state.shots or self.chosen(state, arguments):
            return problems
        return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:shots", message="nothing to do there"),)

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        parts = self.parts(state, arguments)
        if self.kind is None or len(given) == len(parts):
            return None
        rows: list[dict[str, Any]] = []
        for sid in parts[len(given)]:
            planned = state.shots[sid].planned
            row: dict[str, Any] = {"shot_id": sid, "text": planned.text, "planned_query": planned.visual_query}
            if planned.spotlight:
                row |= {"kind": planned.spotlight.kind.value, "brief": planned.spotlight.brief}
            rows.append(row)
        evidence: dict[str, Any] = {"shots": rows}
        if self.kind == "fills":
            slots = [{"name": "value", "max_chars": 24, "required": True}, {"name": "label", "max_chars": 40, "required": True}]
            evidence["templates"] = [{"template": "number", "kind": "number", "slots": slots}]
        return request(self.contract.name, self.kind, evidence)

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        rows = content.get("queries") or content.get("fills") or []
        if tuple(r["shot_id"] for r in rows) == self.parts(state, arguments)[len(given)]:
            return ()
        return (Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject="content:shots", message="not the shots asked for"),)

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        made = [shot_change(sid, *self.make(state, sid, given)) for sid in self.chosen(state, arguments)]
        return Product(tuple(made), {"made": len(made)})

    def make(self, state: ProductionState, sid: str, given: Any) -> tuple[str, Any]:
        shot = state.shots[sid]
        if self.fact is Fact.ASSETS:
            query = next(q["query"] for part in given for q in part["queries"] if q["shot_id"] == sid)
            clip = state.film.task.pool[int(sid[1:]) % len(state.film.task.pool)]
            return "asset", AssetChoice(clip_id=clip.clip_id, ref=clip.ref, query=query, score=0.5, ranked=(clip.clip_id,))
        if self.fact is Fact.NARRATION:
            digest = text_digest(shot.planned.text)
            wav = ref(f"voice {digest}", ArtifactKind.NARRATION)
            voice = state.film.task.voice
            return "narration", Narration(
                ref=wav, duration_us=2 * US, sample_rate=24_000, voice=voice, loudness_lufs=-16.0, text_sha256=digest
            )
        if self.fact is Fact.DECORATIONS:
            fill = next(f for part in given for f in part["fills"] if f["shot_id"] == sid)
            return "decoration", Decoration(
                ref=ref(f"card {fill}", ArtifactKind.DECORATION),
                template=fill["template"],
                template_digest="0" * 64,
                slots=fill["slots"],
                placement="full_frame",
                duration_us=3 * US,
                width=1280,
                height=720,
            )
        inputs = render_inputs(state, sid) or ""
        return "render", Render(
            ref=ref(f"render {inputs} {shot.repairs_used}", ArtifactKind.RENDER), frames=frames_of(state, sid) or 0, inputs_digest=inputs
        )


class Music:
    """Asks for a query, takes the only track."""

    contract = contract("search_music", produces=(Fact.MUSIC,), roles=(Role.GENERATOR,))

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        return None if given else request("search_music", "music_query", {"library": {"moods": ["calm", "happy"]}})

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        track = MusicChoice(
            track_id="t1",
            ref=ref("music", ArtifactKind.MUSIC),
            title="T",
            licence="CC0-1.0",
            query=given[0]["query"],
            duration_us=60 * US,
        )
        return Product((film_change("music", track),), {"track": "t1"})


class Compose:
    """Two seconds for every shot."""

    contract = contract("compose_timeline", needs=(Fact.ASSETS, Fact.NARRATION, Fact.DECORATIONS, Fact.MUSIC), produces=(Fact.TIMELINE,))

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        return None

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        order = state.film.shot_order
        items = tuple(TimelineItem(shot_id=s, start_frame=60 * n, frames=60, narration_offset_us=0) for n, s in enumerate(order))
        timeline = Timeline(
            ref=ref("otio", ArtifactKind.TIMELINE), items=items, total_frames=60 * len(order), inputs_digest=timeline_inputs(state)
        )
        return Product((film_change("timeline", timeline),), {"frames": timeline.total_frames})


class Inspect:
    """Finds ``errors`` black renders the first time it looks, and nothing once they were made again."""

    contract = contract(
        "inspect_quality",
        args=(SHOTS_ARG,),
        needs=(Fact.RENDERS,),
        produces=(Fact.INSPECTION, Fact.OPEN_DEFECTS),
        roles=(Role.CRITIC,),
    )

    def __init__(self, errors: int) -> None:
        self.errors = errors

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return scope_blockers(state, arguments["shots"])

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        return None if given else request("inspect_quality", "inspection", {"findings": []}, Role.CRITIC)

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        changes = []
        for sid in state.film.shot_order:
            bad = int(sid[1:]) <= self.errors and state.shots[sid].repairs_used == 0
            found = (
                [Defect(defect_id=f"d_{sid}", code=DefectCode.RENDER_BLACK, subject=sid, severity="error", measured="black")] if bad else []
            )
            changes.append(shot_change(sid, "open_defects", found))
        return Product((*changes, film_change("inspected", renders_digest(state))), {"errors": self.errors})


class Repair:
    """Drops the render of every shot with an open error."""

    contract = contract("repair_shots", args=(SHOTS_ARG,), needs=(Fact.OPEN_DEFECTS,), roles=(Role.CRITIC,), repairable=True)

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return scope_blockers(state, arguments["shots"])

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        if given:
            return None
        defects = [d.model_dump(mode="json") for s in state.film.shot_order for d in state.shots[s].open_defects]
        return request("repair_shots", "repair_request", {"defects": defects}, Role.CRITIC)

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        bad = [s for s in state.film.shot_order if state.shots[s].open_defects]
        changes = [c for s in bad for c in (shot_change(s, "render", None), shot_change(s, "repairs_used", 1))]
        after = apply(state, changes)
        return Product(
            (*changes, film_change("repairs_used", state.film.repairs_used + 1)), {"mended": len(bad), "shots": len(after.shots)}
        )


class Rank:
    """Orders the open defects."""

    contract = contract("rank_severity", needs=(Fact.OPEN_DEFECTS,), roles=(Role.CRITIC,))

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> ContentRequest | None:
        defects = [{"defect_id": d} for d in facts.open_defects(state)]
        return None if given else request("rank_severity", "severity", {"defects": defects}, Role.CRITIC)

    def accept(self, state: ProductionState, arguments: Arguments, given: Any, content: dict[str, Any]) -> tuple[Blocker, ...]:
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Any, env: ToolEnv) -> Product | Refusal:
        return Product((film_change("ranked_defects", given[0]["order"]),), {"ranked": len(given[0]["order"])})


class ToyCritic:
    """Agrees with everything."""

    def answer(self, context: RoleContext) -> dict[str, Any]:
        assert context.request is not None
        evidence = context.request.evidence
        if context.request.kind == "inspection":
            return {"judgements": []}
        if context.request.kind == "severity":
            return {"order": [d["defect_id"] for d in evidence["defects"]]}
        return {"mends": [{"defect_id": d["defect_id"], "cause": "black", "mend": "rerender"} for d in evidence["defects"]]}


def request(tool: str, kind: str, evidence: dict[str, Any], role: Role = Role.GENERATOR) -> ContentRequest:
    """A content request."""
    return ContentRequest(
        role=role, tool=tool, tool_version=1, kind=kind, instruction="Say it.", content_schema={"type": "object"}, evidence=evidence
    )


def toy_registry(errors: int = 0) -> Registry:
    """All thirteen tools."""
    delivery = stitch_tool(needs=(Fact.RENDERS, Fact.NARRATION, Fact.MUSIC, Fact.TIMELINE))
    return Registry(
        [
            segment_article.TOOL,
            plan_shots.TOOL,
            reflect_plan.TOOL,
            PerShot("retrieve_visuals", Fact.ASSETS, "queries"),
            PerShot("synthesize_narration", Fact.NARRATION, None),
            PerShot("decorate_spotlights", Fact.DECORATIONS, "fills"),
            PerShot("render_shots", Fact.RENDERS, None, needs=(Fact.TIMELINE, Fact.ASSETS, Fact.DECORATIONS)),
            Music(),
            Compose(),
            Inspect(errors),
            Repair(),
            Rank(),
            delivery,
        ]
    )


def storyboard(shots: int = 16, *, silent_every: int = 6, spotlight_every: int = 5, sentences_per_segment: int = 6) -> Storyboard:
    """A recovered film: most shots carry one sentence, some carry none, some a number card."""
    script = ""
    rows: list[BoardShot] = []
    sentences: list[Sentence] = []
    at = 0
    for i in range(shots):
        silent = i % silent_every == silent_every - 1
        text = "" if silent else f"This is what the narrator says over shot {i + 1} of the film. "
        start, script = len(script), script + text
        length = (2 + i % 3) * US
        shot = Shot(
            index=i,
            start_us=at,
            end_us=at + length,
            start_frame=at * 30 // US,
            end_frame=(at + length) * 30 // US,
            transition_in=Transition.START if i == 0 else Transition.CUT,
            cut_confidence=1.0,
            first_word=0,
            end_word=0,
            alignment_confidence=1.0,
            has_narration=not silent,
        )
        if not silent:
            sentences.append(
                Sentence(
                    index=len(sentences),
                    text=text.strip(),
                    start_us=at,
                    end_us=at + length,
                    first_word=0,
                    end_word=0,
                    script_start=start,
                    script_end=len(script),
                    language="en",
                    shots=(i,),
                )
            )
        card = i % spotlight_every == spotlight_every - 1 and not silent
        rows.append(
            BoardShot(
                shot=shot,
                narration=text.strip(),
                script_start=start,
                script_end=len(script),
                communicates=f"what shot {i + 1} says",
                visual_query=f"picture of thing {i + 1}",
                target_duration_us=length,
                spotlight=Spotlight(kind=SpotlightKind.NUMBER, slots={"value": f"{i + 1}", "label": "shots"}, origin="screen")
                if card
                else None,
                evidence=Evidence(key_frames=(), motion=0.1, luma=0.5, colour=(90, 90, 90), caption=f"thing {i + 1}"),
            )
        )
        at += length
    segments = [
        BoardSegment(
            index=n,
            title=f"Part {n + 1}",
            first_sentence=first,
            end_sentence=min(first + sentences_per_segment, len(sentences)),
            script_start=sentences[first].script_start,
            script_end=sentences[min(first + sentences_per_segment, len(sentences)) - 1].script_end,
        )
        for n, first in enumerate(range(0, len(sentences), sentences_per_segment))
    ]
    return Storyboard(
        project_id="prj_test",
        source=SourceItem(uri="film.mp4", licence="CC0-1.0"),
        media=MediaInfo(sha256="0" * 64, size_bytes=1, container="mov", video=None, audio=None, audio_choice="none", duration_us=at),
        frame_rate=Rate(num=30, den=1),
        language="en",
        title="A film of things",
        script=script,
        words=(),
        sentences=tuple(sentences),
        shots=tuple(rows),
        segments=tuple(segments),
        aspect_ratio="16:9",
        duration_min_us=10 * US,
        duration_max_us=600 * US,
        music_moods=("calm", "happy"),
        admission=Admission(narration_share=0.8, mean_confidence=0.9, speech_covered=1.0),
        engines={},
    )


def toy_task(board: Storyboard) -> Task:
    """The task of a storyboard with the small pool."""
    return task(board.script, title=board.title, music_moods=board.music_moods)


def toy_runtime(folder: Path, board: Storyboard, *, errors: int = 0, **options: Any) -> Runtime:
    """A runtime on the toy production."""
    folder.mkdir(parents=True, exist_ok=True)
    return Runtime(toy_task(board), toy_registry(errors), suite(folder), **options)


def spoken(board: Storyboard, lines: Sequence[str], language: str) -> Storyboard:
    """The film with these sentences said over its narrated shots, in turn; segments keep their numbers of sentences."""
    joint = "" if language == "zh" else " "
    script, spans, shots = "", [], []
    for shot in board.shots:
        start, text = len(script), ""
        if shot.narration:
            text = lines[len(spans) % len(lines)]
            script += text + joint
            spans.append((start, len(script)))
        asked = f"{text.split('，')[0].split(',')[0]} {shot.shot.index + 1}" if text else shot.visual_query
        update = {"narration": text, "script_start": start, "script_end": len(script), "visual_query": asked}
        shots.append(shot.model_copy(update=update))
    sentences = [
        s.model_copy(update={"text": script[a:b].strip(), "script_start": a, "script_end": b, "language": language})
        for s, (a, b) in zip(board.sentences, spans, strict=True)
    ]
    segments = [
        s.model_copy(update={"script_start": spans[s.first_sentence][0], "script_end": spans[s.end_sentence - 1][1]})
        for s in board.segments
    ]
    update = {"script": script, "language": language, "shots": tuple(shots), "sentences": tuple(sentences), "segments": tuple(segments)}
    return board.model_copy(update=update)
