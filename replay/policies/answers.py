"""The scripted generator: content for every kind of request, taken from the recovered storyboard.

Every answer is computed from the request's evidence (which sentences, which shots, which templates) and the storyboard (what the editor
meant there), so it fits whatever plan the run has reached.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from typing import Any

from replay.policies.board import Board, Piece
from replay.policies.casting import choose
from replay.policies.reflection import sharpen
from schemas.errors import ConfigInvalid
from schemas.storyboard import BoardShot

View = dict[str, Any]

_FIGURE = re.compile(r"\d[\d.,]*%?")
_PLAIN = re.compile(r"[\x20-\x7e\u00c0-\u017f\u2013-\u201d\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]")

MIN_TARGET_MS, MAX_TARGET_MS = 200, 600_000


def clipped(text: str, limit: int) -> str:
    """At most ``limit`` characters, cut at a word border where there is one; no ellipsis, for texts that will be shown or searched."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    cut = text[:limit]
    if text[limit] == " ":
        return cut
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;:，；：")


class Generator:
    """Answers generator requests."""

    def __init__(self, board: Board, seed: int = 0) -> None:
        self.board = board
        self.seed = seed

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
            if (used is not None and query == used) or int(view["turn"]["attempt"]) > 1:
                query = sharpen(query, shot.narration if shot else str(row.get("text", "")))
            out.append({"shot_id": row["shot_id"], "query": clipped(query, 200)})
        return {"queries": out}

    def _music(self, view: View) -> dict[str, Any]:
        evidence = view["request"]["evidence"]
        offered = [m for m in evidence.get("library", {}).get("moods", ()) if isinstance(m, str)]
        wished = [m for m in self.board.storyboard.music_moods if m.strip()]
        moods = [m for m in wished if m in offered] or wished or offered[:1] or ["calm"]
        if evidence.get("present"):  # another track is wanted: lead with another mood, where there is one
            moods = [m for m in (*moods[1:], *offered) if m != moods[0]] or moods
        moods = list(dict.fromkeys(moods))[:4]
        return {"query": clipped(f"{' '.join(moods[:2])} instrumental background for narration", 120), "moods": moods}

    # -- graphics --------------------------------------------------------------------------------------------------------------

    def _fills(self, view: View) -> dict[str, Any]:
        evidence = view["request"]["evidence"]
        templates = [t for t in evidence["templates"] if "slots" in t]
        attempt = int(view["turn"]["attempt"])
        shrink = 0.6 ** (attempt - 1) * (0.75 if view["request"]["tool"] == "repair_shots" else 1.0)
        fills: list[dict[str, Any]] = []
        for row in evidence["shots"]:
            if "shot_id" not in row:
                continue
            shot = self._shot(view, row["shot_id"])
            kind = str(row.get("kind", ""))
            spotlight = shot.spotlight if shot is not None else None
            meant = spotlight.slots if spotlight is not None and spotlight.kind.value == kind and attempt == 1 else {}
            template = choose(templates, kind, meant, self.seed, row["shot_id"])
            slots = self._slots(row, shot, template, shrink, plain=attempt > 1)
            fills.append({"shot_id": row["shot_id"], "template": template["template"], "slots": slots})
        return {"fills": fills}

    def _slots(
        self, row: dict[str, Any], shot: BoardShot | None, template: dict[str, Any], shrink: float, *, plain: bool
    ) -> dict[str, str]:
        """Texts for a template's slots: the recovered ones, else the brief. Shorter and plainer after a refusal."""
        meant = dict(shot.spotlight.slots) if shot is not None and shot.spotlight is not None else {}
        spare = str(row.get("brief") or row.get("text") or (shot.communicates if shot else "")) or self.board.storyboard.title
        out: dict[str, str] = {}
        for slot in template["slots"]:
            if "name" not in slot:
                continue
            limit = max(4, math.floor(int(slot["max_chars"]) * shrink))
            text = clipped(_shown(meant.get(slot["name"], ""), plain), limit)
            if slot["name"].startswith("value") and slot.get("required", True) and not any(c.isdigit() for c in text):
                figure = _FIGURE.search(f"{text} {spare} {row.get('text', '')}")
                text = figure.group()[:limit] if figure else text
            if not text and slot.get("required", True):
                text = clipped(_shown(spare, plain), limit) or clipped(_shown(self.board.storyboard.title, plain), limit) or "-"
            if text:
                out[slot["name"]] = text
        for name in [n for n in out if n.startswith("label")]:
            value = "value" + name.removeprefix("label")
            if any(s.get("name") == value for s in template["slots"]) and value not in out:
                del out[name]
        return out


def _shown(text: str, plain: bool) -> str:
    """Text as a card can show it: no control or invisible characters; after a refusal only Latin, Chinese and common signs."""
    kept = "".join(c if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn") else " " for c in text)
    return "".join(c for c in kept if _PLAIN.match(c)) if plain else kept


def _opening(text: str) -> str:
    """The first words of a sentence, copied exactly: six words or 40 characters."""
    cut = text[:40]
    words = cut.split(" ")
    if len(text) > 40 and len(words) > 1:
        words = words[:-1]
    return " ".join(words[:6]).strip() or cut.strip()
