"""Every closed reason has its words, its setting exists, and the documentation holds the same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from inversion.config import InversionConfig
from inversion.reasons import REASONS, reasons_table
from schemas.stage import RejectCode

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "inversion.md"


def test_every_reason_is_explained() -> None:
    assert set(REASONS) == set(RejectCode)


@pytest.mark.parametrize("code", list(RejectCode))
def test_settings_exist(code: RejectCode) -> None:
    for name in (REASONS[code].setting or "").split(", "):
        value: object = InversionConfig()
        for part in name.split(".") if name else ():
            value = getattr(value, part)


def test_the_documentation_has_the_same_table() -> None:
    assert reasons_table() in PAGE.read_text("utf-8"), "put inversion.reasons.reasons_table() into docs/inversion.md"
