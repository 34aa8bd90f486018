"""A call has a key, and a message that arrives twice has one effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.errors import ConfigInvalid
from storage.journal import Journal
from tests.replay.doubles import SEGMENTS, call, content, planned, runtime


def test_a_message_that_arrives_twice_has_one_effect(folder: Path) -> None:
    run = runtime(folder, journal=Journal(folder / "journal"))
    outputs = [call("stitch_video"), call("segment_article", max_sentences=3), content(SEGMENTS)]
    for index, output in enumerate(outputs):
        first = run.step(output, call_index=index)
        before = (run.state_digest, len(run.calls), (folder / "journal").read_bytes(), sorted(run.suite.store.names()))
        assert run.step(output, call_index=index) == first
        assert (run.state_digest, len(run.calls), (folder / "journal").read_bytes(), sorted(run.suite.store.names())) == before


def test_the_last_message_arrives_twice(folder: Path) -> None:
    run = planned(runtime(folder, budget=3))
    first = run.step(call("plan_shots", segments="missing"), call_index=4)
    assert first.finished
    assert run.step(call("plan_shots", segments="missing"), call_index=4) == first
    assert [c.tool for c in run.calls[4:]] == ["plan_shots", "stitch_video"]


@pytest.mark.parametrize(("index", "message"), [(0, "was answered by another output"), (7, "is not due yet"), (-1, "is not due yet")])
def test_an_output_for_another_call_is_refused(folder: Path, index: int, message: str) -> None:
    run = runtime(folder)
    run.step(call("stitch_video"))
    with pytest.raises(ConfigInvalid, match=message):
        run.step(call("segment_article", max_sentences=3), call_index=index)


def test_keys_name_what_decides_the_effect(folder: Path) -> None:
    run = runtime(folder)
    keys = []
    for output in (
        call("stitch_video"),
        call("stitch_video").model_copy(update={"reason": "another reason", "usage": {"tokens": 3}}),
        call("stitch_video", extra=1),
        call("segment_article", max_sentences=3),
    ):
        run.step(output)
        keys.append(run.calls[-1].key)
    run.step(content(SEGMENTS))
    run.step(call("stitch_video"))
    assert keys[0] == keys[1]
    assert len({*keys, run.calls[-1].key}) == 4
    (folder / "other").mkdir()
    other = runtime(folder / "other", shot_repairs=1)
    other.step(call("stitch_video"))
    assert other.calls[0].key != keys[0], "other settings may have other effects"
