"""Subtitles and transcripts that come with a source: SRT, WebVTT, SBV, SSA and ASS, Whisper's TSV, JSON of WhisperX, whisper.cpp and
OpenAI-like services, plain text.

The reader is told the form by the content, never by the file's name. Text is data: nothing in it is followed. Every input gives segments
or :class:`SidecarUnreadable`; no input takes more than linear time. Must not open files other than the one it is given.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inversion.language import stated_language
from inversion.transcript import SOUND_NOTE, SpokenSegment, SpokenWord, TimedPiece, clean_text, is_wide, words_from_pieces, words_of
from schemas.errors import MediaRejected
from schemas.storyboard import WordTiming
from schemas.time import US

_STAMP = r"(-?)(?:(\d{1,9}):)?(\d{1,2}):(\d{1,2})[.,](\d{1,3})"
_ARROW = re.compile(rf"^\s*{_STAMP}\s*-->\s*{_STAMP}(?:\s.*)?$")
_INLINE = re.compile(rf"<{_STAMP}>")
_SBV = re.compile(r"^[ \t]*(\d{1,3}:\d{2}:\d{2}\.\d{1,3}),(\d{1,3}:\d{2}:\d{2}\.\d{1,3})[ \t]*$", re.MULTILINE)
_SSA = re.compile(r"\[(?:script info|v4\+? styles|events)\]", re.IGNORECASE)
_TSV = re.compile(r"start\tend\ttext[ \t]*\r?\n", re.IGNORECASE)
_MARKUP = re.compile(r"<(?:\?xml|!doctype|html|sami|tt|transcript|timedtext)\b", re.IGNORECASE)
_FORMS = "give SRT, WebVTT, SBV, ASS, TSV, JSON or plain text in UTF-8"
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_ENTITY = {"&amp;": "&", "&lt;": "<", "&gt;": ">", "&nbsp;": " ", "&lrm;": "", "&rlm;": ""}
_NOTES = str.maketrans("♩♪♫♬", "    ")
_SPEAKER = re.compile(r"^\s*(?:>>+|-)\s*")
_BRACKET = re.compile(r"\[[^\[\]]{0,60}\]")
_LATEST_US = 100 * 3600 * US
_DEEPEST = 12


class SidecarUnreadable(MediaRejected):
    """A subtitle or transcript file holds nothing that can be read as one."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What a sidecar file says. ``segments`` have no times at all where it holds text only."""

    kind: str
    segments: tuple[SpokenSegment, ...]
    language: str | None = None

    @property
    def is_timed(self) -> bool:
        """Any word or segment has a time."""
        return any(s.start_us is not None or any(w.start_us is not None for w in s.words) for s in self.segments)


def read_sidecar(path: Path, most_bytes: int) -> Sidecar:
    """Read a sidecar file.

    Raises:
        SidecarUnreadable: missing, too large, binary, or nothing spoken in it.
    """
    try:
        if not path.is_file():
            raise SidecarUnreadable("sidecar_missing", "cannot read the subtitle file: no regular file", "check the path in the manifest")
        with path.open("rb") as f:
            data = f.read(most_bytes + 1)
    except OSError as error:
        raise SidecarUnreadable(
            "sidecar_missing", f"cannot read the subtitle file: {error.strerror}", "check the path in the manifest"
        ) from error
    if len(data) > most_bytes:
        raise SidecarUnreadable("sidecar_too_large", f"the subtitle file is over {most_bytes} bytes", "raise inversion.sidecar_bytes")
    return parse_sidecar(data)


def parse_sidecar(data: bytes) -> Sidecar:
    """Segments out of the bytes of a subtitle or transcript file. Raises SidecarUnreadable."""
    text = _decode(data)
    head = text.lstrip("\ufeff \t\r\n")
    if _SSA.match(head):
        found = Sidecar("ssa", _dialogue(text))
    elif _MARKUP.match(head):
        raise SidecarUnreadable("sidecar_format", "the subtitle file is XML or HTML, which is not read", _FORMS)
    elif head[:1] in ("{", "["):
        found = _json(head)
    elif _TSV.match(head):
        found = Sidecar("tsv", _table(head))
    elif head[:6] == "WEBVTT" or "-->" in text:
        found = Sidecar("vtt" if head[:6] == "WEBVTT" else "srt", _cues(text))
    elif _SBV.match(head):
        found = Sidecar("sbv", _cues(_SBV.sub(r"\1 --> \2", text)))
    else:
        found = Sidecar("text", _text(text))
    segments = tuple(s for s in found.segments if s.words)
    if not segments:
        raise SidecarUnreadable("sidecar_empty", "the subtitle file holds no words", _FORMS)
    return replace(found, segments=segments)


