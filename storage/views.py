"""DuckDB over the files of one version: a view for every table, with the right column types also where there are no rows.

Owns the SQL of the views and the locked connection. Must not read the ledger.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from schemas.errors import ConfigInvalid, SchemaMismatch
from schemas.tables import TABLE, TABLES, TableSpec
from storage.arrow import DUCKDB
from storage.history import DataFile
from storage.upgrade import upgraded_sql

_WORDS = re.compile(r"\w+")

SUMMARIES: dict[str, tuple[str, str]] = {
    "funnel": (
        "From sources in to examples out, one row. sources = duplicates + rejected + lost + waiting + projects; "
        "trajectories = delivered + incomplete.",
        """
with units as (
  select coalesce(project_id, source_key) as unit, any_value(project_id) as project_id, list(source_key) as keys from sources group by 1
), given_up as (
  select distinct f.subject from failures f where f.quarantined
  and not exists (select 1 from stage_runs s where s.stage = f.stage and s.subject = f.subject)
), fate as (
  select case
    when u.project_id in (select project_id from projects) then 'project'
    when exists (select 1 from rejections r where list_contains(u.keys, r.source_key)) then 'rejected'
    when u.unit in (select subject from given_up) then 'lost'
    else 'waiting' end as became
  from units u
)
select
  (select count(*) from sources) as sources,
  (select count(*) from sources) - (select count(*) from units) as duplicates,
  (select count(*) from fate where became = 'rejected') as rejected,
  (select count(*) from fate where became = 'lost') as lost,
  (select count(*) from fate where became = 'waiting') as waiting,
  (select count(*) from fate where became = 'project') as projects,
  (select count(*) from projects p where p.project_id in (select subject from given_up)) as projects_given_up,
  (select count(*) from trajectories) as trajectories,
  (select count(*) from trajectories where outcome = 'delivered') as delivered,
  (select count(*) from trajectories where outcome = 'incomplete') as incomplete,
  (select count(*) from calls) as calls,
  (select count(*) from calls where status = 'refused') as refused_calls,
  (select count(*) from blockers) as blockers,
  (select count(*) from repairs) as repairs,
  (select count(*) from repairs where outcome = 'verified') as repairs_verified,
  (select count(*) from examples) as examples,
  (select count(*) from given_up) as quarantined
""",
    ),
    "mends": (
        "What each mend costs, from the finding to its verification: calls, artifacts, seconds (of runs whose calls were timed; its share "
        "where one repair call held several mends).",
        """
with one as (
  select r.*, count(*) over (partition by r.trajectory_id, r.call_mended) as together, (
    select sum(t.wall_us) / 1e6 from timings t
    where t.trajectory_id = r.trajectory_id and t.call_index > r.call_found and t.call_index <= coalesce(r.call_verified, r.call_mended)
  ) as seconds
  from repairs r
)
select mend, code, count(*) as mends, count(*) filter (outcome = 'verified') as verified,
  count(*) filter (outcome = 'kept_previous') as kept_previous, avg(calls_spent) as calls, avg(artifacts_made) as artifacts,
  avg(seconds / together) as seconds
from one group by mend, code order by mend, code
""",
    ),
    "costs": (
        "What chat models cost, by role: calls that an endpoint answered, tokens, and dollars where a price is configured.",
        """
select role, count(*) as answered, sum(prompt_tokens) as prompt_tokens, sum(completion_tokens) as completion_tokens,
  sum(cost_microusd) / 1e6 as dollars
from calls where reply_sha256 is not null group by role order by role
""",
    ),
}
"""Views over several tables: what each means, and its query."""


def open_views(
    root: Path,
    files: Sequence[DataFile],
    *,
    threads: int | None = None,
    memory_limit: str | None = None,
    only: Collection[str] | None = None,
) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB connection with a view for every table (or for those in ``only``).

    It can reach no file outside ``root``/tables, load no extension, and its configuration is locked.

    Raises:
        ConfigInvalid: DuckDB refuses the setting of threads or memory.
        SchemaMismatch: a file has a newer schema version than this release knows.
    """
    con = duckdb.connect(":memory:")
    settings: dict[str, object] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allowed_directories": [str(root / "tables")],
        "temp_directory": str(Path(tempfile.gettempdir()) / f"workprint-{uuid.uuid4().hex}"),
    }
    if threads is not None:
        settings["threads"] = threads
    if memory_limit is not None:
        settings["memory_limit"] = memory_limit
    settings |= {"enable_external_access": False, "lock_configuration": True}
    try:
        _configure(con, settings)
        for spec in (t for t in TABLES if only is None or t.name in only):
            con.execute(f"create view {_name(spec.name)} as {view_sql(root, spec, [f for f in files if f.table == spec.name])}").fetchall()
        for name, (_, sql) in SUMMARIES.items():
            if only is not None and not (set(_WORDS.findall(sql)) & set(TABLE)) <= set(only):
                continue
            con.execute(f"create view {_name(name)} as {sql}").fetchall()
    except BaseException:
        con.close()
        raise
    return con


