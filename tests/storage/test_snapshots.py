"""Snapshots: states come back equal, cost what changed, and have names that depend on content only."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.artifact import ArtifactKind, ArtifactRef
from schemas.contract import ContentRequest, Role
from schemas.errors import DigestMismatch, SchemaMismatch, StorageFault
from schemas.state import GlobalRecord, Pending, PlannedShot, PoolClip, ProductionState, Render, ShotRecord, SpotlightPlan, Task
from schemas.storyboard import SpotlightKind
from schemas.time import Rate
from storage.artifacts import ArtifactStore
from storage.snapshots import SnapshotStore, snapshot_sha256

REF = ArtifactRef(sha256="ab" * 32, kind=ArtifactKind.RENDER, media_type="video/mp4", size_bytes=7)
TASK = Task(
    project_id="prj_1",
    title="A lecture",
    language="zh",
    script="今天我们讲力学。",
    aspect_ratio="16:9",
    width=1280,
    height=720,
    frame_rate=Rate(num=15, den=1),
    duration_min_us=1,
    duration_max_us=2,
    pool=(
        PoolClip(
            clip_id="clip_1",
            ref=REF,
            text="a pendulum",
            duration_us=5,
            width=2,
            height=2,
            rate=Rate(num=25, den=1),
            licence="CC0",
            origin="source",
        ),
    ),
    music_library="none",
    voice="default",
    tools_digest="cd" * 32,
    licence="CC0",
)


def shot(index: int, text: str = "words", render: int | None = None) -> ShotRecord:
    return ShotRecord(
        shot_id=f"s{index:03d}",
        planned=PlannedShot(segment=0, script_start=0, script_end=5, text=text, visual_query="q", target_duration_us=10),
        render=None if render is None else Render(ref=REF, frames=render, inputs_digest="ef" * 32),
    )


def state(shots: int) -> ProductionState:
    records = {f"s{i:03d}": shot(i) for i in range(shots)}
    return ProductionState(film=GlobalRecord(task=TASK, shot_order=tuple(records)), shots=records)


def changed(s: ProductionState, sid: str, record: ShotRecord) -> ProductionState:
    return s.model_copy(update={"shots": {**s.shots, sid: record}})


@pytest.fixture
def snapshots(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(ArtifactStore(tmp_path / "artifacts"))


def fresh(snapshots: SnapshotStore) -> SnapshotStore:
    return SnapshotStore(ArtifactStore(snapshots.store.root))


def test_a_state_comes_back_equal(snapshots: SnapshotStore) -> None:
    pending = Pending(
        tool="plan_shots",
        tool_version=1,
        arguments={"shots": "all", "n": 2},
        request=ContentRequest(
            role=Role.GENERATOR, tool="plan_shots", tool_version=1, kind="shot_plan", instruction="", content_schema={"b": 1, "a": None}
        ),
        given=({"x": [1, 2.5]},),
        orchestrator_call=3,
    )
    s = state(3)
    s = s.model_copy(update={"film": s.film.model_copy(update={"pending": pending})})
    name = snapshots.save(s)
    restored = fresh(snapshots).load(name)
    assert restored == s
    assert fresh(snapshots).digest(restored) == snapshots.digest(s)
    assert fresh(snapshots).save(restored) == name


def test_the_name_is_the_digest_of_the_manifest(snapshots: SnapshotStore) -> None:
    name = snapshots.save(state(2))
    manifest = snapshots.manifest(name)
    assert name == f"snp_{manifest.digest()}"
    assert manifest.project_id == "prj_1"
    assert [sid for sid, _ in snapshots.shot_records(manifest)] == ["s000", "s001"]
    assert manifest.state_digest == snapshots.digest(state(2))


def test_a_snapshot_writes_only_what_changed(snapshots: SnapshotStore) -> None:
    first = state(10)
    snapshots.save(first)
    before = set(snapshots.store.names())
    assert len(before) == 14  # 10 shots, their page, film, task, manifest
    snapshots.save(changed(first, "s004", shot(4, render=9)))
    assert len(set(snapshots.store.names()) - before) == 3  # one shot, its page, one manifest


@pytest.mark.parametrize(("shots", "bound"), [(16, 2_600), (300, 4_000), (1000, 7_000)])
def test_the_bytes_of_a_snapshot_follow_the_change_and_not_the_film(snapshots: SnapshotStore, shots: int, bound: int) -> None:
    first = state(shots)
    snapshots.save(first)
    before = {name: len(snapshots.store.read(name)) for name in snapshots.store.names()}
    snapshots.save(changed(first, "s005", shot(5, render=9)))
    new = {name: len(snapshots.store.read(name)) for name in snapshots.store.names() if name not in before}
    assert len(new) == 3
    assert sum(new.values()) < bound


def test_a_snapshot_of_the_first_version_still_comes_back(snapshots: SnapshotStore) -> None:
    s = state(3)
    manifest = snapshots.manifest(snapshots.save(s))
    old = {"schema_version": "snapshot.1", "shot_records": [list(p) for p in snapshots.shot_records(manifest)]}
    old |= {name: getattr(manifest, name) for name in ("project_id", "state_digest", "film_record", "task_record")}
    name = f"snp_{snapshots.store.put_json(old, ArtifactKind.SNAPSHOT).sha256}"
    assert fresh(snapshots).load(name) == s
    assert fresh(snapshots).parts(name) == snapshots.parts(snapshots.save(s)) - set(manifest.shot_pages)


def test_a_snapshot_names_all_it_needs(snapshots: SnapshotStore) -> None:
    name = snapshots.save(state(40))
    parts = snapshots.parts(name)
    assert len(parts) == 40 + 3 + 2  # shots, pages, film and task
    assert parts | {snapshot_sha256(name)} == set(snapshots.store.names())


def test_an_equal_state_writes_nothing_in_another_process(snapshots: SnapshotStore) -> None:
    name = snapshots.save(state(4))
    before = set(snapshots.store.names())
    assert fresh(snapshots).save(state(4)) == name
    assert set(snapshots.store.names()) == before


def test_the_order_of_the_dict_does_not_count(snapshots: SnapshotStore) -> None:
    s = state(3)
    turned = s.model_copy(update={"shots": dict(reversed(s.shots.items()))})
    assert snapshots.digest(turned) == snapshots.digest(s)
    assert snapshots.save(turned) == snapshots.save(s)


@pytest.mark.parametrize(
    "other",
    [
        changed(state(2), "s001", shot(1, text="other")),
        changed(state(2), "s001", shot(1, render=3)),
        state(3),
        state(2).model_copy(update={"film": state(2).film.model_copy(update={"repairs_used": 1})}),
        state(2).model_copy(update={"film": state(2).film.model_copy(update={"task": TASK.model_copy(update={"voice": "zf_xiaoxiao"})})}),
    ],
    ids=["planned", "produced", "one shot more", "film", "task"],
)
def test_any_change_has_another_digest(snapshots: SnapshotStore, other: ProductionState) -> None:
    assert snapshots.digest(other) != snapshots.digest(state(2))
    assert snapshots.save(other) != snapshots.save(state(2))


def test_loads_share_unchanged_records(snapshots: SnapshotStore) -> None:
    first = state(5)
    names = [snapshots.save(first), snapshots.save(changed(first, "s002", shot(2, render=1)))]
    reader = fresh(snapshots)
    a, b = (reader.load(n) for n in names)
    assert a.shots["s001"] is b.shots["s001"]
    assert a.film.task is b.film.task
    assert a.shots["s002"] != b.shots["s002"]


def test_one_changed_record_among_300_costs_well_under_10_ms(snapshots: SnapshotStore) -> None:
    s = state(300)
    snapshots.digest(s)
    samples = []
    for n in range(15):
        s = changed(s, "s150", shot(150, render=n + 1))
        began = time.perf_counter()
        snapshots.digest(s)
        samples.append(time.perf_counter() - began)
    assert sorted(samples)[7] < 0.010


@pytest.mark.parametrize("gone", ["manifest", "record", "page"])
def test_a_missing_part_is_a_storage_fault(snapshots: SnapshotStore, gone: str) -> None:
    name = snapshots.save(state(2))
    manifest = snapshots.manifest(name)
    digest = {"manifest": snapshot_sha256(name), "record": manifest.film_record, "page": manifest.shot_pages[0]}[gone]
    snapshots.store.path(digest).unlink()
    with pytest.raises(StorageFault, match="artifact_missing"):
        fresh(snapshots).load(name)


def test_a_damaged_record_is_refused(snapshots: SnapshotStore) -> None:
    name = snapshots.save(state(2))
    path = snapshots.store.path(snapshots.manifest(name).task_record)
    path.write_bytes(path.read_bytes().replace(b"lecture", b"lectuse"))
    with pytest.raises(DigestMismatch):
        fresh(snapshots).load(name)


@pytest.mark.parametrize("name", ["", "snp_12", "trj_" + "a" * 64, "../x"])
def test_what_is_no_snapshot_id_is_refused(snapshots: SnapshotStore, name: str) -> None:
    with pytest.raises(SchemaMismatch):
        snapshots.load(name)


def test_another_artifact_is_no_snapshot(snapshots: SnapshotStore) -> None:
    ref = snapshots.store.put_json({"schema_version": "snapshot.9"}, ArtifactKind.SNAPSHOT)
    with pytest.raises(SchemaMismatch, match=r"snapshot\.1"):
        snapshots.load(f"snp_{ref.sha256}")


def test_a_lone_surrogate_is_refused_and_nothing_is_written(snapshots: SnapshotStore) -> None:
    s = changed(state(1), "s000", shot(0).model_copy(update={"excluded_clips": ("\ud800",)}))
    with pytest.raises(SchemaMismatch):
        snapshots.save(s)
    assert list(snapshots.store.names()) == []


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SHOTS = st.builds(
    lambda text, spot, used: shot(0, text).model_copy(
        update={
            "planned": shot(0, text).planned.model_copy(
                update={"spotlight": SpotlightPlan(kind=SpotlightKind.LIST, brief=spot) if spot else None}
            ),
            "repairs_used": used,
        }
    ),
    TEXT,
    TEXT,
    st.integers(0, 3),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.dictionaries(st.sampled_from(["s000", "s001", "s002"]), SHOTS),
    second=st.dictionaries(st.sampled_from(["s001", "s003"]), SHOTS),
)
def test_property_equal_states_and_only_they_share_a_name(
    tmp_path: Path, first: dict[str, ShotRecord], second: dict[str, ShotRecord]
) -> None:
    writer = SnapshotStore(ArtifactStore(tmp_path / "p"))
    one, two = (state(0).model_copy(update={"shots": shots}) for shots in (first, second))
    names = [writer.save(one), writer.save(two)]
    assert (names[0] == names[1]) == (one == two)
    reader = SnapshotStore(ArtifactStore(tmp_path / "p"))
    assert [reader.load(n) for n in names] == [one, two]
    assert [reader.digest(reader.load(n)) for n in names] == [writer.digest(one), writer.digest(two)]
