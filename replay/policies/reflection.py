"""The scripted critic's look at a shot plan: fixed rules on coverage, pacing and repetition over the evidence of the request.

It sees what any critic sees. It reads no storyboard.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

FAST_CHARS_PER_S = {"latin": 24.0, "wide": 8.0}
"""Reading speeds above which a narration cannot be spoken in its shot: about 1.6 times ordinary speech."""
SLOW_MS = 15_000
"""A shot of this length or more without a graphic stands too long on one picture."""
MIN_MS = 700
MAX_FINDINGS = 12
MAX_WORDS_ADDED = 4

_WORD = re.compile(r"[A-Za-z][A-Za-z'-]{3,}")
_STOP = frozenset(
    "that this with from have were been they their there which would could should about into than then them these those also when what "
    "your will just very more most some such only over after before because where while being".split()
)


def reflect(evidence: dict[str, Any]) -> dict[str, Any]:
    """Findings and a patch for a ``plan_reflection`` request."""
    focus = evidence.get("focus", "all")
    rows = [r for r in evidence["shots"] if "shot_id" in r]
    findings: list[dict[str, str]] = []
    patch: dict[str, dict[str, Any]] = {}
    if focus in ("all", "coverage"):
        _coverage(evidence, rows, findings)
    if focus in ("all", "pacing"):
        _pacing(rows, findings, patch)
    if focus in ("all", "repetition"):
        _repetition(rows, findings, patch)
    findings = findings[:MAX_FINDINGS]
    named = {f["shot_id"] for f in findings}
    return {"findings": findings, "patch": [{"shot_id": sid, **change} for sid, change in patch.items() if sid in named]}


def _coverage(evidence: dict[str, Any], rows: list[dict[str, Any]], findings: list[dict[str, str]]) -> None:
    film = evidence.get("film", {})
    low, high = film.get("feasible_ms", [0, 10**9])
    planned = film.get("planned_ms", low)
    if rows and not low <= planned <= high:
        longest = max(rows, key=lambda r: r["target_ms"])
        note = f"the plan is {planned} ms long; feasible are {low} to {high} ms"
        findings.append({"shot_id": longest["shot_id"], "code": "coverage", "note": note})
    if rows and film.get("unplanned_chars", 0) > 0:
        note = f"{film['unplanned_chars']} characters of the script have no shot yet"
        findings.append({"shot_id": rows[-1]["shot_id"], "code": "coverage", "note": note})


def _pacing(rows: list[dict[str, Any]], findings: list[dict[str, str]], patch: dict[str, dict[str, Any]]) -> None:
    for row in rows:
        speed = FAST_CHARS_PER_S["wide" if _is_wide(row["text"]) else "latin"]
        needed = max(MIN_MS, int(1000 * row["chars"] / speed))
        if row["target_ms"] < needed:
            note = f"{row['chars']} characters cannot be spoken in {row['target_ms']} ms"
            findings.append({"shot_id": row["shot_id"], "code": "pacing", "note": note})
            patch.setdefault(row["shot_id"], {})["target_ms"] = min(needed, 600_000)
        elif row["target_ms"] >= SLOW_MS and "spotlight" not in row:
            note = f"{row['target_ms']} ms on one picture"
            findings.append({"shot_id": row["shot_id"], "code": "pacing", "note": note})


def _repetition(rows: list[dict[str, Any]], findings: list[dict[str, str]], patch: dict[str, dict[str, Any]]) -> None:
    seen: Counter[str] = Counter()
    for row in rows:
        seen[row["query"]] += 1
        if row["same_query"] < 2 or seen[row["query"]] == 1:
            continue
        note = f"the same query stands at {row['same_query']} shots"
        findings.append({"shot_id": row["shot_id"], "code": "repetition", "note": note})
        sharper = sharpen(row["query"], row["text"])
        if sharper != row["query"]:
            patch.setdefault(row["shot_id"], {})["visual_query"] = sharper


def sharpen(query: str, text: str) -> str:
    """The query with some words of the narration that it does not have yet; the query itself when there are none."""
    if _is_wide(text):
        extra = [p for p in re.split(r"[，。！？、；：,.!?\s]+", text) if 2 <= len(p) <= 12 and p not in query][:1]
    else:
        have = {w.lower() for w in _WORD.findall(query)}
        extra = []
        for word in _WORD.findall(text):
            if word.lower() not in have | _STOP:
                have.add(word.lower())
                extra.append(word)
            if len(extra) == MAX_WORDS_ADDED:
                break
    return f"{query} {' '.join(extra)}"[:200] if extra else query


def _is_wide(text: str) -> bool:
    wide = sum(1 for c in text if "\u2e80" <= c <= "\u9fff" or "\uac00" <= c <= "\ud7af")
    return wide * 2 > len(text)
