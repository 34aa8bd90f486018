"""Configurations: built-in ones load, faults name the key."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jobs.batch import run_batch, run_located
from jobs.config import BUILTIN, PoolConfig, WorkprintConfig, load_config
from jobs.single import invert_one
from jobs.sources import Located
from schemas.errors import ConfigInvalid, EngineMissing
from schemas.media import SourceItem


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
        ("replay:\n  budgett: 3", "config_value", "line 2: 'replay.budgett'"),
        ("replay: {budget: 99}", "config_value", "line 1: 'replay.budget'"),
        ("run:\n  window: 2\nrepair:\n  faults:\n    kinds:\n    - gremlin\n", "config_value", "line 5: 'repair.faults.kinds"),
        ("run: {sandbox: none, window: 0}", "config_value", "'run.sandbox': Input should be 'bubblewrap' or 'process' (and 1 more)"),
        ("run:\n  window: 2\n  attempts: 1\n  window: 3\n", "config_duplicate", "line 4: 'run.window' stands there again, first on line 2"),
        ("run: {ray: {actors: {asr: {cpus: 1, 'cpus': 2}}}}", "config_duplicate", "'run.ray.actors.asr.cpus'"),
        ("- a list", "config_shape", "a list"),
        ("just text", "config_shape", "a single value"),
        ("false", "config_shape", "a single value"),
        ("a: [", "config_unreadable", "line 1, column 5"),
        ("run:\n\twindow: 2", "config_unreadable", "line 2, column 1"),
        ("run: {window: 2}\n---\nrun: {window: 3}", "config_unreadable", "line 2"),
        ("run: !!python/object:os.system {}", "config_unreadable", "line 1"),
        ("run: *nowhere", "config_unreadable", "undefined alias"),
        ("run: \0", "config_unreadable", "line 1: character U+0000"),
        ("run: {ray: " + 3000 * "[" + 3000 * "]" + "}", "config_depth", "line 1: more than 32 levels"),
        ("\n".join(" " * n + "a:" for n in range(3000)), "config_depth", "line 33: more than 32 levels"),
        ("a: &a [*a]", "config_alias", "inside of what it names"),
        ("a: &a {b: *a}", "config_alias", "inside of what it names"),
        ("a: &a [x]\n" + "".join(f"{c}: &{c} [{', '.join(9 * ['*' + b])}]\n" for b, c in pairwise("abcdefghij")), "config_alias", "values"),
        ("run: {window: .nan}", "config_value", ".nan is no number"),
        ("run:\n  limits: {invert_s: .inf}", "config_value", "line 2: 'run.limits.invert_s'"),
        ("replay: {policy: {seed: 99999999999999999999}}", "config_value", "larger than any setting"),
        ("run: {window: " + 6000 * "9" + "}", "config_value", "'run.window'"),
        ("run: {window: 2024-99-99}", "config_value", "'run.window'"),
        ("run: {window: 2024-01-01}", "config_value", "'run.window'"),
        ("1: 2", "config_key", "line 1: '1' is no name"),
        ("on: 2", "config_key", "'on'"),
        ("? [a, b]\n: 2", "config_key", "a list or mapping"),
        ('sources: ["a\\0b.mp4"]', "config_value", "line 1: 'sources.0'"),
        ("run: {window: two}", "config_value", "'run.window'"),
    ],
)  # fmt: skip
def test_fault_names_the_key_and_the_line(tmp_path: Path, text: str, code: str, seen: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ConfigInvalid) as e:
        load_config(str(path))
    assert (e.value.code, seen in e.value.message) == (code, True), e.value
    assert len(e.value.message) < 900


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"\xff\xfer\x00u\x00n\x00", "UTF-16"),
        ("run: {window: 2}".encode("utf-16-be"), "U+0000"),
        (b"run:\n  sandbox: caf\xe9\n", "line 2: byte 0xe9"),
        (b"a" * 16_000_001, "larger than"),
    ],
)
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, data: bytes, seen: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_bytes(data)
    with pytest.raises(ConfigInvalid) as e:
        load_config(str(path))
    assert (e.value.code, seen in e.value.message) == ("config_unreadable", True), e.value


@pytest.mark.parametrize("data", [b"", b"# nothing\n", b"~\n", b"\xef\xbb\xbf", b"---\n...\n"])
def test_an_empty_file_is_all_defaults(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "c.yaml").write_bytes(data)
    assert load_config(str(tmp_path / "c.yaml")) == WorkprintConfig()


def test_a_byte_order_mark_an_alias_and_a_merge_are_read(tmp_path: Path) -> None:
    text = "\ufeffrun:\n  limits: {invert_s: &t 5, replay_s: *t}\n  ray: {actors: {asr: &p {cpus: 2}, ocr: {<<: *p, count: 3}}}\n"
    (tmp_path / "c.yaml").write_text(text, "utf-8")
    run = load_config(str(tmp_path / "c.yaml")).run
    assert (run.limits.replay_s, run.ray.actors.ocr) == (5, PoolConfig(cpus=2, count=3))


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "make", "seen"),
    [
        ("c.yaml", make_folder, "is a folder"),
        ("folder", make_folder, "is a folder"),
        ("c.yaml", os.mkfifo, "no regular file"),
        ("absent.yaml", None, "there is no configuration file"),
        ("n" * 300 + ".yaml", None, "there is no configuration file"),
        ("c.toml", Path.touch, "configurations are YAML files"),
        ("c.json", Path.touch, "configurations are YAML files"),
    ],
)
def test_what_is_no_file_of_settings_is_told_so(tmp_path: Path, name: str, make: Callable[[Path], None] | None, seen: str) -> None:
    path = tmp_path / name
    if make is not None:
        make(path)
    with pytest.raises(ConfigInvalid, match=seen):
        load_config(str(path))


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"inversion": {"asr": {"model": "whisper-bsae"}}}, "asr_model_unknown"),
        ({"inversion": {"asr": {"model": "/nowhere/model"}}}, "asr_model_missing"),
        ({"inversion": {"asr": {"engine": "endpoint"}}}, "endpoint_url_missing"),
        ({"replay": {"speech": {"engine": "endpoint"}}}, "no_endpoint"),
        ({"replay": {"mix": {"music_folder": "/nowhere"}}}, None),
        ({"replay": {"policy": {"name": "recorded"}}}, "no_recording"),
        ({"replay": {"policy": {"name": "chat", "student": {"model": "m"}}}}, None),
    ],
)
def test_what_a_configuration_lacks_is_told_before_any_source_is_opened(tmp_path: Path, changes: dict[str, Any], code: str | None) -> None:
    config = WorkprintConfig.model_validate(changes)
    source = Located(SourceItem(uri="talk.mp4"), tmp_path / "talk.mp4")
    (tmp_path / "talk.mp4").write_bytes(b"no film")
    with pytest.raises((ConfigInvalid, EngineMissing)) as e:
        run_located([source], tmp_path / "lake", config, quiet=True)
    assert code is None or e.value.code == code
    assert not (tmp_path / "lake").exists()


def test_inverting_one_video_tells_of_a_wrong_model_before_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("inversion: {asr: {model: whisper-bsae}}")
    (tmp_path / "talk.mp4").write_bytes(b"no film")
    with pytest.raises(ConfigInvalid, match="whisper-bsae"):
        invert_one(str(tmp_path / "talk.mp4"), SourceItem(uri="talk.mp4"), tmp_path / "out", str(tmp_path / "c.yaml"), quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_configuration_among_videos_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("run: {window: 2}")
    with pytest.raises(ConfigInvalid, match="stands among 1 other sources"):
        run_batch(["talk.mp4", str(tmp_path / "c.yaml")], tmp_path / "lake", None, None, quiet=True)


def test_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(ConfigInvalid) as e:
        load_config("lokal")
    assert "local" in e.value.next_step
