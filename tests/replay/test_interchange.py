"""The timeline as an OpenTimelineIO file, read back by the library itself."""

from __future__ import annotations

from random import Random
from typing import Any

import opentimelineio as otio
import pytest

from replay.interchange import to_otio
from replay.state import apply, film_change, initial, put_shot
from replay.timing import Layout, Wish, lay_out
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.state import MusicChoice, Narration, PlannedShot, ProductionState, ShotRecord, Task
from schemas.time import Rate

RATES = [(24, 1), (25, 1), (30, 1), (50, 1), (24000, 1001), (30000, 1001), (60000, 1001)]
REF = ArtifactRef(sha256="a" * 64, kind=ArtifactKind.NARRATION, media_type="audio/wav", size_bytes=1)
MUSIC = MusicChoice(track_id="hum", ref=REF, title="Hum", licence="CC0-1.0", query="hum", duration_us=8_000_000)


def film(rate: Rate, shots: list[tuple[int, int | None]], *, music: bool = True) -> tuple[ProductionState, Layout]:
    """Shots as (planned length, narration length), microseconds."""
    task = Task(
        project_id="prj_otio", title="Times", language="en", script="x", aspect_ratio="16:9", width=320, height=180, frame_rate=rate,
        duration_min_us=1, duration_max_us=10**12, pool=(), music_library="m", voice="v", tools_digest="0" * 64, licence="CC0-1.0",
    )  # fmt: skip
    changes = [film_change("music", MUSIC)] if music else []
    order = []
    for n, (target, spoken) in enumerate(shots):
        text = "" if spoken is None else "Words."
        planned = PlannedShot(
            segment=0, script_start=0, script_end=len(text), text=text, visual_query="a picture", target_duration_us=target
        )  # fmt: skip
        track = None
        if spoken is not None:
            track = Narration(ref=REF, duration_us=spoken, sample_rate=24_000, voice="v", loudness_lufs=-16.0, text_sha256="b" * 64)
        order.append(f"s{n + 1:03d}")
        changes.append(put_shot(ShotRecord(shot_id=order[-1], planned=planned, narration=track)))
    state = apply(initial(task), [*changes, film_change("shot_order", order)])
    wishes = [Wish(sid, target, spoken) for sid, (target, spoken) in zip(order, shots, strict=True)]
    return state, lay_out(wishes, rate, gap_us=250_000, min_us=0, max_us=10**12)


def read(state: ProductionState, layout: Layout) -> Any:
    return otio.adapters.read_from_string(to_otio(state, layout).decode(), "otio_json")


def odd_shots(count: int, seed: int = 3) -> list[tuple[int, int | None]]:
    rng = Random(seed)  # noqa: S311 - seeded lengths, no secret
    return [(rng.randrange(200_000, 9_000_000), rng.choice([None, rng.randrange(100_000, 9_000_000)])) for _ in range(count)]


@pytest.mark.parametrize(("num", "den"), RATES)
def test_every_shot_reads_back_on_its_frame(num: int, den: int) -> None:
    state, layout = film(Rate(num=num, den=den), odd_shots(200))
    picture = read(state, layout).tracks[0]
    found = [(c.name, c.range_in_parent().start_time.value, c.duration().value, c.duration().rate) for c in picture]
    assert found == [(s.shot_id, s.start_frame, s.frames, num / den) for s in layout.slots]
    assert picture.duration().value == layout.total_frames


@pytest.mark.parametrize(("num", "den"), RATES)
def test_narration_lies_within_a_frame_of_where_it_is_heard(num: int, den: int) -> None:
    rate = Rate(num=num, den=den)
    state, layout = film(rate, odd_shots(200))
    voice = read(state, layout).tracks[1]
    at = {c.name: c.range_in_parent() for c in voice if isinstance(c, otio.schema.Clip)}
    spoken = {s.shot_id: s for s in layout.slots if state.shots[s.shot_id].narration is not None}
    assert list(at) == list(spoken)
    for sid, slot in spoken.items():
        narration = state.shots[sid].narration
        assert narration is not None
        start = rate.us_at(slot.start_frame) + slot.narration_offset_us
        assert abs(at[sid].start_time.value * 1e6 * den / num - start) <= 1e6 * den / num
        assert abs(at[sid].duration.value * 1e6 * den / num - narration.duration_us) <= 1e6 * den / num


@pytest.mark.parametrize(("num", "den"), RATES)
def test_the_file_survives_being_written_again(num: int, den: int) -> None:
    state, layout = film(Rate(num=num, den=den), odd_shots(20))
    once = to_otio(state, layout).decode()
    assert otio.adapters.write_to_string(otio.adapters.read_from_string(once, "otio_json"), "otio_json") == once
    assert to_otio(state, layout).decode() == once


@pytest.mark.parametrize(("num", "den", "code"), [(25, 1, "00:00:04:00"), (30000, 1001, "00:00:03;10"), (24000, 1001, "00:00:04:04")])
def test_frames_have_the_time_code_of_their_rate(num: int, den: int, code: str) -> None:
    state, layout = film(Rate(num=num, den=den), [(100 * 1_000_000 * den // num + 10, None), (1_000_000, None)])
    picture = read(state, layout).tracks[0]
    second = picture[1].range_in_parent().start_time
    assert second.value == 100
    assert otio.opentime.to_timecode(second) == code


def test_a_film_without_music_has_an_empty_music_track() -> None:
    state, layout = film(Rate(num=30, den=1), [(1_000_000, None)], music=False)
    assert len(read(state, layout).tracks[2]) == 0


def test_music_lasts_as_long_as_the_film() -> None:
    state, layout = film(Rate(num=30000, den=1001), odd_shots(50))
    (music,) = read(state, layout).tracks[2]
    assert music.duration().value == layout.total_frames
