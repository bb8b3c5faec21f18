"""One history: a DuckDB file that any number of processes may read and write, one at a time.

DuckDB lets one process open a file for writing. Who comes second waits at a lock file beside it, readers side
by side, writers alone, so that nobody meets DuckDB's own refusal. A writer does its work in one transaction:
whenever it is killed, the next one to open the file finds it as it was before, or as it is after.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from irdiff.errors import IrdiffError
from irdiff.history.schema import KEYS, SCHEMA, TABLES, columns

DEFAULT_NAME = "irdiff-history.duckdb"
_WAIT_S = 120.0
_POLL_S = 0.05

Row = Sequence[Any]


class HistoryError(IrdiffError):
    """A history cannot be read or written, or is of another schema."""


class Database:
    """An open history. Use `writing` or `reading`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = self._connection.execute(query, list(parameters)).fetchall()
        return found

    def value(self, query: str, parameters: Sequence[object] = ()) -> Any:
        """The first value of the first row; None where there is no row."""
        row = self._connection.execute(query, list(parameters)).fetchone()
        return row[0] if row else None

    def run(self, statement: str, parameters: Sequence[object] = ()) -> None:
        self._connection.execute(statement, list(parameters))

    def put(self, table: str, rows: Iterable[Row]) -> int:
        """Writes rows in place of all those with the same key (`KEYS`); returns how many."""
        listed = list(rows)
        if not listed:
            return 0
        self._stage(table, columns(table), listed)
        self._take_fresh(table)
        return len(listed)

    def put_parquet(self, table: str, path: Path) -> int:
        """The same, of the rows of a Parquet file. Raises HistoryError where it has other columns."""
        found = self.rows("SELECT name FROM parquet_schema(?) WHERE num_children IS NULL", [str(path)])
        if {name for (name,) in found} != set(columns(table)):
            raise HistoryError(f"{path} does not hold the table {table!r} of {SCHEMA!r}")
        self.run(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT * FROM {table} LIMIT 0")  # noqa: S608
        names = ", ".join(columns(table))
        self.run(f"INSERT INTO fresh SELECT {names} FROM read_parquet(?)", [str(path)])  # noqa: S608
        count = int(self.value("SELECT count(*) FROM fresh"))
        self._take_fresh(table)
        return count

    def _take_fresh(self, table: str) -> None:
        names, key = columns(table), KEYS[table]
        same = " AND ".join(f"kept.{name} = fresh.{name}" for name in key)
        self.run(f"DELETE FROM {table} kept WHERE EXISTS (SELECT 1 FROM fresh WHERE {same})")  # noqa: S608
        self.run(f"INSERT INTO {table} SELECT {', '.join(names)} FROM fresh")  # noqa: S608
        self.run("DROP TABLE fresh")

    def _stage(self, table: str, names: Sequence[str], rows: Sequence[Row]) -> None:
        import numpy as np

        self.run(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT * FROM {table} LIMIT 0")  # noqa: S608
        arrays = {}
        for place, name in enumerate(names):
            column = np.empty(len(rows), dtype=object)
            column[:] = [row[place] for row in rows]
            arrays[name] = column
        self._connection.register("incoming", arrays)
        try:
            self.run("INSERT INTO fresh SELECT * FROM incoming")
        finally:
            self._connection.unregister("incoming")


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Database]:
    """The history, made if it is not there; what is done within is kept whole or not at all.

    Raises HistoryError.
    """
    with _locked(path, fcntl.LOCK_EX):
        connection = _connect(path, read_only=False)
        try:
            database = Database(connection)
            _prepare(database, path)
            connection.begin()
            try:
                yield database
            except BaseException:
                connection.rollback()
                raise
            connection.commit()
        finally:
            connection.close()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Database]:
    """A history that is there. Raises HistoryError."""
    if not path.is_file():
        raise HistoryError(
            f"there is no history {path}", hint="make one: irdiff history backfill triton==3.8.0..3.9.0"
        )
    with _locked(path, fcntl.LOCK_SH):
        connection = _connect(path, read_only=True)
        try:
            database = Database(connection)
            _check(database, path)
            yield database
        finally:
            connection.close()


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    deadline = time.monotonic() + _WAIT_S
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("a") as file:
            while True:
                try:
                    fcntl.flock(file, how | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise HistoryError(
                            f"{path} is held by another irdiff since {_WAIT_S:.0f} s",
                            hint="wait until that has ended, and try again",
                        ) from None
                    time.sleep(_POLL_S)
            yield
    except OSError as error:
        raise HistoryError(
            f"the history {path} cannot be opened: {error.strerror or error}",
            hint="name another file: --db FILE",
        ) from error


def _connect(path: Path, *, read_only: bool) -> Any:
    if importlib.util.find_spec("duckdb") is None:
        raise HistoryError(
            "a history needs DuckDB, which is not installed", hint="pip install irdiff[history]"
        )
    import duckdb

    try:
        return duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as error:
        what = str(error).splitlines()[0][:200]
        raise HistoryError(
            f"{path} is no history that can be opened: {what}", hint="name another file: --db FILE"
        ) from error


def _prepare(database: Database, path: Path) -> None:
    if database.value("SELECT count(*) FROM duckdb_tables() WHERE NOT internal AND NOT temporary"):
        _check(database, path)
    for name, definition in TABLES.items():
        database.run(f"CREATE TABLE IF NOT EXISTS {name} ({definition})")
    if not database.value("SELECT count(*) FROM meta"):
        database.run("INSERT INTO meta VALUES ('schema', ?)", [SCHEMA])


def _check(database: Database, path: Path) -> None:
    is_history = database.value("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'meta'")
    schema = database.value("SELECT value FROM meta WHERE name = 'schema'") if is_history else None
    if schema != SCHEMA:
        raise HistoryError(
            f"{path} has schema {str(schema)[:80]!r}, this irdiff reads {SCHEMA!r}",
            hint="name another file: --db FILE",
        )
