"""Which films are kin, which split they get, and what stays when projects are added."""

from __future__ import annotations

import io
import json
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from evaluation.fingerprints import Print, picture_code, pictures_shared, sound_codes, sound_shared, text_shared
from evaluation.shingles import shingles, signature
from materialize.config import MaterializeConfig
from materialize.kinship import Kin, decide, find_kin, leaks
from materialize.splits import split_of
from schemas.example import Split

CONFIG = MaterializeConfig(validation_share=0.3, held_out_share=0.3)
SILENCE = np.zeros(0, np.uint32)


def scene(seed: int) -> np.ndarray:
    """A picture of soft blobs, 120 by 160."""
    rng = np.random.default_rng(seed)
    small = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((160, 120), Image.Resampling.BICUBIC))


def recoded(picture: np.ndarray) -> np.ndarray:
    """The same picture smaller and as a poor JPEG."""
    buffer = io.BytesIO()
    Image.fromarray(picture).resize((96, 72)).save(buffer, "JPEG", quality=30)
    return np.asarray(Image.open(buffer).convert("RGB"))


def tune(seed: int, seconds: int) -> np.ndarray:
    """Notes of changing pitch with noise, 8 kHz."""
    rng = np.random.default_rng(seed)
    parts = []
    for _ in range(seconds * 4):
        t = np.arange(2000) / 8000
        chord = sum(np.sin(2 * np.pi * f * t) for f in rng.uniform(220, 2800, 3))
        parts.append(chord * rng.uniform(0.2, 1.0) + rng.normal(0, 0.05, 2000))
    return (np.concatenate(parts) * 6000).clip(-32768, 32767).astype(np.int16)


def make(name: str, *, pictures: tuple[int, ...] = (), sound: np.ndarray = SILENCE, text: str = "") -> Print:
    grams = shingles(text, 3)
    return Print(name, pictures, sound, signature(grams), len(grams))


def prose(seed: int, words: int = 300) -> str:
    rng = Random(seed)  # noqa: S311
    return " ".join(f"w{rng.randrange(2000)}" for _ in range(words))


def test_a_recoded_picture_keeps_its_code_and_another_does_not() -> None:
    codes = [picture_code(scene(i)) for i in range(5)]
    again = [picture_code(recoded(scene(i))) for i in range(5)]
    assert all(a is not None and b is not None for a, b in zip(codes, again, strict=True))
    a, b = make("a", pictures=tuple(c for c in codes if c)), make("b", pictures=tuple(c for c in again if c))
    other = make("c", pictures=tuple(c for i in range(50, 55) if (c := picture_code(scene(i)))))
    assert (pictures_shared(a, b), pictures_shared(a, other)) == (1.0, 0.0)


def test_a_flat_picture_says_nothing() -> None:
    assert picture_code(np.full((90, 120, 3), 17, np.uint8)) is None


def test_sound_is_found_at_another_offset_rate_of_gain_and_with_noise() -> None:
    whole = tune(1, 40)
    noise = np.random.default_rng(9).normal(0, 200, len(whole) - 8 * 8000 - 371)
    part = (whole[8 * 8000 + 371 :] * 0.4 + noise).astype(np.int16)
    a, b, c = make("a", sound=sound_codes(whole)), make("b", sound=sound_codes(part)), make("c", sound=sound_codes(tune(2, 40)))
    assert sound_shared(a, b) > 0.8
    assert sound_shared(a, c) < 0.2


@pytest.mark.parametrize("samples", [0, 100, 7199])
def test_sound_of_under_a_second_has_no_code(samples: int) -> None:
    assert len(sound_codes(np.zeros(samples, np.int16))) == 0


def test_an_excerpt_shares_most_of_its_narration() -> None:
    whole = prose(1)
    a, b = make("a", text=whole), make("b", text=" ".join(whole.split()[50:200]))
    assert text_shared(a, b) > 0.8
    assert text_shared(a, make("c", text=prose(2))) < 0.1


def test_a_print_survives_its_row() -> None:
    p = make("a", pictures=(1, 2**64 - 1), sound=sound_codes(tune(3, 3)), text=prose(4))
    back = Print.of_row(p.row())
    assert (back.project_id, back.pictures, back.grams) == (p.project_id, p.pictures, p.grams)
    assert (back.sound == p.sound).all()
    assert back.text is not None
    assert (back.text == p.text).all()
    assert Print.of_row(make("b").row()).text is None


