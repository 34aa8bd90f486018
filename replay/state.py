"""The fold: a production state is the initial state with every committed change applied in order.

Owns the one way in which a state changes. Reads and writes nothing, decides nothing: whether a change is right is the runtime's
business. Records that a change does not touch are shared between the old and the new state, by identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel, TypeAdapter, ValidationError

from schemas.canonical import canonical_bytes
from schemas.errors import SchemaMismatch
from schemas.state import Change, GlobalRecord, PlannedShot, ProductionState, ShotRecord, Task

FILM = "film"
"""Subject of changes that concern the whole film."""

RECORD = "record"
"""Field name that stands for a whole shot record: a value puts it in, ``None`` takes it out."""

_UNTOUCHABLE = {(GlobalRecord, "task"), (ShotRecord, "shot_id")}


def initial(task: Task) -> ProductionState:
    """The state before the first call: the task, and nothing produced."""
    return ProductionState(film=GlobalRecord(task=task))


def film_change(field: str, value: Any) -> Change:
    """Assign a field of the film's record. Records among the values are written as their JSON."""
    return Change(subject=FILM, field=field, value=_plain(value))


def shot_change(shot_id: str, field: str, value: Any) -> Change:
    """Assign a field of one shot's record."""
    return Change(subject=shot_id, field=field, value=_plain(value))


def put_shot(record: ShotRecord) -> Change:
    """Create or replace a whole shot record."""
    return Change(subject=record.shot_id, field=RECORD, value=_plain(record))


def drop_shot(shot_id: str) -> Change:
    """Remove a shot. The same product must also take it out of ``shot_order``."""
    return Change(subject=shot_id, field=RECORD, value=None)


def plan_change(shot_id: str, planned: PlannedShot) -> Change:
    """Change what a shot should be; what was produced for it stays, and staleness follows from replay.lineage."""
    return shot_change(shot_id, "planned", planned)


def normal(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The changes as they will be read back from a journal (tuples become lists, records become objects).

    Raises:
        SchemaMismatch: a value that JSON cannot hold.
    """
    out: list[Change] = []
    for change in changes:
        try:
            value = orjson.loads(canonical_bytes(_plain(change.value)))
        except TypeError as error:
            raise SchemaMismatch(
                "change_not_json", f"change of {change.subject}.{change.field} holds a value JSON cannot: {error}"
            ) from error
        out.append(Change(subject=change.subject, field=change.field, value=value))
    return tuple(out)


def names(changes: Iterable[Change]) -> tuple[str, ...]:
    """``subject.field`` of every change, in order, for observations and rows."""
    return tuple(f"{change.subject}.{change.field}" for change in changes)


def apply(state: ProductionState, changes: Iterable[Change]) -> ProductionState:
    """Fold changes into a state. The old state stays as it is.

    Returns:
        A state that shares every record no change touched; the same object when there are no changes.

    Raises:
        SchemaMismatch: a field that does not exist or may not change, a value of the wrong form, a change of an unknown shot, or a
            ``shot_order`` that does not list exactly the shots there are. Always a fault of a tool, never of a policy.
    """
    film_updates: dict[str, Any] = {}
    shots = dict(state.shots)
    touched = False
    for change in changes:
        touched = True
        if change.subject == FILM:
            film_updates[change.field] = _value(GlobalRecord, change)
        elif change.field == RECORD:
            if change.value is None:
                if shots.pop(change.subject, None) is None:
                    raise SchemaMismatch("unknown_shot", f"a change removes shot {change.subject}, which does not exist")
            else:
                shots[change.subject] = _record(change)
        else:
            old = shots.get(change.subject)
            if old is None:
                raise SchemaMismatch("unknown_shot", f"a change assigns {change.field} of shot {change.subject}, which does not exist")
            shots[change.subject] = old.model_copy(update={change.field: _value(ShotRecord, change)})
    if not touched:
        return state
    film = state.film.model_copy(update=film_updates) if film_updates else state.film
    order = film.shot_order
    if len(order) != len(shots) or set(order) != set(shots):
        stray = sorted(set(order) ^ set(shots)) or ["a repeated id"]
        raise SchemaMismatch("order_mismatch", f"shot_order and the shot records differ: {', '.join(stray[:5])}")
    return ProductionState.model_construct(schema_version=state.schema_version, film=film, shots={sid: shots[sid] for sid in order})


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


@cache
def _adapter(model: type[BaseModel], field: str) -> TypeAdapter[Any] | None:
    info = model.model_fields.get(field)
    if info is None or (model, field) in _UNTOUCHABLE:
        return None
    return TypeAdapter(info.rebuild_annotation())


def _value(model: type[BaseModel], change: Change) -> Any:
    adapter = _adapter(model, change.field)
    if adapter is None:
        raise SchemaMismatch("unknown_field", f"{change.subject}.{change.field} is no field of {model.__name__} that a change may assign")
    try:
        return adapter.validate_python(change.value)
    except ValidationError as error:
        raise SchemaMismatch("bad_change", f"{change.subject}.{change.field}: {_first(error)}") from error


def _record(change: Change) -> ShotRecord:
    try:
        record = ShotRecord.model_validate(change.value)
    except ValidationError as error:
        raise SchemaMismatch("bad_change", f"record of shot {change.subject}: {_first(error)}") from error
    if record.shot_id != change.subject:
        raise SchemaMismatch("bad_change", f"record of shot {change.subject} names itself {record.shot_id}")
    return record


def _first(error: ValidationError) -> str:
    one = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(str(p) for p in one['loc']) or 'value'}: {one['msg']}"