def _decode(data: bytes) -> str:
    for mark, name in ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    if b"\x00" in data[:4096]:
        raise SidecarUnreadable("sidecar_binary", "the subtitle file is binary", _FORMS)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _text(text: str) -> tuple[SpokenSegment, ...]:
    return tuple(SpokenSegment(words_of(line)) for line in re.split(r"\n\s*\n", text.replace("\r\n", "\n")) if line.strip())


def _stamp(groups: Iterable[str | None]) -> int:
    sign, hours, minutes, seconds, fraction = groups
    if sign:
        return 0
    whole = int(hours or 0) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return min(_LATEST_US, whole * US + int((fraction or "0").ljust(3, "0")) * 1000)


def _cues(text: str) -> tuple[SpokenSegment, ...]:
    """Cues of SRT and WebVTT in order of time. An empty line ends a cue of WebVTT; in SRT only where another cue follows."""
    is_vtt = text.lstrip("\ufeff").startswith("WEBVTT")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    arrows = [(k, m) for k, line in enumerate(lines) if "-->" in line and (m := _ARROW.match(line))]
    out: list[SpokenSegment] = []
    shown: list[list[str]] = []
    for number, (at, arrow) in enumerate(arrows):
        end = arrows[number + 1][0] if number + 1 < len(arrows) else len(lines)
        body = lines[at + 1 : end]
        if is_vtt:
            body = body[: _end_of_cue(body)]
        elif number + 1 < len(arrows) and body and body[-1].strip().isdigit():
            body = body[:-1]
        out.append(_cue(_stamp(arrow.groups()[:5]), _stamp(arrow.groups()[5:]), body))
        shown.append([clean_text(_plain(_INLINE.sub("", line))) for line in body if line.strip()])
    order = sorted(range(len(out)), key=lambda k: out[k].start_us or 0)
    return tuple(_without_rolling([out[k] for k in order], [shown[k] for k in order]))


def _end_of_cue(body: list[str]) -> int:
    """Lines of a WebVTT cue: up to the first empty one; where there is none, up to the last one of spaces only behind its text."""
    spoken = next((k for k, line in enumerate(body) if line.strip()), 0)
    empty = next((k for k, line in enumerate(body) if not line), None)
    if empty is not None:
        return empty
    return next((k for k in range(len(body) - 1, spoken, -1) if not body[k].strip()), len(body))


def _dialogue(text: str) -> tuple[SpokenSegment, ...]:
    """The spoken lines of SSA and ASS, in order of time; drawings and comments are left out."""
    names = ["layer", "start", "end", "style", "name", "marginl", "marginr", "marginv", "effect", "text"]
    found: list[SpokenSegment] = []
    in_events = False
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        if line.lstrip().startswith("["):
            in_events = line.strip().lower() == "[events]"
        elif in_events and key.strip().lower() == "format":
            names = [name.strip().lower() for name in rest.split(",")]
        elif in_events and key.strip().lower() == "dialogue":
            row = dict(zip(names, rest.split(",", len(names) - 1), strict=False))
            start, end = (_us(row.get(name, ""), US) for name in ("start", "end"))
            words = row.get("text", "")
            if not re.search(r"\{[^{}]*\\p[1-9]", words):
                lines = re.sub(r"\{[^{}]*\}", "", words).replace("\\h", " ").replace("\\n", "\\N").split("\\N")
                found.append(replace(_cue(start or 0, end or 0, lines), start_us=start, end_us=end))
    return tuple(sorted(found, key=lambda s: s.start_us or 0))


def _table(text: str) -> tuple[SpokenSegment, ...]:
    """Whisper's TSV: whole milliseconds and a text a line."""
    out: list[SpokenSegment] = []
    for line in text.splitlines()[1:]:
        start, _, rest = line.partition("\t")
        end, _, words = rest.partition("\t")
        out.append(SpokenSegment(words_of(words), _us(start, 1000), _us(end, 1000)))
    return tuple(out)


