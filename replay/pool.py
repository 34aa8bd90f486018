"""The source pool: clips cut from the finished film, shot by shot, and clips of the user's own.

Owns what a pool clip is: video only, house profile, at most as long as configured, with searchable text. The finished film is opened here
and nowhere else in replay; no tool ever sees it. Clips are named by content and noted in the store, so that a second run cuts nothing.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from media.command import Sandbox
from media.decoding import JUMPING
from media.ffmpeg import TO_HOUSE_COLOUR, house_video, input_options, run_ffmpeg
from media.probe import probe
from replay.config import ReplayConfig
from replay.measured import measured_video
from replay.shelf import Shelf, shown_name
from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.canonical import canonical_text
from schemas.errors import ConfigInvalid, LimitExceeded, MediaRejected, OutputRejected, PipelineError, ToolFailed
from schemas.media import MediaInfo, VideoStream
from schemas.state import PoolClip
from schemas.storyboard import BoardShot, Storyboard, Transition
from schemas.time import Rate
from storage.artifacts import ArtifactStore

PROFILE = "pool.1"
"""Version of how clips are cut; part of every clip's key."""
CRF = 18
STRAIGHT_CRF = 8
"""Quality of the copy that clips of films with a jumping clock are cut from; it is thrown away afterwards."""
GRADUAL = (Transition.DISSOLVE, Transition.FADE_BLACK, Transition.FADE_WHITE)
EARLY_US = 1_000
"""The picture shown this long after a clip's start counts as its first: time stamps are rounded to microseconds or milliseconds."""
SEEK_FROM_US = 1_000_000
"""Clips that start before this are reached by decoding from the first frame."""
SEEK_MARGIN_US = {"ogg": 10_000_000, "asf": 5_000_000, "flv": 5_000_000}
"""Containers without a dependable index: start decoding this much earlier."""
TEXT_CHARS = 600

CUTTERS = 2
"""Clips cut at once; each encodes with one thread."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Cut:
    """One clip to be cut, on the project's clock. ``said`` is what is spoken over it, ``seen`` what is on screen and in the caption."""

    start_us: int
    end_us: int
    said: str
    seen: str
    luma: float
    colour: tuple[int, int, int]

    @property
    def text(self) -> str:
        """All that can be searched."""
        return " ".join(f"{self.said} {self.seen}".split())[:TEXT_CHARS]


def cut_pool(
    storyboard: Storyboard,
    source: Path,
    *,
    sandbox: Sandbox,
    store: ArtifactStore,
    config: ReplayConfig,
    note: Note = lambda _text: None,
) -> tuple[PoolClip, ...]:
    """Cut the pool of one project.

    Args:
        source: the finished film the storyboard was recovered from.
        note: progress for a person, and which of the user's clips were refused and why.

    Returns:
        clips in film order, then the user's by name; equal clips once.

    Raises:
        ConfigInvalid: the user's folder is not there.
        ToolFailed, LimitExceeded, SandboxUnavailable, StorageFault: a clip could not be cut.
    """
    item = storyboard.source
    licence, attribution = item.licence or "unknown", item.attribution
    cuts = planned_cuts(storyboard, config)
    clips: list[PoolClip] = []
    with tempfile.TemporaryDirectory(prefix="pool-") as scratch:
        cutter = _Cutter(sandbox, store, config, Path(scratch))

        def one(cut: Cut) -> PoolClip:
            return cutter.clip(source, storyboard.media, cut, licence=licence, attribution=attribution, origin="source")

        with ThreadPoolExecutor(max_workers=CUTTERS) as workers:
            for n, clip in enumerate(workers.map(one, cuts)):
                clips.append(clip)
                if (n + 1) % 5 == 0 or n + 1 == len(cuts):
                    note(f"cut {n + 1} of {len(cuts)} clips")
        if config.retrieval.extra_folder is not None:
            clips += _extra_clips(Path(config.retrieval.extra_folder), cutter, sandbox, config, note)
    return tuple({c.clip_id: c for c in reversed(clips)}[i] for i in dict.fromkeys(c.clip_id for c in clips))


