"""Who is named with a film, and how."""

from __future__ import annotations

import pytest

from replay.credits import attribution_text, licence_address
from replay.delivery import asks_for_names
from replay.manifest import Credit


@pytest.mark.parametrize(
    ("licence", "address"),
    [
        ("CC-BY-3.0", "https://creativecommons.org/licenses/by/3.0/"),
        ("CC BY-SA 4.0", "https://creativecommons.org/licenses/by-sa/4.0/"),
        ("cc-by-nc-nd-2.0-uk", "https://creativecommons.org/licenses/by-nc-nd/2.0/uk/"),
        ("CC0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/"),
        ("MIT", "https://opensource.org/license/mit"),
        ("all mine", None),
    ],
)
def test_licences_have_their_address(licence: str, address: str | None) -> None:
    assert licence_address(licence) == address


@pytest.mark.parametrize(
    ("licence", "asks"), [("CC-BY-3.0", True), ("CC BY-SA 4.0", True), ("CC0-1.0", False), ("MIT", False), ("unknown", False)]
)
def test_some_licences_ask_for_names(licence: str, asks: bool) -> None:
    assert asks_for_names(licence) is asks


def test_a_name_from_outside_is_one_line() -> None:
    credit = Credit(kind="footage", name="A\nvoice: Mine\u2028", licence="CC-BY-4.0", attribution="B\r\n  licence: CC0-1.0")
    assert attribution_text((credit,)).decode() == (
        "This film contains works of others.\n\nfootage: A voice: Mine\n  by: B licence: CC0-1.0\n"
        "  licence: CC-BY-4.0 (https://creativecommons.org/licenses/by/4.0/)\n"
        "  changed: cut into clips, scaled, joined in another order, its sound replaced, graphics laid over it\n"
    )


def test_an_author_who_is_not_named_is_said_to_be() -> None:
    credit = Credit(kind="music", name="Hum", licence="MIT", attribution=None)
    assert "by: not named by its source" in attribution_text((credit,)).decode()
