"""Precision and recall of the embedded judge over spotlight renders, against faults put into real graphics.

    python -m bench.judge [--height 360 1080] [--texts short long] [--json FILE]

Every template of the pack is filled with short and long texts and rendered by the production tool; each healthy graphic and each spoiled
one (other words, almost no contrast, enlarged, one colour) is judged as an inspection judges it. A graphic counts as flagged when the
checks report an error. Prints Markdown tables: flags against truth, which code each fault was taken for, and what other limits would give.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from media.sandbox import open_sandbox
from repair.checks.spotlight import look, spotlight_findings
from repair.fault_kinds import KINDS
from repair.limits import LIMITS
from repair.measurements import Measurements
from repair.spoil import SPOILERS
from replay.build_engines import build_engines
from replay.config import ReplayConfig
from replay.engines import Template
from replay.registry import base_tools
from replay.state import apply, film_change, initial, put_shot, shot_change
from replay.task import canvas
from replay.tool import Product, ToolEnv
from schemas.state import PlannedShot, ProductionState, Segment, ShotRecord, SpotlightPlan, Task
from schemas.time import Rate
from storage.artifacts import ArtifactStore

FAULTS = ("decoration_wrong_text", "decoration_low_contrast", "decoration_overflow", "decoration_blank")
WORDS = "Energy is never lost and a pendulum keeps the time whatever its mass because gravity pulls all things alike".split()
FIGURES = ("42 %", "1455", "3.6 m", "1998", "75 %", "12 h")
SHOT = "s001"

SWEEP: dict[str, tuple[float, ...]] = {
    "text_wrong": (0.4, 0.5, 0.6, 0.7, 0.8),
    "contrast_min": (2.0, 3.0, 4.5),
    "edge_share": (0.0, 0.008, 0.02),
    "blank_share": (0.98, 0.997, 0.9999),
}
"""Other limits that every graphic is judged by as well, one at a time."""


def text_for(form: str, limit: int, number: int, long: bool) -> str:
    """A text that a slot takes."""
    if form == "percent":
        return f"{17 + 13 * number % 80} %"
    if form == "time":
        return str(1900 + 7 * number)
    out = ""
    for word in WORDS[number % 9 :] + WORDS:
        if len(out) + len(word) + 1 > limit * (9 if long else 4) // 10:
            break
        out = f"{out} {word}".strip()
    return (out or WORDS[number % len(WORDS)])[:limit]


def filled(template: Template, number: int, long: bool) -> dict[str, str]:
    """Texts for every slot of a template; a figure where the slot is short."""
    out: dict[str, str] = {}
    for place, slot in enumerate(template.slots):
        short = slot.max_chars <= 14 and slot.form == "text"
        out[slot.name] = (
            FIGURES[(number + place) % len(FIGURES)][: slot.max_chars]
            if short
            else text_for(slot.form, slot.max_chars, number + 2 * place, long)
        )
    return out


def film(template: Template, height: int) -> ProductionState:
    """A film of one shot with a planned graphic of the template's kind."""
    width, tall = canvas("16:9", height)
    task = Task(
        project_id="prj_judge", title="Judge", language="en", script="A graphic.", aspect_ratio="16:9", width=width, height=tall,
        frame_rate=Rate(num=30, den=1), duration_min_us=1_000_000, duration_max_us=60_000_000, pool=(), music_library="", voice="slt",
        tools_digest="0" * 64, licence="CC0-1.0",
    )  # fmt: skip
    planned = PlannedShot(
        segment=0, script_start=0, script_end=10, text="A graphic.", visual_query="a graphic", target_duration_us=4_000_000,
        spotlight=SpotlightPlan(kind=template.kind, brief="a graphic"),
    )  # fmt: skip
    changes = [
        film_change("segments", (Segment(index=0, title="All", script_start=0, script_end=10),)),
        put_shot(ShotRecord(shot_id=SHOT, planned=planned)),
        film_change("shot_order", [SHOT]),
    ]
    return apply(initial(task), changes)


