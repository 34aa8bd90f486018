"""An image-text model in a local folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from media.ffmpeg import house_video
from media.sandbox import open_sandbox
from replay.sight import open_sight
from replay.tools import retrieve_visuals
from schemas.artifact import ArtifactKind
from schemas.errors import ConfigInvalid
from schemas.state import PoolClip
from tests.replay.onnx_file import image_text_folder
from tests.replay.studio import RATE, Studio


def plain(colour: tuple[int, int, int], size: tuple[int, int] = (40, 90)) -> np.ndarray:
    return np.full((*size, 3), colour, np.uint8)


@pytest.mark.parametrize("below", ["onnx", "."])
def test_pictures_and_words_share_a_space(tmp_path: Path, below: str) -> None:
    model = open_sight(str(image_text_folder(tmp_path / "clip", below=below)))
    pictures = model.encode_images([plain((250, 10, 10)), plain((10, 250, 10)), plain((10, 10, 250), (90, 40))])
    words = model.encode_texts(["Blue", "a red car", "green green"])
    assert (words @ pictures.T).argmax(axis=1).tolist() == [2, 0, 1]
    assert np.linalg.norm(pictures, axis=1).tolist() == pytest.approx([1, 1, 1], abs=1e-5)
    assert model.name.startswith("clip ")


def test_equal_folders_have_equal_names_and_vectors(tmp_path: Path) -> None:
    one, two = (open_sight(str(image_text_folder(tmp_path / n / "clip"))) for n in "ab")
    assert one.name == two.name
    assert np.array_equal(one.encode_texts(["red"]), two.encode_texts(["red"]))


def test_a_long_text_and_an_empty_one_have_a_vector(tmp_path: Path) -> None:
    model = open_sight(str(image_text_folder(tmp_path / "clip")))
    assert model.encode_texts(["red " * 5000, ""]).shape == (2, 3)


@pytest.mark.parametrize("gone", ["onnx/text_model.onnx", "onnx/vision_model.onnx", "tokenizer.json", "preprocessor_config.json"])
def test_a_folder_without_a_part_is_a_wrong_setting(tmp_path: Path, gone: str) -> None:
    folder = image_text_folder(tmp_path / "clip")
    (folder / gone).rename(tmp_path / "away")
    with pytest.raises(ConfigInvalid) as caught:
        open_sight(str(folder))
    assert Path(gone).name in caught.value.message


@pytest.mark.parametrize("config", ["[]", "{", '{"size": {}}', "{}"])
def test_a_preparation_that_makes_no_sense_is_a_wrong_setting(tmp_path: Path, config: str) -> None:
    folder = image_text_folder(tmp_path / "clip")
    (folder / "preprocessor_config.json").write_text(config)
    with pytest.raises(ConfigInvalid):
        open_sight(str(folder))


@pytest.mark.parametrize(
    ("size", "crop", "expected"), [(32, 24, (24, 24)), ({"height": 20, "width": 30}, None, (20, 30)), ({"shortest_edge": 16}, 16, (16, 16))]
)
def test_pictures_are_prepared_as_the_folder_says(tmp_path: Path, size: object, crop: int | None, expected: tuple[int, int]) -> None:
    folder = image_text_folder(tmp_path / "clip")
    config = {"size": size} | ({"crop_size": crop, "do_center_crop": True} if crop else {})
    (folder / "preprocessor_config.json").write_text(json.dumps(config))
    prepared = open_sight(str(folder))._prepare(plain((255, 0, 0), (60, 110)))
    assert prepared.shape == (1, 3, *expected)
    assert (prepared[0, 0].min(), prepared[0, 2].max()) == (1.0, -1.0)


def coloured(studio: Studio, colour: str, text: str) -> PoolClip:
    """A clip of one colour with a text that says nothing of it."""
    source = ("-f", "lavfi", "-i", f"color={colour}:s=160x90:r=30", "-frames:v", "60")
    file = studio.ffmpeg("clip.mp4", *source, "-an", *house_video(preset="ultrafast"), "/out/clip.mp4")
    ref = studio.store.put_file(file, ArtifactKind.CLIP, "video/mp4")
    return PoolClip(
        clip_id=f"clip_{ref.sha256[:12]}", ref=ref, text=text, duration_us=2_000_000, width=160, height=90, rate=RATE, licence="CC0-1.0",
        origin="source",
    )  # fmt: skip


def test_a_clip_is_found_by_its_picture_where_the_texts_say_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    studio = Studio(tmp_path, open_sandbox())
    studio.pool = {c: coloured(studio, c, "something") for c in ("0xd01010", "0x10b010", "0x1010d0")}
    state = studio.planned([("One thing.", "the blue one", 1500), ("Other thing.", "the red one", 1500)])
    asked = {"queries": [{"shot_id": "s001", "query": "the blue one"}, {"shot_id": "s002", "query": "the red one"}]}
    model = open_sight(str(image_text_folder(tmp_path / "clip")))
    monkeypatch.setattr(studio, "engines", studio.engines.__class__(**{**_fields(studio.engines), "sight": model}))
    done, product = studio.run(retrieve_visuals.TOOL, state, {"shots": "all"}, (asked,))
    ids = {name: clip.clip_id for name, clip in studio.pool.items()}
    assert [done.shots[s].asset.clip_id for s in ("s001", "s002")] == [ids["0x1010d0"], ids["0xd01010"]]  # type: ignore[union-attr]
    assert "picture 1.00" in product.results["clips"][0]["why"]
    monkeypatch.setattr(model, "encode_images", lambda _images: pytest.fail("a picture was looked at twice"))
    again, _ = studio.run(retrieve_visuals.TOOL, state, {"shots": "all"}, (asked,))
    assert again.shots == done.shots
    assert studio.engines.versions()["sight"] == model.name


def _fields(engines: object) -> dict[str, object]:
    return {name: getattr(engines, name) for name in engines.__dataclass_fields__}  # type: ignore[attr-defined]
