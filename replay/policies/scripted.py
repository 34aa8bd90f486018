"""The scripted policy: executes the recovered storyboard through the same contexts that a model would see.

Its orchestrator decides from the context's view, its generator answers with the recovered editor's decisions, its critic judges by fixed
rules. Every choice that is open is made by a seed, and depends on nothing but seed, view and storyboard: a run that was stopped goes on
exactly as if it had not been.
"""

from __future__ import annotations

import math
from random import Random
from typing import Any, Protocol

from replay.config import ReplayConfig
from replay.policies import agenda, mistakes
from replay.policies.answers import MAX_TARGET_MS, Generator
from replay.policies.board import Board
from replay.policies.reflection import reflect
from replay.script import sentences
from schemas.canonical import canonical_text
from schemas.contract import Role
from schemas.storyboard import Storyboard
from schemas.trajectory import Provenance, RoleContext, RoleOutput

View = dict[str, Any]

MISTAKE_SHARE = 0.15
"""Most mistakes of a run, as a share of its budget."""
STUBBORN = 2
"""Refusals in a row after which a tool is tried last."""
MAX_SENTENCES = 40


class Critic(Protocol):
    """Answers critic requests other than the plan's reflection (repair.diagnose.ScriptedCritic)."""

    def answer(self, context: RoleContext) -> dict[str, Any]:
        """The content asked for."""
        ...


