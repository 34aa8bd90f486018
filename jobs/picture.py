"""One picture of a project: every shot of the source beside the shot that was produced for it, with what is said over both."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from media.assets import asset
from media.command import Sandbox
from media.frames import grab_frames
from media.images import decode_image
from media.probe import probe
from schemas.errors import EngineMissing
from schemas.state import ProductionState, TimelineItem
from schemas.storyboard import BoardShot, Storyboard
from schemas.trajectory import Trajectory
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore

COLUMNS = 3
THUMB_W = 232
PAD = 18
TEXT_H = 78
MAX_SHOTS = 60
INK, SOFT, PAPER, CARD, ACCENT = (24, 28, 36), (104, 112, 128), (246, 247, 249), (255, 255, 255), (38, 99, 235)

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def contact_sheet(board: Storyboard, trajectory: Trajectory | None, store: ArtifactStore, sandbox: Sandbox) -> bytes:
    """A PNG with one cell a shot: source frame, produced frame, narration. At most 60 shots, evenly chosen when there are more."""
    produced = produced_frames(board, trajectory, store, sandbox)
    shots = _chosen(board.shots)
    thumb_h = _thumb_height(board)
    cell_w, cell_h = 2 * THUMB_W + 3 * PAD, thumb_h + TEXT_H + 2 * PAD
    rows = -(-len(shots) // COLUMNS)
    width, head = COLUMNS * cell_w + (COLUMNS + 1) * PAD, 118
    sheet = Image.new("RGB", (width, head + rows * (cell_h + PAD) + 58), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text(
        (PAD + 4, 22),
        _fit(draw, board.title, _font(32, bold=True, text=board.title), width - 80),
        INK,
        _font(32, bold=True, text=board.title),
    )
    draw.text((PAD + 4, 70), _subtitle(board, trajectory), SOFT, _font(18))
    for n, shot in enumerate(shots):
        x = PAD + (n % COLUMNS) * (cell_w + PAD)
        y = head + (n // COLUMNS) * (cell_h + PAD)
        _cell(sheet, draw, (x, y, cell_w, cell_h), shot, store, produced, thumb_h)
    foot = f"left: the source; right: what the tools produced.   {board.source.attribution or ''}"
    draw.text((PAD + 4, sheet.height - 42), _fit(draw, foot, _font(15, text=foot), width - 60), SOFT, _font(15, text=foot))
    out = io.BytesIO()
    sheet.save(out, "PNG", optimize=False)
    return out.getvalue()


def produced_frames(
    board: Storyboard, trajectory: Trajectory | None, store: ArtifactStore, sandbox: Sandbox
) -> dict[int, NDArray[np.uint8]]:
    """For each shot of the source a frame of what was produced for it, by shot index; empty if nothing was delivered."""
    if trajectory is None or trajectory.video is None:
        return {}
    state = SnapshotStore(store).load(trajectory.last_snapshot)
    rate = state.film.task.frame_rate
    standing = {board_shot: item for item, board_shot in _matched(board, state)}
    order = sorted(standing)
    times = [rate.us_at(standing[n].start_frame + standing[n].frames // 2) for n in order]
    path = store.path(trajectory.video.sha256)
    frames = grab_frames(path, probe(path, sandbox), sandbox, times, 640)
    return dict(zip(order, frames, strict=True))


def _matched(board: Storyboard, state: ProductionState) -> list[tuple[TimelineItem, int]]:
    """Timeline items with the source shot each stands for, by script range; of several for one shot the longest comes last.

    The plan may divide a source shot. A shot without narration stands for the next unmatched source shot without any.
    """
    out: list[tuple[TimelineItem, int]] = []
    spans = [(s.script_start, s.script_end) for s in board.shots]
    silent = [n for n, s in enumerate(board.shots) if not s.narration.strip()]
    for item in state.film.timeline.items if state.film.timeline else ():
        planned = state.shots[item.shot_id].planned
        shared = [min(planned.script_end, b) - max(planned.script_start, a) for a, b in spans]
        if planned.text.strip() and shared and max(shared) > 0:
            out.append((item, shared.index(max(shared))))
        elif silent:
            out.append((item, silent.pop(0)))
    return sorted(out, key=lambda pair: (pair[1], pair[0].frames))


def _cell(
    sheet: Image.Image,
    draw: ImageDraw.ImageDraw,
    box: tuple[int, int, int, int],
    shot: BoardShot,
    store: ArtifactStore,
    produced: dict[int, NDArray[np.uint8]],
    thumb_h: int,
) -> None:
    x, y, w, h = box
    draw.rounded_rectangle((x, y, x + w, y + h), 10, CARD)
    frame = shot.evidence.key_frames[0] if shot.evidence.key_frames else None
    left = decode_image(store.read(frame.sha256)) if frame is not None else None
    right = produced.get(shot.shot.index)
    for i, picture in enumerate((left, right)):
        px = x + PAD + i * (THUMB_W + PAD)
        draw.rectangle((px, y + PAD, px + THUMB_W, y + PAD + thumb_h), (228, 231, 236))
        if picture is not None:
            thumb = Image.fromarray(picture)
            thumb.thumbnail((THUMB_W, thumb_h), Image.Resampling.LANCZOS)
            sheet.paste(thumb, (px + (THUMB_W - thumb.width) // 2, y + PAD + (thumb_h - thumb.height) // 2))
    s = shot.shot
    label = f"{s.index + 1}  {_clock(s.start_us)}  {(s.end_us - s.start_us) / 1e6:.1f} s  {s.transition_in.value}"
    if shot.spotlight is not None:
        label += f"  {shot.spotlight.kind.value}"
    ty = y + PAD + thumb_h + 8
    draw.text((x + PAD, ty), label, ACCENT, _font(14, bold=True))
    text = shot.narration or "(no narration)"
    font = _font(15, text=text)
    for n, line in enumerate(_wrap(draw, text, font, w - 2 * PAD, 2)):
        draw.text((x + PAD, ty + 22 + n * 20), line, INK, font)


def _chosen(shots: tuple[BoardShot, ...]) -> tuple[BoardShot, ...]:
    if len(shots) <= MAX_SHOTS:
        return shots
    return tuple(shots[i * len(shots) // MAX_SHOTS] for i in range(MAX_SHOTS))


def _thumb_height(board: Storyboard) -> int:
    video = board.media.video
    if video is None:
        return THUMB_W * 9 // 16
    return max(80, min(THUMB_W * 16 // 9, THUMB_W * video.display_height // video.display_width))


def _subtitle(board: Storyboard, trajectory: Trajectory | None) -> str:
    parts = [f"{len(board.shots)} shots", f"{len(board.sentences)} sentences", f"{len(board.words)} words", board.language]
    if trajectory is not None:
        refused = sum(1 for c in trajectory.calls if c.observation.blockers)
        parts += [f"{len(trajectory.calls)} calls", f"{refused} refused", f"{len(trajectory.repairs)} repairs", trajectory.outcome.value]
    return "    ".join(parts)


def _clock(us: int) -> str:
    return f"{us // 60_000_000}:{us // 1_000_000 % 60:02d}"


def _fit(draw: ImageDraw.ImageDraw, text: str, font: Font, width: int) -> str:
    return _wrap(draw, text, font, width, 1)[0] if text else ""


def _wrap(draw: ImageDraw.ImageDraw, text: str, font: Font, width: int, lines: int) -> list[str]:
    out: list[str] = []
    rest = " ".join(text.split())
    while rest and len(out) < lines:
        cut = len(rest)
        while cut > 1 and draw.textlength(rest[:cut], font) > width:
            step = rest.rfind(" ", 0, cut - 1)
            cut = step if step > 0 and cut - step < 25 else cut - 1
        out.append(rest[:cut].strip())
        rest = rest[cut:].strip()
    if rest and out:
        last = out[-1]
        while last and draw.textlength(last + "…", font) > width:
            last = last[:-1]
        out[-1] = last + "…"
    return out or [""]


def _font(size: int, *, bold: bool = False, text: str = "") -> Font:
    wide = any(ord(c) > 0x2E7F for c in text)
    return _load(size, bold, wide)


@lru_cache(maxsize=32)
def _load(size: int, bold: bool, wide: bool) -> Font:
    weight = 700 if bold else 400
    name = f"noto-sans-sc-chinese-simplified-{weight}-normal.woff2" if wide else f"inter-latin-{weight}-normal.woff2"
    try:
        folder = asset("fonts-noto-sc" if wide else "fonts-inter")
    except EngineMissing:
        return ImageFont.load_default(size)
    found = next((p for p in (folder / name, folder / "files" / name) if p.is_file()), None)
    return ImageFont.truetype(str(found), size) if found is not None else ImageFont.load_default(size)


def jpeg_data(picture: NDArray[np.uint8], width: int) -> bytes:
    """A small JPEG of a frame, for pages."""
    image = Image.fromarray(picture)
    image.thumbnail((width, width * 2), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=82)
    return out.getvalue()
