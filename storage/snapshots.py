"""Snapshots: production states stored by record, restorable by name.

A state is cut into records (the film without its task, the task, each shot), and the list of its shots' records into pages. Every record
and every page is one artifact, so equal ones are stored once, and a snapshot costs what changed. Records are immutable; their digests are
remembered by identity. Must not interpret a state.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Literal, TypeVar

from schemas.artifact import ArtifactKind
from schemas.canonical import Frozen, Sha256, digest_of, sha256_bytes
from schemas.errors import SchemaMismatch
from schemas.snapshot import Snapshot, SnapshotPage
from schemas.state import STATE_VERSION, GlobalRecord, ProductionState, ShotRecord, Task
from storage.artifacts import JSON_TYPE, ArtifactStore, json_bytes

RecordName = Literal["film", "task", "shot"]

_LIMITS: dict[RecordName, int] = {"film": 128, "task": 128, "shot": 20_000}
"""Records of each kind that are kept in memory; film records are large and seldom seen twice."""

PAGE = 16
"""Shots of one page: for films of some hundred shots a page and the list of pages are about as long as one record."""

Pairs = tuple[tuple[str, Sha256], ...]
"""Shot ids, sorted, with the digests of their records."""


def snapshot_sha256(snapshot_id: str) -> Sha256:
    """Digest of the manifest artifact that a snapshot id names.

    Raises:
        SchemaMismatch: not a snapshot id.
    """
    prefix, _, digest = snapshot_id.partition("_")
    if prefix != "snp" or len(digest) != 64:
        raise SchemaMismatch("not_a_snapshot_id", f"expected 'snp_' and 64 hex digits, got {snapshot_id[:80]!r}")
    return digest


class SnapshotStore:
    """Saves and restores production states. Not for use by several threads at once."""

    def __init__(self, store: ArtifactStore) -> None:
        self.store = store
        self._digests: dict[RecordName, OrderedDict[int, tuple[Frozen, Sha256]]] = {n: OrderedDict() for n in _LIMITS}
        self._records: dict[RecordName, OrderedDict[Sha256, Frozen]] = {n: OrderedDict() for n in _LIMITS}
        self._pages: OrderedDict[Pairs, Sha256] = OrderedDict()
        self._shots: OrderedDict[Sha256, Pairs] = OrderedDict()
        self._saved: set[Sha256] = set()

    def digest(self, state: ProductionState) -> Sha256:
        """The state's digest, over the digests of its records and the shot ids; independent of the order of the dict.

        Records that were seen before cost a dictionary look-up.

        Raises:
            SchemaMismatch: a record holds what JSON cannot (lone surrogates, foreign types).
        """
        film, task, shots = self._digests_of(state)
        return _state_digest(state.schema_version, film, task, shots)

    def save(self, state: ProductionState, *, later: bool = False) -> str:
        """Store a state; durable on return. Only records that are new are written.

        Args:
            later: visible at once, durable after ``store.sync()`` (see ArtifactStore.put_bytes).

        Returns:
            the snapshot id: 'snp_' and the sha256 of the manifest artifact (schemas.snapshot.Snapshot). Equal states have equal ids.

        Raises:
            SchemaMismatch: a record holds what JSON cannot.
            StorageFull, StorageFault: nothing was acknowledged.
        """
        film, task, shots = self._digests_of(state)
        new: dict[Sha256, bytes] = {}
        if film not in self._saved:
            new[film] = _record_bytes("film", state.film)
        if task not in self._saved:
            new[task] = _record_bytes("task", state.film.task)
        for sid, digest in shots:
            if digest not in self._saved:
                new[digest] = _record_bytes("shot", state.shots[sid])
        pages = [self._page(shots[at : at + PAGE]) for at in range(0, len(shots), PAGE)]
        for number, page in enumerate(pages):
            if page not in self._saved:
                new[page] = _page_bytes(shots[number * PAGE : (number + 1) * PAGE])
        manifest = Snapshot(
            project_id=state.film.task.project_id,
            state_digest=_state_digest(state.schema_version, film, task, shots),
            film_record=film,
            task_record=task,
            shot_pages=tuple(pages),
        )
        body = manifest.canonical()
        name = sha256_bytes(body)
        if name not in self._saved:
            items = [(data, ArtifactKind.RECORD, JSON_TYPE) for data in new.values()]
            self.store.put_many([*items, (body, ArtifactKind.SNAPSHOT, JSON_TYPE)], later=later)
            self._saved.update(new)
            self._saved.add(name)
        if not later:
            self.store.sync()
        return f"snp_{name}"

    def manifest(self, snapshot_id: str) -> Snapshot:
        """The manifest of a snapshot.

        Raises:
            StorageFault, DigestMismatch: it is missing or damaged.
            SchemaMismatch: it is no snapshot of a version that can be read here.
        """
        value = self.store.read_json(snapshot_sha256(snapshot_id))
        if not isinstance(value, dict) or value.get("schema_version") not in ("snapshot.1", "snapshot.2"):
            raise SchemaMismatch("snapshot_version", f"{snapshot_id[:16]} is not a snapshot of version snapshot.1 or snapshot.2")
        return Snapshot.model_validate(value)

    def shot_records(self, manifest: Snapshot) -> Pairs:
        """Shot ids and record digests that a manifest names, itself or through its pages.

        Raises:
            StorageFault, DigestMismatch: a page is missing or damaged.
            SchemaMismatch: it is no page of a version that can be read here.
        """
        return (*manifest.shot_records, *(pair for page in manifest.shot_pages for pair in self._pairs(page)))

    def parts(self, snapshot_id: str) -> set[Sha256]:
        """Every artifact a snapshot needs beside its manifest: records and pages.

        Raises:
            StorageFault, DigestMismatch, SchemaMismatch: as :meth:`manifest` and :meth:`shot_records`.
        """
        m = self.manifest(snapshot_id)
        return {m.film_record, m.task_record, *m.shot_pages, *(digest for _, digest in self.shot_records(m))}

    def load(self, snapshot_id: str) -> ProductionState:
        """Restore a state. ``load(save(state)) == state``; records that earlier loads brought are shared with them.

        Raises:
            StorageFault, DigestMismatch: the manifest or a record is missing or damaged.
            SchemaMismatch: a record's version cannot be read, or the restored state has another digest than the manifest says.
        """
        manifest = self.manifest(snapshot_id)
        task = self._load("task", manifest.task_record, Task)
        film = self._load("film", manifest.film_record, GlobalRecord, {"task": (manifest.task_record, task)})
        pairs = self.shot_records(manifest)
        shots = {sid: self._load("shot", digest, ShotRecord) for sid, digest in pairs}
        state = ProductionState.model_construct(schema_version=STATE_VERSION, film=film, shots=shots)
        self._saved.update([manifest.task_record, manifest.film_record, snapshot_sha256(snapshot_id), *manifest.shot_pages])
        self._saved.update(digest for _, digest in pairs)
        if self.digest(state) != manifest.state_digest:
            raise SchemaMismatch("state_digest", f"{snapshot_id[:16]} restores to another state than was saved")
        return state

    # -- pages -----------------------------------------------------------------------------------------------------------------

    def _page(self, pairs: Pairs) -> Sha256:
        """Digest of the page of some shots; equal pages cost a look-up."""
        known = self._pages.get(pairs)
        if known is None:
            known = sha256_bytes(_page_bytes(pairs))
            _keep(self._pages, pairs, known, _LIMITS["shot"] // PAGE)
        return known

    def _pairs(self, page: Sha256) -> Pairs:
        known = self._shots.get(page)
        if known is None:
            value = self.store.read_json(page)
            if not isinstance(value, dict) or value.get("schema_version") != "snapshot_page.1":
                raise SchemaMismatch("page_version", f"artifact {page[:12]} is not a snapshot's page of version snapshot_page.1")
            known = SnapshotPage.model_validate(value).shot_records
            _keep(self._shots, page, known, _LIMITS["shot"] // PAGE)
            _keep(self._pages, known, page, _LIMITS["shot"] // PAGE)
        return known

    # -- records ---------------------------------------------------------------------------------------------------------------

    def _digests_of(self, state: ProductionState) -> tuple[Sha256, Sha256, tuple[tuple[str, Sha256], ...]]:
        film = self._digest("film", state.film)
        task = self._digest("task", state.film.task)
        return film, task, tuple((sid, self._digest("shot", state.shots[sid])) for sid in sorted(state.shots))

    def _digest(self, name: RecordName, record: Frozen) -> Sha256:
        known = self._digests[name].get(id(record))
        return known[1] if known is not None else self._remember(name, record, sha256_bytes(_record_bytes(name, record)))

    def _remember(self, name: RecordName, record: Frozen, digest: Sha256) -> Sha256:
        """Keep the record itself too, so that its identity is not given to another one."""
        _keep(self._digests[name], id(record), (record, digest), _LIMITS[name])
        return digest

    def _load(self, name: RecordName, digest: Sha256, model: type[Any], extra: dict[str, tuple[Sha256, Frozen]] | None = None) -> Any:
        key = sha256_bytes("".join([digest, *(d for d, _ in (extra or {}).values())]).encode())
        known = self._records[name].get(key)
        if known is not None:
            return known
        value = self.store.read_json(digest)
        if not isinstance(value, dict) or value.get("schema_version") != STATE_VERSION or value.get("record") != name:
            raise SchemaMismatch("record_version", f"artifact {digest[:12]} is not a {name} record of version {STATE_VERSION}")
        record: Frozen = model.model_validate({**value["value"], **{k: v for k, (_, v) in (extra or {}).items()}})
        self._remember(name, record, digest)
        _keep(self._records[name], key, record, _LIMITS[name])
        return record


K = TypeVar("K")
V = TypeVar("V")


def _keep(cache: OrderedDict[K, V], key: K, value: V, limit: int) -> None:
    cache[key] = value
    if len(cache) > limit:
        cache.popitem(last=False)


def _record_bytes(name: RecordName, record: Frozen) -> bytes:
    """The artifact of a record. A film record leaves out its task, which is a record of its own."""
    value = record.model_dump(mode="json", exclude={"task"} if name == "film" else None)
    return json_bytes({"schema_version": STATE_VERSION, "record": name, "value": value})


def _page_bytes(pairs: Pairs) -> bytes:
    return SnapshotPage(shot_records=pairs).canonical()


def _state_digest(version: str, film: Sha256, task: Sha256, shots: tuple[tuple[str, Sha256], ...]) -> Sha256:
    return digest_of([version, film, task, [list(s) for s in shots]])
