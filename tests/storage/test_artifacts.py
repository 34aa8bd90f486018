"""The artifact store: names are digests, reads are verified, writes are durable or refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.errors import DigestMismatch, SchemaMismatch, StorageFault, StorageFull
from storage import durable
from storage.artifacts import ArtifactStore

HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts")


def test_bytes_are_named_by_their_digest(store: ArtifactStore) -> None:
    ref = store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain")
    assert ref == ArtifactRef(sha256=HELLO, kind=ArtifactKind.OTHER, media_type="text/plain", size_bytes=5)
    assert store.read(HELLO) == b"hello"
    assert store.path(HELLO) == store.root / "2c" / HELLO


def test_json_is_stored_in_canonical_form(store: ArtifactStore) -> None:
    ref = store.put_json({"b": 1, "a": "\u2028"}, ArtifactKind.RECORD)
    assert store.read(ref.sha256) == '{"a":"\u2028","b":1}'.encode()
    assert store.read_json(ref.sha256) == {"a": "\u2028", "b": 1}
    assert ref.media_type == "application/json"


@pytest.mark.parametrize("value", ["lone \ud800 surrogate", 2**70, object()])
def test_what_json_cannot_hold_is_a_typed_error(store: ArtifactStore, value: object) -> None:
    with pytest.raises(SchemaMismatch, match="not_json"):
        store.put_json({"v": value}, ArtifactKind.RECORD)
    assert list(store.names()) == []


def test_equal_bytes_are_stored_once(store: ArtifactStore) -> None:
    store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain")
    inode = store.path(HELLO).stat().st_ino
    store.put_many([(b"hello", ArtifactKind.OTHER, "text/plain"), (b"hello", ArtifactKind.CLIP, "video/mp4")])
    assert list(store.names()) == [HELLO]
    assert store.path(HELLO).stat().st_ino == inode


def test_many_are_returned_in_the_order_given(store: ArtifactStore) -> None:
    refs = store.put_many([(bytes([n]), ArtifactKind.OTHER, "x/y") for n in (3, 1, 2)])
    assert [store.read(r.sha256) for r in refs] == [b"\x03", b"\x01", b"\x02"]


def test_every_user_may_read(store: ArtifactStore) -> None:
    old = os.umask(0o077)
    try:
        path = store.path(store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain").sha256)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755


@pytest.mark.parametrize("take", [False, True])
def test_a_later_write_to_the_original_does_not_reach_the_store(store: ArtifactStore, tmp_path: Path, take: bool) -> None:
    original = tmp_path / "clip.mp4"
    original.write_bytes(b"hello")
    ref = store.put_file(original, ArtifactKind.CLIP, "video/mp4", take=take)
    assert original.exists() is not take
    original.write_bytes(b"HELLO")
    assert ref.sha256 == HELLO
    assert store.read(HELLO) == b"hello"


def test_take_copies_a_file_that_has_a_second_link(store: ArtifactStore, tmp_path: Path) -> None:
    original = tmp_path / "a"
    original.write_bytes(b"hello")
    os.link(original, tmp_path / "b")
    store.put_file(original, ArtifactKind.OTHER, "text/plain", take=True)
    (tmp_path / "b").write_bytes(b"other")
    assert store.read(HELLO) == b"hello"


def test_take_of_known_bytes_leaves_no_temporary_file(store: ArtifactStore, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"hello")
        store.put_file(tmp_path / name, ArtifactKind.OTHER, "text/plain", take=True)
    assert list((store.root / "tmp").iterdir()) == []


def test_only_regular_files_come_in(store: ArtifactStore, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for name, code in (("fifo", "not_a_file"), ("nothing", "unreadable")):
        with pytest.raises(StorageFault, match=code):
            store.put_file(tmp_path / name, ArtifactKind.OTHER, "x/y")
    assert store.put_bytes(b"hello", ArtifactKind.OTHER, "x/y").sha256 == HELLO  # a bad source does not close the store


def test_damage_is_found_on_read_and_on_first_path(store: ArtifactStore) -> None:
    path = store.path(store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain").sha256)
    path.write_bytes(b"hellp")
    with pytest.raises(DigestMismatch):
        store.read(HELLO)
    with pytest.raises(DigestMismatch):
        ArtifactStore(store.root).path(HELLO)
    with pytest.raises(DigestMismatch):  # the same process: its time stamp changed
        store.path(HELLO)


def test_writing_the_right_bytes_again_replaces_damaged_ones(store: ArtifactStore) -> None:
    path = store.path(store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain").sha256)
    path.write_bytes(b"hellp")
    ArtifactStore(store.root).put_bytes(b"hello", ArtifactKind.OTHER, "text/plain")
    assert store.read(HELLO) == b"hello"


def test_absent_artifacts_are_a_typed_error(store: ArtifactStore) -> None:
    assert store.has(HELLO) is False
    for read in (store.read, store.path):
        with pytest.raises(StorageFault, match="artifact_missing"):
            read(HELLO)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", HELLO.upper(), HELLO + "0", HELLO[:-1] + "\n"])
def test_only_digests_name_files(store: ArtifactStore, name: str) -> None:
    with pytest.raises(StorageFault, match="bad_digest"):
        store.has(name)


@pytest.mark.parametrize(("number", "error"), [(28, StorageFull), (122, StorageFull), (5, StorageFault)])
@pytest.mark.parametrize("operation", ["write", "fsync", "rename", "fsync_folder"])
def test_after_a_failed_write_nothing_is_acknowledged(
    store: ArtifactStore, monkeypatch: pytest.MonkeyPatch, operation: str, number: int, error: type[StorageFault]
) -> None:
    def fail(op: str, path: str) -> None:
        if op == operation:
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(durable, "fault_point", fail)
    with pytest.raises(error):
        store.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain")
    monkeypatch.undo()
    with pytest.raises(StorageFault, match="closed_after_fault"):
        store.put_bytes(b"again", ArtifactKind.OTHER, "text/plain")
    again = ArtifactStore(store.root)
    again.put_bytes(b"hello", ArtifactKind.OTHER, "text/plain")
    assert again.read(HELLO) == b"hello"


def test_write_file_shows_the_old_bytes_or_all_of_the_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out" / "film.json"
    durable.write_file(target, b"old")

    def fail(op: str, path: str) -> None:
        if op == "rename":
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(durable, "fault_point", fail)
    with pytest.raises(StorageFault):
        durable.write_file(target, b"new and longer")
    assert target.read_bytes() == b"old"


def test_what_is_stored_later_is_visible_at_once_and_durable_after_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(tmp_path)
    done: list[str] = []
    monkeypatch.setattr(durable, "fault_point", lambda operation, _path: done.append(operation))
    ref = store.put_bytes(b"made again if lost", ArtifactKind.CONTEXT, "text/plain", later=True)
    assert store.read(ref.sha256) == b"made again if lost"
    assert done == ["write", "rename"]
    done.clear()
    store.sync()
    assert done == ["fsync", "fsync_folder", "fsync_folder"]
    done.clear()
    store.sync()
    assert done == []


def test_storing_again_at_once_makes_durable_what_was_stored_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(tmp_path)
    store.put_bytes(b"x", ArtifactKind.CONTEXT, "text/plain", later=True)
    done: list[str] = []
    monkeypatch.setattr(durable, "fault_point", lambda operation, _path: done.append(operation))
    store.put_bytes(b"x", ArtifactKind.CONTEXT, "text/plain")
    assert "fsync" in done