@pytest.mark.parametrize("how", ["picture", "sound", "text"])
def test_kin_are_found_by_each_of_the_three_alone(how: str) -> None:
    pictures = tuple(c for i in range(6) if (c := picture_code(scene(i))))
    again = tuple(c for i in range(6) if (c := picture_code(recoded(scene(i)))))
    whole = tune(1, 20)
    pairs = {
        "picture": (make("a", pictures=pictures), make("b", pictures=again)),
        "sound": (make("a", sound=sound_codes(whole)), make("b", sound=sound_codes(whole[4000:]))),
        "text": (make("a", text=prose(1)), make("b", text=prose(1) + " and more")),
    }
    strangers = [
        make(f"x{i}", text=prose(i + 10), sound=sound_codes(tune(i + 10, 12)), pictures=(picture_code(scene(i + 60)) or 0,))
        for i in range(4)
    ]
    (kin,) = find_kin([*pairs[how], *strangers], CONFIG)
    assert (kin.first, kin.second) == ("a", "b")
    assert {"picture": kin.picture, "sound": kin.sound, "text": kin.text}[how] > 0.5


def kin(a: str, b: str) -> Kin:
    return Kin(*sorted((a, b)), 1.0, 0.0, 0.0)


NAMES = [f"prj_{i:02d}" for i in range(12)]


def test_projects_without_kin_have_the_split_of_their_own_hash() -> None:
    decided = decide(NAMES, [], {}, CONFIG)
    assert {d.project_id: d.split for d in decided} == {p: split_of(p, CONFIG) for p in NAMES}
    assert [d.group_id for d in decided] == NAMES


def test_kin_share_a_split_through_a_chain_of_likeness() -> None:
    decided = {d.project_id: d for d in decide(NAMES, [kin("prj_03", "prj_07"), kin("prj_07", "prj_11")], {}, CONFIG)}
    assert {decided[p].group_id for p in ("prj_03", "prj_07", "prj_11")} == {"prj_03"}
    assert len({decided[p].split for p in ("prj_03", "prj_07", "prj_11")}) == 1


def test_a_project_between_two_splits_goes_where_nothing_is_trained_on_and_the_pair_is_told() -> None:
    before = {"prj_01": (Split.TRAIN, "prj_01"), "prj_02": (Split.HELD_OUT, "prj_02")}
    pairs = [kin("prj_01", "prj_03"), kin("prj_02", "prj_03")]
    decided = {d.project_id: d.split for d in decide(NAMES[:4], pairs, before, CONFIG)}
    assert decided["prj_03"] is Split.HELD_OUT
    assert leaks(pairs, decided) == (pairs[0],)


def test_a_row_names_the_kin_and_what_is_shared() -> None:
    row = decide(NAMES[:2], [Kin("prj_00", "prj_01", 0.75, 0.0, 0.1234)], {}, CONFIG)[1].row()
    assert json.loads(row["kin_json"]) == [{"project_id": "prj_00", "picture": 0.75, "sound": 0.0, "text": 0.123}]


edges = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(lambda e: e[0] != e[1]), max_size=10)


@given(edges, edges, st.integers(1, len(NAMES)))
def test_nothing_moves_when_projects_are_added(old: list[tuple[str, str]], new: list[tuple[str, str]], cut: int) -> None:
    there = NAMES[:cut]
    first = {d.project_id: (d.split, d.group_id) for d in decide(there, [kin(*e) for e in old if set(e) <= set(there)], {}, CONFIG)}
    later = {d.project_id: (d.split, d.group_id) for d in decide(NAMES, [kin(*e) for e in (*old, *new)], first, CONFIG)}
    assert {p: later[p] for p in there} == first


@given(edges)
def test_kin_that_come_together_lie_together(pairs: list[tuple[str, str]]) -> None:
    decided = {d.project_id: d.split.value for d in decide(NAMES, [kin(*e) for e in pairs], {}, CONFIG)}
    assert leaks([kin(*e) for e in pairs], decided) == ()
