"""``decorate_spotlights``: templates of the pack are filled with text and drawn. The generator fills slots; it never writes markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay import facts
from replay.contents import FillItem, Fills, content_schema
from replay.graphics.pack import PackTemplate, check_fill, clean, load_pack, room
from replay.graphics.project import CardProject, build_project
from replay.graphics.render import Drawing, draw_clips, faults, font_folders, renderer_version
from replay.graphics.theme import theme_of
from replay.measured import measured_video
from replay.scope import SHOTS_ARG, scope_blockers, selected
from replay.state import shot_change
from replay.tool import Arguments, Contents, Product, Refusal, ToolEnv
from replay.views import clip
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.blocker import Blocker, BlockerCode
from schemas.canonical import digest_of
from schemas.contract import ContentRequest, Fact, Role, ToolContract
from schemas.errors import ToolFailed
from schemas.state import Change, Decoration, ProductionState

PART_SHOTS = 12
"""Spotlight shots in one request."""
PROFILE = "card.2"
"""Version of assembly and encoding; part of every graphic's key."""
MAX_BLACK = 0.9


class DecorateSpotlights:
    """Fills templates and draws them."""

    contract = ToolContract(
        name="decorate_spotlights",
        version=1,
        summary="Make the graphics of spotlight shots: a template of the pack is filled with short texts and drawn.",
        args=(SHOTS_ARG,),
        needs=(Fact.SHOT_PLAN,),
        produces=(Fact.DECORATIONS,),
        roles=(Role.GENERATOR,),
        checks=(
            "the template exists and shows the planned kind",
            "every slot text is declared, within its length, and fits the layout on this canvas",
            "every character has a glyph in the pack's fonts",
            "every text stands whole inside its safe area and clear of the others, as drawn",
            "the drawn clip decodes with the template's size and exact number of frames, and is not black",
        ),
        wall_s=1800,
        max_output_bytes=512 * 1024 * 1024,
    )

    def resolve(self, state: ProductionState, arguments: Arguments) -> tuple[Blocker, ...]:
        """The shots exist, and some of them have a spotlight."""
        problems = scope_blockers(state, arguments["shots"])
        if problems or not facts.holds(Fact.SHOT_PLAN, state) or _chosen(state, arguments):
            return problems
        message = "none of these shots needs a graphic: the plan gives them no spotlight, or it is made already"
        return (Blocker(code=BlockerCode.VALUE_NOT_ALLOWED, subject="argument:shots", message=message),)

    def need(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> ContentRequest | None:
        """Ask for the fills of the next group of shots."""
        parts = _parts(state, arguments)
        if len(given) == len(parts):
            return None
        rows = [_row(state, sid) for sid in parts[len(given)]]
        kinds = {row["kind"] for row in rows}
        return ContentRequest(
            role=Role.GENERATOR,
            tool=self.contract.name,
            tool_version=self.contract.version,
            kind="fills",
            instruction=(
                "Fill one template for each of these shots. Take a template of the shot's kind and write its slot texts from the brief and "
                "the narration: short, true to what is said, in the film's language. Leave optional slots out when there is nothing to say."
            ),
            content_schema=content_schema("fills"),
            evidence={
                "shots": rows,
                "templates": [_offer(entry, state) for entry in load_pack().values() if entry.template.kind.value in kinds],
                "language": state.film.task.language,
            },
        )

    def accept(self, state: ProductionState, arguments: Arguments, given: Contents, content: dict[str, Any]) -> tuple[Blocker, ...]:
        """One fill for every shot asked about; template, slots and room in the layout are right."""
        task = state.film.task
        wanted = _parts(state, arguments)[len(given)]
        fills = Fills.model_validate(content).fills
        found = [f.shot_id for f in fills]
        out = [_broken(f"fills.{i}.shot_id", f"{clip(s, 20)} was not asked about") for i, s in enumerate(found) if s not in wanted]
        out += [_broken("fills", f"{s} has {found.count(s)} fills, expected one") for s in wanted if found.count(s) != 1]
        for i, fill in enumerate(fills):
            spotlight = state.shots[fill.shot_id].planned.spotlight if fill.shot_id in wanted else None
            if spotlight is not None:
                out += check_fill(
                    fill.template, fill.slots, kind=spotlight.kind, width=task.width, height=task.height, where=f"content:fills.{i}"
                )
        return tuple(out)

    def execute(self, state: ProductionState, arguments: Arguments, given: Contents, env: ToolEnv) -> Product | Refusal:
        """Draw every fill that the store does not hold yet, and verify the clips."""
        fills = {f.shot_id: f for content in given for f in Fills.model_validate(content).fills}
        cards: list[_Card] = []
        for sid in _chosen(state, arguments):
            card = _card(state, sid, fills[sid], env)
            if isinstance(card, Blocker):
                return Refusal((card,))
            cards.append(card)
        refs = _drawn(state, cards, env)
        if isinstance(refs, tuple):
            return Refusal(refs)
        changes: list[Change] = []
        artifacts: list[ArtifactRef] = []
        rows: list[dict[str, Any]] = []
        for card in cards:
            made = _decoration(state, card, refs[card.key], env)
            changes.append(shot_change(card.shot_id, "decoration", made))
            artifacts.append(made.ref)
            rows.append({"shot": card.shot_id, "template": made.template, "slots": sorted(made.slots), "ms": made.duration_us // 1000})
        return Product(
            changes=tuple(changes), results={"drawn": len(rows), "graphics": rows[:24]}, artifacts=tuple(dict.fromkeys(artifacts))
        )


def _chosen(state: ProductionState, arguments: Arguments) -> tuple[str, ...]:
    missing = tuple(s for s in facts.lacking(Fact.DECORATIONS, state) if s in state.shots)
    return tuple(s for s in selected(state, arguments["shots"], missing) if state.shots[s].planned.spotlight is not None)


def _parts(state: ProductionState, arguments: Arguments) -> list[tuple[str, ...]]:
    shots = _chosen(state, arguments)
    return [shots[i : i + PART_SHOTS] for i in range(0, len(shots), PART_SHOTS)]


def _row(state: ProductionState, sid: str) -> dict[str, Any]:
    planned = state.shots[sid].planned
    row: dict[str, Any] = {"shot_id": sid, "text": clip(planned.text, 400)}
    if planned.spotlight is not None:
        row |= {"kind": planned.spotlight.kind.value, "brief": planned.spotlight.brief}
    return row


def _offer(entry: PackTemplate, state: ProductionState) -> dict[str, Any]:
    """A template as the generator sees it; its limits are those of the film's canvas and script."""
    t, task = entry.template, state.film.task
    han = task.language.startswith("zh")
    slots = [
        {"name": s.name, "is": s.description, "max_chars": room(entry, s, task.width, task.height, han=han), "required": s.required}
        | ({} if s.form == "text" else {"form": s.form})
        for s in t.slots
    ]
    return {"template": t.name, "kind": t.kind.value, "about": t.about, "placement": t.placement, "slots": slots}


@dataclass(frozen=True, slots=True)
class _Card:
    """One graphic to be made: its project and the key that it is kept under."""

    shot_id: str
    entry: PackTemplate
    slots: dict[str, str]
    project: CardProject
    key: str


def _card(state: ProductionState, sid: str, fill: FillItem, env: ToolEnv) -> _Card | Blocker:
    """The project of one fill, or why it cannot be drawn."""
    task = state.film.task
    entry, slots, theme = load_pack()[fill.template], clean(fill.slots), theme_of(task.pool)
    project = build_project(
        entry, slots, width=task.width, height=task.height, language=task.language, font_folders=font_folders(), theme=theme
    )
    if project.missing:
        shown = " ".join(f"{c} (U+{ord(c):04X})" for c in project.missing[:6])
        return _broken(f"slots of {sid}", f"the pack's fonts have no glyph for {shown}; write it without")
    key = digest_of(
        [
            "decoration", PROFILE, entry.template.digest, slots, theme.css(), task.language.split("-")[0], task.width, task.height,
            task.frame_rate.num, task.frame_rate.den, renderer_version(env.sandbox),
        ]
    )  # fmt: skip
    return _Card(sid, entry, slots, project, key)


def _drawn(state: ProductionState, cards: Sequence[_Card], env: ToolEnv) -> dict[str, ArtifactRef] | tuple[Blocker, ...]:
    """The clips by key: out of the store, else drawn now, equal graphics once. What was drawn well is kept even if another text does not
    fit."""
    known = {card.key: env.store.recall(card.key) for card in cards}
    fresh = list({card.key: card for card in cards if known[card.key] is None}.values())
    refs = {key: ref for key, ref in known.items() if ref is not None}
    problems: list[Blocker] = []
    if fresh:
        folder = Path(env.workdir) / "cards"
        folder.mkdir()
        projects = [(card.project, card.entry.template.duration_us) for card in fresh]
        for card, drawing in zip(fresh, draw_clips(projects, state.film.task.frame_rate, env.sandbox, folder), strict=True):
            misfits = _misfits(card, drawing)
            problems += misfits
            if not misfits and drawing.clip is not None:
                refs[card.key] = env.store.put_file(drawing.clip, ArtifactKind.DECORATION, "video/mp4")
                env.store.remember(card.key, refs[card.key])
                env.note(f"{card.shot_id}: {card.entry.template.name} drawn")
    return tuple(problems) or refs


def _misfits(card: _Card, drawing: Drawing) -> list[Blocker]:
    if drawing.refused:
        raise ToolFailed("card_reached_out", f"the page of {card.shot_id} asked for {drawing.refused[0]}; a page asks for nothing")
    found = faults(drawing, card.entry, (card.project.width, card.project.height))
    return [_broken(f"slots of {card.shot_id}", f"the text of {slot} is {why}; make it shorter") for slot, why in found]


def _decoration(state: ProductionState, card: _Card, ref: ArtifactRef, env: ToolEnv) -> Decoration:
    """The verified graphic of one shot."""
    task, template = state.film.task, card.entry.template
    m = measured_video(ref, env.store, env.sandbox)
    frames = task.frame_rate.frame_at(template.duration_us)
    if (m.width, m.height, m.frames) != (card.project.width, card.project.height, frames) or m.black_share > MAX_BLACK:
        seen = f"{m.frames} frames of {m.width}x{m.height}, {m.black_share:.0%} black"
        expected = f"{frames} of {card.project.width}x{card.project.height}"
        raise ToolFailed("card_wrong", f"the graphic of {card.shot_id} has {seen}; expected {expected}")
    return Decoration(
        ref=ref,
        template=template.name,
        template_digest=template.digest,
        slots=card.slots,
        placement=template.placement,
        duration_us=m.duration_us,
        width=m.width,
        height=m.height,
    )


def _broken(where: str, message: str) -> Blocker:
    subject = where if where.startswith("content:") else f"content:{where}"
    return Blocker(code=BlockerCode.CONTENT_CONTRACT_BROKEN, subject=subject, message=message)


TOOL = DecorateSpotlights()
