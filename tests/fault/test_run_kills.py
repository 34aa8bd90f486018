"""Whole runs that are killed, repeated, shuffled and fed with poison: each project is done exactly once, and the rest goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.progress import EventReader
from storage.lake import Lake
from tests.conftest import Tally
from tests.fault.light import STAGES, config_of, effects, light_groups, rows_of, run_light
from tests.fault.sizes import sizes

pytestmark = [pytest.mark.fault, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
RAY = {"cpus_per_project": 1}


def workers() -> list[int]:
    """Ray workers under this process that are executing a task."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "cmdline").read_bytes().split(b"\0")[0].decode()
            except OSError:
                continue
            if name.startswith("ray::_projects") and _is_ours(int(entry.name)):
                found.append(int(entry.name))
    return sorted(found)


def _is_ours(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False


def killing(root: Path, items: int, count: int, rng: random.Random, over: threading.Event, killed: list[int]) -> Callable[[], None]:
    """Kill workers in the middle of their tasks until ``count`` are dead; one for some executed stages, so that all strike work and not the
    start of the worker that follows a dead one."""

    def work() -> None:
        wanted = rng.randrange(2, 3 * items // count)
        while len(killed) < count and not over.wait(0.02):
            alive = workers() if len(effects(root)) >= wanted else []
            if alive:
                victim = rng.choice(alive)
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed.append(victim)
                wanted = len(effects(root)) + rng.randrange(2, 3 * items // count)

    return work


def exactly_once(root: Path, count: int) -> Lake:
    """Every project has every row once."""
    lake = Lake(root)
    assert {t: len(rows) for t, rows in rows_of(lake).items()} == {
        "sources": count, "projects": count, "words": 3 * count, "sentences": count, "stage_runs": 4 * count, "rejections": 0
    }  # fmt: skip
    assert_sound_light(lake)
    return lake


def assert_sound_light(lake: Lake) -> None:
    report = lake.fsck()
    assert report.is_sound, report.findings


@pytest.mark.parametrize(("items", "kills"), [pytest.param(40, 3, id="gate"), pytest.param(1000, 50, id="full", marks=pytest.mark.full)])
def test_killed_workers_cost_attempts_and_no_row(tmp_path: Path, items: int, kills: int, seed: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    over = threading.Event()
    killed: list[int] = []
    killer = threading.Thread(target=killing(root, items, kills, random.Random(seed), over, killed))  # noqa: S311
    killer.start()
    try:
        results = run_light(root, light_groups(range(items)), config_of(engine="ray", ray=RAY, attempts=3))
    finally:
        over.set()
        killer.join()
    lost = [r.key for r in results if r.status == "failed"]  # killed three times in a row: given up, and said so
    if lost:
        results = run_light(root, light_groups(range(items)), config_of(engine="local"))
    assert {r.status for r in results} == {"delivered"}
    exactly_once(root, items)
    assert len(effects(root)) >= 3 * items
    assert len(killed) == kills
    tally("R7", items=items, kills=len(killed), rows_lost=0, rows_doubled=0, effects=len(effects(root)), effects_needed=3 * items,
          given_up_for_the_next_run=len(lost))  # fmt: skip


@pytest.mark.parametrize(("items", "kills"), [pytest.param(40, 1, id="gate"), pytest.param(200, 5, id="full", marks=pytest.mark.full)])
def test_a_killed_driver_is_followed_by_a_run_that_goes_on(tmp_path: Path, items: int, kills: int, seed: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    rng = random.Random(seed)  # noqa: S311
    again = done_before = killed = 0
    for _ in range(kills):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.fault.light", str(root), str(items), "ray"], cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as driver:
            wanted = len(effects(root)) + rng.randrange(5, 5 + 2 * items // kills)
            began = time.monotonic()
            while driver.poll() is None and len(effects(root)) < wanted and time.monotonic() - began < 120:
                time.sleep(0.01)
            killed += driver.poll() is None
            driver.kill()
        time.sleep(1.0)  # its workers notice
        executed = Counter(effects(root))
        again += sum(n - 1 for n in executed.values())
        done_before = len(rows_of(Lake(root))["stage_runs"])
    finished = {(r["stage"], r["subject"]) for r in Lake(root).scan("stage_runs").to_pylist()}
    before = Counter(effects(root))
    results = run_light(root, light_groups(range(items)), config_of(engine="local"))
    assert {r.status for r in results} == {"delivered"}
    repeated = [
        (stage, g.project_id)
        for g in light_groups(range(items))
        for stage in STAGES
        if (stage, g.project_id) in finished
        and Counter(effects(root))[f"{stage} {g.items[0].uri.rpartition('/')[2]}"] > before[f"{stage} {g.items[0].uri.rpartition('/')[2]}"]
    ]
    assert repeated == []
    exactly_once(root, items)
    tally("R8", items=items, kills=killed, lost=0, duplicate=0, stages_done_at_last_kill=done_before, completed_stages_executed_again=0,
          interrupted_stages_executed_again=again)  # fmt: skip


@pytest.mark.parametrize("reruns", sizes(1, 3))
def test_a_finished_run_does_nothing_again(tmp_path: Path, reruns: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    run_light(root, light_groups(range(12)), config_of())
    lake = Lake(root)
    rows, versions, files, done = rows_of(lake), lake.versions(), lake.files(), effects(root)
    for number in range(reruns):
        results = run_light(root, light_groups(range(12)), config_of(), f"run_{number}")
        assert {(r.stages_run, r.stages_skipped) for r in results} == {(0, 3)}
    lake = Lake(root)
    assert (rows_of(lake), lake.versions(), lake.files(), effects(root)) == (rows, versions, files, done)
    tally("R9", reruns=reruns, stages_executed=0, new_rows=0, new_versions=0)


@pytest.mark.parametrize("engines", sizes(("local", "shuffled"), ("local", "shuffled", "ray", "ray 2")))
def test_order_and_engine_change_no_row(tmp_path: Path, engines: tuple[str, ...], seed: int, tally: Tally) -> None:
    seen = []
    for engine in engines:
        numbers = list(range(16))
        if engine == "shuffled":
            random.Random(seed).shuffle(numbers)  # noqa: S311
        window = {"window": 2 if engine == "ray 2" else 1}
        config = config_of(engine="ray", ray=RAY, **window) if engine.startswith("ray") else config_of()
        run_light(tmp_path / engine, light_groups(numbers), config)
        seen.append(rows_of(Lake(tmp_path / engine)))
    assert all(s == seen[0] for s in seen)
    tally("R10", engines=", ".join(engines), differing_rows=0)


POISON = {3: ("crash", "worker_died"), 7: ("hang", "stage_timeout"), 9: ("memory", "memory_limit"), 11: ("garbage", "not_json"),
          13: ("nothing", "no_output")}  # fmt: skip


@pytest.mark.parametrize("items", sizes(20, 200))
def test_poison_is_quarantined_with_its_cause_and_the_rest_is_done(tmp_path: Path, items: int, tally: Tally) -> None:
    root = tmp_path / "lake"
    limits = {"replay_s": 8, "grace_s": 1, "memory_bytes": 700_000_000}  # time enough to fill the memory on a busy machine
    groups = light_groups(range(items), {n: fault for n, (fault, _) in POISON.items()})
    results = run_light(root, groups, config_of(engine="ray", ray=RAY, limits=limits, attempts=2, window=4))
    failed = {int(r.uri.partition("?")[0][6:]): r.code for r in results if r.status == "failed"}
    assert failed == {n: code for n, (_, code) in POISON.items()}
    assert Counter(r.status for r in results) == {"delivered": items - 5, "failed": 5}
    lake = Lake(root)
    quarantined = [r for r in lake.scan("failures").to_pylist() if r["quarantined"]]
    assert sorted(r["code"] for r in quarantined) == sorted(code for _, code in POISON.values())
    assert {r["stage"] for r in quarantined} == {"replay"}
    assert max(r["attempts"] for r in quarantined) <= 3
    ended = Counter(e["status"] for _, e in EventReader(root, "run_light").new() if e["event"] == "finished")
    assert ended == {"delivered": items - 5, "failed": 5}  # what a terminal and `workprint status` count
    executed = Counter(effects(root))
    assert max(executed[f"replay {n}"] for n in POISON) <= 3
    assert_sound_light(lake)
    again = run_light(root, light_groups(range(items)), config_of())  # the causes are gone
    assert {r.status for r in again} == {"delivered"}
    tally("R11", items=items, done=items - 5, quarantined=5, codes=", ".join(sorted(str(c) for c in failed.values())), most_attempts=2)


def test_a_stage_over_its_time_is_told_so_in_the_laptop_mode_too(tmp_path: Path) -> None:
    results = run_light(tmp_path / "lake", light_groups(range(3), {1: "slow"}), config_of(limits={"replay_s": 0.5}))
    assert [(r.status, r.code) for r in results] == [("delivered", None), ("failed", "stage_timeout"), ("delivered", None)]


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("kills", sizes(4, 200))
def test_a_cold_command_killed_again_and_again_ends_as_if_it_never_was(tmp_path: Path, kills: int, seed: int, tally: Tally) -> None:
    """The command itself, on sources that are refused: the sandbox, the chain, the ledger and the layout, from a cold start each time."""
    rng = random.Random(seed)  # noqa: S311
    videos = tmp_path / "videos"
    videos.mkdir()
    for n in range(12):
        (videos / f"film{n:02}.mp4").write_bytes(b"this is no film %d" % n)
    (videos / "empty.mp4").write_bytes(b"")

    def command(lake: Path) -> list[str]:
        start = [sys.executable, "-c", "from jobs.cli import main; main()", "run"]
        return [*start, str(videos), "--lake", str(lake), "--engine", "local", "--quiet"]

    whole = tmp_path / "whole"
    began = time.monotonic()
    assert subprocess.run(command(whole), cwd=ROOT, capture_output=True, check=False).returncode == 3
    length = time.monotonic() - began
    expected = rows_of(Lake(whole))
    assert len(expected["rejections"]) == 13
    killed = rounds = 0
    lake = tmp_path / "lake0"
    while killed < kills:
        with subprocess.Popen(command(lake), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            try:
                run.wait(rng.uniform(length * 0.3, length * 1.05))
            except subprocess.TimeoutExpired:
                run.kill()
                killed += 1
                continue
        assert run.returncode == 3
        assert rows_of(Lake(lake)) == expected, f"seed {seed}"
        rounds += 1
        lake = tmp_path / f"lake{rounds}"
    assert subprocess.run(command(lake), cwd=ROOT, capture_output=True, check=False).returncode == 3
    assert rows_of(Lake(lake)) == expected, f"seed {seed}"
    assert_sound_light(Lake(lake))
    tally("R2", kills=killed, finished_rounds=rounds + 1, rows_differing=0)