def judged(height: int, texts: tuple[str, ...] = ("short", "long")) -> list[dict[str, Any]]:
    """One record a graphic: template, fault, codes that were reported as errors, score."""
    sandbox = open_sandbox()
    config = ReplayConfig.model_validate(
        {"speech": {"engine": "flite"}, "retrieval": {"embedder": "hashing"}, "render": {"height": height}}
    )
    engines = build_engines(config, sandbox)
    decorate = next(t for t in base_tools() if t.contract.name == "decorate_spotlights")
    out: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as root:
        store = ArtifactStore(Path(root) / "artifacts")
        folder = 0

        def env() -> ToolEnv:
            nonlocal folder
            folder += 1
            (Path(root) / str(folder)).mkdir()
            return ToolEnv(store, sandbox, engines, config, Path(root) / str(folder))

        for number, (name, template) in enumerate(sorted(engines.templates.items())):
            for long in (t == "long" for t in texts):
                state = film(template, height)
                fill = {"fills": [{"shot_id": SHOT, "template": name, "slots": filled(template, number, long)}]}
                if decorate.accept(state, {"shots": "all"}, (), fill):
                    continue
                made = decorate.execute(state, {"shots": "all"}, (fill,), env())
                if not isinstance(made, Product):
                    continue
                state = apply(state, made.changes)
                for fault in (None, *FAULTS):
                    seen = state
                    if fault is not None:
                        spoiled = SPOILERS[fault](state, SHOT, env())
                        if spoiled is None:
                            continue
                        seen = apply(state, [shot_change(SHOT, "decoration", spoiled.value)])
                    memory = Measurements()
                    found = [f for f in spotlight_findings(seen, [SHOT], env(), memory) if f.severity == "error"]
                    graphic = seen.shots[SHOT].decoration
                    score = look(graphic, env(), memory).score if graphic is not None else 0.0
                    codes = [f.code.value for f in found]
                    under = {
                        f"{name} {value:g}": any(
                            f.severity == "error"
                            for f in spotlight_findings(seen, [SHOT], env(), memory, LIMITS.model_copy(update={name: value}))
                        )
                        for name, values in SWEEP.items()
                        for value in values
                    }
                    out.append(
                        {"height": height, "template": name, "long": long, "fault": fault, "codes": codes, "score": score, "under": under}
                    )
    return out


def table(rows: list[dict[str, Any]]) -> str:
    """The Markdown tables."""
    lines = [
        "| height | graphics | spoiled | flagged | precision | recall | code told right |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for height in sorted({r["height"] for r in rows}):
        own = [r for r in rows if r["height"] == height]
        bad, flagged = [r for r in own if r["fault"]], [r for r in own if r["codes"]]
        hit = [r for r in bad if r["codes"]]
        right = [r for r in hit if KINDS[r["fault"]].symptoms[0].value in r["codes"]]
        shares = (len(hit) / max(1, len(flagged)), len(hit) / max(1, len(bad)), len(right) / max(1, len(hit)))
        lines.append(f"| {height} | {len(own)} | {len(bad)} | {len(flagged)} | " + " | ".join(f"{s:.3f}" for s in shares) + " |")
    lines += ["", "| height | fault | graphics | recall | reported as | mean score |", "| --- | --- | --- | --- | --- | --- |"]
    for height in sorted({r["height"] for r in rows}):
        for fault in (None, *FAULTS):
            own = [r for r in rows if r["height"] == height and r["fault"] == fault]
            codes = Counter(c for r in own for c in r["codes"]).most_common(3)
            share = sum(bool(r["codes"]) for r in own) / max(1, len(own))
            said = ", ".join(f"{c} {n}" for c, n in codes) or "-"
            score = sum(r["score"] for r in own) / max(1, len(own))
            lines.append(f"| {height} | {fault or 'none'} | {len(own)} | {share:.3f} | {said} | {score:.2f} |")
    lines += ["", "| height | limit | precision | recall |", "| --- | --- | --- | --- |"]
    for height in sorted({r["height"] for r in rows}):
        own = [r for r in rows if r["height"] == height]
        for name, values in SWEEP.items():
            for value in values:
                flagged = [r for r in own if r["under"][f"{name} {value:g}"]]
                hit = [r for r in flagged if r["fault"]]
                precision, recall = len(hit) / max(1, len(flagged)), len(hit) / max(1, sum(bool(r["fault"]) for r in own))
                mark = " (in force)" if value == getattr(LIMITS, name) else ""
                lines.append(f"| {height} | {name} {value:g}{mark} | {precision:.3f} | {recall:.3f} |")
    return "\n".join(lines)


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--height", type=int, nargs="+", default=[360, 1080])
    parser.add_argument("--texts", choices=("short", "long"), nargs="+", default=["short", "long"])
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [r for height in args.height for r in judged(height, tuple(args.texts))]
    print(table(rows))
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
