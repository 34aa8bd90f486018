"""One project from its source to its examples: the stages in order, each asking the ledger first.

A stage is done at most once for a key (name, version, config, inputs). Results are committed here and nowhere else; a stage itself
writes no tables. Runs in a Ray worker or in the driver, with equal rows.

A project has one trajectory for every seed of the configuration, each a replay stage of its own, and one materialize stage over all of
them. That commit also ends the rows of trajectories that the configuration no longer asks for, and of what was made from those.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jobs import stopping
from jobs.config import WorkprintConfig
from jobs.descent import orphans
from jobs.kinship import decided_split, materialize_settings
from jobs.layout import laid_out, lay_out
from jobs.progress import EventLog
from jobs.sources import SourceGroup, source_key
from jobs.stages import STAGE_VERSIONS, Workshop, replay_settings, run_invert, run_materialize, run_replay, tool_space, variants
from materialize.splits import split_of
from media.sandbox import open_sandbox
from replay.suite import Retried
from schemas.artifact import ArtifactKind
from schemas.canonical import Frozen, digest_of, stage_key
from schemas.errors import AlreadyDone, PipelineError, Retry, StorageFault
from schemas.stage import Done, RejectCode, Rejected
from schemas.storyboard import Storyboard
from schemas.trajectory import Outcome, Trajectory
from storage.history import StageRecord
from storage.journal import discard
from storage.lake import Lake, StageCommit

_KIND = {"invert": ArtifactKind.STORYBOARD, "replay": ArtifactKind.TRAJECTORY}

SIDE_BYTES = 64_000_000
"""Larger subtitles and scripts are refused unread by every configuration."""

_AFTER = {"invert": ("replay", "materialize"), "replay": ("materialize",)}
"""Stages whose rows go when an earlier stage now refuses its source."""

Status = Literal["delivered", "incomplete", "rejected", "failed", "stopped"]
"""What becomes of a source in a run; ``stopped``: nothing yet, because the run was ended before."""


@dataclass(slots=True)
class ProjectResult:
    """What became of one source."""

    key: str
    uri: str
    status: Status
    project_id: str | None = None
    code: str | None = None
    detail: str | None = None
    stages_run: int = 0
    stages_skipped: int = 0
    wall_s: dict[str, float] = field(default_factory=dict)


def not_begun(group: SourceGroup) -> ProjectResult:
    """What is said of a source whose turn did not come before the run was ended, or whose stage was cut short."""
    return ProjectResult(group.key, group.items[0].uri, "stopped", group.project_id)


class _Refused(Exception):
    """Carries a rejection out of the chain."""

    def __init__(self, rejected: Rejected) -> None:
        super().__init__(rejected.code.value)
        self.rejected = rejected


class _Stopped(Exception):
    """The run is to end: no further stage is begun."""


class _GaveUp(Exception):
    """A stage failed for reasons of ours, more often than allowed."""

    def __init__(self, error: BaseException, stage: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.stage = stage


class Chain:
    """The stages of one project."""

    def __init__(self, group: SourceGroup, config: WorkprintConfig, lake: Lake, run_id: str) -> None:
        self._group = group
        self._config = config
        self._lake = lake
        self._run_id = run_id
        self._log = EventLog.open(lake.root, run_id, group.key)
        self._result = ProjectResult(group.key, group.items[0].uri, "failed", group.project_id)

    def run(self) -> ProjectResult:
        """Run every stage that the ledger does not know yet. Never raises for what one source did; only for a broken lake."""
        result = self._result
        try:
            self._intake()
            if self._group.refused is not None:
                self._stage("invert", {}, (), lambda: self._group.refused, Storyboard)
            runs = self._stages()
            result.status = "delivered" if all(t.outcome is Outcome.DELIVERED for t in runs) else "incomplete"
        except _Refused as r:
            result.status, result.code, result.detail = "rejected", r.rejected.code.value, r.rejected.detail
        except _GaveUp as g:
            result.status = "failed"
            result.code = g.error.code if isinstance(g.error, PipelineError) else type(g.error).__name__
            result.detail = str(g.error)
        except _Stopped:
            result.status = "stopped"
        self._log.write("finished", status=result.status, code=result.code, detail=result.detail)
        return result

    def _stages(self) -> list[Trajectory]:
        """All stages; the trajectories, in the order of their seeds.

        A seed that fails for reasons of ours does not take the others with it: their examples are made first.
        """
        group, config = self._group, self._config
        sha = group.sha256 or ""
        item = group.items[0]
        shop = Workshop(config, self._lake.store, open_sandbox(config.run.sandbox))
        item_digest = digest_of([item.model_dump(exclude={"uri"}), *(_side_digest(p) for p in (item.subtitles, item.script))])
        board_sha = self._stage(
            "invert",
            config.inversion.model_dump(mode="json"),
            (sha, item_digest),
            lambda: self._with_split(run_invert(shop, item, group.path, self._log.note("invert"))),
            Storyboard,
        )
        board = Storyboard.model_validate_json(self._lake.store.read(board_sha))
        runs: dict[str, Trajectory] = {}
        lost: _GaveUp | None = None
        for variant in variants(config):
            try:
                run_sha = self._replay(board, board_sha, variant)
                runs[run_sha] = Trajectory.model_validate_json(self._lake.store.read(run_sha))
            except _GaveUp as error:
                lost = lost or error
        if runs:
            runs = dict(sorted(runs.items(), key=lambda r: r[1].seed))
            scopes = {_seed_scope(group.key, t.seed) for t in runs.values()}
            split = decided_split(self._lake, board.project_id, config)
            settings = materialize_settings(config, board.project_id, split)
            self._stage(
                "materialize",
                settings,
                (board_sha, *runs),
                lambda: run_materialize(shop, board, tuple(runs.values()), self._log.note("materialize"), split),
                None,
                retires=lambda: [
                    *((r.stage, r.scope) for r in self._live("replay") if r.scope not in scopes),
                    *orphans(self._lake, self._subject, {t.trajectory_id for t in runs.values()}),
                ],
            )
        if lost is not None:
            raise lost
        return list(runs.values())

    def _replay(self, board: Storyboard, board_sha: str, variant: WorkprintConfig) -> str:
        """One trajectory; the digest of its artifact."""
        settings, inputs = replay_settings(variant), (board_sha, tool_space())
        journal = self._lake.root / "journals" / stage_key("replay", STAGE_VERSIONS["replay"], digest_of(settings), inputs)
        shop = Workshop(variant, self._lake.store, open_sandbox(variant.run.sandbox))
        many = len(variants(self._config)) > 1
        note = self._log.note(f"replay, seed {variant.replay.policy.seed}" if many else "replay")
        run_sha = self._stage(
            "replay",
            settings,
            inputs,
            lambda: run_replay(shop, board, self._group.path, journal, digest_of(settings), note, self._got_over),
            Trajectory,
            scope=_seed_scope(self._group.key, variant.replay.policy.seed),
        )
        discard(journal)
        return run_sha

    def _live(self, *stages: str) -> list[StageRecord]:
        """Live completions of later stages of this source."""
        return [r for r in self._lake.live(self._subject) if r.stage in stages and r.scope.partition("#")[0] == self._group.key]

    @property
    def _subject(self) -> str:
        return self._group.project_id or self._group.key

    def _intake(self) -> None:
        group = self._group
        rows = [
            {
                "source_key": source_key(item, group.sha256),
                "uri": item.uri,
                "source_sha256": group.sha256,
                "size_bytes": group.size_bytes,
                "project_id": group.project_id,
                "is_duplicate": position > 0,
            }
            for position, item in enumerate(group.items)
        ]
        key = stage_key("intake", STAGE_VERSIONS["intake"], digest_of(rows), ())
        if self._lake.done(key) is None:
            self._commit("intake", key, "done", None, {"sources": rows}, ())

    def _with_split(self, out: Done[Storyboard] | Rejected) -> Done[Storyboard] | Rejected:
        if isinstance(out, Done):
            split = split_of(self._group.project_id or "", self._config.materialize).value
            rows = {**out.rows, "projects": [{**row, "split": split} for row in out.rows.get("projects", [])]}
            return Done(out.output, rows, out.artifacts)
        return out

    def _stage(
        self,
        name: str,
        config: dict[str, Any],
        inputs: tuple[str, ...],
        work: Callable[[], Any],
        output: type[Frozen] | None,
        *,
        scope: str | None = None,
        retires: Callable[[], list[tuple[str, str]]] = list,
    ) -> str:
        """Do one stage unless its key is known; returns the digest of its output.

        Args:
            scope: what the stage's rows replace; the whole source by default.
            retires: (stage, scope) of further rows that end with the commit.
        """
        if not inputs:
            inputs = (self._group.key, *(source_key(i, self._group.sha256) for i in self._group.items))
        key = stage_key(name, STAGE_VERSIONS[name], digest_of(config), inputs)
        known = self._lake.done(key)
        if known is not None:
            self._result.stages_skipped += 1
            self._log.write("stage_skipped", stage=name)
            if known.status == "rejected":
                raise _Refused(self._known_rejection(key))
            return known.output_sha256 or ""
        if stopping.asked():
            raise _Stopped
        self._log.write("stage_started", stage=name)
        started = time.monotonic()
        out = self._attempts(name, work)
        if isinstance(out, Rejected):
            self._log.write("rejected", stage=name, code=out.code.value, detail=out.detail)
            rows = [
                {
                    "source_key": source_key(item, self._group.sha256),
                    "uri": item.uri,
                    "code": out.code.value,
                    "detail": out.detail,
                    "source_sha256": self._group.sha256,
                }
                for item in self._group.items
            ]
            ended = [(r.stage, r.scope) for r in self._live(*_AFTER.get(name, ()))] + orphans(self._lake, self._subject, ())
            self._commit(name, key, "rejected", None, {"rejections": rows}, (), retires=ended)
            raise _Refused(out)
        if output is not None:
            sha = self._lake.store.put_bytes(out.output.canonical(), _KIND[name], "application/json").sha256
        else:
            sha = digest_of([e.example_id for e in out.output])
        kept = (*out.artifacts, *((sha,) if output else ()))
        self._commit(name, key, "done", sha if output is not None else None, out.rows, kept, scope=scope, retires=retires())
        wall = time.monotonic() - started
        self._result.stages_run += 1
        self._result.wall_s[name] = round(self._result.wall_s.get(name, 0.0) + wall, 2)
        self._log.write("stage_done", stage=name, wall_s=round(wall, 2), rows=sum(len(r) for r in out.rows.values()))
        return sha

    def _attempts(self, stage: str, work: Callable[[], Any]) -> Any:
        limit = self._config.run.attempts
        for attempt in range(1, limit + 1):
            try:
                return work()
            except (KeyboardInterrupt, SystemExit):
                raise
            except StorageFault:
                raise
            except PipelineError as error:
                last = attempt == limit or error.retry is Retry.NEVER
                self._failed(stage, error, error.code, attempt, last)
                if last:
                    raise _GaveUp(error, stage) from error
                if stopping.asked():
                    raise _Stopped from error
            except Exception as error:  # a bug of ours must not lose the batch: it is recorded with its trace and the run goes on
                self._failed(stage, error, "unexpected", attempt, True)
                raise _GaveUp(error, stage) from error
            time.sleep(min(2.0**attempt, 10.0))
        raise AssertionError("unreachable")

    def _failed(self, stage: str, error: Exception, code: str, attempt: int, last: bool) -> None:
        message = str(error) if isinstance(error, PipelineError) else "".join(traceback.format_exception(error))[-4000:]
        self._log.write("failed", stage=stage, code=code, message=str(error), attempt=attempt, quarantined=last)
        self._lake.record_failure(
            stage=stage,
            subject=self._subject,
            uri=self._group.items[0].uri,
            error_type=type(error).__name__,
            code=code,
            message=message,
            attempts=attempt,
            quarantined=last,
            run_id=self._run_id,
        )

    def _got_over(self, retried: Retried) -> None:
        """Record a fault of ours that a second try inside the replay got over."""
        error = retried.error
        self._lake.record_failure(
            stage="replay",
            subject=self._subject,
            uri=self._group.items[0].uri,
            error_type=str(error["type"]),
            code=str(error["code"]),
            message=f"call {retried.call_index}, {retried.tool}: {error['message']}",
            attempts=1,
            quarantined=False,
            run_id=self._run_id,
        )

    def _known_rejection(self, stage_key: str) -> Rejected:
        for row in self._lake.rows_of("rejections", stage_key):
            return Rejected(RejectCode(row["code"]), row["detail"])
        return Rejected(RejectCode.UNREADABLE, "rejected in an earlier run")

    def _commit(
        self,
        stage: str,
        key: str,
        status: Literal["done", "rejected"],
        output: str | None,
        rows: dict[str, list[dict[str, Any]]],
        artifacts: tuple[str, ...],
        *,
        scope: str | None = None,
        retires: Sequence[tuple[str, str]] = (),
    ) -> None:
        commit = StageCommit(
            stage=stage,
            stage_key=key,
            subject=self._subject,
            scope=scope or self._group.key,
            status=status,
            output_sha256=output,
            rows=rows,
            artifacts=artifacts,
            run_id=self._run_id,
            retires=tuple(retires),
        )
        try:
            self._lake.commit(commit)
        except AlreadyDone:
            self._log.write("note", stage=stage, text="another worker had committed this stage first")


def _seed_scope(key: str, seed: int) -> str:
    """What the rows of one trajectory of a source replace: those of its seed."""
    return f"{key}#{seed}"


def _side_digest(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        if not Path(path).is_file():  # a pipe would be waited for
            return "unreadable"
        size = Path(path).stat().st_size
        return digest_of(Path(path).read_bytes().hex()) if size <= SIDE_BYTES else f"{size} bytes"
    except (OSError, ValueError):
        return "unreadable"


def _show(lake: Lake, result: ProjectResult, config: WorkprintConfig, run_id: str) -> None:
    """Lay out the folder of a project for people, where something is new. It is a copy: that it fails takes nothing from the project."""
    if result.status not in ("delivered", "incomplete") or result.project_id is None or lake.bucket is not None:
        return
    if not result.stages_run and laid_out(lake, result.project_id) is not None:
        return
    try:
        lay_out(lake, result.project_id, open_sandbox(config.run.sandbox))
    except StorageFault:
        raise
    except PipelineError as error:
        EventLog.open(lake.root, run_id, result.key).write("note", stage="layout", text=f"the project's folder was not made: {error}")


def process(group: SourceGroup, config: WorkprintConfig, lake_root: Path, run_id: str) -> ProjectResult:
    """Run one project's chain against a lake; the unit of work of every runner.

    A lake that had a fault takes no more writes, so each try opens it anew and goes on from the ledger and the call journal.

    Raises:
        StorageFault: the lake stayed unusable.
    """
    attempt = 1
    while True:
        try:
            lake = Lake(lake_root)
            result = Chain(group, config, lake, run_id).run()
            _show(lake, result, config, run_id)
            return result
        except StorageFault as error:
            if attempt >= config.run.attempts or error.retry is Retry.NEVER:
                raise
            time.sleep(min(2.0**attempt, 10.0))
            attempt += 1
