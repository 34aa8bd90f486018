"""How this house calls ffmpeg: what it may open, one encoder profile, and one way to run it.

Owns the lists of containers, protocols and codecs, the house profile, and the options that every call carries. Must not hold user
text: captions and names travel in files (``drawtext=textfile=/in/caption.txt:expansion=none``), never in an argument.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from media.command import Command, Completed, Limits, Sandbox
from schemas.errors import EngineMissing, ToolFailed

PROTOCOLS = "file,pipe"

DEMUXERS: Mapping[str, str] = {
    "mov": "mov",
    "matroska": "matroska",
    "mpegts": "mpegts",
    "mpeg": "mpeg",
    "avi": "avi",
    "asf": "asf",
    "flv": "flv",
    "ogg": "ogg",
    "wav": "wav",
    "mp3": "mp3",
    "flac": "flac",
    "aac": "aac",
    "aiff": "aiff",
    "caf": "caf",
}
"""Containers that are accepted from outside, as :mod:`media.sniff` names them, and the demuxer each is forced to."""

STILL_DEMUXERS = ("png_pipe", "jpeg_pipe", "image2")
"""Demuxers for stills of our own, added where a command reads artifacts."""

VIDEO_CODECS: Mapping[str, tuple[str, ...]] = {
    "h264": ("h264",),
    "hevc": ("hevc",),
    "av1": ("libdav1d", "libaom-av1", "av1"),
    "vp8": ("vp8",),
    "vp9": ("vp9",),
    "mpeg1video": ("mpeg1video",),
    "mpeg2video": ("mpeg2video",),
    "mpeg4": ("mpeg4",),
    "msmpeg4v2": ("msmpeg4v2",),
    "msmpeg4v3": ("msmpeg4",),
    "wmv1": ("wmv1",),
    "wmv2": ("wmv2",),
    "wmv3": ("wmv3",),
    "vc1": ("vc1",),
    "h263": ("h263",),
    "flv1": ("flv",),
    "theora": ("theora",),
    "mjpeg": ("mjpeg",),
    "prores": ("prores",),
    "dnxhd": ("dnxhd",),
    "dvvideo": ("dvvideo",),
    "ffv1": ("ffv1",),
    "qtrle": ("qtrle",),
    "png": ("png",),
    "rawvideo": ("rawvideo",),
}
"""Picture codecs that are accepted, and ffmpeg's decoders for them."""

AUDIO_CODECS: Mapping[str, tuple[str, ...]] = {
    "aac": ("aac",),
    "mp3": ("mp3float", "mp3"),
    "mp2": ("mp2float", "mp2"),
    "opus": ("opus", "libopus"),
    "vorbis": ("vorbis", "libvorbis"),
    "flac": ("flac",),
    "alac": ("alac",),
    "ac3": ("ac3",),
    "eac3": ("eac3",),
    "dts": ("dca",),
    "wmav1": ("wmav1",),
    "wmav2": ("wmav2",),
    "wmapro": ("wmapro",),
    "amr_nb": ("amrnb", "libopencore_amrnb"),
    "amr_wb": ("amrwb", "libopencore_amrwb"),
    "speex": ("speex", "libspeex"),
    "adpcm_ima_wav": ("adpcm_ima_wav",),
    "adpcm_ms": ("adpcm_ms",),
    **{
        f"pcm_{form}": (f"pcm_{form}",)
        for form in (
            "u8",
            "s8",
            "s16le",
            "s16be",
            "s24le",
            "s24be",
            "s32le",
            "s32be",
            "f32le",
            "f32be",
            "f64le",
            "alaw",
            "mulaw",
            "bluray",
            "dvd",
        )
    },
}
"""Sound codecs that are accepted, and ffmpeg's decoders for them."""

SUBTITLE_DECODERS = ("subrip", "srt", "ass", "ssa", "mov_text", "text", "webvtt", "dvbsub", "dvdsub", "pgssub", "xsub", "cc_dec")
"""Never read, but ffprobe opens a decoder for every stream, and films with subtitles are welcome."""

FORMAT_WHITELIST = ",".join(dict.fromkeys(DEMUXERS.values()))
CODEC_WHITELIST = ",".join(
    (*(name for codecs in (VIDEO_CODECS, AUDIO_CODECS) for names in codecs.values() for name in names), *SUBTITLE_DECODERS)
)

TIMESCALE = 15360
"""Ticks per second of the picture track in every file we write: a multiple of 24, 25, 30, 50 and 60."""
SAMPLE_RATE = 48_000
"""Samples per second of delivered sound."""

DETERMINISTIC = ("-fflags", "+bitexact", "-flags:v", "+bitexact", "-flags:a", "+bitexact", "-map_metadata", "-1", "-map_chapters", "-1")
"""Options that keep versions, dates and random ids out of a file."""

TO_HOUSE_COLOUR = "scale=out_color_matrix=bt709:out_range=tv:flags=bicubic+accurate_rnd+full_chroma_int+bitexact,format=yuv420p,setsar=1"
"""Filter that ends every picture chain: BT.709, limited range, 4:2:0, square pixels.

``format`` must follow ``scale`` at once, or the matrix is wrong."""

DECODE_LIMITS = Limits(wall_s=600.0, cpu_s=7200, data_bytes=2048 * 1024 * 1024, processes=128)
"""For reading: the wall clock of a stream only counts while we wait for ffmpeg."""


