"""What a lake holds and what its latest run is doing, read from outside."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table

from jobs.progress import EventReader, actors_line, printable, runs_folder, tail
from jobs.questions import open_lake
from storage.lake import Lake

SHOWN = 40
"""Projects shown by name; of more than these only the ones that are being worked on."""

UNMENDED = """
select distinct f.stage, f.code, f.uri from failures f
where f.quarantined and not exists (select 1 from stage_runs s where s.stage = f.stage and s.subject = f.subject)
order by all limit 50
"""
"""What was given up and has not been done since."""


@dataclass(frozen=True, slots=True)
class LakeStatus:
    """Funnel, reasons, and the latest run."""

    lake: Path
    version: int
    funnel: dict[str, int]
    rejections: list[tuple[str, int]]
    failures: list[tuple[str, str, str]]
    run_id: str | None
    run_age_s: float | None
    projects: list[dict[str, Any]]
    actors: dict[str, dict[str, Any]]
    """Engines that the latest run holds in actors, by part; empty where it holds none."""
    ended: dict[str, Any] | None
    """The report of the latest run; None while it goes on, or where its process was killed."""

    def as_json(self) -> dict[str, Any]:
        """Stable form of ``workprint status --json``."""
        return {
            "lake": str(self.lake),
            "version": self.version,
            "funnel": self.funnel,
            "rejections": [{"code": c, "count": n} for c, n in self.rejections],
            "failures": [{"stage": s, "code": c, "uri": u} for s, c, u in self.failures],
            "run": None
            if self.run_id is None
            else {
                "run_id": self.run_id,
                "age_s": round(self.run_age_s or 0.0, 1),
                "projects": self.projects,
                "actors": self.actors,
                "ended": self.ended,
            },
        }

    def print(self) -> None:
        """For a person."""
        console = Console()
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in self.funnel.items():
            table.add_row(name.replace("_", " "), str(value))
        console.print(f"{self.lake}, version {self.version}", markup=False, highlight=False)
        console.print(table)
        for code, count in self.rejections:
            console.print(f"  refused    {code}: {count}", markup=False, highlight=False)
        for stage, code, uri in self.failures:
            console.print(f"  failed     {stage}: {code}: {printable(uri)}", markup=False, highlight=False)
        if self.run_id is not None:
            state = "" if self.ended is None else ", stopped; the same command goes on" if self.ended["stopped"] else ", finished"
            told = f"\nlatest run {self.run_id}, last heard of {self.run_age_s or 0:.0f} s ago{state}"
            console.print(told, markup=False, highlight=False, soft_wrap=True)
            ended = Counter(p["status"] for p in self.projects if p["status"])
            waiting = sum(1 for p in self.projects if p["status"] is None and p["stage"] is None)
            going = [p for p in self.projects if p["status"] is None and p["stage"] is not None]
            parts = [*(f"{n} {status}" for status, n in sorted(ended.items())), f"{len(going)} being worked on", f"{waiting} waiting"]
            console.print("  " + ", ".join(parts), markup=False, highlight=False)
            for part, figures in self.actors.items():
                console.print(f"  {actors_line(part, figures)}", markup=False, highlight=False)
            shown = self.projects if len(self.projects) <= SHOWN else going
            for p in shown[:SHOWN]:
                console.print(f"  {tail(p['uri'], 60):<60} {printable(p['doing'])}", markup=False, highlight=False)


def read_status(path: Path) -> LakeStatus:
    """Read the status of a lake. Never waits for a writer.

    Raises:
        ConfigInvalid: there is no lake at this path.
    """
    lake = open_lake(path)
    con = lake.connect(verify=False)  # counts for people, at once; `workprint query` and `fsck` look at every byte
    try:
        cursor = con.execute("from funnel")
        names = [d[0] for d in cursor.description or ()]
        funnel = dict(zip(names, (int(v) for v in cursor.fetchall()[0]), strict=True))
        rejections = [
            (str(c), int(n))
            for c, n in con.execute("select code, count(*) n from rejections group by code order by n desc, code").fetchall()
        ]
        failures = [(str(s), str(c), str(u)) for s, c, u in con.execute(UNMENDED).fetchall()]
    finally:
        con.close()
    version = max((v.version for v in lake.versions()), default=0)
    return LakeStatus(path, version, funnel, rejections, failures, *_latest(lake))


def _latest(lake: Lake) -> tuple[str | None, float | None, list[dict[str, Any]], dict[str, dict[str, Any]], dict[str, Any] | None]:
    runs = [p for p in runs_folder(lake.root).glob("run_*") if (p / "run.json").is_file()]
    if not runs:
        return None, None, [], {}, None
    latest = max(runs, key=lambda p: (p / "run.json").stat().st_mtime_ns)
    keys: dict[str, list[str]] = orjson.loads((latest / "run.json").read_bytes()).get("keys", {})
    doing = {k: {"key": k, "uri": uris[0], "stage": None, "doing": "waiting", "status": None} for k, uris in keys.items()}
    heard = (latest / "run.json").stat().st_mtime
    actors: dict[str, dict[str, Any]] = {}
    for key, event in EventReader(lake.root, latest.name).new():
        if event["event"] == "actors":
            actors = event["actors"]
            continue
        row = doing.setdefault(key, {"key": key, "uri": key, "stage": None, "doing": "waiting", "status": None})
        heard = max(heard, float(event["time_s"]))
        row["stage"] = event.get("stage", row["stage"])
        row["doing"] = event.get("text") or event.get("status") or f"{event.get('stage')} {event['event'].removeprefix('stage_')}"
        row["status"] = event.get("status", row["status"])
    report = latest / "report.json"
    ended = orjson.loads(report.read_bytes()) if report.is_file() else None
    return latest.name, time.time() - heard, list(doing.values()), actors, ended
