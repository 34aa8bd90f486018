"""What an export is asked for and what it reports. Data only."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Literal, TypeVar

from pydantic import Field

from schemas.canonical import Frozen, Sha256
from schemas.contract import Role
from schemas.errors import ConfigInvalid
from schemas.example import ExampleKind, Split
from schemas.trajectory import Provenance

E = TypeVar("E", bound=StrEnum)


INT64 = 2**63 - 1
"""The largest number that every reader of a manifest holds."""


class ExportFilters(Frozen):
    """Which examples are taken. An empty tuple means all values of that field."""

    roles: tuple[Role, ...] = ()
    kinds: tuple[ExampleKind, ...] = ()
    splits: tuple[Split, ...] = ()
    provenance: tuple[Provenance, ...] = ()
    licences: tuple[str, ...] = Field(default=(), description="as the lake has them, or their SPDX names")
    projects: tuple[str, ...] = Field(default=(), description="project ids")
    verified_only: bool = Field(default=True, description="leave out outputs of runs that did not deliver and repairs that did not hold")
    quality: float | None = Field(default=None, ge=0, le=1, description="least final quality of the run (column quality of trajectories)")

    @classmethod
    def of(
        cls,
        *,
        roles: Sequence[str] = (),
        kinds: Sequence[str] = (),
        splits: Sequence[str] = (),
        provenance: Sequence[str] = (),
        licences: Sequence[str] = (),
        projects: Sequence[str] = (),
        verified_only: bool = True,
        quality: float | None = None,
    ) -> ExportFilters:
        """Filters from plain strings, as a command line has them.

        Raises:
            ConfigInvalid: a value outside the closed set; names the allowed ones. Or an empty licence.
        """
        if not all(given.strip() for given in licences):
            raise ConfigInvalid("export_filter", "an empty licence matches nothing", "NOASSERTION stands for licences that nobody stated")
        return cls(
            roles=_closed(Role, "role", roles),
            kinds=_closed(ExampleKind, "kind", kinds),
            splits=_closed(Split, "split", splits),
            provenance=_closed(Provenance, "provenance", provenance),
            licences=tuple(licences),
            projects=tuple(projects),
            verified_only=verified_only,
            quality=quality,
        )


class TokenizerDigest(Frozen):
    """The tokenizer that token counts are of, or that rows are tokens of."""

    name: str
    tokenizer_sha256: Sha256 = Field(description="of tokenizer.json")
    template_sha256: Sha256 = Field(description="of the chat template's text")
    config_sha256: Sha256 | None = Field(default=None, description="of tokenizer_config.json, if there is one; it may add tokens")


class ExportOptions(Frozen):
    """How an export is made. Together with the lake's rows it decides every byte of the result."""

    filters: ExportFilters = ExportFilters()
    limit: int | None = Field(default=None, ge=1, le=INT64, description="at most so many examples, chosen by hash of seed and example id")
    seed: int = Field(
        default=0, ge=-INT64, le=INT64, description="another seed, another choice under the limit; the order stays that of the lake"
    )
    decontaminate: bool = Field(
        default=True, description="leave out projects whose narration shares twelve words in a row with a held-out one"
    )
    bad_rows: Literal["refuse", "leave_out"] = Field(
        default="refuse", description="rows that a trainer would read wrongly: stop the export, or leave them out and list them"
    )
    rows_per_shard: int = Field(default=10_000, ge=1, le=INT64)
    tokenizer: TokenizerDigest | None = Field(default=None, description="rows are written as its tokens; None: as chats")


class ExportedFile(Frozen):
    """One file of an export."""

    path: str = Field(description="relative to the export's folder")
    sha256: Sha256
    size_bytes: int
    rows: int | None = Field(default=None, description="examples in it; None for documents")


class LeftOut(Frozen):
    """One example that was left out, and why."""

    example_id: str
    reason: str


def bad_rows_rule(text: str) -> Literal["refuse", "leave_out"]:
    """The rule on bad rows, as a command line has it.

    Raises:
        ConfigInvalid: neither ``refuse`` nor ``leave-out``.
    """
    rules: dict[str, Literal["refuse", "leave_out"]] = {"refuse": "refuse", "leave-out": "leave_out"}
    if text not in rules:
        raise ConfigInvalid("bad_rows_rule", f"there is no rule {text!r} on bad rows", f"allowed: {', '.join(rules)}")
    return rules[text]


class ExportReport(Frozen):
    """What an export holds. Written as ``manifest.json``; holds no clock and no path of the machine."""

    schema_version: Literal["export.3"] = "export.3"
    kind: str
    consumer: str
    options: ExportOptions
    rows: dict[str, int] = Field(description="examples by split")
    by_role: dict[str, int]
    by_kind: dict[str, int]
    by_licence: dict[str, int]
    projects: dict[str, str] = Field(description="source project to split")
    config_digests: tuple[str, ...]
    not_taken: dict[str, int] = Field(
        description="examples of the lake that filters, the held-out rule, repetition and the limit left out, by rule"
    )
    left_out: tuple[LeftOut, ...] = Field(description="examples that a trainer would read wrongly; empty unless bad_rows is leave_out")
    escaped: int = Field(description="examples whose prompt held control tokens of chat templates; these were made harmless")
    prompt_tokens: int | None = Field(description="sum over examples; None when the lake has no counts")
    completion_tokens: int | None
    tokenizer: TokenizerDigest | None = Field(default=None, description="None when nothing was counted, or its files are not installed")
    tool_registries: tuple[Sha256, ...] = Field(default=(), description="digests of the exact texts of the tool schemas that rows have")
    files: tuple[ExportedFile, ...] = Field(description="all files but manifest.json itself, by path")


def _closed(enum: type[E], name: str, values: Sequence[str]) -> tuple[E, ...]:
    allowed = [e.value for e in enum]
    for value in values:
        if value not in allowed:
            raise ConfigInvalid("export_filter", f"there is no {name} {value!r}", f"allowed: {', '.join(allowed)}")
    return tuple(enum(v) for v in values)
