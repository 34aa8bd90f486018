"""The taxonomy is closed, complete, ordered, and its page is current."""

from __future__ import annotations

import pytest

from repair.fault_kinds import EXECUTION_KINDS, INFRASTRUCTURE_KINDS, KINDS, PLAN_KINDS
from repair.mending import BORROWED
from repair.spoil import SPOILERS
from repair.taxonomy import MEND_ORDER, MENDED, TAXONOMY, Product, page
from schemas.verdict import DefectCode, MendCode
from tests.conftest import ROOT


def test_every_code_is_described() -> None:
    assert set(TAXONOMY) == set(DefectCode)
    assert len(TAXONOMY) >= 20


@pytest.mark.parametrize("code", list(DefectCode))
def test_mends_are_cheapest_first_and_touch_only_what_is_tainted(code: DefectCode) -> None:
    spec = TAXONOMY[code]
    assert [MEND_ORDER.index(m) for m in spec.mends] == sorted(MEND_ORDER.index(m) for m in spec.mends)
    upstream = {Product.ASSET} if code in (DefectCode.RENDER_BLACK, DefectCode.RENDER_FROZEN) else set()
    for mend in spec.mends:
        product = MENDED[mend]
        assert product is None or product in spec.taints or product in upstream


def test_mixing_again_comes_before_rendering_again_and_that_before_planning_again() -> None:
    order = ["remix", "renarrate", "rerender", "refill_slots", "reretrieve", "new_music", "retime", "replan", "accept"]
    assert [m.value for m in MEND_ORDER] == order


@pytest.mark.parametrize("code", list(DefectCode))
def test_every_code_has_a_mend_or_a_remedy(code: DefectCode) -> None:
    spec = TAXONOMY[code]
    assert spec.mends
    assert spec.mends != (MendCode.ACCEPT,) or spec.remedies


def test_the_product_of_a_code_is_tainted_by_it() -> None:
    assert all(spec.product in spec.taints for spec in TAXONOMY.values())


def test_the_page_is_current() -> None:
    shown = (ROOT / "docs" / "defects.md").read_text("utf-8")
    assert shown == page(), "run: python -m repair.taxonomy > docs/defects.md"


def test_fault_kinds_name_known_defects() -> None:
    assert set(EXECUTION_KINDS) | set(PLAN_KINDS) | set(INFRASTRUCTURE_KINDS) == set(KINDS)
    assert all(KINDS[k].symptoms and KINDS[k].field for k in SPOILERS)


def test_every_defect_has_a_fault_that_makes_it() -> None:
    assert {KINDS[k].symptoms[0] for k in SPOILERS} == set(DefectCode)


def test_mends_that_make_a_product_again_borrow_a_tool() -> None:
    assert set(BORROWED) == {m for m, p in MENDED.items() if p not in (None, Product.PLAN)}
