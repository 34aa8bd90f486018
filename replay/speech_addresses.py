"""Addresses in a text - of pages, mail boxes, files - and tags with a hash: which they are, and their parts as words."""

from __future__ import annotations

import re
from collections.abc import Mapping

_DOMAINS = "com org net edu gov io ai co dev app info de uk cn jp fr eu ca ru tv"
_FILES = (
    "txt pdf py js ts html css json jsonl csv tsv xml md yaml yml toml mp3 mp4 wav png jpg jpeg gif svg zip tar gz exe doc docx xls xlsx "
    "ppt pptx sh parquet srt vtt"
)
_TAIL = r"(?:[/?#][^\s,;)\"'<>，。；！？）]*[\w/])?"
_ADDRESS = re.compile(
    r"(?:https?|ftp|file)://[^\s,;)\"'<>，。；！？）]*[\w/]"
    r"|(?<![\w@])[\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
    rf"|\bwww\.[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+{_TAIL}"
    rf"|(?<![\w@.-])(?:[A-Za-z0-9-]+\.)+(?:{'|'.join(_DOMAINS.split())})(?![\w@-]|\.\w){_TAIL}"
    rf"|(?<![\w@.])[\w-]+\.(?:{'|'.join(_FILES.split())})(?![\w@])",
    re.ASCII,
)
_HASHTAG = re.compile(r"(?<![\w&])#(?=[^\W\d])(\w+)#?")
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_")


def addresses(text: str, words: Mapping[str, str]) -> str:
    """Addresses with their signs as words (``.`` is ``dot``); a scheme and ``www`` are not said."""
    return _ADDRESS.sub(lambda m: _spelled(m.group(), words), text)


def hashtags(text: str, word: str) -> str:
    """``#MachineLearning`` as ``word`` and the words in it."""
    return _HASHTAG.sub(lambda m: f" {word} {_HUMPS.sub(' ', m.group(1))} ", text)


def _spelled(address: str, words: Mapping[str, str]) -> str:
    bare = re.sub(r"^(?:https?|ftp|file):/{2,}", "", address)
    return " " + "".join(f" {words[c]} " if c in words else c for c in re.sub(r"^www\.", "", bare).rstrip("/")) + " "
