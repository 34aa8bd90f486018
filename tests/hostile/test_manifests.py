"""S5: files that pose as films and point elsewhere: refused, and no second file is opened, neither by us nor by the decoder."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from media.command import Command, Sandbox
from media.decoding import Source, pictures
from media.ffmpeg import DEMUXERS, FORMAT_WHITELIST, input_options, tool
from media.frames import stream_frames
from media.probe import probe
from schemas.errors import MediaRejected, ToolFailed
from tests.hostile.watching import Opened
from tests.media.clips import FAST, make, picture

pytestmark = pytest.mark.hostile

CANARY = b"CANARY-5b1c"


@pytest.fixture(scope="module")
def stage(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real film and a text that hostile files point at, open to everybody."""
    folder = Path("/tmp") / f"workprint-manifests-{os.getpid()}"  # noqa: S108
    folder.mkdir()
    make(sandbox, folder / "film.ts", [*picture(0.4), *FAST])
    make(sandbox, folder / "film.mp4", [*picture(0.4), *FAST])
    (folder / "canary.txt").write_bytes(CANARY)
    yield folder  # type: ignore[misc]
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def requests() -> Iterator[tuple[int, list[str]]]:
    """A web server on loopback that writes down who comes."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(404)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], seen
    server.shutdown()


def _hls(target: str) -> str:
    return f"#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:10\n#EXTINF:10.0,\n{target}\n#EXT-X-ENDLIST\n"


def _dash(target: str) -> str:
    return (
        '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S">'
        '<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">'
        f"<BaseURL>{target}</BaseURL></Representation></AdaptationSet></Period></MPD>"
    )


def _avi_with_playlist(stage: Path) -> bytes:
    """An AVI whose subtitle chunk is a playlist."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return kind + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)

    def header(kind: bytes, handler: bytes) -> bytes:
        return chunk(b"strh", kind + handler + bytes(12) + b"\1\0\0\0\x19\0\0\0" + bytes(24))

    playlist = _hls(f"file://{stage}/canary.txt").encode()
    gab2 = b"GAB2\0\2\0" + (0).to_bytes(4, "little") + b"\4\0" + len(playlist).to_bytes(4, "little") + playlist
    video = chunk(
        b"LIST",
        b"strl" + header(b"vids", b"MJPG") + chunk(b"strf", (40).to_bytes(4, "little") + b"\x10\0\0\0\x10\0\0\0\1\0\x18\0MJPG" + bytes(20)),
    )
    words = chunk(b"LIST", b"strl" + header(b"txts", bytes(4)) + chunk(b"strf", b""))
    main = chunk(b"avih", bytes(24) + b"\2\0\0\0" + bytes(28))
    body = (
        b"AVI "
        + chunk(b"LIST", b"hdrl" + main + video + words)
        + chunk(b"LIST", b"movi" + chunk(b"01tx", gab2) + chunk(b"00dc", b"\xff\xd8\xff\xd9"))
    )
    return b"RIFF" + len(body).to_bytes(4, "little") + body


def _external_mov(stage: Path) -> bytes:
    return (stage / "film.mp4").read_bytes().replace(b"url \x00\x00\x00\x01", b"url \x00\x00\x00\x00")


def _master(stage: Path) -> str:
    (stage / "inner.m3u8").write_text(_hls(f"file://{stage}/film.ts"))
    return f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nfile://{stage}/inner.m3u8\n"


Maker = Callable[[Path, int], bytes]

