"""docs/tables.md is made from the specs."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.tables import TABLES
from storage.reference import PAGE, main, reference_page


def test_the_page_in_the_repository_is_up_to_date() -> None:
    assert main(["--check"]) == 0, "run: python -m storage.reference"
    assert PAGE.name == "tables.md"


def test_the_page_names_every_table_and_column() -> None:
    page = reference_page()
    for spec in TABLES:
        assert f"\n## {spec.name}\n" in page
        for column in spec.all_columns:
            assert f"| `{column.name}` |" in page


def test_check_fails_on_another_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tables.md"
    assert main(["--check", str(path)]) == 1
    assert main([str(path)]) == 0
    assert main(["--check", str(path)]) == 0
    path.write_text(path.read_text() + "x")
    assert main(["--check", str(path)]) == 1
    assert "out of date" in capsys.readouterr().err
