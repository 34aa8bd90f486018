"""A vision model as judge over spotlight renders: one picture, its texts and a frozen rubric in, scores and named problems out.

Owns the rubric (repair/rubric/spotlight.md, named by its digest), the form of the answer, and the memory of opinions: a picture is asked
about once, so that the critic's evidence and the verdict rest on the same opinion. An answer outside the form is a fault of the endpoint
(asked again, then ``EndpointFailed``), never a verdict.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from media.images import png_bytes
from replay.chat.model import ChatModel, ChatRequest
from replay.engines import Image, Opinion
from schemas.artifact import ArtifactKind
from schemas.canonical import Frozen, Sha256, digest_of, sha256_bytes
from schemas.errors import EndpointFailed
from schemas.verdict import DefectCode
from storage.artifacts import ArtifactStore

RUBRIC = Path(__file__).parent / "rubric" / "spotlight.md"
TRIES = 3
"""Answers outside the form that are borne for one picture."""

WEIGHTS: dict[str, float] = {"text": 0.4, "contrast": 0.2, "placement": 0.2, "clarity": 0.2}
"""Parts of the score. Ours: the paper's rubric for visual impact and clarity is not published."""

CODES: dict[str, DefectCode] = {
    "blank": DefectCode.SPOTLIGHT_MISSING,
    "text_wrong": DefectCode.SPOTLIGHT_TEXT_WRONG,
    "overflow": DefectCode.SPOTLIGHT_OVERFLOW,
    "low_contrast": DefectCode.SPOTLIGHT_LOW_CONTRAST,
}

Score = Field(ge=0, le=10)


class Answer(Frozen):
    """The form of an answer."""

    text: float = Score
    contrast: float = Score
    placement: float = Score
    clarity: float = Score
    problems: tuple[Literal["blank", "text_wrong", "overflow", "low_contrast"], ...] = Field(max_length=4)


@cache
def rubric() -> str:
    """The rubric's text."""
    return RUBRIC.read_text("utf-8")


def rubric_digest() -> Sha256:
    """Names rubric, weights and form of the answer."""
    return digest_of([rubric(), WEIGHTS, Answer.model_json_schema()])


class EndpointJudge:
    """A judge behind an OpenAI-compatible chat endpoint that takes pictures.

    Args:
        model: the connection; its configuration names the model.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._asked = digest_of([model.config.model_dump(mode="json"), rubric_digest()])
        self.name = f"{model.config.model} rubric {rubric_digest()[:12]}"

    def judge(self, picture: Image, slots: Mapping[str, str], store: ArtifactStore) -> Opinion:
        """The model's opinion of a picture, noted in the store.

        Raises:
            EndpointFailed: no answer, or none in the form after several tries.
        """
        png = png_bytes(picture)
        key = f"opinion {self._asked} {sha256_bytes(png)} {digest_of(dict(slots))}"
        known = store.recall(key)
        if known is not None:
            return _opinion(Answer.model_validate(store.read_json(known.sha256)))
        answer = self._ask(png, slots)
        store.remember(key, store.put_json(answer.model_dump(mode="json"), ArtifactKind.OTHER))
        return _opinion(answer)

    def _ask(self, png: bytes, slots: Mapping[str, str]) -> Answer:
        texts = json.dumps(dict(sorted(slots.items())), ensure_ascii=False)
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(png).decode()}}
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": rubric()},
            {"role": "user", "content": [{"type": "text", "text": f"The picture should show these texts: {texts}"}, picture]},
        ]
        seen = ""
        for turn in range(TRIES):
            request = ChatRequest(messages, schema=Answer.model_json_schema(), schema_name="judgement", turn=turn)
            reply = self._model.complete(request)
            try:
                return Answer.model_validate_json(_object(reply.content))
            except ValidationError as error:
                seen = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise EndpointFailed(
            "judge_protocol", f"{self.name} gave {TRIES} answers outside the rubric's form; the last: {seen}", "check the judge's model"
        )


def _object(text: str) -> str:
    """The JSON object in an answer that may wrap it in a code fence; the text itself where there is none."""
    fenced = re.search(r"```(?:json)?\s*(\{.*?\})\s*```", text, re.DOTALL)
    return fenced[1] if fenced else text.strip()


def _opinion(answer: Answer) -> Opinion:
    score = sum(weight * getattr(answer, name) for name, weight in WEIGHTS.items()) / 10
    problems = tuple(dict.fromkeys(CODES[p].value for p in answer.problems))
    return Opinion(round(score, 4), problems, {name: getattr(answer, name) for name in WEIGHTS})
