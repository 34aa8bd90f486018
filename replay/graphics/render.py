"""Draws card projects in a headless browser inside the sandbox, as clips of the house profile or as stills.

Owns the browser's life and the encoder's command. Several cards share one browser; a card's bytes depend on the card alone. Only
pictures that move are drawn, the last one is held. The page is served from memory, runs no script and reaches neither files nor network
(``draw.mjs``); the browser runs without its own sandbox, so ours is the only one and never optional.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from media.assets import asset
from media.command import MIB, Command, Limits, Sandbox
from media.ffmpeg import TO_HOUSE_COLOUR, house_video, last_words, tool
from replay.encoder import ffmpeg_version
from replay.graphics.fonts import FAMILIES
from replay.graphics.pack import PackTemplate
from replay.graphics.project import CardProject
from schemas.canonical import sha256_bytes
from schemas.errors import ToolFailed
from schemas.time import Rate

CRF = 14
"""Graphics are encoded once more in the shot's render, so they are kept near to lossless here."""
JPEG_QUALITY = 95
"""Of the pictures on their way from the browser to the encoder."""
IN_ONE_BROWSER = 8
"""Cards drawn before the browser is started afresh."""
SAFE = 0.04
"""Share of each side of a full frame that stays free of text."""

LIMITS = Limits(
    wall_s=240, cpu_s=400, data_bytes=3072 * MIB, tree_bytes=3072 * MIB, tmp_bytes=2048 * MIB, file_bytes=512 * MIB, open_files=4096
)

_DRAW = (Path(__file__).parent / "draw.mjs").read_bytes()
_VERSIONS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class TextPlace:
    """Where a slot's text stands in the finished graphic, in pixels of the graphic."""

    slot: str
    text: str
    left: float
    top: float
    right: float
    bottom: float
    lines: int
    size_px: float
    weight: int
    cut: tuple[str, ...]
    """Elements that cut it off."""

    def meets(self, other: TextPlace) -> bool:
        """The two overlap by more than the leading of a line."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 1 and down > 0.25 * min(self.size_px, other.size_px)


@dataclass(frozen=True, slots=True)
class Drawing:
    """What was drawn of one project."""

    clip: Path | None
    stills: tuple[Path, ...]
    places: tuple[TextPlace, ...]
    refused: tuple[str, ...]
    """Addresses that the page asked for and did not get."""
    drawn: int
    """Pictures that the browser made for the clip."""
    elements: int
    """Elements of the page when it was drawn."""
    title: str
    """The page's title when it was drawn."""


def font_folders() -> dict[str, Path]:
    """Family name to the folder of its font package. Raises EngineMissing."""
    return dict(zip(FAMILIES, (asset("fonts-inter").parent, asset("fonts-noto-sc").parent), strict=True))


def draw_clips(projects: Sequence[tuple[CardProject, int]], rate: Rate, sandbox: Sandbox, workdir: Path) -> list[Drawing]:
    """Draw projects as clips of the house profile, picture only.

    Args:
        projects: each with the length of its template's animation in µs; a clip has exactly ``rate.frame_at`` of it frames.
        rate: frame rate of the film.
        workdir: an empty folder; gets the clips.

    Raises:
        EngineMissing: the browser, Node or a font is not installed.
        ToolFailed: the browser or the encoder failed.
        LimitExceeded, OutputRejected, SandboxUnavailable: as the sandbox.
    """
    out: list[Drawing] = []
    for first in range(0, len(projects), IN_ONE_BROWSER):
        part = projects[first : first + IN_ONE_BROWSER]
        cards = [_card(f"c{first + i}", project, rate=rate, frames=rate.frame_at(us)) for i, (project, us) in enumerate(part)]
        out += _draw(cards, [project for project, _ in part], sandbox, workdir / f"part{first}")
    return out


def draw_stills(projects: Sequence[CardProject], sandbox: Sandbox, workdir: Path, at_us: Sequence[int] = (3_600_000_000,)) -> list[Drawing]:
    """Draw projects as PNG stills at the given times; a time after the animation shows its end. Raises as :func:`draw_clips`."""
    out: list[Drawing] = []
    for first in range(0, len(projects), 4 * IN_ONE_BROWSER):
        part = projects[first : first + 4 * IN_ONE_BROWSER]
        cards = [_card(f"c{first + i}", project, stills=[us / 1000 for us in at_us]) for i, project in enumerate(part)]
        out += _draw(cards, part, sandbox, workdir / f"part{first}")
    return out


def faults(drawing: Drawing, entry: PackTemplate, size: tuple[int, int]) -> tuple[tuple[str, str], ...]:
    """What is wrong with the texts of a drawing: pairs of slot and reason. Empty if every text can be read whole.

    Args:
        size: width and height of the graphic in pixels.
    """
    margin = SAFE if entry.band is None else 0.0
    width, height = size
    left, right, top, bottom = width * margin, width * (1 - margin), height * margin, height * (1 - margin)
    found: list[tuple[str, str]] = []
    for i, place in enumerate(drawing.places):
        if place.cut:
            found.append((place.slot, f"cut off by {', '.join(place.cut)}"))
        if place.left < left or place.right > right or place.top < top or place.bottom > bottom:
            found.append((place.slot, "beyond the safe area"))
        found += [(place.slot, f"over the text of {other.slot}") for other in drawing.places[i + 1 :] if place.meets(other)]
    return tuple(found)