def _cue(start: int, end: int, lines: list[str]) -> SpokenSegment:
    """One cue; inline time stamps (karaoke cues of WebVTT) date its words."""
    spoken = (_SPEAKER.sub("", _BRACKET.sub(" ", line)) for line in lines if not SOUND_NOTE.match(line))
    marked = "\n".join(line for line in spoken if line.strip())
    pieces: list[TimedPiece] = []
    at = 0
    since = start
    has_marks = False
    for mark in _INLINE.finditer(marked):
        has_marks = True
        stamp = _stamp(mark.groups())
        if marked[at : mark.start()].strip():
            pieces.append(TimedPiece(_plain(marked[at : mark.start()]), since, max(since, stamp)))
        since, at = stamp, mark.end()
    if marked[at:].strip():
        pieces.append(TimedPiece(_plain(marked[at:]), since, max(since, end)))
    if not has_marks:
        words = words_of(" ".join(p.text for p in pieces))
    else:
        words = words_from_pieces(pieces, WordTiming.SIDECAR)
    return SpokenSegment(words, start, max(start, end))


def _plain(text: str) -> str:
    out = _TAG.sub("", text)
    for entity, char in _ENTITY.items():
        out = out.replace(entity, char)
    return out.replace("\n", " ").replace("\\N", " ").translate(_NOTES)


def _without_rolling(cues: list[SpokenSegment], shown: list[list[str]]) -> list[SpokenSegment]:
    """Captions that roll up repeat the line before: keep each line once. Cues that only hold a repeated line vanish.

    Args:
        shown: lines of each cue, as shown. Few words are taken for repeated only where they are a line above another one.
    """
    out: list[SpokenSegment] = []
    above: list[str] = []
    for cue, lines in zip(cues, shown, strict=True):
        rolls = above[-1:] == lines[:1] and (len(lines) > 1 or not _lasts(cue))
        if lines:
            above = lines
        keys = [w.text.casefold() for w in cue.words]
        last = out[-1] if out else None
        shared = 0
        if last is not None and last.end_us is not None and cue.start_us is not None and cue.start_us <= last.end_us + 100_000:
            before = [w.text.casefold() for w in last.words]
            for size in range(min(len(before), len(keys)), 0 if rolls else 2, -1):
                if before[-size:] == keys[:size] and (size < len(keys) or size == len(before)):
                    shared = size
                    break
        if shared and shared == len(keys) and len(last.words if last else ()) == shared:
            shared = 0 if _lasts(cue) and _lasts(last) else shared
        if shared:
            cue = replace(cue, words=cue.words[shared:])
        if cue.words:
            out.append(cue)
    return out


def _lasts(cue: SpokenSegment | None) -> bool:
    """Long enough to be spoken; rolled repeats are shown for a few milliseconds only."""
    return cue is not None and cue.start_us is not None and cue.end_us is not None and cue.end_us - cue.start_us >= 500_000


def _json(text: str) -> Sidecar:
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        raise SidecarUnreadable("sidecar_json", f"the transcript is no valid JSON: {str(error)[:100]}", "check the file") from error
    return sidecar_of(value)


def sidecar_of(value: Any) -> Sidecar:
    """Segments of a transcript that was JSON. Raises SidecarUnreadable."""
    root = value if isinstance(value, dict) else {"segments": value}
    language = _language(root)
    for key in ("segments", "transcription", "chunks", "results", "cues"):
        items = root.get(key)
        if isinstance(items, list) and any(isinstance(i, dict) for i in items):
            segments = tuple(_segment(i) for i in items if isinstance(i, dict))
            loose = root.get("words") or root.get("word_segments")
            if isinstance(loose, list) and not any(w.start_us is not None for s in segments for w in s.words):
                segments = _lay_out(segments, _pieces(loose))
            return Sidecar("json", segments, language)
    for key in ("words", "word_segments"):
        loose = root.get(key)
        if isinstance(loose, list):
            return Sidecar("json", (SpokenSegment(words_from_pieces(_pieces(loose), WordTiming.SIDECAR)),), language)
    if isinstance(root.get("text"), str):
        return Sidecar("json", (SpokenSegment(words_of(root["text"])),), language)
    raise SidecarUnreadable(
        "sidecar_json", "the JSON has no segments, words or text", "give the JSON of WhisperX, whisper.cpp or a Whisper service"
    )


def _language(root: dict[str, Any]) -> str | None:
    result = root.get("result")
    for value in (root.get("language"), result.get("language") if isinstance(result, dict) else None):
        if isinstance(value, str) and value.strip():
            return stated_language(value)
    return None


