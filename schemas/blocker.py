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


class BlockerRule(Frozen):
    """What one code promises to a reader of blockers."""

    code: BlockerCode
    rung: str = Field(
        description="where on the way of an output it is given: parse, schema, references, prerequisites, budget, execute, commit"
    )
    meaning: str
    subject: str = Field(description="forms of the subject: words in capitals stand for a name")
    needs: str = Field(default="", description="what ``needs`` names; empty where it is always empty")
    remedies: str = Field(default="", description="what ``remedies`` names; empty where calling the same tool right is the remedy")


def _rule(code: BlockerCode, rung: str, subject: str, meaning: str, needs: str = "", remedies: str = "") -> BlockerRule:
    return BlockerRule(code=code, rung=rung, meaning=meaning, subject=subject, needs=needs, remedies=remedies)


RULES: tuple[BlockerRule, ...] = (
    _rule(
        BlockerCode.UNPARSABLE_OUTPUT, "parse", "output, arguments or content",
        "there is no tool call, or its arguments or the content are not one JSON object",
    ),
    _rule(BlockerCode.ROLE_MISMATCH, "parse", "role:NAME", "it is another role's turn"),
    _rule(BlockerCode.UNKNOWN_TOOL, "schema", "tool:NAME", "no tool of that name is offered", remedies="offered tools with a similar name"),
    _rule(BlockerCode.MISSING_ARGUMENT, "schema", "argument:NAME", "a required argument was left out"),
    _rule(BlockerCode.UNKNOWN_ARGUMENT, "schema", "argument:NAME", "the tool has no such argument"),
    _rule(BlockerCode.WRONG_TYPE, "schema", "argument:NAME", "the value has another JSON type than the argument"),
    _rule(
        BlockerCode.VALUE_NOT_ALLOWED, "schema", "argument:NAME",
        "the value is outside its bounds or list, is no scope, or selects nothing there is to do",
    ),
    _rule(
        BlockerCode.CONTENT_CONTRACT_BROKEN, "schema", "content:PATH",
        "an answer breaks the form or a condition of its kind; or a call was given up after too many such answers",
        remedies="the tool whose call was given up",
    ),
    _rule(
        BlockerCode.UNRESOLVED_REFERENCE, "references", "shot:ID, segment:ID or defect:ID", "the call names something that does not exist",
        needs="the fact that would bring it about, if nothing of its kind exists", remedies="tools that could produce it",
    ),
    _rule(
        BlockerCode.WRONG_STAGE_ORDER, "references", "tool:NAME, segment:ID or film",
        "the call comes too late or too early for what is made already: earlier work would be lost, or the film is delivered",
        remedies="the tool that may still change it",
    ),
    _rule(
        BlockerCode.PREREQUISITE_MISSING, "prerequisites", "tool:NAME",
        "a fact that the tool needs does not hold; the message says for what", needs="the fact", remedies="tools that bring the fact about",
    ),
    _rule(
        BlockerCode.REPAIR_LIMIT_REACHED, "budget", "tool:NAME, shot:ID or film", "the repairs of the run or of the shot are used up",
        remedies="the tool that delivers: open warnings do not hold it back",
    ),
    _rule(BlockerCode.BUDGET_EXHAUSTED, "budget", "film", "all calls are used and the run is over"),
    _rule(
        BlockerCode.PRODUCT_REJECTED, "execute", "shot:ID or film", "the work was done and its product did not pass its check",
        needs="the fact behind the fault, where one is known", remedies="tools that can make the faulty part anew",
    ),
    _rule(
        BlockerCode.DELIVERY_INCOMPLETE, "commit", "film",
        "the attempt that follows the last call could not deliver; the reasons stand after it", needs="all facts that delivery lacked",
    ),
)  # fmt: skip
"""One rule for every code, in the order in which an output meets them."""
