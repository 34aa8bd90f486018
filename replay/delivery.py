"""Whether a folder holds a delivery: the validation on bytes.

Reads nothing but the folder, trusts no figure of the manifest that can be measured, and decodes in the sandbox only. A manifest shows
that a folder is whole and consistent, not who made it: its own digest, kept in the trajectory, does that.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from media.command import Sandbox
from media.ffmpeg import input_options, run_ffmpeg
from media.measure import AudioMeasure, VideoMeasure, check_audio, check_video
from media.probe import probe
from replay.manifest import ATTRIBUTION, CAPTIONS, MANIFEST, VIDEO, FileEntry, Manifest
from schemas.canonical import Frozen, Sha256
from schemas.errors import MediaRejected, ToolFailed
from schemas.media import MediaInfo

CONTAINER = "mov"
"""As ``media.sniff`` names it."""
MAX_MANIFEST = 32 * 1024 * 1024
MAX_BLACK = 0.5
"""Share of black frames above which a film is not delivered."""
MAX_SILENT = 0.9
QUIETEST_LUFS = -45.0
LOUDNESS_SLACK_LU = 0.5
"""Measured and stated loudness may differ by this (another version of the meter)."""
SHARE_SLACK = 0.02
"""Measured and stated shares of black, still or silent time may differ by this."""
BLOCK_US = 21_334
"""The last AAC block is filled up with silence: the sound may be longer than the picture by so much, however short a frame is."""
LOUDEST_DBTP = -1.0
"""No film peaks above this, between its samples either (EBU R 128)."""


class Problem(Frozen):
    """One reason why a delivery is not valid."""

    code: str
    message: str


class DeliveryReport(Frozen):
    """Result of a validation. ``measured`` holds the figures seen on the bytes, as far as they could be taken."""

    problems: tuple[Problem, ...]
    measured: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Nothing is wrong."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """Stable form for ``--json``."""
        return {"passed": self.passed, "problems": [p.model_dump() for p in self.problems], "measured": self.measured}

    def print(self) -> None:
        """For a person."""
        for name, value in self.measured.items():
            print(f"{name:>16}  {value}")
        for problem in self.problems:
            print(f"{problem.code:>16}  {problem.message}")
        print("valid" if self.passed else f"not valid: {len(self.problems)} problem(s)")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured of a film's bytes."""

    sha256: Sha256
    size_bytes: int
    info: MediaInfo
    video: VideoMeasure
    audio: AudioMeasure
    streams: tuple[Sha256, Sha256]
    """Digests of the coded packets of picture and sound."""


def look(path: Path, sandbox: Sandbox) -> Seen:
    """Measure a film.

    Raises:
        MediaRejected: it is no film that decodes.
        ToolFailed, LimitExceeded, SandboxUnavailable: it could not be looked at.
    """
    digest, info = _digest(path), probe(path, sandbox)
    return Seen(digest, path.stat().st_size, info, check_video(path, sandbox), check_audio(path, sandbox), _streams(path, info, sandbox))


