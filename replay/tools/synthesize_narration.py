"""``synthesize_narration``: the text of each shot is spoken, levelled and measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from media.crew import Crew
from replay import facts
from replay.lineage import text_digest
from replay.narrate import Track, speak
from replay.romanise import foreign_words
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ContentRequest, Fact, ToolContract
from schemas.state import Change, Narration, ProductionState

WORKERS = 2
"""Texts spoken at once. Each has one thread, so that the sound does not depend on this number."""


class SynthesizeNarration:
    """Speaks shots."""

    contract = ToolContract(
        name="synthesize_narration",
        version=1,
        summary="Speak the narration of shots: one levelled track per shot with its measured length. Shots without text need none.",
        args=(SHOTS_ARG,),
        needs=(Fact.SHOT_PLAN,),
        produces=(Fact.NARRATION,),
        checks=(
            "the track decodes",
            "its length is measured, and is one in which a voice can speak the text",
            "it is not silent",
            "its loudness is measured after levelling",
        ),
        wall_s=1800,
        max_output_bytes=1024 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """The shots exist, and some of them have something to say."""
        problems = scope_blockers(state, arguments["shots"])
        if problems or not facts.holds(Fact.SHOT_PLAN, state) or _spoken(state, arguments):
            return problems
        message = "none of these shots needs a new track; name shots with text to speak them again"
        return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:shots", message=message),)

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Nothing is asked."""
        return None

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Never called."""
        return ()

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Speak, measure, refuse what is silent."""
        task = state.film.task
        shots = _spoken(state, arguments)

        def one(sid: str) -> Track:
            track = speak(state.shots[sid].planned.text, task.language, task.voice, env)
            env.note(f"{sid}: {track.duration_us / 1e6:.1f} s spoken")
            return track

        with Crew(WORKERS) as pool:
            tracks = dict(zip(shots, pool.gather(one, shots), strict=True))
        bad = tuple(
            Blocker(
                code=BlockerCode.PRODUCT_REJECTED,
                subject=f"shot:{sid}",
                message=f"the track of {sid} was refused: {track.problem}",
                needs=(Fact.NARRATION.value,),
                remedies=(self.contract.name,),
            )
            for sid, track in tracks.items()
            if track.problem is not None
        )
        if bad:
            return Refusal(bad)
        changes: list[Change] = []
        for sid, track in tracks.items():
            narration = Narration(
                ref=track.ref,
                duration_us=track.duration_us,
                sample_rate=track.sample_rate,
                voice=task.voice,
                loudness_lufs=track.loudness_lufs,
                text_sha256=text_digest(state.shots[sid].planned.text),
            )
            changes.append(shot_change(sid, "narration", narration))
        rows = [
            {
                "shot": sid,
                "ms": t.duration_us // 1000,
                "planned_ms": state.shots[sid].planned.target_duration_us // 1000,
                "lufs": t.loudness_lufs,
            }
            for sid, t in tracks.items()
        ]
        return Product(
            changes=tuple(changes),
            results={"spoken": len(rows), "total_ms": sum(t.duration_us for t in tracks.values()) // 1000, "tracks": rows[:24]}
            | _approximated({sid: state.shots[sid].planned.text for sid in tracks}, env),
            artifacts=tuple(dict.fromkeys(t.ref for t in tracks.values())),
        )


def _approximated(texts: Mapping[str, str], env: ToolEnv) -> dict[str, Any]:
    """Words in scripts that the voice has no letters for, which were said in Latin ones (replay.romanise); nothing where there are none."""
    if not env.engines.speech.languages:  # a server that reads for itself
        return {}
    found = {sid: words for sid, text in texts.items() if (words := foreign_words(text))}
    for sid, words in found.items():
        env.note(f"{sid}: the voice approximates {', '.join(words[:5])}"[:200])
    return (
        {"approximated": [{"shot": sid, "words": [w[:40] for w in words[:5]]} for sid, words in list(found.items())[:24]]} if found else {}
    )


def _spoken(state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
    missing = tuple(s for s in facts.lacking(Fact.NARRATION, state) if s in state.shots)
    return tuple(s for s in selected(state, arguments["shots"], missing) if state.shots[s].planned.text.strip())


TOOL = SynthesizeNarration()
