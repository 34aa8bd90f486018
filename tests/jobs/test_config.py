"""Configurations: built-in ones load, faults name the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.config import BUILTIN, load_config
from schemas.errors import ConfigInvalid


@pytest.mark.parametrize("name", BUILTIN)
def test_built_in_configuration_loads(name: str) -> None:
    assert load_config(name).run.engine == "ray"


def test_a_folder_of_the_same_name_does_not_hide_a_built_in_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_config("demo").replay.budget == 40


def test_default_is_offline_and_sandboxed() -> None:
    config = load_config(None)
    assert (config.inversion.asr.engine, config.replay.speech.engine, config.run.sandbox) == ("faster_whisper", "kokoro", "bubblewrap")


@pytest.mark.parametrize(
    ("text", "code", "seen"),
    [
        ("replay: {budgett: 3}", "config_value", "replay.budgett"),
        ("replay: {budget: 99}", "config_value", "replay.budget"),
        ("repair: {faults: {kinds: [gremlin]}}", "config_value", "repair.faults.kinds"),
        ("run: {sandbox: none}", "config_value", "run.sandbox"),
        ("- a list", "config_shape", "mapping"),
        ("a: [", "config_unreadable", "YAML"),
    ],
)
def test_fault_names_the_key(tmp_path: Path, text: str, code: str, seen: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigInvalid) as e:
        load_config(str(path))
    assert e.value.code == code
    assert seen in e.value.message


def test_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid) as e:
        load_config("lokal")
    assert "local" in e.value.next_step
