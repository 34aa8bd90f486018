"""A whole run over inputs of every odd kind: each is recorded with its reason, none is waited for, none loses the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jobs.batch import run_batch
from jobs.sources import locate
from schemas.errors import ConfigInvalid
from storage.lake import Lake


def odd_folder(root: Path) -> Path:
    """A folder with one of each kind."""
    folder = root / "videos"
    (folder / "film.mp4").mkdir(parents=True)
    outside = root / "outside"
    outside.mkdir()
    (outside / "a.mp4").write_bytes(b"elsewhere")
    for name in (
        "with space.mp4",
        "quo'te\".mp4",
        "new\nline.mp4",
        "[x].mp4",
        "ünï漢.mp4",
        "-n.mp4",
        "\x1b[31mred.mp4",
        "film.mp4/inner.mp4",
    ):
        (folder / name).write_bytes(b"no film: " + name.encode())
    Path(folder / os.fsdecode(b"caf\xe9.mp4")).write_bytes(b"no utf-8")
    (folder / "twice.mp4").write_bytes((folder / "with space.mp4").read_bytes())
    (folder / "zero.mp4").write_bytes(b"")
    os.symlink("with space.mp4", folder / "link.mp4")
    os.symlink("loop.mp4", folder / "loop.mp4")
    os.symlink(outside / "a.mp4", folder / "out.mp4")
    os.symlink(outside, folder / "outfolder")
    os.symlink("film.mp4", folder / "infolder")
    os.mkfifo(folder / "fifo.mp4")
    return folder


def test_every_odd_input_is_recorded_with_its_reason_and_none_is_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = odd_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    named = ["videos", "videos/", "videos/link.mp4", "", "/dev/zero", "/proc/self/mem", "n" * 300 + ".mp4", "nope*.mp4", "-x.mp4"]
    report = run_batch(named, tmp_path / "lake", "ci", "local", quiet=False)
    assert {r.uri.removeprefix("videos/"): r.code for r in report.results} == {
        "-n.mp4": "not_media",
        "[x].mp4": "not_media",
        "caf\\xe9.mp4": "not_media",
        "fifo.mp4": "not_a_file",
        "film.mp4/inner.mp4": "not_media",
        "link.mp4": "not_media",  # stands for the film, the link to it and the copy of it
        "loop.mp4": "not_found",
        "new\nline.mp4": "not_media",
        "out.mp4": "outside_root",
        "outfolder": "outside_root",
        "quo'te\".mp4": "not_media",
        "zero.mp4": "empty_file",
        "\x1b[31mred.mp4": "not_media",
        "ünï漢.mp4": "not_media",
        "": "not_found",
        "/dev/zero": "not_a_file",
        "/proc/self/mem": "unreadable",
        "n" * 300 + ".mp4": "not_found",
        "nope*.mp4": "not_found",
        "-x.mp4": "not_found",
    }
    lake = Lake(tmp_path / "lake")
    equal = [
        r["uri"]
        for r in lake.scan("sources").to_pylist()
        if r["source_sha256"] and r["uri"].endswith(("link.mp4", "space.mp4", "twice.mp4"))
    ]
    assert sorted(equal) == ["videos/link.mp4", "videos/twice.mp4", "videos/with space.mp4"]
    assert (folder / "fifo.mp4").exists()
    report.print()
    shown = capsys.readouterr()
    assert "\x1b[31mred" not in shown.out + shown.err
    assert "new\nline" not in shown.out + shown.err
    assert run_batch(named, tmp_path / "lake", "ci", "local", quiet=True).results[0].stages_run == 0


def test_a_folder_that_cannot_be_listed_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "videos" / "closed").mkdir(parents=True)
    (tmp_path / "videos" / "a.mp4").write_bytes(b"x")
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)  # root may list everything
    found = {Path(one.item.uri).name: one.refused.code.value if one.refused else None for one in locate([str(tmp_path / "videos")])}
    assert found == {"a.mp4": None, "closed": "unreadable"}


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("m.jsonl", "[1, 2]\n", "manifest_row"),
        ("m.jsonl", "3\n", "manifest_row"),
        ("m.jsonl", "{\n", "manifest_unreadable"),
        ("m.csv", "uri,title\na.mp4,b,c,d\n", "manifest_row"),
        ("M.CSV", "uri\n", None),
        ("m.csv", 'uri\n"' + "x" * 200_000 + '"\n', "manifest_unreadable"),
        ("m.parquet", "no parquet", "manifest_unreadable"),
    ],
)
def test_a_manifest_that_is_none_is_told_so(tmp_path: Path, name: str, text: str, code: str | None) -> None:
    (tmp_path / name).write_text(text)
    if code is None:
        assert locate([str(tmp_path / name)]) == []
        return
    with pytest.raises(ConfigInvalid) as e:
        locate([str(tmp_path / name)])
    assert e.value.code == code


def test_a_name_in_a_manifest_that_no_file_can_have_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_text('{"uri": "a\\u0000b.mp4"}\n{"uri": "' + "n" * 300 + '.mp4"}\n')
    found = locate([str(tmp_path / "m.jsonl")])
    assert [one.refused.code.value for one in found if one.refused] == ["not_found", "not_found"]
