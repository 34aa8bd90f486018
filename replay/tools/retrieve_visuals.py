"""``retrieve_visuals``: for each shot a clip of the source pool, found by a query and verified, with its ranked competitors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from media.frames import grab_frames
from media.measure import VideoMeasure
from media.probe import probe
from replay import facts
from replay.contents import Queries, content_schema
from replay.embed import Vectors
from replay.engines import ImageText
from replay.measured import measured_video
from replay.ranking import Evidence, Ranked, rank_clips
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.artifact import ArtifactKind
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.errors import MediaRejected
from schemas.state import AssetChoice, Change, PoolClip, ProductionState

PART_SHOTS = 24
"""Shots in one request."""
PICTURE_SIDE = 448
"""Longer side of the pictures that an image-text model gets."""
MAX_BLACK = 0.9
"""A clip with more black frames than this share shows nothing."""


class RetrieveVisuals:
    """Ranks the pool for each shot's query and takes the best clip that holds what it promises."""

    contract = ToolContract(
        name="retrieve_visuals",
        version=1,
        summary="Find footage for shots: a search query per shot is matched against the source pool, the best verified clip is taken.",
        args=(SHOTS_ARG,),
        needs=(Fact.SHOT_PLAN, Fact.SOURCE_POOL),
        produces=(Fact.ASSETS,),
        roles=(Role.GENERATOR,),
        checks=("the clip decodes to its end", "the clip is not black", "the clip's length is the one the pool promises"),
        wall_s=600,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """The shots exist, and some are left."""
        problems = scope_blockers(state, arguments["shots"])
        if problems or not facts.holds(Fact.SHOT_PLAN, state) or _chosen(state, arguments):
            return problems
        message = "every shot has a clip; name the shots that should get another"
        return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:shots", message=message),)

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the queries of the next group of shots."""
        parts = _parts(state, arguments)
        if len(given) == len(parts):
            return None
        return ContentRequest(
            role=Role.GENERATOR,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="queries",
            instruction=(
                "Write one search query for each of these shots: what should be seen while its text is spoken. The pool is searched by "
                "descriptions of its clips; name things, people, places and actions rather than moods."
            ),
            content_schema=content_schema("queries"),
            evidence={"shots": [_row(state, sid) for sid in parts[len(given)]]},
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Exactly one query with words for every shot asked about."""
        wanted = _parts(state, arguments)[len(given)]
        found = [q.shot_id for q in Queries.model_validate(content).queries]
        out = [_broken(f"queries.{i}.shot_id", f"{clip(s, 20)} was not asked about") for i, s in enumerate(found) if s not in wanted]
        out += [_broken("queries", f"{s} has {found.count(s)} queries, expected one") for s in wanted if found.count(s) != 1]
        out += [
            _broken(f"queries.{i}.query", "the query is empty")
            for i, q in enumerate(Queries.model_validate(content).queries)
            if not q.query.strip()
        ]
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Search in film order; a clip that fails its check is passed over."""
        task = state.film.task
        queries = {q.shot_id: " ".join(q.query.split()) for content in given for q in Queries.model_validate(content).queries}
        shots = _chosen(state, arguments)
        sight = env.engines.sight
        evidence = Evidence.of(task.pool, env.engines.embedder, None if sight is None else pictures(task.pool, sight, env))
        asked = None if sight is None else sight.encode_texts([queries[s] for s in shots])
        holders = {sid: s.asset.clip_id for sid, s in state.shots.items() if s.asset is not None and sid not in shots}
        order = {sid: i for i, sid in enumerate(state.film.shot_order)}
        changes: list[Change] = []
        rows: list[dict[str, Any]] = []
        passed_over: list[str] = []
        for n, sid in enumerate(shots):
            near: dict[str, int] = {}
            for other, clip_id in holders.items():
                near[clip_id] = min(near.get(clip_id, len(order)), abs(order[other] - order[sid]))
            ranked = rank_clips(
                task.pool,
                evidence,
                queries[sid],
                _needed_us(state, sid, env),
                near=near,
                excluded=frozenset(state.shots[sid].excluded_clips),
                sight=None if asked is None else asked[n],
            )
            chosen = _first_sound(ranked, env, passed_over)
            if chosen is None:
                return Refusal((_nothing(sid, len(ranked)),))
            holders[sid] = chosen.clip.clip_id
            best = [chosen, *(r for r in ranked if r is not chosen)][: env.config.retrieval.candidates]
            choice = AssetChoice(
                clip_id=chosen.clip.clip_id,
                ref=chosen.clip.ref,
                query=queries[sid],
                score=chosen.score,
                ranked=tuple(r.clip.clip_id for r in best),
            )
            changes.append(shot_change(sid, "asset", choice))
            rows.append(
                {
                    "shot": sid,
                    "clip": chosen.clip.clip_id,
                    "score": chosen.score,
                    "why": clip(chosen.why, 80),
                    "shows": clip(chosen.clip.text, 60),
                    "next": [[r.clip.clip_id, r.score] for r in best[1:3]],
                }
            )
        results: dict[str, Any] = {"found": len(rows), "clips": rows[:24], "pool": len(task.pool)}
        if passed_over:
            results["passed_over"] = sorted(set(passed_over))[:8]
        return Product(changes=tuple(changes), results=results)


def _chosen(state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
    missing = tuple(s for s in facts.lacking(Fact.ASSETS, state) if s in state.shots)
    return selected(state, arguments["shots"], missing)


def _parts(state: ProductionState, arguments: Arguments) -> list[tuple[str, ...]]:
    shots = _chosen(state, arguments)
    return [shots[i : i + PART_SHOTS] for i in range(0, len(shots), PART_SHOTS)]


def _row(state: ProductionState, sid: str) -> dict[str, Any]:
    shot = state.shots[sid]
    row: dict[str, Any] = {
        "shot_id": sid,
        "text": clip(shot.planned.text, 240),
        "planned_query": shot.planned.visual_query,
        "target_ms": shot.planned.target_duration_us // 1000,
    }
    if shot.asset is not None:
        row["last_query"] = shot.asset.query
    return row


def _needed_us(state: ProductionState, sid: str, env: ToolEnv) -> int:
    shot = state.shots[sid]
    return shot.narration.duration_us + env.config.mix.gap_us if shot.narration is not None else shot.planned.target_duration_us


def _first_sound(ranked: tuple[Ranked, ...], env: ToolEnv, passed_over: list[str]) -> Ranked | None:
    """The best candidate whose bytes pass; names the ones that did not."""
    for candidate in ranked:
        problem = clip_problem(candidate.clip, env)
        if problem is None:
            return candidate
        passed_over.append(f"{candidate.clip.clip_id}: {problem}")
    return None


def pictures(pool: Sequence[PoolClip], sight: ImageText, env: ToolEnv) -> Vectors:
    """Unit vectors of the clips' middle pictures, one row a clip; each is looked at once and noted in the store.

    A clip that cannot be decoded gets the mean of the others: it is neither preferred nor put back for its picture.
    """
    rows: list[Vectors | None] = []
    for entry in pool:
        key = f"picture vector 1 {sight.name} {entry.ref.sha256}"
        note = env.store.recall(key)
        if note is None:
            try:
                file = env.store.path(entry.ref.sha256)
                frame = grab_frames(file, probe(file, env.sandbox), env.sandbox, [entry.duration_us // 2], PICTURE_SIDE)[0]
            except MediaRejected:
                rows.append(None)
                continue
            value = [round(float(v), 6) for v in sight.encode_images([frame])[0]]
            note = env.store.put_json({"vector": value}, ArtifactKind.OTHER)
            env.store.remember(key, note)
        rows.append(np.asarray(env.store.read_json(note.sha256)["vector"], np.float32))
    known = [row for row in rows if row is not None]
    mean = np.mean(known, axis=0, dtype=np.float32) if known else np.zeros(1, np.float32)
    return np.stack([mean if row is None else row for row in rows])


def clip_problem(entry: PoolClip, env: ToolEnv) -> str | None:
    """What is wrong with a pool clip's bytes, in a few words; None if it can be used.

    Raises:
        ToolFailed, LimitExceeded, SandboxUnavailable, StorageFault: it could not be judged.
    """
    try:
        measure: VideoMeasure = measured_video(entry.ref, env.store, env.sandbox)
    except MediaRejected as error:
        return f"it cannot be decoded ({error.code})"
    if measure.frames < 1:
        return "it holds no frames"
    if measure.black_share > MAX_BLACK:
        return f"{measure.black_share:.0%} of it is black"
    if measure.duration_us * 2 < entry.duration_us:
        return f"it is {measure.duration_us // 1000} ms long, the pool says {entry.duration_us // 1000} ms"
    return None


def _nothing(sid: str, ranked: int) -> Blocker:
    why = f"none of the {ranked} candidates passed its check" if ranked else "every clip of the pool is excluded for it"
    return Blocker(
        code=BlockerCode.PRODUCT_REJECTED, subject=f"shot:{sid}", message=f"no clip for {sid}: {why}", needs=(Fact.SOURCE_POOL.value,)
    )


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = RetrieveVisuals()
