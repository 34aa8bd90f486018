"""``search_music``: a background track of the library, found by a query, measured, with its licence."""

from __future__ import annotations

from typing import Any

from replay.contents import MusicQuery, content_schema
from replay.measured import measured_audio
from replay.music import rank_tracks
from replay.state import film_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.artifact import ArtifactKind
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.errors import MediaRejected
from schemas.state import MusicChoice, ProductionState

SHORTEST_US = 5_000_000
"""A shorter track is no background music."""
MAX_SILENT = 0.9
TRIED = 3
"""Candidates whose bytes are looked at before the search gives up."""
_TYPES = {".opus": "audio/ogg", ".ogg": "audio/ogg", ".mp3": "audio/mpeg", ".flac": "audio/flac", ".wav": "audio/wav", ".m4a": "audio/mp4"}


class SearchMusic:
    """Chooses the music."""

    contract = ToolContract(
        name="search_music",
        version=1,
        summary="Choose the background track from the music library by a query. Called again, it takes another track than the present one.",
        args=(),
        needs=(Fact.MUSIC_LIBRARY,),
        produces=(Fact.MUSIC,),
        roles=(Role.GENERATOR,),
        checks=("the track decodes", "its length is measured", "it is not silent", "it has a licence"),
        wall_s=120,
        max_output_bytes=256 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Nothing to resolve."""
        return ()

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask what the music should be like."""
        if given:
            return None
        tracks = env.engines.music.tracks
        task = state.film.task
        evidence: dict[str, Any] = {
            "title": clip(task.title, 120),
            "opening": clip(task.script, 400),
            "wished_moods": list(task.music_moods[:8]),
            "library": {"name": env.engines.music.name, "tracks": len(tracks), "moods": sorted({m for t in tracks for m in t.moods})[:40]},
        }
        if state.film.music is not None:
            evidence["present"] = {"track": state.film.music.track_id, "query": state.film.music.query}
        return ContentRequest(
            role=Role.GENERATOR,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="music_query",
            instruction=(
                "Say what the background music of this film should be like (mood, how driving, tempo if it matters), and which of the "
                "library's moods fit it."
            ),
            content_schema=content_schema("music_query"),
            evidence=evidence,
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """The query holds words."""
        if MusicQuery.model_validate(content).query.strip():
            return ()
        return (Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject="content:query", message="the query is empty"),)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Rank, take the best track whose bytes pass."""
        wanted = MusicQuery.model_validate(given[0])
        present = state.film.music.track_id if state.film.music is not None else None
        ranked = rank_tracks(env.engines.music.tracks, wanted.query, wanted.moods, env.engines.embedder, present=present)
        problems: list[str] = []
        for track, score in ranked[:TRIED]:
            ref = env.store.put_file(track.path, ArtifactKind.MUSIC, _TYPES.get(track.path.suffix.lower(), "application/octet-stream"))
            try:
                m = measured_audio(ref, env.store, env.sandbox)
            except MediaRejected as error:
                problems.append(f"{track.track_id} cannot be decoded ({error.code})")
                continue
            if m.duration_us < SHORTEST_US or m.silent_share >= MAX_SILENT or not track.licence:
                problems.append(f"{track.track_id}: {m.duration_us // 1000} ms, {m.silent_share:.0%} silent, licence '{track.licence}'")
                continue
            choice = MusicChoice(
                track_id=track.track_id, ref=ref, title=track.title, licence=track.licence, query=wanted.query, duration_us=m.duration_us
            )
            results = {
                "track": track.track_id,
                "title": track.title,
                "moods": list(track.moods),
                "licence": track.licence,
                "ms": m.duration_us // 1000,
                "score": score,
                **({} if track.energy is None else {"energy": track.energy}),
                **({"bpm": track.bpm} if track.bpm else {}),
                "next_best": [t.track_id for t, _ in ranked if t is not track][:4],
            }
            return Product(changes=(film_change("music", choice),), results=results, artifacts=(ref,))
        why = "; ".join(problems) or "the library is empty"
        return Refusal(
            (Blocker(code=BlockerCode.PRODUCT_REJECTED, subject="film", message=f"no track passed its check: {clip(why, 200)}"),)
        )


TOOL = SearchMusic()
