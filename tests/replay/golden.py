"""Reference pictures of every template in every shape and language: one small sheet a template under tests/golden/templates.

    python -m tests.replay.golden            # draws them again and shows which differ
    python -m tests.replay.golden --write    # writes them anew, after you have looked at the change

A sheet holds eight cells: 16:9, 4:3, 9:16 and 1:1, each in English and in Chinese.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from media.command import Sandbox
from media.sandbox import open_sandbox
from replay.graphics.pack import PackTemplate, load_pack
from replay.graphics.project import CardProject, build_project
from replay.graphics.render import Drawing, draw_stills, font_folders
from replay.graphics.theme import THEMES, Theme
from tests.replay.cards import CHINESE, ENGLISH

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "templates"
CANVASES = {"16:9": (640, 360), "4:3": (480, 360), "9:16": (360, 640), "1:1": (360, 360)}
CELL = 180
"""Short side of the canvas in a cell, pixels."""
MEAN_OFF, BLOCK_OFF, BLOCK = 4.0, 26.0, 10
"""Largest allowed difference of a cell: mean over all pixels, and mean over any block of 10 x 10 pixels, of 255. The sheets are
compressed, which alone gives up to 2.6 and 17."""

Picture = NDArray[np.uint8]


@dataclass(frozen=True)
class Cell:
    """One picture of a sheet."""

    template: str
    shape: str
    language: str
    entry: PackTemplate
    project: CardProject
    drawing: Drawing
    picture: Picture
    """Scaled to the size of a cell."""


def theme_for(name: str) -> Theme:
    """Every theme takes its turn."""
    return list(THEMES.values())[sorted(load_pack()).index(name) % len(THEMES)]


def project_for(name: str, shape: str, language: str, texts: dict[str, str] | None = None) -> CardProject:
    """The project of one cell."""
    width, height = CANVASES[shape]
    fill = texts or (CHINESE if language == "zh" else ENGLISH)[name]
    return build_project(
        load_pack()[name], fill, width=width, height=height, language=language, font_folders=font_folders(), theme=theme_for(name)
    )


def draw_cells(names: list[str], sandbox: Sandbox, folder: Path) -> list[Cell]:
    """Draw the cells of some templates, in the order of their sheets."""
    wanted = [(name, shape, language) for name in names for shape in CANVASES for language in ("en", "zh")]
    projects = [project_for(*cell) for cell in wanted]
    drawings = draw_stills(projects, sandbox, folder)
    return [
        Cell(*cell, load_pack()[cell[0]], project, drawing, small(drawing.stills[0]))
        for cell, project, drawing in zip(wanted, projects, drawings, strict=True)
    ]


def small(file: Path) -> Picture:
    """A still as a cell shows it."""
    with Image.open(file) as image:
        size = (max(1, image.width * CELL // 360), max(1, image.height * CELL // 360))
        return np.asarray(image.convert("RGB").resize(size, Image.Resampling.BOX))


def differs(picture: Picture, reference: Picture) -> str | None:
    """In what a picture differs from its reference; None if it is the same to the eye."""
    if picture.shape != reference.shape:
        return f"size {picture.shape[1]}x{picture.shape[0]}, expected {reference.shape[1]}x{reference.shape[0]}"
    off = np.abs(picture.astype(np.int16) - reference.astype(np.int16)).mean(axis=2)
    rows, columns = off.shape[0] // BLOCK * BLOCK, off.shape[1] // BLOCK * BLOCK
    blocks = off[:rows, :columns].reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK).mean(axis=(1, 3))
    if off.mean() > MEAN_OFF or blocks.max() > BLOCK_OFF:
        y, x = np.unravel_index(int(blocks.argmax()), blocks.shape)
        return f"mean {off.mean():.1f}, worst block {blocks.max():.0f} at {x * BLOCK},{y * BLOCK}"
    return None


def join(pictures: list[Picture]) -> Picture:
    """A sheet: cells from left to right, 4 pixels apart."""
    height = max(p.shape[0] for p in pictures)
    sheet = np.full((height, sum(p.shape[1] + 4 for p in pictures) - 4, 3), 96, np.uint8)
    x = 0
    for p in pictures:
        sheet[: p.shape[0], x : x + p.shape[1]] = p
        x += p.shape[1] + 4
    return sheet


def split(sheet: Picture, shapes: list[tuple[int, ...]]) -> list[Picture]:
    """The cells of a sheet, given their shapes. A sheet that is too small gives cells that are too small."""
    out, x = [], 0
    for shape in shapes:
        out.append(sheet[: shape[0], x : x + shape[1]])
        x += shape[1] + 4
    return out


def reference(name: str, shapes: list[tuple[int, ...]]) -> list[Picture]:
    """The committed cells of a template."""
    with Image.open(FOLDER / f"{name}.webp") as image:
        return split(np.asarray(image.convert("RGB")), shapes)


def main() -> int:
    """Compare, or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = options.names or sorted(load_pack())
    with tempfile.TemporaryDirectory() as folder:
        cells = draw_cells(names, open_sandbox(), Path(folder))
        bad = 0
        for name in names:
            row = [c for c in cells if c.template == name]
            if options.write:
                FOLDER.mkdir(parents=True, exist_ok=True)
                Image.fromarray(join([c.picture for c in row])).save(FOLDER / f"{name}.webp", quality=82, method=6)
                continue
            for cell, old in zip(row, reference(name, [c.picture.shape for c in row]), strict=True):
                found = differs(cell.picture, old)
                bad += found is not None
                if found:
                    print(f"{name} {cell.shape} {cell.language}: {found}")
    print(f"{len(cells)} pictures, {'written' if options.write else f'{bad} differ'}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
