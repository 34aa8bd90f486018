"""Notes of results that can be made again."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.artifact import ArtifactKind
from storage.artifacts import ArtifactStore


def test_a_noted_result_is_recalled_by_another_store_object(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    ref = store.put_bytes(b"wave", ArtifactKind.NARRATION, "audio/wav")
    store.remember("speech flite 1 slt 'hello'", ref)
    assert ArtifactStore(tmp_path).recall("speech flite 1 slt 'hello'") == ref


def test_an_unknown_key_gives_none(tmp_path: Path) -> None:
    assert ArtifactStore(tmp_path).recall("never") is None


def test_a_note_whose_artifact_is_gone_gives_none(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    ref = store.put_bytes(b"wave", ArtifactKind.NARRATION, "audio/wav")
    store.remember("key", ref)
    store.path(ref.sha256).unlink()
    assert store.recall("key") is None


def test_a_damaged_note_gives_none(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    store.remember("key", store.put_bytes(b"wave", ArtifactKind.NARRATION, "audio/wav"))
    (note,) = (p for p in (tmp_path / "recall").rglob("*") if p.is_file())
    note.write_bytes(b'{"key": "key", "ref"')
    assert store.recall("key") is None


def test_a_later_note_replaces_an_earlier_one(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    store.remember("key", store.put_bytes(b"a", ArtifactKind.OTHER, "text/plain"))
    second = store.put_bytes(b"b", ArtifactKind.OTHER, "text/plain")
    store.remember("key", second)
    assert store.recall("key") == second


def test_notes_are_no_artifacts(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    ref = store.put_bytes(b"a", ArtifactKind.OTHER, "text/plain")
    store.remember("key", ref)
    assert list(store.names()) == [ref.sha256]


def test_a_damaged_artifact_is_not_recalled(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    ref = store.put_bytes(b"wave", ArtifactKind.NARRATION, "audio/wav")
    store.remember("key", ref)
    store.path(ref.sha256).write_bytes(b"wavE")
    assert ArtifactStore(tmp_path).recall("key") is None


def test_recalling_makes_an_artifact_young_for_garbage_collection(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    ref = store.put_bytes(b"wave", ArtifactKind.NARRATION, "audio/wav")
    store.remember("key", ref)
    os.utime(store.path(ref.sha256), (1, 1))
    assert ArtifactStore(tmp_path).recall("key") == ref
    assert store.path(ref.sha256).stat().st_mtime > 1_000_000
