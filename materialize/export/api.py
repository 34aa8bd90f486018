"""Which exports there are: one table of (kind, consumer), and one function that runs them.

Every combination is either written or refused with a reason of its own. Documentation, help and errors are made from this table
(materialize.export.reference).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from materialize.export.atif import Atif
from materialize.export.axolotl import axolotl
from materialize.export.candidates import group_records
from materialize.export.compared import compared_records
from materialize.export.distilled import distilled_records
from materialize.export.episodes import episode_records
from materialize.export.hub import hub
from materialize.export.llamafactory import llamafactory
from materialize.export.nemo_gym import nemo_gym
from materialize.export.openai_jsonl import openai
from materialize.export.options import ExportOptions, ExportReport
from materialize.export.records import Records
from materialize.export.selection import Source
from materialize.export.sft import rft_records, sft_records
from materialize.export.skyrl import skyrl
from materialize.export.starts import Artifacts, benchmark_records, rl_records
from materialize.export.swift import swift
from materialize.export.tokenised import digest_of_tokenizer, tokenised_records
from materialize.export.trl import trl, trl_tokens
from materialize.export.verl import verl
from materialize.export.writing import Consumer as Shape
from materialize.export.writing import Note, write_export
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


K, C = ExportKind, Consumer
T = TypeVar("T", bound=StrEnum)

RECORDS: dict[ExportKind, Callable[[Source, ExportOptions, Artifacts | None], Records[Any, Any]]] = {
    K.SFT: lambda source, options, _store: sft_records(source, options),
    K.RFT: lambda source, options, _store: rft_records(source, options),
    K.PREF: lambda source, options, _store: compared_records("pref", source, options),
    K.KTO: lambda source, options, _store: compared_records("kto", source, options),
    K.OPD: lambda source, options, _store: distilled_records(source, options),
    K.GROUPS: group_records,
    K.RL: lambda source, options, _store: rl_records(source, options),
    K.BENCHMARK: benchmark_records,
}
"""What the rows of a kind are."""

WRITES: dict[Consumer, tuple[Callable[[str], Shape[Any]], tuple[ExportKind, ...]]] = {
    C.HF: (hub, tuple(K)),
    C.TRL: (trl, (K.SFT, K.RFT, K.PREF, K.KTO, K.OPD, K.RL)),
    C.VERL: (verl, (K.SFT, K.RFT, K.OPD, K.RL)),
    C.LLAMAFACTORY: (llamafactory, (K.SFT, K.RFT, K.PREF, K.KTO)),
    C.SWIFT: (swift, (K.SFT, K.RFT, K.PREF, K.KTO, K.OPD)),
    C.AXOLOTL: (axolotl, (K.SFT, K.RFT)),
    C.NEMO_GYM: (lambda _kind: nemo_gym(), (K.RL,)),
    C.SKYRL: (skyrl, (K.SFT, K.RFT, K.RL)),
    C.ATIF: (lambda _kind: Atif(), (K.SFT, K.RFT)),
    C.OPENAI_JSONL: (openai, (K.SFT, K.RFT, K.PREF)),
}
"""Which kinds a consumer is written, and how."""

_NO_TRAINING = "the benchmark is answered in the environment and never trained on, and a trainer's file would invite that; take hf"
_NO_GROUPS = "no trainer loads groups that were executed elsewhere: TRL, verl and the others sample their own; take pref or kto, or hf"
_ONLY_RL = "{who} runs episodes in environments and starts from prompts; take rl"
REFUSED: dict[tuple[ExportKind, Consumer], str] = {
    **{(K.BENCHMARK, c): _NO_TRAINING for c in C if c is not C.HF},
    **{(K.GROUPS, c): _NO_GROUPS for c in C if c is not C.HF},
    **{(k, C.NEMO_GYM): _ONLY_RL.format(who="NeMo Gym") for k in (K.SFT, K.RFT, K.PREF, K.KTO, K.OPD)},
    (K.PREF, C.VERL): "verl trains with rewards or on demonstrations and has no trainer for recorded pairs; take trl",
    (K.KTO, C.VERL): "verl trains with rewards or on demonstrations and has no trainer for recorded labels; take trl",
    (K.OPD, C.LLAMAFACTORY): "LLaMA-Factory trains on recorded answers and samples none; take trl, verl or swift",
    (K.RL, C.LLAMAFACTORY): "LLaMA-Factory's PPO scores with a reward model and executes no tools; take trl or verl",
    (K.RL, C.SWIFT): "ms-swift asks a scheduler or gym of its own for tool results, and a prompt without one would be scored by nothing;"
    " take trl or verl, whose adapters restore the recorded state",
    (
        K.PREF,
        C.AXOLOTL,
    ): "Axolotl's preference strategies render role and content only: tool schemas and calls would be lost; take trl",
    (K.KTO, C.AXOLOTL): "Axolotl's KTO strategies render fixed templates without tool schemas and tool calls; take trl",
    (K.OPD, C.AXOLOTL): "Axolotl trains on recorded answers; take trl, verl or swift",
    (K.RL, C.AXOLOTL): "Axolotl's GRPO takes no environment from a data set; take trl, which it calls",
    (K.PREF, C.SKYRL): "SkyRL has no trainer for recorded pairs; take trl",
    (K.KTO, C.SKYRL): "SkyRL has no trainer for recorded labels; take trl",
    (K.OPD, C.SKYRL): "SkyRL distils over the prompts of its environments; take rl",
    (K.PREF, C.ATIF): "an ATIF file is one episode, not a comparison of outputs; take hf",
    (K.KTO, C.ATIF): "an ATIF file is one episode, not a single output with a label; take hf",
    (
        K.OPD,
        C.ATIF,
    ): "an ATIF file is one whole episode; sft --to atif --unverified has the same turns, token ids and log probabilities",
    (K.RL, C.ATIF): "an ATIF file is one recorded episode, not a state to start from; take sft",
    (K.KTO, C.OPENAI_JSONL): "the fine-tuning formats know demonstrations and pairs, no labels on single outputs; take pref",
    (K.OPD, C.OPENAI_JSONL): "the fine-tuning service samples from no student of yours; take sft",
    (K.RL, C.OPENAI_JSONL): "the fine-tuning service cannot restore a state or execute a tool call; take trl or verl",
}
"""Why a combination is not written."""


def writes(kind: ExportKind, consumer: Consumer) -> bool:
    """Whether this combination is written."""
    return kind in WRITES[consumer][1]


def export(
    kind: str,
    consumer: str,
    source: Source,
    out: Path,
    options: ExportOptions | None = None,
    note: Note = lambda _text: None,
    store: Artifacts | None = None,
    tokenizer: str | None = None,
) -> ExportReport:
    """Export rows into a new folder. Equal rows, options and versions give equal bytes.

    Args:
        kind: what, e.g. ``sft``.
        consumer: for whom, e.g. ``trl``.
        source: a lake's connection (storage.lake.Lake.connect); for ``sft`` the examples table itself does as well.
        out: folder to make; must not exist, or be empty.
        options: filters, limit, seed, treatment of bad rows.
        note: progress for a person.
        tokenizer: rows as its tokens: ``qwen3``, or a folder with ``tokenizer.json`` and a chat template. Only ``sft`` and ``rft`` for
            ``trl``.
        store: the lake's artifacts, which ``benchmark``, ``atif`` and ``groups`` of a model read.

    Raises:
        ConfigInvalid: unknown names, a combination that makes no sense, wrong filters, nothing to export, something at
            ``out``; or what the tokenizer would train cannot be proved.
        EngineMissing: the tokenizer is not installed, or has no chat template.
        ExportRefused: rows that a trainer would read wrongly.
        LockHeld: another process is writing this export.
        StorageFull, StorageFault: it could not be written.
    """
    k, c = checked(kind, consumer)
    settings = options or ExportOptions()
    if tokenizer is not None:
        if c is not C.TRL or k not in (K.SFT, K.RFT):
            raise ConfigInvalid(
                "tokenizer_senseless",
                f"{k.value} is not written as tokens for {c.value}: only TRL takes rows as they are, and only demonstrations",
                "leave the tokenizer out, or take: export sft --to trl",
            )
        settings = settings.model_copy(update={"tokenizer": digest_of_tokenizer(tokenizer)})
        return write_export(trl_tokens(k.value), tokenised_records(RECORDS[k](source, settings, store), tokenizer), out, settings, note)
    records = episode_records(k.value, source, settings, store) if c is C.ATIF else RECORDS[k](source, settings, store)
    return write_export(WRITES[c][0](k.value), records, out, settings, note)


def checked(kind: str, consumer: str) -> tuple[ExportKind, Consumer]:
    """The members of a combination that is written.

    Raises:
        ConfigInvalid: unknown names, or a combination that makes no sense; says why.
    """
    k = _member(ExportKind, "kind", kind)
    c = _member(Consumer, "consumer", consumer)
    if not writes(k, c):
        kinds = ", ".join(x.value for x in WRITES[c][1])
        consumers = ", ".join(x.value for x in Consumer if writes(k, x))
        raise ConfigInvalid(
            "export_senseless",
            f"{k.value} makes no sense for {c.value}: {REFUSED[k, c]}",
            f"{c.value} is written {kinds}; {k.value} is written for {consumers}",
        )
    return k, c


def _member(enum: type[T], name: str, value: str) -> T:
    try:
        return enum(value)
    except ValueError:
        allowed = ", ".join(e.value for e in enum)
        raise ConfigInvalid("export_unknown", f"there is no {name} {value!r} of export", f"allowed: {allowed}") from None