def renderer_version(sandbox: Sandbox) -> str:
    """Versions of everything that decides a graphic's pixels besides the project: driver, browser, encoder. Asked once a process."""
    if sandbox.name not in _VERSIONS:
        browser = asset("browser")
        argv = ("/bin/sh", "-c", 'exec "$1" --version', "version", f"/opt/browser/{browser.name}")
        with tempfile.TemporaryDirectory() as folder:
            done = sandbox.run(Command(argv=argv, folders={"/opt/browser": browser.parent}, limits=LIMITS), Path(folder))
        if done.returncode != 0:
            raise ToolFailed("renderer_version", f"the browser does not tell its version: {last_words(done.stderr)}")
        browser_version = done.stdout.decode("utf-8", "replace").strip()[:120]
        _VERSIONS[sandbox.name] = f"draw {sha256_bytes(_DRAW)[:12]}; {browser_version}; {ffmpeg_version(sandbox)}; {_fonts_version()}"
    return _VERSIONS[sandbox.name]


@lru_cache(maxsize=1)
def _fonts_version() -> str:
    packages = [json.loads((folder / "package.json").read_text(encoding="utf-8")) for folder in font_folders().values()]
    return ", ".join(f"{p['name']} {p['version']}" for p in packages)


def _card(name: str, project: CardProject, *, rate: Rate | None = None, frames: int = 0, stills: Sequence[float] = ()) -> dict[str, Any]:
    return {
        "name": name,
        "width": project.width,
        "height": project.height,
        "texts": json.loads(project.texts["slots.json"]),
        "files": ["index.html", *project.fonts],
        "stills": list(stills),
        "frames": frames,
        "rate": None if rate is None else [rate.num, rate.den],
        "encode": None if rate is None else _encode(rate, frames),
    }


def _encode(rate: Rate, frames: int) -> list[str]:
    return [
        "-nostdin", "-hide_banner", "-v", "error", "-threads", "1", "-f", "image2pipe", "-framerate", f"{rate.num}/{rate.den}",
        "-c:v", "mjpeg", "-i", "pipe:0", "-filter_threads", "1", "-vf", f"{TO_HOUSE_COLOUR},tpad=stop_mode=clone:stop=-1",
        "-frames:v", str(frames), "-an", *house_video(crf=CRF),
    ]  # fmt: skip


def _draw(cards: Sequence[dict[str, Any]], projects: Sequence[CardProject], sandbox: Sandbox, workdir: Path) -> list[Drawing]:
    workdir.mkdir()
    browser = asset("browser")
    program, mounted = tool("ffmpeg")
    texts: dict[str, bytes] = {"draw.mjs": _DRAW}
    inputs: dict[str, Path] = {}
    names: dict[str, tuple[str, ...]] = {}
    for card, project in zip(cards, projects, strict=True):
        texts[f"{card['name']}/index.html"] = project.texts["index.html"]
        inputs |= {f"{card['name']}/{name}": path for name, path in project.fonts.items()}
        clip = (f"{card['name']}.mp4",) if card["encode"] else ()
        names[card["name"]] = clip + tuple(f"{card['name']}-{n}.png" for n in range(len(card["stills"])))
    texts["job.json"] = json.dumps({"quality": JPEG_QUALITY, "cards": list(cards), "fonts": list(inputs)}).encode()
    parts = ("/in/draw.mjs", "/in/job.json", "/out/", "/opt/node_modules", f"/opt/browser/{browser.name}", program)
    done = sandbox.run(
        Command(
            argv=("/opt/node/node", *parts, *(f"/in/{name}" for name in inputs)),
            texts=texts,
            inputs=inputs,
            folders={
                "/opt/node": asset("node").parent,
                "/opt/node_modules": asset("hyperframes"),
                "/opt/browser": browser.parent,
                **mounted,
            },
            outputs=("report.json", *(name for group in names.values() for name in group)),
            limits=LIMITS,
        ),
        workdir,
    )
    if done.returncode != 0:
        raise ToolFailed("card_failed", f"drawing the graphics ended with {done.returncode}: {last_words(done.stderr, 600)}")
    report: dict[str, Any] = json.loads(done.outputs["report.json"].read_text(encoding="utf-8"))
    return [_drawing(row, names[row["name"]], done.outputs) for row in report["cards"]]


def _drawing(row: Mapping[str, Any], names: Sequence[str], files: Mapping[str, Path]) -> Drawing:
    return Drawing(
        clip=next((files[name] for name in names if name.endswith(".mp4")), None),
        stills=tuple(files[name] for name in names if name.endswith(".png")),
        places=tuple(
            TextPlace(
                b["slot"], b["text"], b["left"], b["top"], b["right"], b["bottom"], b["lines"], b["size"], b["weight"], tuple(b["cut"])
            )
            for b in row["boxes"]
        ),
        refused=tuple(row["refused"]),
        drawn=row["drawn"],
        elements=row["elements"],
        title=row["title"],
    )
