"""One run over many sources: expand, run, count, lay out the results, tell what came of it."""

from __future__ import annotations

import os
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from jobs import preflight, stopping
from jobs.chain import ProjectResult, process
from jobs.config import WorkprintConfig, load_config
from jobs.kinship import settle
from jobs.layout import ProjectFolder, laid_out, lay_out
from jobs.live import LiveView
from jobs.progress import actors_line, last_actors, printable, runs_folder, tail
from jobs.sources import Located, SourceGroup, group, locate
from jobs.work import Work
from media.sandbox import open_sandbox
from schemas.canonical import derive_id
from schemas.errors import ConfigInvalid
from storage.lake import Lake

SHOWN = 60
"""Sources shown one by one; of more than these only the ones that did not go through."""


@dataclass(slots=True)
class BatchReport:
    """What a run did. ``as_json`` is the documented form of ``workprint run --json``."""

    run_id: str
    lake: Path
    results: list[ProjectResult]
    wall_s: float
    folders: dict[str, ProjectFolder] = field(default_factory=dict)
    figures: dict[str, int] = field(default_factory=dict)
    costs: list[tuple[str, int, float | None]] = field(default_factory=list)
    """(role, answers of a chat model, dollars) over the whole lake."""
    actors: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Engines that the run held in actors, and what was asked of them."""

    @property
    def stopped(self) -> bool:
        """The run was ended before every source had its turn; the same command goes on."""
        return any(r.status == "stopped" for r in self.results)

    def counts(self) -> dict[str, int]:
        """Sources by what became of them."""
        return dict(Counter(r.status for r in self.results))

    def stages(self) -> dict[str, tuple[int, float]]:
        """Projects that ran a stage, and the seconds spent in it by all of them."""
        out: dict[str, tuple[int, float]] = {}
        for result in self.results:
            for stage, seconds in result.wall_s.items():
                done, total = out.get(stage, (0, 0.0))
                out[stage] = (done + 1, total + seconds)
        return out

    def as_json(self) -> dict[str, Any]:
        """Stable form."""
        return {
            "run_id": self.run_id,
            "lake": str(self.lake),
            "wall_s": round(self.wall_s, 1),
            "stopped": self.stopped,
            "counts": self.counts(),
            "figures": self.figures,
            "stages": {s: {"done": n, "wall_s": round(w, 1)} for s, (n, w) in self.stages().items()},
            "actors": self.actors,
            "costs": [{"role": r, "answers": n, "dollars": d} for r, n, d in self.costs],
            "sources": [
                {
                    "uri": r.uri,
                    "status": r.status,
                    "project_id": r.project_id,
                    "code": r.code,
                    "detail": r.detail,
                    "stages_run": r.stages_run,
                    "stages_skipped": r.stages_skipped,
                    "stage_wall_s": r.wall_s,
                    "folder": str(self.folders[r.key].root) if r.key in self.folders else None,
                }
                for r in self.results
            ],
        }

    def print(self) -> None:
        """For a person."""
        console = Console()
        table = Table(box=None, pad_edge=False, title_justify="left")
        table.add_column("source", overflow="fold")  # names differ in their ends
        for name in ("became", "stages run / known", "detail"):
            table.add_column(name)
        for r in self.results if len(self.results) <= SHOWN else [r for r in self.results if r.code][:SHOWN]:
            detail = f"{r.code}: {r.detail}" if r.code else ", ".join(f"{k} {v:.0f} s" for k, v in r.wall_s.items())
            table.add_row(tail(r.uri, 60), r.status, f"{r.stages_run} / {r.stages_skipped}", printable(detail or "")[:160])
        console.print(table, markup=False)
        console.print()
        if self.stages():
            spent = Table(box=None, pad_edge=False)
            for name in ("stage", "done", "seconds", "seconds each"):
                spent.add_column(name)
            for stage, (done, seconds) in self.stages().items():
                spent.add_row(stage, str(done), f"{seconds:.0f}", f"{seconds / done:.1f}")
            console.print(spent)
            console.print()
        for role, answered, dollars in self.costs:
            price = "no price configured" if dollars is None else f"{dollars:.4f} dollars"
            console.print(f"  {role}: {answered} answers of a chat model, {price}", markup=False, highlight=False)
        for part, figures in self.actors.items():
            spent_s, waited_s = figures["busy_s"], figures["waited_s"]
            told = f"  actor {actors_line(part, figures)}, {spent_s:.0f} s of work, {waited_s:.0f} s in the queue"
            console.print(told, markup=False, highlight=False, soft_wrap=True)
        facts = Table(box=None, pad_edge=False, show_header=False)
        for name, value in self.figures.items():
            facts.add_row(name.replace("_", " "), str(value))
        console.print(facts)
        for r in self.results[:SHOWN]:
            if r.key in self.folders:
                folder = self.folders[r.key]
                console.print()
                for label, path in folder.shown():
                    console.print(f"  {label:<11}{path}", markup=False, highlight=False, soft_wrap=True)
                if folder.attribution:
                    console.print(f"  source     {folder.attribution}", markup=False, highlight=False, soft_wrap=True)
        ending = f"stopped after {self.wall_s:.0f} s; the same command goes on" if self.stopped else f"finished in {self.wall_s:.0f} s"
        console.print(f"\n  lake       {self.lake}    {ending}", markup=False, highlight=False, soft_wrap=True)


def run_batch(names: list[str], lake: Path, config_name: str | None, engine: str | None, *, quiet: bool) -> BatchReport:
    """Run all sources into a lake.

    Raises:
        ConfigInvalid: bad configuration or manifest, or nothing to run.
        EngineMissing: something that the configuration names is not installed. Told before any work.
        StorageFault: the lake cannot be opened or written.
    """
    config, names = _settings(names, config_name)
    if engine is not None:
        if engine not in ("ray", "local"):
            raise ConfigInvalid("engine", f"there is no engine {engine!r}", "use --engine ray or --engine local")
        config = config.model_copy(update={"run": config.run.model_copy(update={"engine": engine})})
    return run_located(locate(names), lake, config, quiet=quiet)


def run_located(located: list[Located], lake: Path, config: WorkprintConfig, *, quiet: bool) -> BatchReport:
    """Run inputs that are located already; raises as :func:`run_batch`."""
    return run_groups(group(located), lake, config, quiet=quiet)


def run_groups(groups: list[SourceGroup], lake: Path, config: WorkprintConfig, *, quiet: bool, work: Work = process) -> BatchReport:
    """Run inputs that are digested already; raises as :func:`run_batch`.

    Args:
        work: what is done with one project; the chain of stages.
    """
    if not groups:
        raise ConfigInvalid("no_sources", "the sources hold no video file", "name a file, a folder with videos, a glob or a manifest")
    preflight.check(config)
    started = time.monotonic()
    opened = Lake(lake)
    run_id = derive_id("run", [time.time_ns(), os.getpid()])
    folder = runs_folder(opened.root) / run_id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(orjson.dumps(_record(groups, config), option=orjson.OPT_INDENT_2))
    shown = {g.key: g.items[0].uri for g in groups}
    with stopping.stoppable(config.run.stop_s), LiveView(opened.root, run_id, shown, quiet=quiet):
        if config.run.engine == "ray":
            from jobs.ray_runner import run_all as ray_run

            results = ray_run(groups, config, opened.location, run_id, work=work)
        else:
            from jobs.local_runner import run_all as local_run

            results = local_run(groups, config, opened.location, run_id, work=work)
    report = BatchReport(run_id, opened.location, results, 0.0)
    if not report.stopped:
        settle(opened, config, run_id)
    report.actors = last_actors(opened.root, run_id)
    for r in results:
        if r.status in ("delivered", "incomplete") and r.project_id is not None:
            made = laid_out(opened, r.project_id)
            if made is None and opened.bucket is not None and len(report.folders) < SHOWN:  # made by no worker, and here for a look
                made = lay_out(opened, r.project_id, open_sandbox(config.run.sandbox))
            if made is not None:
                report.folders[r.key] = made
    report.figures = figures(opened, [r.project_id for r in results if r.project_id is not None])
    report.costs = [(str(role), int(n), dollars) for role, n, dollars in opened.query("select role, answered, dollars from costs").rows]
    report.wall_s = time.monotonic() - started
    told = {name: value for name, value in report.as_json().items() if name != "sources"}
    (folder / "report.json").write_bytes(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    return report


def figures(lake: Lake, project_ids: list[str]) -> dict[str, int]:
    """Counts over the live rows of some projects: what a summary shows."""
    questions = {
        "projects": "select count(*) from projects where project_id in (select unnest($ids))",
        "shots": "select count(*) from shots where project_id in (select unnest($ids))",
        "sentences": "select count(*) from sentences where project_id in (select unnest($ids))",
        "words": "select count(*) from words where project_id in (select unnest($ids))",
        "trajectories": "select count(*) from trajectories where project_id in (select unnest($ids))",
        "calls": "select count(*) from calls where project_id in (select unnest($ids))",
        "blockers": "select count(*) from blockers where project_id in (select unnest($ids))",
        "repairs": "select count(*) from repairs where project_id in (select unnest($ids))",
        "repairs_verified": "select count(*) from repairs where outcome = 'verified' and project_id in (select unnest($ids))",
        "examples": "select count(*) from examples where project_id in (select unnest($ids))",
        "artifacts": "select count(distinct sha256) from artifacts where project_id in (select unnest($ids))",
    }
    con = lake.connect()
    try:
        return {name: int(con.execute(sql, {"ids": project_ids}).fetchall()[0][0]) for name, sql in questions.items()}
    finally:
        con.close()


def _settings(names: list[str], config_name: str | None) -> tuple[WorkprintConfig, list[str]]:
    named = [name for name in names if Path(name).suffix.lower() in (".yaml", ".yml")]
    if named and len(names) > 1:
        raise ConfigInvalid(
            "config_among_sources",
            f"{named[0]} is a configuration file and stands among {len(names) - 1} other sources",
            "give it with --config, or alone: then it names its sources itself",
        )
    if named:
        if config_name is not None:
            raise ConfigInvalid("two_configs", "a configuration file was given both as source and with --config", "give one of them")
        config = load_config(names[0])
        if not config.sources:
            raise ConfigInvalid(
                "no_sources", f"{names[0]} names no sources", "add 'sources: [...]' to it, or name videos on the command line"
            )
        return config, list(config.sources)
    return load_config(config_name), names


def _record(groups: list[SourceGroup], config: WorkprintConfig) -> dict[str, Any]:
    return {
        "started_s": round(time.time(), 3),
        "keys": {g.key: [i.uri for i in g.items] for g in groups},
        "config": config.model_dump(mode="json", exclude={"sources"}),
    }
