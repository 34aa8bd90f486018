"""Films are compared by what they show and sound like, not by their bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.command import Sandbox
from media.ffmpeg import run_ffmpeg
from media.fingerprint import Fingerprint, fingerprint
from schemas.errors import ToolFailed

PICTURE = ("-f", "lavfi", "-i", "testsrc2=s=64x48:r=10:d=1")
SOUND = ("-f", "lavfi", "-i", "sine=frequency=300:d=1")


@pytest.fixture
def made(tmp_path: Path, sandbox: Sandbox) -> dict[str, Fingerprint]:
    """Fingerprints of a few small films."""
    lossless = ("-c:v", "ffv1", "-c:a", "pcm_s16le")
    films = {
        "film": (*PICTURE, *SOUND, *lossless),
        "another container": (
            *PICTURE,
            *SOUND,
            "-c:v",
            "libx264",
            "-qp",
            "0",
            "-pix_fmt",
            "yuv420p",
            "-c:a",
            "flac",
            "-metadata",
            "title=x",
        ),
        "another picture": (*PICTURE, *SOUND, "-vf", "drawbox=x=1:y=1:w=9:h=9:c=red:t=fill:enable='gte(t,0.45)'", *lossless),
        "another sound": (*PICTURE, *SOUND, "-af", "volume=0.9", *lossless),
        "shorter": (*PICTURE, *SOUND, "-t", "0.7", *lossless),
        "silent": (*PICTURE, "-an", *lossless),
    }
    out: dict[str, Fingerprint] = {}
    for name, argv in films.items():
        run_ffmpeg((*argv, "/out/film.mkv"), outputs=("film.mkv",), sandbox=sandbox, workdir=tmp_path)
        out[name] = fingerprint(tmp_path / "film.mkv", sandbox)
        (tmp_path / "film.mkv").unlink()
    return out


def test_what_is_seen_and_heard_decides(made: dict[str, Fingerprint]) -> None:
    film = made["film"]
    assert len(film.frames) == 10
    assert made["another container"] == film
    differences = {name: film.first_difference(other) for name, other in made.items()}
    assert differences == {
        "film": None,
        "another container": None,
        "another picture": 5,
        "another sound": None,
        "shorter": 7,
        "silent": None,
    }
    assert {name for name, other in made.items() if other.sound != film.sound} == {"another sound", "shorter", "silent"}
    assert made["silent"].sound == ""


def test_a_file_without_pictures_has_no_fingerprint(tmp_path: Path, sandbox: Sandbox) -> None:
    run_ffmpeg((*SOUND, "/out/sound.wav"), outputs=("sound.wav",), sandbox=sandbox, workdir=tmp_path)
    with pytest.raises(ToolFailed):
        fingerprint(tmp_path / "sound.wav", sandbox)
