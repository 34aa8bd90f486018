"""Inputs as the user names them: what is taken, what is refused, what is kept of a name."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jobs.sources import digest_file, group, locate, project_id_of
from schemas.errors import ConfigInvalid
from schemas.stage import RejectCode


def make(path: Path, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_folder_takes_media_files_in_name_order(tmp_path: Path) -> None:
    for name in ("b.mp4", "a.webm", "notes.txt", "deep/c.mkv"):
        make(tmp_path / name)
    assert [Path(one.item.uri).name for one in locate([str(tmp_path)])] == ["a.webm", "b.mp4", "c.mkv"]


def test_named_file_is_taken_whatever_its_ending(tmp_path: Path) -> None:
    path = make(tmp_path / "film.bin")
    assert [one.path for one in locate([str(path)])] == [path]


@pytest.mark.parametrize(
    "name",
    [
        "with space.mp4",
        "quote'd\".mp4",
        "-n.mp4",
        "new\nline.mp4",
        "100%d.mp4",
        "concat:a.mp4",
        "[x].mp4",
        "*.mp4",
        "ünï漢.mp4",
        "$(id).mp4",
    ],
)
def test_odd_names_are_only_names(tmp_path: Path, name: str) -> None:
    path = make(tmp_path / name)
    found = locate([str(path)])
    assert [(one.item.uri, one.path, one.refused) for one in found] == [(str(path), path, None)]


def test_glob_expands_sorted(tmp_path: Path) -> None:
    for name in ("2.mp4", "1.mp4", "x.txt"):
        make(tmp_path / name)
    assert [Path(one.item.uri).name for one in locate([str(tmp_path / "*.mp4")])] == ["1.mp4", "2.mp4"]


def link_dangling(root: Path) -> Path:
    os.symlink(root / "nowhere.mp4", root / "l.mp4")
    return root / "l.mp4"


def link_loop(root: Path) -> Path:
    os.symlink(root / "l.mp4", root / "l.mp4")
    return root / "l.mp4"


def absent(root: Path) -> Path:
    return root / "absent.mp4"


@pytest.mark.parametrize(
    ("maker", "code"),
    [(absent, RejectCode.NOT_FOUND), (link_dangling, RejectCode.NOT_FOUND), (link_loop, RejectCode.NOT_FOUND)],
)
def test_what_is_not_there_is_a_rejection(tmp_path: Path, maker: object, code: RejectCode) -> None:
    path = maker(tmp_path)  # type: ignore[operator]
    (one,) = locate([str(path)])
    assert one.refused is not None
    assert one.refused.code is code


def test_link_out_of_the_folder_is_refused_and_inside_is_followed(tmp_path: Path) -> None:
    make(tmp_path / "out" / "secret.mp4")
    make(tmp_path / "in" / "a.mp4")
    os.symlink(tmp_path / "out" / "secret.mp4", tmp_path / "in" / "b.mp4")
    os.symlink(tmp_path / "in" / "a.mp4", tmp_path / "in" / "c.mp4")
    codes = {Path(o.item.uri).name: o.refused.code if o.refused else None for o in locate([str(tmp_path / "in")])}
    assert codes == {"a.mp4": None, "b.mp4": RejectCode.OUTSIDE_ROOT, "c.mp4": None}


def test_equal_bytes_are_one_project_and_keep_all_names(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a.mp4", b"same"), make(tmp_path / "b.mp4", b"same")
    (one,) = group(locate([str(a), str(b)]))
    assert [i.uri for i in one.items] == [str(a), str(b)]
    assert one.project_id == project_id_of(one.sha256 or "")


def test_equal_stems_stay_apart(tmp_path: Path) -> None:
    paths = [make(tmp_path / f / "clip.mp4", f.encode()) for f in ("p", "q")] + [make(tmp_path / "p" / "clip.mov", b"r")]
    assert len({g.key for g in group(locate([str(p) for p in paths]))}) == 3


def test_empty_files_stay_apart(tmp_path: Path) -> None:
    make(tmp_path / "a.mp4", b"")
    make(tmp_path / "b.mp4", b"")
    assert len(group(locate([str(tmp_path)]))) == 2


def write_csv(path: Path) -> Path:
    path.write_text("uri,title,licence\na.mp4,First,CC0-1.0\n", "utf-8")
    return path


def write_jsonl(path: Path) -> Path:
    path.write_text('{"uri": "a.mp4", "title": "First", "licence": "CC0-1.0"}\n\n', "utf-8")
    return path


def write_parquet(path: Path) -> Path:
    pq.write_table(pa.table({"uri": ["a.mp4"], "title": ["First"], "licence": ["CC0-1.0"]}), path)
    return path


@pytest.mark.parametrize(("writer", "name"), [(write_csv, "m.csv"), (write_jsonl, "m.jsonl"), (write_parquet, "m.parquet")])
def test_manifest_gives_names_and_licences(tmp_path: Path, writer: object, name: str) -> None:
    make(tmp_path / "a.mp4")
    (one,) = locate([str(writer(tmp_path / name))])  # type: ignore[operator]
    assert (one.item.title, one.item.licence, one.path.name, one.refused) == ("First", "CC0-1.0", "a.mp4", None)


@pytest.mark.parametrize(
    ("text", "code"),
    [("title\nx\n", "manifest_row"), ("uri,colour\na.mp4,red\n", "manifest_column")],
)
def test_manifest_faults_are_told(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "m.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigInvalid) as e:
        locate([str(path)])
    assert e.value.code == code


def test_name_that_is_no_utf8_is_shown_and_opened(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.mp4")
    make(path)
    (one,) = locate([str(tmp_path)])
    assert one.item.uri.endswith("caf\\xe9.mp4")
    assert one.path.read_bytes() == b"x"


@pytest.mark.parametrize("name", ["/dev/zero", "fifo", "a\0b", "."])
def test_what_is_no_regular_file_is_never_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert digest_file(tmp_path / name) == (None, None)
