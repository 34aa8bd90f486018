"""What a file is by its first bytes, and which texts are refused as manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.command import Sandbox
from media.ffmpeg import DEMUXERS
from media.sniff import sniff
from schemas.errors import MediaRejected
from tests.media.clips import FAST, make, picture, tone

HLS = "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:10.0,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n"
DASH = '<?xml version="1.0"?>\n<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period></Period></MPD>\n'

TEXTS = {
    "hls": HLS,
    "hls with leading blank lines": "\n\n  " + HLS,
    "m3u with addresses": "http://127.0.0.1:9/a.ts\nhttp://127.0.0.1:9/b.ts\n",
    "dash": DASH,
    "smooth streaming": "<SmoothStreamingMedia MajorVersion='2'></SmoothStreamingMedia>",
    "smil": "<smil><body><video src='a.mp4'/></body></smil>",
    "asx": "<asx version='3.0'><entry><ref href='a'/></entry></asx>",
    "xspf": "<?xml version='1.0'?><playlist version='1'></playlist>",
    "pls": "[playlist]\nFile1=a.mp4\n",
    "shortcut": "[InternetShortcut]\nURL=http://127.0.0.1/\n",
    "quicktime text": "[Reference]\nRef1=http://127.0.0.1/a\n",
    "ffconcat": "ffconcat version 1.0\nfile single_shot.mp4\nfile dark_slides.mp4\n",
    "concat script": "# a list\nfile 'a.mp4'\nfile 'b.mp4'\n",
    "concat protocol": "concat:a.mp4|b.mp4",
    "subfile protocol": "subfile,,start,0,end,100,,:a.mp4",
    "data address": "data:video/mp4;base64,AAAA",
    "sdp": "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nm=video 5004 RTP/AVP 96\r\n",
    "rtsp address": "rtsp://127.0.0.1/stream\n",
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_manifests_are_refused_in_every_encoding(tmp_path: Path, name: str, encoding: str) -> None:
    path = tmp_path / "film.mp4"
    path.write_bytes(TEXTS[name].encode(encoding))
    with pytest.raises(MediaRejected) as caught:
        sniff(path)
    assert caught.value.code == "manifest_refused"


@pytest.mark.parametrize(
    "content",
    [
        b"just some text\n",
        "这是一个文本文件。".encode(),
        b"<html><body>not found</body></html>",
        b'{"a": 1}',
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"PK\x03\x04" + bytes(100),
        b"\x7fELF" + bytes(100),
        bytes(5000),
        b"x",
        b"\xff\xfe",
        b"\xff\xfb",
        b"G" * 100,
        b"GGG",
    ],
)
def test_other_files_are_no_media(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "film.mp4").write_bytes(content)
    with pytest.raises(MediaRejected) as caught:
        sniff(tmp_path / "film.mp4")
    assert caught.value.code == "not_media"


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "film.mp4").touch()
    with pytest.raises(MediaRejected) as caught:
        sniff(tmp_path / "film.mp4")
    assert caught.value.code == "empty_file"


@pytest.mark.parametrize(
    ("name", "container", "options"),
    [
        ("a.mp4", "mov", FAST),
        ("a.mov", "mov", FAST),
        ("a.mkv", "matroska", FAST),
        ("a.ts", "mpegts", FAST),
        ("a.m2ts", "mpegts", FAST),
        ("a.avi", "avi", ["-c:v", "mpeg4"]),
        ("a.mpg", "mpeg", ["-c:v", "mpeg2video"]),
        ("a.flv", "flv", ["-c:v", "flv"]),
        ("a.asf", "asf", ["-c:v", "msmpeg4"]),
        ("a.ogv", "ogg", ["-c:v", "libtheora"]),
    ],
)
def test_films_are_known_whatever_they_are_called(sandbox: Sandbox, tmp_path: Path, name: str, container: str, options: list[str]) -> None:
    path = make(sandbox, tmp_path / name, [*picture(0.4, rate="25"), *options])
    odd = path.rename(tmp_path / "text.txt")
    assert sniff(odd) == container
    assert container in DEMUXERS


@pytest.mark.parametrize(
    ("name", "container"),
    [
        ("a.wav", "wav"),
        ("a.flac", "flac"),
        ("a.mp3", "mp3"),
        ("a.aac", "aac"),
        ("a.opus", "ogg"),
        ("a.aiff", "aiff"),
        ("a.caf", "caf"),
        ("a.m4a", "mov"),
    ],
)
def test_sounds_are_known(sandbox: Sandbox, tmp_path: Path, name: str, container: str) -> None:
    assert sniff(make(sandbox, tmp_path / name, tone(0.4))) == container


def test_a_bare_mp3_without_tags(sandbox: Sandbox, tmp_path: Path) -> None:
    assert sniff(make(sandbox, tmp_path / "a.mp3", [*tone(0.4), "-id3v2_version", "0", "-write_xing", "0"])) == "mp3"


def test_a_film_whose_samples_lie_in_another_file(sandbox: Sandbox, tmp_path: Path) -> None:
    path = make(sandbox, tmp_path / "a.mp4", [*picture(0.4), *FAST])
    data = path.read_bytes()
    assert data.count(b"url \x00\x00\x00\x01") == 1
    path.write_bytes(data.replace(b"url \x00\x00\x00\x01", b"url \x00\x00\x00\x00"))
    with pytest.raises(MediaRejected, match="another file") as caught:
        sniff(path)
    assert caught.value.code == "manifest_refused"


def test_a_reference_movie(tmp_path: Path) -> None:
    inner = b"\x00\x00\x00\x08rmra"
    (tmp_path / "a.mov").write_bytes((len(inner) + 8).to_bytes(4, "big") + b"moov" + inner)
    with pytest.raises(MediaRejected) as caught:
        sniff(tmp_path / "a.mov")
    assert caught.value.code == "manifest_refused"
