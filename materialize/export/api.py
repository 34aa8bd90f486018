"""Which exports there are: the registry of (kind, consumer), and one function that runs them.

A combination that makes no sense, or that this release does not have, is refused with the reason and the list of those that exist.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from materialize.export.axolotl import axolotl
from materialize.export.compared import Kind, export_compared
from materialize.export.distilled import export_distilled
from materialize.export.hub import Hub
from materialize.export.llamafactory import llamafactory
from materialize.export.openai_jsonl import openai
from materialize.export.options import ExportOptions, ExportReport
from materialize.export.selection import Source
from materialize.export.sft import Consumer as Shape
from materialize.export.sft import Note, export_sft
from materialize.export.swift import swift
from materialize.export.trl import Trl
from schemas.errors import ConfigInvalid


class ExportKind(StrEnum):
    """What is exported."""

    SFT = "sft"
    RFT = "rft"
    PREF = "pref"
    KTO = "kto"
    OPD = "opd"
    GROUPS = "groups"
    RL = "rl"
    BENCHMARK = "benchmark"


class Consumer(StrEnum):
    """Who reads it."""

    HF = "hf"
    TRL = "trl"
    VERL = "verl"
    LLAMAFACTORY = "llamafactory"
    SWIFT = "swift"
    AXOLOTL = "axolotl"
    NEMO_GYM = "nemo-gym"
    SKYRL = "skyrl"
    ATIF = "atif"
    OPENAI_JSONL = "openai-jsonl"


T = TypeVar("T", bound=StrEnum)

Exporter = Callable[[Source, Path, ExportOptions, Note], ExportReport]
"""Reads the source, fills the new folder, reports."""


def _sft(shape: Shape) -> Exporter:
    return lambda source, out, options, note: export_sft(shape, source, out, options, note)


def _compared(kind: Kind) -> Exporter:
    return lambda source, out, options, note: export_compared(kind, source, out, options, note)


EXPORTERS: dict[tuple[ExportKind, Consumer], Exporter] = {
    (ExportKind.SFT, Consumer.TRL): _sft(Trl()),
    (ExportKind.SFT, Consumer.HF): _sft(Hub()),
    (ExportKind.SFT, Consumer.OPENAI_JSONL): _sft(openai()),
    (ExportKind.SFT, Consumer.LLAMAFACTORY): _sft(llamafactory()),
    (ExportKind.SFT, Consumer.SWIFT): _sft(swift()),
    (ExportKind.SFT, Consumer.AXOLOTL): _sft(axolotl()),
    (ExportKind.PREF, Consumer.TRL): _compared("pref"),
    (ExportKind.KTO, Consumer.TRL): _compared("kto"),
    (ExportKind.OPD, Consumer.TRL): export_distilled,
}
"""All exports of this release."""

_READS: dict[Consumer, tuple[str, frozenset[ExportKind]]] = {
    Consumer.TRL: (
        "TRL trains; it has no loader for recorded groups or benchmarks",
        frozenset(ExportKind) - {ExportKind.GROUPS, ExportKind.BENCHMARK},
    ),
    Consumer.VERL: ("verl reads SFT and RL prompts", frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.RL, ExportKind.OPD})),
    Consumer.LLAMAFACTORY: (
        "LLaMA-Factory reads SFT, preference and KTO sets",
        frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.PREF, ExportKind.KTO}),
    ),
    Consumer.SWIFT: (
        "ms-swift reads SFT, preference, KTO, distillation and RL sets",
        frozenset(ExportKind) - {ExportKind.GROUPS, ExportKind.BENCHMARK},
    ),
    Consumer.AXOLOTL: (
        "Axolotl reads SFT, preference and KTO sets",
        frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.PREF, ExportKind.KTO}),
    ),
    Consumer.NEMO_GYM: ("NeMo Gym reads RL prompts for its environments", frozenset({ExportKind.RL})),
    Consumer.SKYRL: ("SkyRL reads SFT sets and RL prompts", frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.RL})),
    Consumer.ATIF: (
        "ATIF holds whole episodes, not comparisons or prompts",
        frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.BENCHMARK}),
    ),
    Consumer.OPENAI_JSONL: (
        "the fine-tuning format holds chats and preferences",
        frozenset({ExportKind.SFT, ExportKind.RFT, ExportKind.PREF}),
    ),
}
"""What a consumer can read at all; ``hf`` takes every kind."""


def exporter(kind: str, consumer: str) -> Exporter:
    """The exporter of a combination.

    Raises:
        ConfigInvalid: unknown names, a combination that makes no sense, or one that this release does not have.
    """
    k = _member(ExportKind, "kind", kind)
    c = _member(Consumer, "consumer", consumer)
    found = EXPORTERS.get((k, c))
    if found is not None:
        return found
    there = "exports of this release: " + ", ".join(f"{a.value} --to {b.value}" for a, b in EXPORTERS)
    if c in _READS and k not in _READS[c][1]:
        raise ConfigInvalid("export_senseless", f"{k.value} makes no sense for {c.value}: {_READS[c][0]}", there)
    raise ConfigInvalid("export_missing", f"this release has no export of {k.value} for {c.value}", there)


def export(
    kind: str, consumer: str, source: Source, out: Path, options: ExportOptions | None = None, note: Note = lambda _text: None
) -> ExportReport:
    """Export examples into a new folder. Equal rows, options and versions give equal bytes.

    Args:
        kind: what, e.g. ``sft``.
        consumer: for whom, e.g. ``trl``.
        source: DuckDB connection with a view ``examples`` (storage.lake.Lake.connect), or the examples table itself.
        out: folder to make; must not exist, or be empty.
        options: filters, limit, seed, treatment of bad rows.
        note: progress for a person.

    Raises:
        ConfigInvalid: no such export, wrong filters, nothing to export, something at ``out``.
        ExportRefused: rows that a trainer would read wrongly.
        StorageFull, StorageFault: it could not be written.
    """
    return exporter(kind, consumer)(source, out, options or ExportOptions(), note)


def _member(enum: type[T], name: str, value: str) -> T:
    try:
        return enum(value)
    except ValueError:
        allowed = ", ".join(e.value for e in enum)
        raise ConfigInvalid("export_unknown", f"there is no {name} {value!r} of export", f"allowed: {allowed}") from None
