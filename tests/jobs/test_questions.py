"""``workprint query``, ``sql`` and ``masks`` asked badly: every answer is JSON or a typed error with a next step."""

from __future__ import annotations

import errno
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from jobs.cli import app, main
from jobs.questions import ask
from jobs.shell import run_shell
from schemas.errors import ConfigInvalid
from tests.materialize.test_export_command import place  # noqa: F401 - a fixture


def run(*arguments: str, text: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=text)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("select 1 a, 2 a, 3 a_2", [{"a": 1, "a_2": 2, "a_2_2": 3}]),
        ("select 99999999999999999999999999::hugeint n", [{"n": "99999999999999999999999999"}]),
        ("select {'a': interval 90 seconds, 'b': [blob '\\xff\\x00']} v", [{"v": {"a": "90 s", "b": ["ff00"]}}]),
        ("select map{date '2020-01-01': 'nan'::double} v", [{"v": {"2020-01-01": None}}]),
        ("select 1.50::decimal(4,2) n, 'inf'::double i", [{"n": "1.50", "i": None}]),
        ("select chr(27) v", [{"v": "\x1b"}]),
    ],
)
def test_every_answer_is_json(place: Path, sql: str, rows: list[dict[str, Any]]) -> None:  # noqa: F811
    done = run("query", sql, "--lake", str(place), "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == rows


def test_control_characters_do_not_act_in_a_terminal(place: Path) -> None:  # noqa: F811
    done = run("query", "select chr(27) || '[31m' as \"a\x1b\"", "--lake", str(place))
    assert "\x1b" not in done.stdout
    assert "␛[31m" in done.stdout


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select 1; select 2", "several_queries"),
        ("select '\udcff'", "query"),
        ("", "query"),
        (";;", "query"),
        ("drop table words", "not_a_query"),
    ],
)
def test_what_is_no_single_query_is_refused(place: Path, sql: str, code: str) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid) as caught:
        ask(place, sql, None)
    assert (caught.value.code, bool(caught.value.next_step)) == (code, True)


@pytest.mark.parametrize("version", [-1, 10**6, 10**30])
def test_a_version_that_is_none_is_refused(place: Path, version: int) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid) as caught:
        ask(place, "select 1", version)
    assert caught.value.code == "no_version"


def test_bytes_that_are_no_text_end_a_pipe_with_a_typed_error(place: Path) -> None:  # noqa: F811
    with pytest.raises(ConfigInvalid, match="not UTF-8"):
        run_shell(place, None, True, io.StringIO("select '\udcff';"))


def test_a_dot_command_does_not_mix_with_json(place: Path) -> None:  # noqa: F811
    done = run("sql", "--lake", str(place), "--json", text=".tables\nselect 1 n;\n")
    assert json.loads(done.stdout) == [{"n": 1}]


@pytest.mark.parametrize("example", ["exa_", "", "%", "'", "\udcff", "a" * 10_000, "exa\x00"])
def test_an_id_that_names_no_single_example_is_refused(place: Path, example: str) -> None:  # noqa: F811
    done = run("masks", example, "--lake", str(place))
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == "unknown_example"
    assert len(done.exception.message) < 200


@pytest.mark.parametrize("out", ["folder", "no/such/page.html", "file/page.html", "a" * 300])
def test_a_page_that_cannot_be_written_is_told(place: Path, tmp_path: Path, out: str) -> None:  # noqa: F811
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    ((example,), *_) = ask(place, "select example_id from examples order by 1", None).rows
    done = run("masks", example, "--lake", str(place), "-o", str(tmp_path / out))
    assert isinstance(done.exception, ConfigInvalid)
    assert done.exception.code == "page_not_written"


def test_a_page_is_told_as_json(place: Path, tmp_path: Path) -> None:  # noqa: F811
    ((example,), *_) = ask(place, "select example_id from examples order by 1", None).rows
    done = run("masks", example, "--lake", str(place), "-o", str(tmp_path / "m.html"), "--json")
    told = json.loads(done.stdout)
    assert (told["example_id"], told["page"]) == (example, str(tmp_path / "m.html"))
    assert told["trained_tokens"] > 0


def test_a_full_standard_output_is_told_without_a_traceback(
    place: Path,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Full:
        encoding = "utf-8"

        def write(self, _text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def flush(self) -> None:
            pass

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr(sys, "stdout", Full())
    monkeypatch.setattr(sys, "argv", ["workprint", "query", "select 1", "--lake", str(place)])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 1
    assert "standard output cannot be written" in capsys.readouterr().err