class _Cutter:
    """Cuts clips in the sandbox and remembers them in the store."""

    def __init__(self, sandbox: Sandbox, store: ArtifactStore, config: ReplayConfig, scratch: Path) -> None:
        self.sandbox, self.store, self.config, self.scratch = sandbox, store, config, scratch
        self._straightened: dict[str, tuple[Path, MediaInfo]] = {}
        self._lock = threading.Lock()

    def clip(self, path: Path, info: MediaInfo, cut: Cut, *, licence: str, attribution: str | None, origin: str) -> PoolClip:
        """One clip, cut now or earlier."""
        video = _video(info)
        width, height = _size(video.display_width, video.display_height, self.config.render.height)
        rate = Rate(num=self.config.render.frame_rate, den=1)
        frames = max(1, rate.frame_at(cut.end_us - cut.start_us))
        key = canonical_text(
            [
                "pool clip",
                PROFILE,
                info.sha256,
                [cut.start_us, frames],
                [width, height, rate.num, CRF, self.config.render.preset],
            ]
        )
        ref = self.store.recall(key)
        if ref is None:
            ref = self._make(path, info, cut, frames, (width, height))
            self.store.remember(key, ref)
        return PoolClip(
            clip_id=f"clip_{ref.sha256[:12]}",
            ref=ref,
            text=cut.text,
            duration_us=rate.us_at(frames),
            width=width,
            height=height,
            rate=rate,
            licence=licence,
            attribution=attribution,
            luma=cut.luma,
            colour=cut.colour,
            origin=origin,
        )

    def _make(self, path: Path, info: MediaInfo, cut: Cut, frames: int, size: tuple[int, int]) -> ArtifactRef:
        if info.container in JUMPING:
            path, info = self._straight(path, info, size)
        video = _video(info)
        seek, chain = _picture(info, video, cut.start_us, frames, self.config.render.frame_rate, size)
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            file = self._encode(path, info, video, (*seek,), chain, ("-frames:v", str(frames)), CRF, Path(folder))
            ref = self.store.put_file(file, ArtifactKind.CLIP, "video/mp4")
        seen = measured_video(ref, self.store, self.sandbox)
        if (seen.frames, seen.width, seen.height) != (frames, *size):
            expected = f"{frames} frames of {size[0]}x{size[1]}"
            raise ToolFailed("clip_wrong", f"a clip came out with {seen.frames} frames of {seen.width}x{seen.height}, expected {expected}")
        return ref

    def _straight(self, path: Path, info: MediaInfo, size: tuple[int, int]) -> tuple[Path, MediaInfo]:
        """The film with a clock that can be sought in: pictures and times as decoded, from the first picture on. Made once a pool."""
        with self._lock:
            return self._straightened_film(path, info, size)

    def _straightened_film(self, path: Path, info: MediaInfo, size: tuple[int, int]) -> tuple[Path, MediaInfo]:
        if info.sha256 not in self._straightened:
            folder = self.scratch / f"straight-{len(self._straightened)}"
            folder.mkdir()
            chain = f"settb=1/1000000,setpts=PTS-STARTPTS,scale={size[0]}:{size[1]},{TO_HOUSE_COLOUR}"
            clock = ("-fps_mode", "passthrough", "-enc_time_base", "1:90000", "-video_track_timescale", "90000")
            file = self._encode(path, info, _video(info), (), chain, clock, STRAIGHT_CRF, folder)
            self._straightened[info.sha256] = (file, probe(file, self.sandbox))
        return self._straightened[info.sha256]

    def _encode(
        self,
        path: Path,
        info: MediaInfo,
        video: VideoStream,
        seek: tuple[str, ...],
        chain: str,
        how: tuple[str, ...],
        crf: int,
        folder: Path,
    ) -> Path:
        done = run_ffmpeg(
            (
                *seek,
                *input_options(info.container),
                *("-i", "/in/source", "-map", f"0:{video.index}", "-an", "-sn", "-dn", "-vf", chain),
                *house_video(crf, self.config.render.preset),
                *how,
                *("-f", "mp4", "/out/clip.mp4"),
            ),
            inputs={"source": path},
            outputs=("clip.mp4",),
            sandbox=self.sandbox,
            workdir=folder,
        )
        return done.outputs["clip.mp4"]


def _video(info: MediaInfo) -> VideoStream:
    if info.video is None:
        raise ToolFailed("no_picture", "a pool can only be cut from a film with pictures")
    return info.video


def _picture(
    info: MediaInfo, video: VideoStream, start_us: int, frames: int, fps: int, size: tuple[int, int]
) -> tuple[tuple[str, ...], str]:
    """Input options and filter chain that give exactly ``frames`` pictures from a time of the project's clock on.

    Decoding starts at the key frame before (``-noaccurate_seek``), time 0 is moved to the wanted start, and ``fps`` shows at every tick
    the latest picture so far. So a clip may start in the middle of a picture's stay, and no picture before the start is shown.
    """
    wanted = start_us + EARLY_US
    if start_us < SEEK_FROM_US:
        options: tuple[str, ...] = ()
        shift = f"setpts=PTS-STARTPTS-{wanted}"
    else:
        target = video.start_us + wanted
        landing = max(0, target - SEEK_MARGIN_US.get(info.container, 0))
        options = ("-noaccurate_seek", "-seek_timestamp", "1", "-ss", _seconds(landing))
        shift = f"setpts=PTS-{target - landing}"
    return (
        options,
        f"settb=1/1000000,{shift},fps={fps}:start_time=0,tpad=stop_mode=clone:stop={frames},scale={size[0]}:{size[1]},{TO_HOUSE_COLOUR}",
    )


