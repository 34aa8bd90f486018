"""The scripted generator: content for every kind of request, taken from the recovered storyboard.

Every answer is computed from the request's evidence (which sentences, which shots, which templates) and the storyboard (what the editor
meant there), so it fits whatever plan the run has reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from replay.policies.board import Board, Piece
from replay.policies.reflection import sharpen
from schemas.errors import ConfigInvalid
from schemas.storyboard import BoardShot

View = dict[str, Any]

MIN_TARGET_MS, MAX_TARGET_MS = 200, 600_000


def clipped(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut at a word border where there is one; no ellipsis, for texts that will be shown or searched."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text[:limit]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:，；：")


class Generator:
    """Answers generator requests."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def answer(self, view: View) -> dict[str, Any]:
        """The content asked for.

        Raises:
            ConfigInvalid: a kind this generator has no answer for.
        """
        kinds: dict[str, Callable[[View], dict[str, Any]]] = {
            "segments": self._segments,
            "shot_plan": self._plan,
            "queries": self._queries,
            "music_query": self._music,
            "fills": self._fills,
        }
        kind = view["request"]["kind"]
        if kind not in kinds:
            raise ConfigInvalid("unknown_kind", f"the scripted generator has no answer for {kind!r}", f"known: {', '.join(kinds)}")
        return kinds[kind](view)

    # -- planning --------------------------------------------------------------------------------------------------------------

    def _segments(self, view: View) -> dict[str, Any]:
        limit = int(view["arguments"]["max_sentences"])
        items: list[dict[str, Any]] = []
        open_segment = -1
        for row in view["request"]["evidence"]["sentences"]:
            if "text" not in row:
                continue
            home = self.board.segment_of(int(row["start"]))
            if home == open_segment and items[-1]["sentences"] < limit:
                items[-1]["sentences"] += 1
                continue
            title = clipped(self.board.segment_title(home), 74) or "Part"
            parts = sum(1 for i in items if i["title"] == title or i["title"].startswith(f"{title} ("))
            items.append({"title": f"{title} ({parts + 1})" if parts else title, "starts_with": _opening(row["text"]), "sentences": 1})
            open_segment = home
        return {"segments": items}

    def _plan(self, view: View) -> dict[str, Any]:
        limit = int(view["arguments"].get("max_shot_ms", MAX_TARGET_MS))
        shots: list[dict[str, Any]] = []
        for row in view["request"]["evidence"]["segments"]:
            if "text" not in row:
                continue
            start = int(row["start"])
            pieces = self.board.pieces(start, start + len(row["text"]))
            shots += [self._planned(int(row["segment"]), piece, limit) for piece in pieces]
        return {"shots": shots}

    def _planned(self, segment: int, piece: Piece, limit: int) -> dict[str, Any]:
        shot = piece.shot
        target = min(max(round(shot.target_duration_us * piece.share / 1000), MIN_TARGET_MS), limit, MAX_TARGET_MS)
        out: dict[str, Any] = {
            "segment": segment,
            "text": self.board.script[piece.start : piece.end].strip(),
            "visual_query": self._query(shot),
            "target_ms": target,
        }
        if shot.spotlight is not None and piece.share > 0.5:
            texts = " / ".join(t for t in shot.spotlight.slots.values() if t.strip())
            out["spotlight"] = shot.spotlight.kind.value
            out["spotlight_brief"] = clipped(texts or shot.communicates or shot.narration, 160) or shot.spotlight.kind.value
        return out

    def _query(self, shot: BoardShot) -> str:
        for text in (shot.visual_query, shot.communicates, shot.evidence.caption, shot.narration):
            if text.strip():
                return clipped(text, 200)
        return clipped(self.board.storyboard.title, 200) or "picture"

    # -- production ------------------------------------------------------------------------------------------------------------

    def _shot(self, view: View, shot_id: str) -> BoardShot | None:
        spans = {sid: (start, end) for sid, start, end in view["spans"]}
        start, end = spans.get(shot_id, (0, 0))
        return self.board.shot_over(start, end, int(shot_id[1:]) - 1)

    def _queries(self, view: View) -> dict[str, Any]:
        out: list[dict[str, str]] = []
        for row in view["request"]["evidence"]["shots"]:
            if "shot_id" not in row:
                continue
            shot = self._shot(view, row["shot_id"])
            planned = str(row.get("planned_query", "")).strip() or (self._query(shot) if shot else "picture")
            used = row.get("last_query")
            query = planned
            if used is not None and query == used:
                query = self._query(shot) if shot else planned
            if used is not None and query == used:
                query = sharpen(query, shot.narration if shot else str(row.get("text", "")))
            out.append({"shot_id": row["shot_id"], "query": clipped(query, 200)})
        return {"queries": out}

    def _music(self, view: View) -> dict[str, Any]:
        evidence = view["request"]["evidence"]
        moods = [m for m in self.board.storyboard.music_moods if m.strip()] or ["calm"]
        turn = int(view["turn"]["attempt"]) - 1 + len(evidence.get("excluded", ())) + (1 if evidence.get("last_query") else 0)
        lead = moods[turn % len(moods)]
        others = [m for m in moods if m != lead]
        query = f"{lead} instrumental background for narration"
        return {"query": clipped(query, 120), "moods": [lead, *others][:4]}

    # -- graphics --------------------------------------------------------------------------------------------------------------

    def _fills(self, view: View) -> dict[str, Any]:
        evidence = view["request"]["evidence"]
        templates = [t for t in evidence["templates"] if "slots" in t]
        shrink = 0.6 ** (int(view["turn"]["attempt"]) - 1) * (0.75 if view["request"]["tool"] == "repair_shots" else 1.0)
        fills: list[dict[str, Any]] = []
        for row in evidence["shots"]:
            if "shot_id" not in row:
                continue
            shot = self._shot(view, row["shot_id"])
            kind = str(row.get("spotlight") or row.get("kind") or "title")
            template = next((t for t in templates if t["kind"] == kind), templates[0])
            fills.append({"shot_id": row["shot_id"], "template": template["name"], "slots": self._slots(row, shot, template, shrink)})
        return {"fills": fills}

    def _slots(self, row: dict[str, Any], shot: BoardShot | None, template: dict[str, Any], shrink: float) -> dict[str, str]:
        meant = dict(shot.spotlight.slots) if shot is not None and shot.spotlight is not None else {}
        spare = str(row.get("brief") or row.get("text") or (shot.communicates if shot else "")) or self.board.storyboard.title
        out: dict[str, str] = {}
        for slot in template["slots"]:
            if "name" not in slot:
                continue
            limit = max(4, math.floor(int(slot["max_chars"]) * shrink))
            text = clipped(meant.get(slot["name"], ""), limit)
            if not text and slot.get("required", True):
                text = clipped(spare, limit) or clipped(self.board.storyboard.title, limit) or "-"
            if text:
                out[slot["name"]] = text
        return out


def _opening(text: str) -> str:
    """The first words of a sentence, copied exactly: six words or 40 characters."""
    cut = text[:40]
    words = cut.split(" ")
    if len(text) > 40 and len(words) > 1:
        words = words[:-1]
    return " ".join(words[:6]).strip() or cut.strip()
