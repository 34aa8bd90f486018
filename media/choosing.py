"""Chooses the picture stream and the narration track among a file's streams, and says why in words.

Owns the rules of the choice. Pure: works on what :mod:`media.listing` found.
"""

from __future__ import annotations

from dataclasses import dataclass

from media.ffmpeg import AUDIO_CODECS, VIDEO_CODECS
from media.listing import Listing

_STILL_CODECS = frozenset({"mjpeg", "png", "bmp", "gif", "webp", "tiff"})
_PICTURE_FLAGS = {"attached_pic": "cover art", "timed_thumbnails": "thumbnails", "still_image": "a still image"}
_SOUND_FLAGS = {
    "comment": "a commentary track",
    "visual_impaired": "a description of the picture",
    "hearing_impaired": "a track for the hard of hearing",
    "karaoke": "a karaoke track",
}
_COMMENTARY_WORDS = ("comment", "descript", "kommentar", "评论", "解说音轨")


@dataclass(frozen=True, slots=True)
class Candidate:
    """One stream that may be chosen."""

    index: int
    codec: str
    values: dict[str, str]

    def number(self, name: str) -> int:
        """A whole number among the values; 0 where there is none."""
        value = self.values.get(name, "")
        return int(value) if value.isdigit() else 0

    def flag(self, name: str) -> bool:
        """Whether a disposition is set."""
        return self.values.get(f"disposition:{name}") == "1"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is read of the file, in the order of preference."""

    pictures: tuple[Candidate, ...]
    sounds: tuple[Candidate, ...]
    ignored: tuple[str, ...]
    refused: tuple[str, ...]
    """Codec names of streams left out because their codec is not accepted."""
    explanation: str
    """Why the first sound is the first."""


def choose(listing: Listing) -> Choice:
    """Sort the streams.

    Pictures: default flag first, then most pixels, then order. Sounds: commentary and descriptions last, then default flag, then order.
    """
    pictures: list[Candidate] = []
    sounds: list[Candidate] = []
    ignored: list[str] = []
    refused: list[str] = []
    for values in listing.streams:
        kind, codec = values.get("codec_type", "unknown"), values.get("codec_name", "unknown")
        one = Candidate(int(values["index"]), codec, values)
        packets = len(listing.packets.get(one.index, ()))
        reason = _why_not(one, kind, packets)
        if reason is not None:
            ignored.append(f"stream {one.index} ({codec}): {reason}")
        elif kind == "video" and codec in VIDEO_CODECS:
            pictures.append(one)
        elif kind == "audio" and codec in AUDIO_CODECS:
            sounds.append(one)
        else:
            refused.append(codec)
            ignored.append(f"stream {one.index} ({codec}): this codec is not accepted")
    pictures.sort(key=lambda c: (not c.flag("default"), -c.number("width") * c.number("height"), c.index))
    sounds.sort(key=lambda c: (_aside(c) is not None, not c.flag("default"), c.index))
    for one in pictures[1:]:
        ignored.append(f"stream {one.index} ({one.codec}): another picture stream was chosen")
    for one in sounds[1:]:
        ignored.append(f"stream {one.index} ({one.codec}): {_aside(one) or 'another sound track was chosen'}")
    return Choice(tuple(pictures), tuple(sounds), tuple(ignored), tuple(refused), _explain(sounds))


def _why_not(one: Candidate, kind: str, packets: int) -> str | None:
    """Why a stream is neither picture nor sound of the film, or None."""
    if kind not in ("video", "audio"):
        return f"{kind}, neither picture nor sound"
    if kind == "video":
        for flag, what in _PICTURE_FLAGS.items():
            if one.flag(flag):
                return what
        if one.codec in _STILL_CODECS and packets <= 1:
            return "cover art (a single still)"
    if packets == 0:
        return "has no content"
    return None


def _aside(one: Candidate) -> str | None:
    """Why a sound track is no narration of the film itself, or None."""
    for flag, what in _SOUND_FLAGS.items():
        if one.flag(flag):
            return what
    title = one.values.get("tag:title", "").lower()
    if any(word in title for word in _COMMENTARY_WORDS):
        return "a commentary track by its title"
    return None


def _explain(sounds: list[Candidate]) -> str:
    if not sounds:
        return "there is no sound track"
    first = sounds[0]
    aside = _aside(first)
    if len(sounds) == 1:
        return f"stream {first.index} is the only sound track" + (f", although it is {aside}" if aside else "")
    passed = [f"stream {one.index} is {_aside(one)}" for one in sounds[1:] if _aside(one)]
    if aside:
        return f"stream {first.index} is the first of {len(sounds)} sound tracks, all of them asides ({aside})"
    rivals = [one for one in sounds[1:] if not _aside(one)]
    if not rivals:
        return f"stream {first.index} is the only narration: " + "; ".join(passed)
    why = "is marked default" if first.flag("default") and not all(one.flag("default") for one in rivals) else "comes first"
    return "; ".join([f"stream {first.index} {why} among {len(rivals) + 1} narration tracks", *passed])