def planned_cuts(storyboard: Storyboard, config: ReplayConfig) -> list[Cut]:
    """Clips of the film: every shot without its gradual transitions, too short ones left out.

    A long shot is there whole and in pieces: the whole is what the editor used, the pieces are near it and wrong, so that retrieval
    is a decision. What is searched is what is said over the very stretch.
    """
    shots = storyboard.shots
    shortest = config.retrieval.clip_min_us
    ranges: list[tuple[BoardShot, int, int]] = []
    for i, shot in enumerate(shots):
        start, end = shot.shot.start_us, shot.shot.end_us
        after = shots[i + 1].shot if i + 1 < len(shots) else None
        inner_start = shot.shot.transition_end_us if shot.shot.transition_in in GRADUAL and shot.shot.transition_end_us else start
        inner_end = after.transition_start_us if after and after.transition_in in GRADUAL and after.transition_start_us else end
        if min(end, inner_end) - max(start, inner_start) >= shortest:
            start, end = max(start, inner_start), min(end, inner_end)
        ranges.append((shot, start, end))
    long_enough = [r for r in ranges if r[2] - r[1] >= shortest] or [r for r in ranges if r[2] > r[1]]
    cuts: list[Cut] = []
    for shot, start, end in long_enough:
        lines = [box.text for box in shot.evidence.text]
        parts = pieces(start, end, config.retrieval.clip_max_us, shortest)
        whole = [(start, end)] if len(parts) > 1 and end - start <= config.retrieval.whole_max_us else []
        for a, b in whole + parts:
            said = shot.narration if (a, b) == (start, end) else _said(storyboard, a, b)
            cuts.append(Cut(a, b, said, " ".join([*lines, shot.evidence.caption]), shot.evidence.luma, shot.evidence.colour))
    return cuts


def _said(storyboard: Storyboard, start_us: int, end_us: int) -> str:
    """The words whose middle lies in a stretch of the film."""
    words = [w for w in storyboard.words if start_us <= (w.start_us + w.end_us) // 2 < end_us]
    return "".join(w.text + (" " if w.space_after else "") for w in words).strip()


def pieces(start_us: int, end_us: int, longest_us: int, shortest_us: int) -> list[tuple[int, int]]:
    """Cut a range into equal pieces of at most ``longest_us``; fewer when they would become shorter than ``shortest_us``."""
    length = end_us - start_us
    count = max(1, -(-length // longest_us))
    while count > 1 and length // count < shortest_us:
        count -= 1
    borders = [start_us + length * i // count for i in range(count + 1)]
    return list(pairwise(borders))


def _extra_clips(folder: Path, cutter: _Cutter, sandbox: Sandbox, config: ReplayConfig, note: Note) -> list[PoolClip]:
    """The user's clips, by name. What cannot be used is told with its reason and never loses the rest."""
    if not folder.is_dir():
        raise ConfigInvalid("extra_folder", f"replay.retrieval.extra_folder names no folder: {folder}", "name an existing folder")
    out: list[PoolClip] = []
    shelf = Shelf(folder)
    for path in shelf.clips():
        try:
            about = shelf.about(path)
            info = probe(path, sandbox)
            if info.video is None or info.video.duration_us <= 0:
                raise MediaRejected("no_video", "it holds no pictures")
            parts = pieces(0, info.video.duration_us, config.retrieval.clip_max_us, config.retrieval.clip_min_us)
            cuts = [Cut(a, b, "", about.text, 0.5, (128, 128, 128)) for a, b in parts]
            out += [
                cutter.clip(path, info, cut, licence=about.licence, attribution=about.attribution, origin=shown_name(path)) for cut in cuts
            ]
        except (MediaRejected, ToolFailed, LimitExceeded, OutputRejected, OSError) as error:
            note(f"the clip {shown_name(path)} is not used: {error.message if isinstance(error, PipelineError) else error.strerror}")
    return out


def _size(width: int, height: int, short_side: int) -> tuple[int, int]:
    """Size of a clip: never enlarged, the short side at most ``short_side``, both even."""
    short = min(width, height)
    scale = min(short_side, short)
    return max(2, width * scale // short // 2 * 2), max(2, height * scale // short // 2 * 2)


def _seconds(us: int) -> str:
    """Microseconds as exact decimal seconds."""
    sign = "-" if us < 0 else ""
    return f"{sign}{abs(us) // 1_000_000}.{abs(us) % 1_000_000:06d}"