def _segment(item: dict[str, Any]) -> SpokenSegment:
    start, end = _times(item)
    words = item.get("words")
    pieces = _pieces(words) if isinstance(words, list) else []
    text = item.get("text")
    confidence = _confidence(item)
    if pieces and any(p.text.strip() for p in pieces):
        return SpokenSegment(
            words_from_pieces(_spaced(pieces, text), WordTiming.SIDECAR), start, end, confidence, _number(item.get("no_speech_prob"))
        )
    return SpokenSegment(words_of(text) if isinstance(text, str) else (), start, end, confidence, _number(item.get("no_speech_prob")))


def _spaced(pieces: list[TimedPiece], text: Any) -> list[TimedPiece]:
    """Pieces with the spaces of the segment's own text, which some forms leave out of the words."""
    if not isinstance(text, str) or any(p.text[:1].isspace() or p.text[-1:].isspace() for p in pieces):
        return pieces
    out: list[TimedPiece] = []
    at = 0
    for piece in pieces:
        found = text.find(piece.text, at)
        if found < 0:
            return _with_default_spaces(pieces)
        out.append(replace(piece, text=text[at:found] + piece.text))
        at = found + len(piece.text)
    if text[at:].strip():
        out[-1] = replace(out[-1], text=out[-1].text + text[at:])
    return out


def _with_default_spaces(pieces: list[TimedPiece]) -> list[TimedPiece]:
    out: list[TimedPiece] = []
    for piece in pieces:
        joins = bool(out) and bool(piece.text) and bool(out[-1].text) and (is_wide(piece.text[0]) or is_wide(out[-1].text[-1]))
        out.append(piece if joins or not out or piece.text[:1].isspace() else replace(piece, text=" " + piece.text))
    return out


def _pieces(items: list[Any]) -> list[TimedPiece]:
    out: list[TimedPiece] = []
    for item in items:
        if not isinstance(item, dict):
            continue
        text = next((item[k] for k in ("word", "text", "punctuated_word") if isinstance(item.get(k), str)), "")
        if clean_text(text):
            start, end = _times(item)
            out.append(TimedPiece(text, start, end, _confidence(item)))
    return out if any(p.text[:1].isspace() for p in out) else _with_default_spaces(out)


def _lay_out(segments: tuple[SpokenSegment, ...], pieces: list[TimedPiece]) -> tuple[SpokenSegment, ...]:
    """Times of loose words put onto the words of segments, in order, where the texts agree."""
    timed = [w for w in words_from_pieces(pieces, WordTiming.SIDECAR) if any(c.isalnum() for c in w.text)]
    at = 0
    out: list[SpokenSegment] = []
    for segment in segments:
        words: list[SpokenWord] = []
        for word in segment.words:
            key = _letters(word.text)
            match = next((k for k in range(at, min(at + 4, len(timed))) if _letters(timed[k].text) == key), None) if key else None
            if match is not None:
                found = timed[match]
                word = replace(word, start_us=found.start_us, end_us=found.end_us, confidence=found.confidence, timing=WordTiming.SIDECAR)
                at = match + 1
            words.append(word)
        out.append(replace(segment, words=tuple(words)))
    return tuple(out)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def _times(item: dict[str, Any]) -> tuple[int | None, int | None]:
    """Times of a segment or word: seconds in start/end, a time_interval or a timestamp pair, or whisper.cpp's offsets in milliseconds."""
    for key, scale in (("offsets", 1000), ("time_interval", US)):
        nested = item.get(key)
        if isinstance(nested, dict):
            return _us(nested.get("from", nested.get("start")), scale), _us(nested.get("to", nested.get("end")), scale)
    pair = item.get("timestamp")
    if isinstance(pair, list) and len(pair) == 2:
        return _us(pair[0], US), _us(pair[1], US)
    return _us(item.get("start", item.get("from")), US), _us(item.get("end", item.get("to")), US)


def _us(value: Any, scale: int) -> int | None:
    if isinstance(value, str):
        match = re.fullmatch(_STAMP, value.strip()) if len(value) < 20 else None
        if match:
            return _stamp(match.groups())
        value = float(value) if re.fullmatch(r"\s*\d{1,12}(?:\.\d{0,12})?\s*", value) else None
    number = _number(value)
    return None if number is None else round(min(float(_LATEST_US), max(0.0, number * scale)))


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _confidence(item: dict[str, Any]) -> float | None:
    for key in ("score", "probability", "confidence", "alignment_confidence", "p"):
        value = _number(item.get(key))
        if value is not None:
            return min(1.0, max(0.0, value))
    logged = _number(item.get("avg_logprob"))
    return None if logged is None else min(1.0, max(0.0, math.exp(min(0.0, logged))))
