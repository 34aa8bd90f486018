"""Tells a container from its first bytes, before any demuxer sees the file, and refuses what only poses as media.

Owns the signatures. Reads a bounded head (and, of MP4 and MOV files, the box headers) with plain byte comparisons; decodes nothing.
A file that is none of the known containers is refused: text of any encoding that names other files or addresses (playlists, concat
scripts, session descriptions, manifests) as a manifest, everything else as no media. The demuxer is then forced to what was found, so
that ffmpeg never guesses.
"""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import BinaryIO

from schemas.errors import MediaRejected
from schemas.stage import RejectCode

HEAD_BYTES = 64 * 1024

_MP4_FIRST_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"styp", b"moof", b"uuid", b"sidx")
_MP4_DESCENT = {b"moov": 8, b"trak": 8, b"mdia": 8, b"minf": 8, b"dinf": 8}
_MOST_BOXES = 20_000

_SIGNATURES: tuple[tuple[str, int, bytes], ...] = (
    ("matroska", 0, b"\x1a\x45\xdf\xa3"),
    ("asf", 0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11"),
    ("flv", 0, b"FLV\x01"),
    ("ogg", 0, b"OggS"),
    ("flac", 0, b"fLaC"),
    ("caf", 0, b"caff"),
    ("mpeg", 0, b"\x00\x00\x01\xba"),
)

_MANIFEST = re.compile(
    r"#EXTM3U|#EXT-X-|\bffconcat version\b|<MPD\b|<SmoothStreamingMedia\b|<smil\b|<asx\b|<playlist\b"
    r"|\[playlist\]|\[Reference\]|\[InternetShortcut\]|\Av=0\s*[\r\n]+o="
    r"|\A\s*(?:file|subfile|concat|concatf|data|crypto|async|cache|tee|pipe|fd|tcp|tls|udp|rtp|unix)[,:]"
    r"|\A(?:\s*#[^\n]*\n)*\s*file\s+\S+\s*$"
    r"|^\s*[a-z][a-z0-9+.-]{1,12}://\S+\s*$",
    re.IGNORECASE | re.MULTILINE,
)
"""What text that sends a player to other places looks like."""


def sniff(path: Path) -> str:
    """Name of the container: a key of ``media.ffmpeg.DEMUXERS``.

    Raises:
        MediaRejected: empty_file, manifest_refused or not_media.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        if not head:
            raise MediaRejected(RejectCode.EMPTY_FILE, "the file is empty; expected a film", "check the download")
        container = _container(head)
        if container is None:
            raise _refusal(head)
        if container == "mov":
            _refuse_references(file)
        if container == "avi" and any(_MANIFEST.search(_plain(part)) for part in head.split(b"GAB2")[1:]):
            raise _refusal(head, playlist_inside=True)
    return container


def _container(head: bytes) -> str | None:
    for name, at, magic in _SIGNATURES:
        if head[at : at + len(magic)] == magic:
            return name
    if len(head) >= 8 and head[4:8] in _MP4_FIRST_BOXES:
        return "mov"
    if head[:4] in (b"RIFF", b"RF64", b"RIFX") and head[8:12] in (b"AVI ", b"WAVE"):
        return "avi" if head[8:12] == b"AVI " else "wav"
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "aiff"
    if _is_transport_stream(head):
        return "mpegts"
    if head[:3] == b"ID3":
        return "mp3"
    return _elementary_audio(head)


def _is_transport_stream(head: bytes) -> bool:
    """Sync bytes at a packet's distance, from one of the first positions; at least three packets."""
    for size in (188, 192, 204):
        if len(head) < 3 * size:
            continue
        for start in range(size):
            places = range(start, min(len(head), start + 8 * size), size)
            if len(places) >= 3 and all(head[at] == 0x47 for at in places):
                return True
    return False


def _elementary_audio(head: bytes) -> str | None:
    """Bare MP3 or ADTS frames: two headers in a row that agree."""
    if len(head) < 8 or head[0] != 0xFF:
        return None
    if head[1] & 0xF6 == 0xF0:
        length = (head[3] & 3) << 11 | head[4] << 3 | head[5] >> 5
        follows = head[length : length + 2]
        return "aac" if length > 7 and follows[:1] == b"\xff" and follows[1] & 0xF6 == 0xF0 else None
    length = _mp3_frame_bytes(head)
    if length and head[length : length + 1] == b"\xff" and head[length + 1] & 0xFE == head[1] & 0xFE:
        return "mp3"
    return None


_MP3_KBIT = {
    3: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
_MP3_HZ = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}


def _mp3_frame_bytes(head: bytes) -> int:
    """Length of a layer III frame, or 0 if the header is none."""
    version, layer = head[1] >> 3 & 3, head[1] >> 1 & 3
    rate_index, hz_index, padding = head[2] >> 4, head[2] >> 2 & 3, head[2] >> 1 & 1
    if head[1] & 0xE0 != 0xE0 or layer != 1 or version == 1 or rate_index in (0, 15) or hz_index == 3:
        return 0
    kbit = _MP3_KBIT[3 if version == 3 else 2][rate_index]
    return (144 if version == 3 else 72) * kbit * 1000 // _MP3_HZ[version][hz_index] + padding


def _refuse_references(file: BinaryIO) -> None:
    """Refuse MP4 and MOV files whose samples lie in other files (data references, reference movies)."""
    size = file.seek(0, 2)
    stack: list[tuple[int, int]] = [(0, size)]
    seen = 0
    while stack:
        at, end = stack.pop()
        while at + 8 <= end:
            seen += 1
            if seen > _MOST_BOXES:
                raise MediaRejected(RejectCode.UNREADABLE, f"more than {_MOST_BOXES} boxes in the file's head", "")
            file.seek(at)
            header = file.read(16)
            length, kind = int.from_bytes(header[:4], "big"), header[4:8]
            body = at + 8
            if length == 1 and len(header) == 16:
                length, body = int.from_bytes(header[8:16], "big"), at + 16
            stop = end if length == 0 else min(end, at + length)
            if kind in (b"rmra", b"rmda"):
                raise _external()
            if kind == b"dref":
                _check_dref(file, body, stop)
            elif kind in _MP4_DESCENT:
                stack.append((body, stop))
            if stop <= at + 7:
                break
            at = stop


def _check_dref(file: BinaryIO, at: int, end: int) -> None:
    """Every entry of a data reference box must say 'in this very file' (flag 1)."""
    file.seek(at + 4)
    count = min(int.from_bytes(file.read(4), "big"), _MOST_BOXES)
    at += 8
    for _ in range(count):
        if at + 12 > end:
            return
        file.seek(at)
        header = file.read(12)
        length = int.from_bytes(header[:4], "big")
        if header[11] & 1 == 0:
            raise _external()
        at += max(length, 12)


def _external() -> MediaRejected:
    return MediaRejected(
        RejectCode.MANIFEST_REFUSED,
        "the file refers to samples in another file; only self-contained films are accepted",
        "copy it into one file: ffmpeg -i REFERENCE -c copy FILM.mp4",
    )


def _plain(data: bytes) -> str:
    """Bytes that may be text of one or two bytes a character, with the zeros left out."""
    return data[:4096].replace(b"\0", b"").decode("latin-1")


def _refusal(head: bytes, *, playlist_inside: bool = False) -> MediaRejected:
    texts = _as_texts(head)
    if playlist_inside:
        return MediaRejected(
            RejectCode.MANIFEST_REFUSED, "a subtitle track of the file is a playlist that points to other files", "remove it"
        )
    if any(_MANIFEST.search(text) for text in texts):
        return MediaRejected(
            RejectCode.MANIFEST_REFUSED,
            "the file is a text that points to other files or addresses (a playlist, script or manifest); expected a film",
            "give the film itself",
        )
    what = "text" if texts else "bytes of no known container"
    return MediaRejected(
        RejectCode.NOT_MEDIA, f"the file holds {what}; expected one of MP4, MOV, Matroska, WebM, MPEG-TS, MPEG-PS, AVI, ASF, FLV, Ogg", ""
    )


def _as_texts(head: bytes) -> list[str]:
    """The head read as text in every Unicode encoding in which it looks like one; empty if it is no text."""
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF8, "utf-8"),
    ):
        if head.startswith(mark):
            return [head[len(mark) :].decode(encoding, "replace")]
    zeros = head[:1024].count(0)
    wide = zeros * 5 > min(len(head), 1024)
    encodings = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be") if wide else ("utf-8",)
    texts = [head[: len(head) // 4 * 4 if wide else None].decode(encoding, "replace") for encoding in encodings]
    return [text for text in texts if _looks_written(text)]


def _looks_written(text: str) -> bool:
    """Nearly all characters can be printed."""
    sample = text[:2000]
    odd = sum(1 for c in sample if not (c.isprintable() or c in "\r\n\t\f\x1e") or c == "\ufffd")
    return bool(sample) and odd * 20 <= len(sample)
