"""``workprint sql``: questions to a lake one after the other, from a person or from a pipe. Only reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import duckdb

from jobs.questions import Answer, open_lake
from schemas.errors import ConfigInvalid, PipelineError
from schemas.tables import TABLE
from storage.views import SUMMARIES, refuse_writes

_HELP = """Statements end with ';'. They see one version of the lake, whatever is committed meanwhile.
  .tables         tables and summaries
  .schema TABLE   its columns
  .quit           leave (also ctrl-D)"""


class Shell:
    """Answers statements against one version."""

    def __init__(self, path: Path, version: int | None) -> None:
        """Open the lake.

        Raises:
            ConfigInvalid: no lake, or no such version.
            StorageFault, DigestMismatch: a file is missing or damaged.
        """
        self._con = open_lake(path).connect(version)

    def close(self) -> None:
        """Let the connection go."""
        self._con.close()

    def ask(self, sql: str) -> Answer:
        """Answer one statement.

        Raises:
            ConfigInvalid: it is no query, or DuckDB refuses it.
        """
        refuse_writes(sql)
        try:
            cursor = self._con.execute(sql)
            return Answer(tuple(str(d[0]) for d in cursor.description or ()), cursor.fetchall())
        except duckdb.Error as error:
            raise ConfigInvalid("query", str(error).strip(), "tables and columns are listed in docs/tables.md") from error

    def command(self, line: str) -> str:
        """The answer to a line that begins with a dot."""
        word, _, name = line.strip().rstrip(";").partition(" ")
        if word == ".tables":
            return "\n".join([*(f"{t.name:<14}{t.doc}" for t in TABLE.values()), *(f"{n:<14}{d}" for n, (d, _) in SUMMARIES.items())])
        if word == ".schema" and name.strip() in TABLE:
            return "\n".join(f"{c.name:<20}{c.type:<10}{c.doc}" for c in TABLE[name.strip()].all_columns)
        return _HELP


def statements(text: TextIO) -> Iterator[str]:
    """Statements and dot commands as they come in; a statement ends where DuckDB's parser says, so a ';' inside a text does not count."""
    waiting = ""
    for line in text:
        if not waiting.strip() and line.lstrip().startswith("."):
            yield line.strip()
            continue
        waiting += line
        if not line.rstrip().endswith(";"):
            continue
        try:
            found = duckdb.extract_statements(waiting)
        except (duckdb.Error, TypeError):
            yield waiting  # asking it tells what is wrong
        else:
            yield from (s.query for s in found)
        waiting = ""
    if waiting.strip():
        yield waiting


def run_shell(path: Path, version: int | None, as_json: bool, source: TextIO) -> int:
    """Answer everything that comes in; the number of statements that were refused. From a pipe the first refusal ends it.

    Raises:
        ConfigInvalid, StorageFault: as :class:`Shell`, and from a pipe as :meth:`Shell.ask`.
    """
    from jobs.cli.exits import print_json

    talking = source.isatty()
    shell = Shell(path, version)
    refused = 0
    try:
        if talking:
            print(_HELP, file=sys.stderr)
        for statement in statements(_prompting(source) if talking else source):  # type: ignore[arg-type]  # an iterator of lines
            if statement in (".quit", ".exit"):
                break
            if statement.startswith("."):
                print(shell.command(statement), file=sys.stderr if as_json else sys.stdout)
                continue
            try:
                answer = shell.ask(statement)
            except PipelineError as error:
                if not talking:
                    raise
                refused += 1
                print(error, file=sys.stderr)
                continue
            if as_json:
                print_json(answer.as_json())
            else:
                answer.print()
    finally:
        shell.close()
    return refused


def _prompting(source: TextIO) -> Iterator[str]:
    import readline  # noqa: F401  line editing and history

    while True:
        try:
            yield input("workprint> ") + "\n"
        except EOFError:
            print(file=sys.stderr)
            return
