"""``segment_article``: the script as consecutive segments of whole sentences.

Long scripts are segmented in parts: each request shows a bounded stretch of sentences, and a segment never crosses a part.
"""

from __future__ import annotations

from typing import Any

from replay.contents import Segments, content_schema
from replay.script import SentenceSpan, sentences, skip_space
from replay.state import film_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.blocker import Blocker, BlockerCode
from schemas.contract import ArgSpec, ContentRequest, Fact, Role, ToolContract
from schemas.state import ProductionState, Segment

PART_CHARS = 8_000
"""Script characters shown in one request."""
PART_SENTENCES = 150
"""Sentences shown in one request; short ones cost more by their numbers than by their text."""


class SegmentArticle:
    """Asks the generator for segments and checks that they cover the script exactly, in order."""

    contract = ToolContract(
        name="segment_article",
        version=1,
        summary="Divide the fixed script into consecutive segments of whole sentences. Allowed until shots are planned.",
        args=(
            ArgSpec(
                name="max_sentences",
                type="integer",
                description="No segment may have more script sentences than this, 1 to 40.",
                minimum=1,
                maximum=40,
            ),
        ),
        needs=(Fact.SCRIPT,),
        produces=(Fact.SEGMENTS,),
        roles=(Role.GENERATOR,),
        checks=("every script character lies in exactly one segment", "segments follow each other in script order"),
        wall_s=10,
        max_output_bytes=1,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """Segments cannot change under a shot plan."""
        if not state.film.shot_order:
            return ()
        return (
            Blocker(
                code=BlockerCode.WRONG_STAGE_ORDER,
                subject="tool:segment_article",
                message=f"{len(state.film.shot_order)} shots are planned on the present segments; shots can be re-planned, segments cannot",
                remedies=("plan_shots",),
            ),
        )

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the next part of the script."""
        script = state.film.task.script
        parts = script_parts(script)
        if len(given) == len(parts):
            return None
        part = parts[len(given)]
        several = f" This is part {len(given) + 1} of {len(parts)} of the script." if len(parts) > 1 else ""
        return ContentRequest(
            role=Role.GENERATOR,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="segments",
            instruction=(
                "Group the sentences below into consecutive segments that each keep to one subject, covering all of them in order. "
                f"A segment has at most {arguments['max_sentences']} sentences. 'starts_with' copies the first words of the segment; "
                f"'sentences' counts its sentences; the counts add up to {len(part)}.{several}"
            ),
            content_schema=content_schema("segments"),
            evidence={"sentences": [{"n": i, "start": s.start, "text": script[s.start : s.end].strip()} for i, s in enumerate(part)]},
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """Counts add up, none is too large, and every segment starts where it says."""
        script = state.film.task.script
        part = script_parts(script)[len(given)]
        out: list[Blocker] = []
        at = 0
        for i, item in enumerate(Segments.model_validate(content).segments):
            if item.sentences > arguments["max_sentences"]:
                out.append(
                    _broken(f"segments.{i}.sentences", f"{item.sentences} sentences; at most {arguments['max_sentences']} are allowed")
                )
            if at >= len(part):
                out.append(_broken(f"segments.{i}", f"all {len(part)} sentences are used up before this segment"))
                break
            here = skip_space(script, part[at].start)
            if not script.startswith(item.starts_with.strip(), here):
                seen = clip(script[here : here + 40], 40)
                out.append(
                    _broken(f"segments.{i}.starts_with", f"sentence {at} starts with {seen!r}, not with {clip(item.starts_with, 40)!r}")
                )
                break
            at += item.sentences
        if not out and at != len(part):
            out.append(_broken("segments", f"the counts add up to {at}; there are {len(part)} sentences"))
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Write the segments and verify that they tile the script."""
        segments: list[Segment] = []
        for part, content in zip(script_parts(state.film.task.script), given, strict=True):
            at = 0
            for item in Segments.model_validate(content).segments:
                last = part[at + item.sentences - 1]
                segments.append(Segment(index=len(segments), title=item.title, script_start=part[at].start, script_end=last.end))
                at += item.sentences
        borders = [0, *(s.script_end for s in segments)]
        if [s.script_start for s in segments] != borders[:-1] or borders[-1] != len(state.film.task.script):
            message = "the segments do not cover the script exactly"
            return Refusal((Blocker(code=BlockerCode.PRODUCT_REJECTED, subject="film", message=message),))
        return Product(
            changes=(film_change("segments", segments),),
            results={"segments": len(segments), "titles": [s.title for s in segments[:12]]},
        )


def script_parts(script: str) -> tuple[tuple[SentenceSpan, ...], ...]:
    """Sentences in stretches of at most :data:`PART_CHARS` characters and :data:`PART_SENTENCES` sentences (one at least)."""
    parts: list[list[SentenceSpan]] = []
    for span in sentences(script):
        if not parts or span.end - parts[-1][0].start > PART_CHARS or len(parts[-1]) == PART_SENTENCES:
            parts.append([])
        parts[-1].append(span)
    return tuple(tuple(p) for p in parts)


def _broken(where: str, message: str) -> Blocker:
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=f"content:{where}", message=message)


TOOL = SegmentArticle()