def house_video(crf: int = 20, preset: Literal["ultrafast", "veryfast", "fast", "medium"] = "veryfast") -> tuple[str, ...]:
    """Encoder options of the house profile: x264 whose bytes depend on neither processor nor number of cores.

    Equal options give equal parameter sets, so that files of one film can be joined without encoding again.
    """
    return (
        *("-c:v", "libx264", "-preset", preset, "-crf", str(crf), "-threads", "1"),
        *("-x264-params", "cpu-independent=1:keyint=60:scenecut=0:bframes=2:open-gop=0", "-pix_fmt", "yuv420p"),
        *("-colorspace", "bt709", "-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv"),
        *("-video_track_timescale", str(TIMESCALE)),
        *DETERMINISTIC,
    )


def house_audio(bit_rate: str = "160k") -> tuple[str, ...]:
    """Encoder options for delivered sound: AAC, 48 kHz, stereo. Used once, at the very end."""
    return ("-c:a", "aac", "-b:a", bit_rate, "-ar", str(SAMPLE_RATE), "-ac", "2", *DETERMINISTIC)


def input_options(container: str, *, any_codec: bool = False) -> tuple[str, ...]:
    """Options that stand before ``-i`` for a file from outside: one demuxer, local files only, known decoders only.

    Args:
        container: a key of :data:`DEMUXERS`.
        any_codec: leave out the list of decoders; only for listing streams, never for decoding.
    """
    codecs = () if any_codec else ("-codec_whitelist", CODEC_WHITELIST)
    return ("-protocol_whitelist", PROTOCOLS, "-format_whitelist", FORMAT_WHITELIST, *codecs, "-f", DEMUXERS[container])


def tool_path(name: Literal["ffmpeg", "ffprobe"]) -> Path:
    """The program on this host.

    Raises:
        EngineMissing: it is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise EngineMissing(name, f"the program '{name}' is not installed", "install the system package ffmpeg (5.1 or newer)")
    return Path(found)


def tool(name: Literal["ffmpeg", "ffprobe"]) -> tuple[str, dict[str, Path]]:
    """The program as it is called inside, and the folder that must be mounted for it, if any."""
    path = tool_path(name)
    real = path.resolve()
    if real.is_relative_to("/usr"):
        return str(real), {}
    return f"/opt/{name}/{real.name}", {f"/opt/{name}": real.parent}


def compile_graph(stream: Any) -> tuple[str, ...]:
    """The argument list of an ffmpeg-python graph (never its ``.run()``). Starts with ``ffmpeg``."""
    return tuple(str(word) for word in stream.compile(cmd="ffmpeg"))


def run_ffmpeg(
    argv: Sequence[str],
    *,
    inputs: Mapping[str, Path] | None = None,
    texts: Mapping[str, bytes] | None = None,
    outputs: Sequence[str] = (),
    sandbox: Sandbox,
    workdir: Path,
    limits: Limits | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Completed:
    """Run one ffmpeg command to its end and collect its outputs.

    ``-nostdin``, a log level, and protocol and format lists before each input that is a file are added.

    Args:
        argv: arguments, with or without a leading ``ffmpeg``; files as ``/in/NAME`` and ``/out/NAME``.
        inputs, texts, outputs, folders, limits: as in :class:`media.command.Command`.
        workdir: folder that receives the outputs.

    Raises:
        ToolFailed: ffmpeg ended with a status other than 0; carries its last words.
        LimitExceeded, OutputRejected, SandboxUnavailable: as :meth:`media.command.Sandbox.run`.
    """
    program, mounted = tool("ffmpeg")
    words = list(argv[1:] if argv and argv[0] == "ffmpeg" else argv)
    guarded = guard_inputs(words)
    command = Command(
        argv=(program, "-nostdin", "-hide_banner", "-v", "error", "-y", *guarded),
        inputs=inputs or {},
        texts=texts or {},
        folders={**mounted, **(folders or {})},
        outputs=tuple(outputs),
        limits=limits or Limits(wall_s=600.0),
    )
    done = sandbox.run(command, workdir)
    if done.returncode != 0:
        raise ToolFailed(
            "ffmpeg", f"ffmpeg ended with status {done.returncode}: {last_words(done.stderr)}", "see the message; the input may be damaged"
        )
    return done


def guard_inputs(words: Sequence[str]) -> list[str]:
    """Put the protocol and format lists before every ``-i`` that names a file; generated inputs (lavfi) and pipes stay as they are."""
    out: list[str] = []
    start = 0
    for at, word in enumerate(words):
        if word != "-i" or at + 1 >= len(words):
            continue
        options = words[start:at]
        if words[at + 1].startswith("/"):
            out += ["-protocol_whitelist", PROTOCOLS]
            if "-f" not in options:
                out += ["-format_whitelist", ",".join((FORMAT_WHITELIST, *STILL_DEMUXERS))]
        out += [*options, "-i", words[at + 1]]
        start = at + 2
    return [*out, *words[start:]]


def last_words(stderr: str, most: int = 400) -> str:
    """The last lines of a log, for a message: addresses of memory left out, so that equal failures read equal."""
    lines = [re.sub(r" @ 0x[0-9a-f]+", "", line.strip()) for line in stderr.splitlines() if line.strip()]
    return " | ".join(lines)[-most:] if lines else "no message"