def _streams(path: Path, info: MediaInfo, sandbox: Sandbox) -> tuple[Sha256, Sha256]:
    """Digests over the coded packets of picture and sound, in the order of the file; raises as :func:`look`."""
    argv = (
        *input_options(info.container), "-i", "/in/film", "-map", "0:v:0", "-map", "0:a:0", "-c", "copy", "-f", "streamhash",
        "-hash", "sha256", "pipe:1",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        done = run_ffmpeg(argv, inputs={"film": path}, sandbox=sandbox, workdir=Path(folder))
    found = re.findall(r"^\d+,[va],SHA256=([0-9a-f]{64})$", done.stdout.decode("ascii", "replace"), re.MULTILINE)
    if len(found) != 2:
        raise ToolFailed("streamhash", f"ffmpeg gave {len(found)} digests for two streams")
    return found[0], found[1]


def verify_delivery(folder: Path, sandbox: Sandbox) -> DeliveryReport:
    """Validate a delivered folder on its bytes.

    Args:
        folder: holds ``video.mp4``, ``manifest.json``, ``ATTRIBUTION.txt`` and perhaps ``captions.srt``; other files do not matter.

    Raises:
        ToolFailed, SandboxUnavailable, LimitExceeded: the film could not be looked at. Everything that is wrong with the folder itself is a
            problem in the report.
    """
    problems: list[Problem] = []
    for name in (VIDEO, MANIFEST):
        wrong = _not_a_file(folder / name)
        if wrong:
            problems.append(Problem(code="missing_file", message=f"{name} {wrong}"))
    if problems:
        return DeliveryReport(problems=tuple(problems), measured={})
    manifest = _manifest(folder / MANIFEST)
    if isinstance(manifest, Problem):
        return DeliveryReport(problems=(manifest,), measured={})
    size = (folder / VIDEO).stat().st_size
    digest = _digest(folder / VIDEO) if size == manifest.video.size_bytes else None
    if digest != manifest.video.sha256:
        seen_as = f"{size} bytes" if digest is None else f"{digest[:12]}, {size} bytes"
        return DeliveryReport(
            problems=(Problem(code="wrong_bytes", message=f"{VIDEO} is not the file the manifest names ({seen_as})"),),
            measured={"sha256": digest, "size_bytes": size},
        )
    try:
        seen = look(folder / VIDEO, sandbox)
    except MediaRejected as error:
        return DeliveryReport(problems=(Problem(code="not_a_film", message=f"{VIDEO}: {error.message}"),), measured={})
    problems += judge(manifest, seen)
    problems += _captions(folder, manifest)
    problems += _attribution(folder, manifest)
    return DeliveryReport(problems=tuple(problems), measured=figures(seen))


def figures(seen: Seen) -> dict[str, Any]:
    """The measured figures in short."""
    return {
        "frames": seen.video.frames,
        "size": f"{seen.video.width}x{seen.video.height}",
        "duration_us": seen.video.duration_us,
        "sound_us": seen.audio.duration_us,
        "loudness_lufs": seen.audio.loudness_lufs,
        "true_peak_dbtp": seen.audio.true_peak_dbtp,
        "silent_share": round(seen.audio.silent_share, 4),
        "black_share": round(seen.video.black_share, 4),
        "frozen_share": round(seen.video.frozen_share, 4),
    }


def judge(manifest: Manifest, seen: Seen) -> list[Problem]:
    """Compare a manifest with what was measured. Pure."""
    out: list[Problem] = []

    def wrong(code: str, message: str) -> None:
        out.append(Problem(code=code, message=message))

    picture, sound, video, audio = manifest.picture, manifest.sound, seen.video, seen.audio
    if seen.info.container != CONTAINER:
        wrong("wrong_container", f"the file is {seen.info.container}; expected {CONTAINER}")
    for name, stated, found in (("picture", picture, seen.streams[0]), ("sound", sound, seen.streams[1])):
        if stated.stream_sha256 != found:
            wrong("wrong_stream", f"the {name} is not the one the manifest names ({found[:12]})")
    stream, track = seen.info.video, seen.info.audio
    if stream is None or track is None or (stream.codec, track.codec) != ("h264", "aac"):
        kinds = f"{stream.codec if stream else 'no picture'} and {track.codec if track else 'no sound'}"
        wrong("wrong_codec", f"the film has {kinds}; expected h264 and aac")
    if (video.width, video.height) != (picture.width, picture.height):
        wrong("wrong_size", f"the picture has {video.width}x{video.height} pixels, the manifest says {picture.width}x{picture.height}")
    if video.frames != picture.frames or video.frames != sum(s.frames for s in manifest.shots):
        planned = sum(s.frames for s in manifest.shots)
        wrong("wrong_length", f"the picture has {video.frames} frames, the manifest {picture.frames}, its shots {planned}")
    if video.frame_rate != picture.frame_rate:
        wrong("wrong_rate", f"{video.rate} frames per second, the manifest says {picture.frame_rate.num}/{picture.frame_rate.den}")
    frame_us = picture.frame_rate.us_at(1)
    planned_us = picture.frame_rate.us_at(picture.frames)
    if abs(video.duration_us - planned_us) > frame_us // 4 or (stream is not None and stream.is_vfr):
        even = "at uneven distances" if stream is not None and stream.is_vfr else "evenly"
        wrong("wrong_timing", f"the frames stand {even} and last {video.duration_us} us; {picture.frames} of them should last {planned_us}")
    longer = audio.duration_us - video.duration_us
    start = abs(track.start_us) if track is not None else 0
    if not -frame_us <= longer <= max(frame_us, BLOCK_US) or start > frame_us or sound.drift_us > frame_us:
        wrong(
            "drift",
            f"the sound is {longer} us longer than the picture, begins {start} us from it, is {sound.drift_us} us off; allowed {frame_us}",
        )
    if video.black_share > MAX_BLACK:
        wrong("black", f"{video.black_share:.0%} of the frames are black; at most {MAX_BLACK:.0%}")
    loudness = audio.loudness_lufs
    if audio.silent_share > MAX_SILENT or loudness is None or loudness < QUIETEST_LUFS:
        wrong("silent", f"{audio.silent_share:.0%} of the sound is silence, loudness {loudness}")
    elif abs(loudness - sound.loudness_lufs) > LOUDNESS_SLACK_LU:
        wrong("loudness", f"loudness is {loudness:.1f} LUFS, the manifest says {sound.loudness_lufs:.1f}")
    if audio.true_peak_dbtp > LOUDEST_DBTP:
        wrong("too_loud", f"the sound peaks at {audio.true_peak_dbtp:.1f} dBTP; at most {LOUDEST_DBTP}")
    for name, said, measured in (
        ("black_share", picture.black_share, video.black_share),
        ("frozen_share", picture.frozen_share, video.frozen_share),
        ("silent_share", sound.silent_share, audio.silent_share),
    ):
        if abs(said - measured) > SHARE_SLACK:
            wrong("wrong_measure", f"{name} is {measured:.3f}, the manifest says {said:.3f}")
    out.extend(_consistent(manifest))
    return out


def _consistent(manifest: Manifest) -> list[Problem]:
    """What a manifest says about itself: shots back to back and each once, narrations inside the film, coverage as counted."""
    out: list[Problem] = []

    def wrong(code: str, message: str) -> None:
        out.append(Problem(code=code, message=message))

    rate = manifest.picture.frame_rate
    names = [shot.shot_id for shot in manifest.shots]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        wrong("shot_twice", f"{', '.join(twice[:3])} stand in the film more than once")
    at = 0
    for shot in manifest.shots:
        if shot.start_frame != at:
            wrong("shot_order", f"{shot.shot_id} starts at frame {shot.start_frame}; the one before it ends at {at}")
            break
        at += shot.frames
    for shot in manifest.shots:
        span = shot.narration
        first, last = rate.us_at(shot.start_frame), rate.us_at(shot.start_frame + shot.frames + 1)
        if span is not None and not first <= span.start_us < span.end_us <= last:
            wrong("narration_outside", f"the narration of {shot.shot_id} lies at {span.start_us} to {span.end_us} us, outside its shot")
            break
    counted = round(manifest.spoken_characters / manifest.script_characters, 4) if manifest.script_characters else 1.0
    if manifest.coverage != counted:
        wrong(
            "coverage", f"coverage {manifest.coverage} does not fit {manifest.spoken_characters} of {manifest.script_characters} characters"
        )
    if not manifest.credits:
        wrong("no_credits", "the manifest names no licence of what the film is made of")
    return out


def _captions(folder: Path, manifest: Manifest) -> list[Problem]:
    """Captions are a sidecar: they may be left out, but not be other ones."""
    path = folder / CAPTIONS
    if manifest.captions is None or not os.path.lexists(path):
        return []
    wrong = _not_a_file(path)
    if wrong:
        return [Problem(code="wrong_captions", message=f"{CAPTIONS} {wrong}")]
    if not _is(path, manifest.captions):
        return [Problem(code="wrong_captions", message=f"{CAPTIONS} is not the file the manifest names")]
    return []


def _attribution(folder: Path, manifest: Manifest) -> list[Problem]:
    """The names of authors go with the film: the file may not be missing where a licence asks for them, nor be another one."""
    path = folder / ATTRIBUTION
    if not os.path.lexists(path):
        asking = sorted({c.licence for c in manifest.credits if asks_for_names(c.licence)})
        return [Problem(code="no_attribution", message=f"{ATTRIBUTION} is not there; {', '.join(asking)} ask for it")] if asking else []
    wrong = _not_a_file(path)
    if wrong is None and not _is(path, manifest.attribution):
        wrong = "is not the file the manifest names"
    return [Problem(code="wrong_attribution", message=f"{ATTRIBUTION} {wrong}")] if wrong else []


def asks_for_names(licence: str) -> bool:
    """A Creative Commons licence that asks that authors are named (all but CC0 and the public domain mark)."""
    return re.match(r"cc[- ]by\b", licence, re.IGNORECASE) is not None


def _manifest(path: Path) -> Manifest | Problem:
    if path.stat().st_size > MAX_MANIFEST:
        return Problem(code="bad_manifest", message=f"{MANIFEST} is larger than {MAX_MANIFEST} bytes")
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(p) for p in first["loc"]) or "the file"
        return Problem(code="bad_manifest", message=f"{MANIFEST}: {where}: {first['msg']}")


def _not_a_file(path: Path) -> str | None:
    """Why a path is no plain file; None if it is one. Links are not followed."""
    try:
        info = path.lstat()
    except OSError:
        return "is not there"
    if not stat.S_ISREG(info.st_mode):
        return "is no regular file"
    return "is empty" if info.st_size == 0 else None


def _is(path: Path, entry: FileEntry) -> bool:
    """The file has the entry's bytes. One of another length is not read: it may be of any length."""
    return path.stat().st_size == entry.size_bytes and _digest(path) == entry.sha256


def _digest(path: Path) -> Sha256:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
