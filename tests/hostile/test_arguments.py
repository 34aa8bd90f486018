"""S7: texts, names and tags from outside never become arguments, options, filters or paths of a command.

The commands are recorded as they reach the sandbox: with a hostile text they are those that a harmless one gives, and the kernel (inotify)
sees no other file opened.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from media.command import Command, Completed, Sandbox
from media.ffmpeg import run_ffmpeg
from media.probe import probe
from replay.captions import to_srt
from replay.mix import Spoken
from replay.speech import FliteSpeech
from tests.hostile.watching import Opened
from tests.media.clips import FAST, make, picture

pytestmark = pytest.mark.hostile

TARGET = "{target}"
"""Stands for the path of a file that nothing may open."""
STRINGS = (
    f"movie={TARGET}",
    f"',movie={TARGET}[a];[0:v][a]overlay",
    f"[x]drawtext=textfile={TARGET}[out]",
    f"flite=textfile={TARGET}:voice=kal",
    f"textfile={TARGET}",
    f":textfile={TARGET}:voice=kal",
    f"\\':textfile={TARGET}",
    f"amovie={TARGET}",
    f"subtitles={TARGET}",
    f"sendcmd=f={TARGET}",
    f"lut3d={TARGET}",
    f"concat:{TARGET}|{TARGET}",
    f"file:{TARGET}",
    f"file://{TARGET}",
    f"subfile,,start,0,end,9,,:{TARGET}",
    f"cache:{TARGET}",
    f"async:{TARGET}",
    f"tee:{TARGET}",
    f"-i {TARGET}",
    f"-f lavfi -i movie={TARGET}",
    f"--load={TARGET}",
    f"@{TARGET}",
    f"-filter_complex_script {TARGET}",
    f"-attach {TARGET}",
    f"-vf drawtext=textfile={TARGET}",
    f"-passlogfile {TARGET}",
    f"$(cat {TARGET})",
    f"`cat {TARGET}`",
    f"; cat {TARGET};",
    f"| cat {TARGET}",
    f"& cat {TARGET} &",
    f"> {TARGET}",
    f"< {TARGET}",
    f"{{{TARGET}}}",
    f"${{IFS}}cat${{IFS}}{TARGET}",
    f"%{{metadata:{TARGET}}}",
    f"%{{e\\\\:{TARGET}}}",
    "%{pts}",
    "%{expr:1/0}",
    "%n%s%d",
    f"#EXTM3U\n{TARGET}",
    f"ffconcat version 1.0\nfile '{TARGET}'",
    f"' \nfile '{TARGET}",
    f"\nfile {TARGET}\n",
    f"<script src='{TARGET}'></script>",
    f"<img src=file://{TARGET}>",
    f"url({TARGET})",
    f"@import '{TARGET}'",
    f"../../../../{TARGET}",
    "..",
    ".",
    "~",
    "-",
    "--",
    "-h",
    "-version",
    "a\tb\rc",
    "\u202eexe.4pm",
    "\u2028\u2029",
    f"\ud83d\ude00 '{TARGET}'".encode("utf-16", "surrogatepass").decode("utf-16"),
)


def test_there_are_sixty() -> None:
    assert len(set(STRINGS)) == len(STRINGS) == 60


@dataclass
class Recorder:
    """The real sandbox; remembers what it was asked to run."""

    inner: Sandbox
    asked: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.inner.name

    def _note(self, command: Command) -> None:
        self.asked.append((command.argv, tuple(sorted(command.inputs)), tuple(sorted(command.texts))))

    def run(self, command: Command, workdir: Path) -> Completed:
        self._note(command)
        return self.inner.run(command, workdir)

    def stream(self, command: Command, consume: Callable[[IO[bytes]], None]) -> Completed:
        self._note(command)
        return self.inner.stream(command, consume)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("s") / "f"
    path.write_text("nobody reads this")
    return path


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> Path:
    return make(sandbox, tmp_path_factory.mktemp("clip") / "a.mp4", [*picture(0.2), *FAST])


@pytest.mark.parametrize("number", range(60))
def test_a_text_that_is_spoken_is_no_argument(sandbox: Sandbox, target: Path, number: int) -> None:
    text = STRINGS[number].replace(TARGET, str(target))
    harmless, hostile = Recorder(sandbox), Recorder(sandbox)
    FliteSpeech(harmless).speak("Nothing but words.", "en", "slt", 1.0)
    with Opened(target) as opened:
        FliteSpeech(hostile).speak(f"Word {text}", "en", "slt", 1.0)
    assert hostile.asked == harmless.asked
    assert opened.count == 0


@pytest.mark.parametrize("number", range(0, 60, 3))
def test_a_name_of_a_file_is_no_argument(sandbox: Sandbox, target: Path, clip: Path, tmp_path: Path, number: int) -> None:
    name = STRINGS[number].replace(TARGET, str(target)).replace("/", "\u2215")[:80] + ".mp4"
    path = tmp_path / name
    path.write_bytes(clip.read_bytes())
    harmless, hostile = Recorder(sandbox), Recorder(sandbox)
    plain = probe(clip, harmless)
    with Opened(target) as opened:
        assert probe(path, hostile) == plain
    assert hostile.asked == harmless.asked
    assert opened.count == 0


def test_tags_of_a_film_are_no_arguments(sandbox: Sandbox, target: Path, clip: Path, tmp_path: Path) -> None:
    tags = "".join(f"tag{n}={t.replace(TARGET, str(target))}\n" for n, t in enumerate(STRINGS) if "\n" not in t and "\r" not in t)
    meta = ";FFMETADATA1\n" + tags.replace("\\", "\\\\").replace(";", "\\;").replace("#", "\\#") + "title=-i /etc/passwd\n"
    argv = ("-i", "/in/clip", "-f", "ffmetadata", "-i", "/in/meta", "-map_metadata", "1", "-c", "copy", "-movflags", "use_metadata_tags")
    made = run_ffmpeg((*argv, "/out/b.mp4"), inputs={"clip": clip}, texts={"meta": meta.encode()}, outputs=("b.mp4",), sandbox=sandbox,
                      workdir=tmp_path)  # fmt: skip
    harmless, hostile = Recorder(sandbox), Recorder(sandbox)
    plain = probe(clip, harmless)
    with Opened(target) as opened:
        found = probe(made.outputs["b.mp4"], hostile)
    assert found.video == plain.video
    assert hostile.asked == harmless.asked
    assert opened.count == 0


@pytest.mark.parametrize("number", range(0, 60, 5))
def test_a_caption_is_text_that_a_player_shows_as_it_is(sandbox: Sandbox, target: Path, tmp_path: Path, number: int) -> None:
    """The sidecar is read back by ffmpeg as one or more cues within the narration's span; no text makes a cue of its own elsewhere."""
    text = " ".join(f"Word {STRINGS[number].replace(TARGET, str(target))} 00:09:00,000 --> 00:09:59,000 end".split())
    srt = to_srt((Spoken("s001", 1_000_000, 4_000_000, text, "0" * 64),))
    argv = ("-f", "srt", "-i", "/in/c.srt", "-c:s", "ass", "-f", "ass", "pipe:1")
    with Opened(target) as opened:
        done = run_ffmpeg(argv, texts={"c.srt": srt}, sandbox=sandbox, workdir=tmp_path)
    cues = [line.split(",")[1:3] for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("Dialogue:")]
    assert cues
    assert min(cues)[0] == "0:00:01.00"
    assert max(c[1] for c in cues) in ("0:00:04.00", "0:00:04.01")  # ffmpeg rounds the start and the length to hundredths
    assert opened.count == 0


def test_a_text_that_does_become_a_filter_opens_the_file(target: Path) -> None:
    """A control: the same words in the place of a filter, outside."""
    argv = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"flite=textfile={target}", "-t", "0.1", "-f", "null", "-"]
    with Opened(target) as opened:
        subprocess.run(argv, check=True, capture_output=True)
    assert opened.count > 0