def _configure(con: duckdb.DuckDBPyConnection, settings: dict[str, object]) -> None:
    for name, value in settings.items():
        try:
            con.execute(f"set {name} = {_literal(value)}").fetchall()
        except duckdb.Error as error:
            raise ConfigInvalid("duckdb_setting", str(error), "threads is a number from 1, memory_limit a size such as '2GB'") from error


def view_sql(root: Path, spec: TableSpec, files: Sequence[DataFile]) -> str:
    """The query behind one table's view.

    Raises:
        SchemaMismatch: a file has a newer schema version than this release knows.
    """
    newer = [f for f in files if f.schema_version > spec.version]
    if newer:
        raise SchemaMismatch(
            "table_version",
            f"{newer[0].path} holds version {newer[0].schema_version} of table {spec.name}, this release knows {spec.version}",
            "use the release that wrote the lake, or a newer one",
        )
    whole = [f for f in files if not f.dead and f.schema_version == spec.version]
    partly = [f for f in files if f.dead and f.schema_version == spec.version]
    older = [f for f in files if f.schema_version < spec.version]
    columns = ", ".join(_name(c.name) for c in spec.all_columns)
    typed = ", ".join(f"cast(null as {DUCKDB[c.type]}) as {_name(c.name)}" for c in spec.all_columns)
    empty = _select("*", f"(select {typed})", "false")
    parts = [_select(columns, _read(root, whole))] if whole else []
    parts += [_select(columns, _read(root, [f]), _alive(f)) for f in partly]
    parts += [_select(columns, upgraded_sql(spec, f.schema_version, _read(root, [f])), _alive(f)) for f in older]
    return " union all ".join(parts or [empty])


def _select(columns: str, source: str, condition: str = "true") -> str:
    return " ".join(("select", columns, "from", source, "where", condition))


def tables_in(sql: str) -> set[str]:
    """Tables that a query can need: those whose name is a word of it, and those behind the summaries it names. Never too few."""
    words = set(_WORDS.findall(sql.lower()))
    if "query_table" in words or "query" in words:  # names put together while it runs
        return set(TABLE)
    for name, (_, inner) in SUMMARIES.items():
        if name in words:
            words |= set(_WORDS.findall(inner))
    if words & {"show", "describe", "duckdb_views", "duckdb_tables", "duckdb_columns", "information_schema", "pragma_show", "summarize"}:
        return set(TABLE)
    return words & set(TABLE)


def refuse_writes(sql: str) -> None:
    """Let only queries through: DuckDB cannot open the lake's files read-only, so COPY, ATTACH and the like are stopped here.

    Raises:
        ConfigInvalid: the text cannot be parsed, or holds a statement other than a query.
    """
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise ConfigInvalid("query", str(error).strip(), "tables and columns are listed in docs/tables.md") from error
    except TypeError as error:  # half a surrogate pair, from bytes on a command line that are no UTF-8
        raise ConfigInvalid("query", "the query is not UTF-8", "write it in UTF-8") from error
    if not statements:
        raise ConfigInvalid("query", "the query is empty", "for example: select count(*) from projects")
    for statement in statements:
        if statement.type != duckdb.StatementType.SELECT:
            kind = str(statement.type).rpartition(".")[2]
            raise ConfigInvalid("not_a_query", f"a lake is asked with SELECT, not {kind}", "use `export` to write files")


def _alive(file: DataFile) -> str:
    return f"stage_key not in ({', '.join(_literal(k) for k in file.dead)})" if file.dead else "true"


def _read(root: Path, files: Sequence[DataFile]) -> str:
    return f"read_parquet({_literal([str(root / f.path) for f in files])}, hive_partitioning = false)"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _literal(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case list():
            return "[" + ", ".join(_literal(v) for v in value) + "]"
        case _:
            return "'" + str(value).replace("'", "''") + "'"
