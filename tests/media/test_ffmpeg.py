"""How ffmpeg is called."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import ffmpeg
import pytest

from media.command import Limits, Sandbox
from media.ffmpeg import (
    CODEC_WHITELIST,
    DEMUXERS,
    TO_HOUSE_COLOUR,
    compile_graph,
    guard_inputs,
    house_audio,
    house_video,
    input_options,
    run_ffmpeg,
)
from media.probe import probe
from schemas.errors import LimitExceeded, ToolFailed
from tests.media.clips import picture, tone


def test_a_compiled_graph_runs(sandbox: Sandbox, film: Path, tmp_path: Path) -> None:
    graph = ffmpeg.input("/in/film").video.filter("scale", 64, 36).output("/out/a.mkv", vcodec="ffv1")
    argv = compile_graph(graph)
    assert argv[0] == "ffmpeg"
    done = run_ffmpeg(argv, inputs={"film": film}, outputs=("a.mkv",), sandbox=sandbox, workdir=tmp_path)
    assert probe(done.outputs["a.mkv"], sandbox).video is not None


def test_a_caption_is_text_whatever_it_says(sandbox: Sandbox, tmp_path: Path) -> None:
    graph = ffmpeg.input("color=black:size=320x40:duration=0.1", f="lavfi").filter(
        "drawtext",
        textfile="/in/caption.txt",
        expansion="none",
        fontsize=20,
        fontcolor="white",
        fontfile="/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    )
    if not Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf").exists():
        pytest.skip("no font for drawtext")
    argv = compile_graph(graph.output("/out/a.mkv", vcodec="ffv1"))
    hostile = b"%{pts} ':\\;,[x]=movie=/in/secret; %{e:1/0}"
    run_ffmpeg(argv, texts={"caption.txt": hostile}, outputs=("a.mkv",), sandbox=sandbox, workdir=tmp_path)
    assert (tmp_path / "a.mkv").stat().st_size > 500


def test_failure_is_a_typed_error_with_the_last_words(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="No such filter: 'nosuchfilter'") as caught:
        run_ffmpeg([*picture(0.1), "-vf", "nosuchfilter", "/out/a.mkv"], outputs=("a.mkv",), sandbox=sandbox, workdir=tmp_path)
    assert "0x" not in caught.value.message


def test_a_limit_is_a_limit(sandbox: Sandbox, tmp_path: Path) -> None:
    endless = ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=30", "-f", "null", "-"]
    with pytest.raises(LimitExceeded):
        run_ffmpeg(endless, sandbox=sandbox, workdir=tmp_path, limits=Limits(wall_s=1))


def test_the_house_profile_gives_equal_bytes(sandbox: Sandbox, tmp_path: Path) -> None:
    digests = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        argv = [*picture(0.5), *tone(0.5), "-vf", TO_HOUSE_COLOUR, *house_video(preset="ultrafast"), *house_audio(), "/out/film.mp4"]
        done = run_ffmpeg(argv, outputs=("film.mp4",), sandbox=sandbox, workdir=tmp_path / name)
        digests.append(hashlib.sha256(done.outputs["film.mp4"].read_bytes()).hexdigest())
    assert digests[0] == digests[1]
    data = (tmp_path / "a" / "film.mp4").read_bytes()
    assert re.search(rb"Lav[cf]\d", data) is None


def test_every_file_input_is_guarded() -> None:
    words = ["-f", "lavfi", "-i", "color=red", "-t", "1", "-i", "/in/a", "-f", "mp4", "-i", "/in/b", "-c", "copy", "/out/c"]
    guarded = guard_inputs(words)
    assert [w for w in guarded if w in words] == words
    at = guarded.index("/in/a")
    assert guarded[: guarded.index("-i")] == ["-f", "lavfi"]
    assert {"-protocol_whitelist", "-format_whitelist", "file,pipe"} <= set(guarded[guarded.index("color=red") : at])
    assert "-format_whitelist" not in guarded[at : guarded.index("/in/b")]


@pytest.mark.parametrize("container", DEMUXERS)
def test_a_file_from_outside_has_one_demuxer_and_known_decoders(container: str) -> None:
    options = input_options(container)
    assert options[options.index("-f") + 1] == DEMUXERS[container]
    assert options[options.index("-codec_whitelist") + 1] == CODEC_WHITELIST
    assert options[options.index("-protocol_whitelist") + 1] == "file,pipe"


@pytest.mark.parametrize("name", ["hls", "dash", "concat", "sdp", "rtsp", "image2", "lavfi", "tty", "subfile"])
def test_demuxers_that_open_other_things_are_not_listed(name: str) -> None:
    assert name not in DEMUXERS.values()
