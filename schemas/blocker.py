"""Blockers: typed refusals that a policy sees. Closed taxonomy; policy failures only."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from schemas.canonical import Frozen


class BlockerCode(StrEnum):
    """Why the runtime refused a role output. A refused output changes nothing."""

    UNPARSABLE_OUTPUT = "unparsable_output"
    UNKNOWN_TOOL = "unknown_tool"
    ROLE_MISMATCH = "role_mismatch"
    MISSING_ARGUMENT = "missing_argument"
    WRONG_TYPE = "wrong_type"
    VALUE_NOT_ALLOWED = "value_not_allowed"
    UNKNOWN_ARGUMENT = "unknown_argument"
    UNRESOLVED_REFERENCE = "unresolved_reference"
    PREREQUISITE_MISSING = "prerequisite_missing"
    WRONG_STAGE_ORDER = "wrong_stage_order"
    CONTENT_CONTRACT_BROKEN = "content_contract_broken"
    BUDGET_EXHAUSTED = "budget_exhausted"
    REPAIR_LIMIT_REACHED = "repair_limit_reached"
    PRODUCT_REJECTED = "product_rejected"
    DELIVERY_INCOMPLETE = "delivery_incomplete"


class Blocker(Frozen):
    """One reason for a refusal.

    ``subject`` names what is wrong (``argument:shots``, ``shot:s003``, ``tool:stitch_video``, ``content:slots.title``);
    ``needs`` names the missing facts (schemas.contract.Fact values); ``remedies`` the tools that could produce them.
    """

    code: BlockerCode
    subject: str
    message: str
    needs: tuple[str, ...] = ()
    remedies: tuple[str, ...] = Field(default=(), description="tool names, in a sensible order")