class ScriptedPolicy:
    """Plays all three roles from a storyboard.

    Args:
        storyboard: what inversion recovered; its decisions are the labels.
        seed: decides everything that is open: order within the dependency graph, scopes, when to reflect and inspect, how to answer
            blockers, which mistakes to make.
        config: the run's settings.
        critic: judges findings, orders defects, asks for mends.
    """

    name = "scripted"

    def __init__(self, storyboard: Storyboard, seed: int, config: ReplayConfig, critic: Critic) -> None:
        self.seed = seed
        self.config = config
        self.traits = agenda.Traits.of(seed)
        self._board = Board(storyboard)
        self._generator = Generator(self._board, seed)
        self._critic = critic

    def act(self, context: RoleContext) -> RoleOutput:
        """Answer a context in its role. Raises ConfigInvalid for a content kind that no rule covers."""
        if context.role is Role.ORCHESTRATOR:
            return self._orchestrate(context.view)
        if context.role is Role.GENERATOR:
            content = self._generator.answer(context.view)
        elif context.view["request"]["kind"] == "plan_reflection":
            content = reflect(context.view["request"]["evidence"])
        else:
            content = self._critic.answer(context)
        return RoleOutput(role=context.role, text=canonical_text(content), provenance=Provenance.SCRIPTED)

    # -- orchestrator ----------------------------------------------------------------------------------------------------------

    def _orchestrate(self, view: View) -> RoleOutput:
        rng = Random(f"turn:{self.seed}:{view['turn']['call_index']}")  # noqa: S311 - seeded choice, no secret
        slip = self._slip(view, rng)
        if slip is not None:
            return _call(slip.tool, slip.arguments, Provenance.SCRIPTED_MISTAKE, f"mistake on purpose: {slip.kind}")
        tool, reason = self._choose(view, rng)
        return _call(tool, self._arguments(view, tool, rng), Provenance.SCRIPTED, reason)

    def _slip(self, view: View, rng: Random) -> mistakes.Slip | None:
        """A mistake, if one is due: never two in a row, never so many that the film would not be delivered."""
        draw = rng.random()
        made = sum(1 for c in view["calls"] if c["status"] == "refused")
        if draw >= self.config.policy.mistake_rate or made >= max(1, round(MISTAKE_SHARE * view["turn"]["budget"])):
            return None
        if agenda.last_refusal(view) is not None or agenda.spare(view) <= agenda.RESERVE:
            return None
        open_slips = mistakes.possible(view, lambda tool: self._arguments(view, tool, rng), rng)
        return rng.choice(open_slips) if open_slips else None

    def _choose(self, view: View, rng: Random) -> tuple[str, str]:
        """The next tool and why."""
        candidates = agenda.useful(view, self.traits)
        refusal = agenda.last_refusal(view)
        if refusal is not None:
            answered = self._remedy(view, refusal, candidates, rng)
            if answered is not None:
                return answered
        candidates.sort(key=lambda tool: agenda.refused_in_a_row(view, tool) >= STUBBORN)
        if candidates:
            if len(candidates) == 1 or rng.random() < self.traits.steadiness:
                return candidates[0], "the film needs it and nothing is in its way"
            return rng.choice(candidates[1:]), "the film needs it; others could come first as well"
        if agenda.legal(view, "stitch_video"):
            return "stitch_video", "all that delivery needs is there"
        behind = [t for fact, t in agenda.CHAIN.items() if not agenda.holds(view, fact) and agenda.legal(view, t)]
        return (behind or ["stitch_video"])[0], "nothing better is open"

    def _remedy(self, view: View, refusal: dict[str, Any], candidates: list[str], rng: Random) -> tuple[str, str] | None:
        """Answer the latest blockers: the refused tool again if only its call was wrong, else a remedy that can run."""
        refused_tool = refusal.get("tool")
        blockers = [b for b in refusal["blockers"] if "code" in b]
        codes = {b["code"] for b in blockers}
        named = list(dict.fromkeys(r for b in blockers for r in b.get("remedies", ())))
        if "product_rejected" in codes:  # the call was right: something it was made from must be made anew, even if it looks complete
            able = [t for t in named if t != refused_tool and agenda.legal(view, t)]
            return (able[0], f"{refused_tool} was rejected; its blocker names it") if able and agenda.spare(view) >= 1 else None
        if not codes & {"prerequisite_missing", "wrong_stage_order"} and refused_tool in candidates:
            return str(refused_tool), "the same tool again, called right"
        able = [t for t in named if t in candidates]
        if self.traits.remedies == "agenda" or not able:
            return None
        pick = {"first": able[0], "last": able[-1]}.get(self.traits.remedies) or rng.choice(able)
        return pick, f"the blocker of {refused_tool} names it"

    # -- arguments -------------------------------------------------------------------------------------------------------------

    def _arguments(self, view: View, tool: str, rng: Random) -> dict[str, Any]:
        """Valid arguments for a tool, in the order of its schema."""
        out: dict[str, Any] = {}
        for name, spec in view["tools"].get(tool, {"args": {}})["args"].items():
            value = self._argument(view, tool, name, spec, rng)
            if value is not None:
                out[name] = value
        return out

    def _argument(self, view: View, tool: str, name: str, spec: dict[str, Any], rng: Random) -> Any:
        required = spec.get("required", True)
        if name == "shots":
            return agenda.scope(view, tool, self.traits, rng)
        if name == "segments":
            return self._segments_scope(view)
        if name == "max_sentences":
            return self._max_sentences()
        if name == "max_shot_ms":
            return self._max_shot_ms(spec) if self.traits.slack > 0 else None
        if name == "focus" and self.traits.focus in spec.get("enum", ()):
            return self.traits.focus
        if not required and rng.random() < 0.6:
            return None
        if spec.get("enum"):
            moods = [m for m in self._board.storyboard.music_moods if m in spec["enum"]]
            return rng.choice(moods or list(spec["enum"]))
        if spec["type"] == "boolean":
            return rng.random() < 0.5
        if spec["type"] == "integer":
            low, high = int(spec.get("minimum", 1)), int(spec.get("maximum", spec.get("minimum", 1) + 10))
            return rng.randint(low, min(high, low + 10))
        return self._board.storyboard.title[: int(spec.get("max_length", 80))] if required else None

    def _segments_scope(self, view: View) -> str:
        row = view["progress"].get("shot_plan", {})
        missing = str(row.get("missing", ""))
        if not self.traits.plan_by_segment or row.get("of", 1) < 2 or agenda.spare(view) <= agenda.RESERVE:
            return "all" if not missing or missing.startswith("+") else "missing"
        if agenda.times(view, "plan_shots") >= 2:
            return "missing"
        return missing.split(",")[0].split("-")[0] if missing else "g01"

    def _max_sentences(self) -> int:
        """A limit that the recovered segments keep: their longest, and some slack by habit."""
        count: dict[int, int] = {}
        for span in sentences(self._board.script):
            home = self._board.segment_of(span.start)
            count[home] = count.get(home, 0) + 1
        longest = max(count.values(), default=1)
        return min(MAX_SENTENCES, max(1, math.ceil(longest * (1 + self.traits.slack))))

    def _max_shot_ms(self, spec: dict[str, Any]) -> int:
        longest = max((s.target_duration_us for s in self._board.storyboard.shots), default=1_000_000) / 1_000_000
        wanted = math.ceil(longest * (1 + self.traits.slack)) * 1000
        return max(int(spec.get("minimum", 1000)), min(wanted, int(spec.get("maximum", MAX_TARGET_MS))))


def _call(tool: str, arguments: dict[str, Any], provenance: Provenance, reason: str) -> RoleOutput:
    return RoleOutput(role=Role.ORCHESTRATOR, tool=tool, arguments_json=canonical_text(arguments), provenance=provenance, reason=reason)