KINDS: dict[str, Maker] = {
    "hls": lambda stage, port: _hls(f"file://{stage}/film.ts").encode(),
    "hls of a text": lambda stage, port: _hls(f"file://{stage}/canary.txt").encode(),
    "dash": lambda stage, port: _dash(f"file://{stage}/film.mp4").encode(),
    "concat": lambda stage, port: f"ffconcat version 1.0\nfile {stage}/film.mp4\nfile {stage}/film.mp4\n".encode(),
    "sdp": lambda stage, port: f"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nm=video {port} RTP/AVP 96\r\n".encode(),
    "subfile": lambda stage, port: f"subfile,,start,0,end,100,,:{stage}/canary.txt".encode(),
    "playlist inside an avi": lambda stage, port: _avi_with_playlist(stage),
    "samples in another file": lambda stage, port: _external_mov(stage),
    "m3u of addresses": lambda stage, port: f"http://127.0.0.1:{port}/a.ts\nhttp://127.0.0.1:{port}/b.ts\n".encode(),
    "hls of addresses": lambda stage, port: _hls(f"http://127.0.0.1:{port}/a.ts").encode(),
    "data address": lambda stage, port: b"data:video/mp4;base64,AAAAIGZ0eXBpc29tAAACAGlzb21pc28yYXZjMW1wNDE=",
    "nested": lambda stage, port: _master(stage).encode(),
    "utf-16": lambda stage, port: _hls(f"file://{stage}/film.ts").encode("utf-16"),
    "utf-16 without a mark": lambda stage, port: _hls(f"file://{stage}/film.ts").encode("utf-16-be"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_and_nothing_else_is_opened(
    stage: Path, sandbox: Sandbox, requests: tuple[int, list[str]], tmp_path: Path, kind: str
) -> None:
    port, seen = requests
    hostile = tmp_path / "film.mp4"
    hostile.write_bytes(KINDS[kind](stage, port))
    before = len(seen)
    with Opened(stage / "film.ts", stage / "film.mp4", stage / "canary.txt") as opened, pytest.raises(MediaRejected) as caught:
        probe(hostile, sandbox)
    assert caught.value.code == "manifest_refused"
    assert opened.count == 0
    assert len(seen) == before
    assert CANARY.decode() not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("container", ["mov", "avi"])
def test_the_decoder_would_not_follow_it_either(
    stage: Path, sandbox: Sandbox, requests: tuple[int, list[str]], tmp_path: Path, kind: str, container: str
) -> None:
    """Past the first check: a forced demuxer inside the sandbox, where the other files are not."""
    port, seen = requests
    hostile = tmp_path / "film.mp4"
    hostile.write_bytes(KINDS[kind](stage, port))
    if kind in ("playlist inside an avi", "samples in another file") and container not in ("avi", "mov"):
        pytest.skip("a container of another kind")
    before = len(seen)
    with Opened(stage / "film.ts", stage / "film.mp4", stage / "canary.txt") as opened:
        frames = pictures(Source(hostile, container, 0), sandbox, chain="scale=16:16,format=gray", frame_bytes=256)
        with contextlib.suppress(MediaRejected, ToolFailed):
            decoded = len(list(frames))
            assert decoded <= 1 or kind == "samples in another file"  # ffmpeg then takes the samples of the file itself
    assert opened.count == 0
    assert len(seen) == before


@pytest.mark.parametrize("kind", ["hls", "dash", "concat", "nested"])
def test_the_list_of_formats_refuses_it_without_a_forced_demuxer(stage: Path, sandbox: Sandbox, tmp_path: Path, kind: str) -> None:
    hostile = tmp_path / "film.mp4"
    hostile.write_bytes(KINDS[kind](stage, 9))
    program, folders = tool("ffprobe")
    options = ("-v", "error", "-protocol_whitelist", "file,pipe", "-format_whitelist", FORMAT_WHITELIST, "-show_format", "/in/source")
    command = Command(argv=(program, *options), inputs={"source": hostile}, folders=folders)
    with Opened(stage / "film.ts", stage / "film.mp4") as opened:
        done = sandbox.run(command, tmp_path)
    assert done.returncode != 0
    assert b"format_name" not in done.stdout
    assert opened.count == 0


def test_the_watch_sees_an_opening_when_there_is_one(stage: Path, tmp_path: Path) -> None:
    """The control: a player without our lists does follow such a file."""
    hostile = tmp_path / "film.mp4"
    hostile.write_bytes(KINDS["concat"](stage, 9))
    with Opened(stage / "film.mp4") as opened:
        subprocess.run(
            ["ffprobe", "-v", "error", "-f", "concat", "-safe", "0", "-show_format", str(hostile)], check=True, capture_output=True
        )
    assert opened.count > 0


def test_a_numbered_name_is_no_image_sequence(stage: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    make(sandbox, tmp_path / "img001.png", [*picture(0.04), "-frames:v", "1"])
    shutil.copy(tmp_path / "img001.png", tmp_path / "img%03d.png")
    with Opened(tmp_path / "img001.png") as opened, pytest.raises(MediaRejected) as caught:
        probe(tmp_path / "img%03d.png", sandbox)
    assert caught.value.code == "not_media"
    assert opened.count == 0


@pytest.mark.parametrize("codec", ["magicyuv", "cljr", "zmbv", "r210", "cinepak"])
def test_a_codec_that_is_not_listed_is_refused_at_probe_and_at_decode(sandbox: Sandbox, tmp_path: Path, codec: str) -> None:
    form = {"magicyuv": "yuv420p", "cljr": "yuv411p", "zmbv": "bgr0", "r210": "gbrp10le", "cinepak": "rgb24"}[codec]
    path = make(sandbox, tmp_path / "a.mkv", [*picture(0.2, "160x96"), "-c:v", codec, "-pix_fmt", form, "-strict", "-2"])
    with pytest.raises(MediaRejected) as caught:
        probe(path, sandbox)
    assert caught.value.code == "codec_refused"
    with pytest.raises(MediaRejected):
        list(pictures(Source(path, "matroska", 0), sandbox, chain="scale=16:16,format=gray", frame_bytes=256))


def test_every_container_is_forced() -> None:
    assert all("-f" in input_options(container) for container in DEMUXERS)


def test_a_film_beside_hostile_files_is_read(stage: Path, sandbox: Sandbox) -> None:
    info = probe(stage / "film.mp4", sandbox)
    assert len(list(stream_frames(stage / "film.mp4", info, sandbox, width=16, height=16))) == 10
