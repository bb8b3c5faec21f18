"""One history: a DuckDB file that any number of processes may read and write, one at a time.

DuckDB lets one process open a file for writing. Others wait at a lock file next to it, so nobody sees
DuckDB's own error. A writer works in one transaction, so a killed one changes nothing.

A *version* is one side of a comparison as its run names it: a release, a nightly wheel, a commit. Versions of
one kind form a *series*, which `sort_key` orders as text. A *fact* is a number with its unit in its name;
facts of a version come from compiling it (`measured`) or from a neighbour with the same machine code
(`carried`). Facts that depend on the machine (compile time, timings) are never carried.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from irdiff.errors import IrdiffError

SCHEMA = "irdiff-history/2"

Row = Sequence[Any]
T = TypeVar("T")


TABLES: Mapping[str, str] = {
    "meta": "name VARCHAR NOT NULL, value VARCHAR NOT NULL",
    "versions": """version VARCHAR NOT NULL, series VARCHAR NOT NULL, sort_key VARCHAR NOT NULL,
        label VARCHAR NOT NULL, toolchain VARCHAR NOT NULL, corpus VARCHAR NOT NULL""",
    "cases": """case_id VARCHAR NOT NULL, workload VARCHAR NOT NULL, kernel VARCHAR NOT NULL,
        target VARCHAR NOT NULL, tier VARCHAR NOT NULL""",
    # of one version
    "inventories": """version VARCHAR NOT NULL, selection VARCHAR NOT NULL, cases INTEGER NOT NULL,
        wall_s DOUBLE NOT NULL, cpu_s DOUBLE NOT NULL, compiled INTEGER NOT NULL""",
    "compilations": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, outcome VARCHAR NOT NULL,
        message VARCHAR""",
    "stage_costs": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, stage VARCHAR NOT NULL,
        wall_s DOUBLE, cpu_s DOUBLE""",
    "facts": """version VARCHAR NOT NULL, case_id VARCHAR NOT NULL, fact VARCHAR NOT NULL,
        value DOUBLE NOT NULL, origin VARCHAR NOT NULL""",
    # of two neighbours
    "runs": """run VARCHAR NOT NULL, created VARCHAR NOT NULL, base VARCHAR NOT NULL, head VARCHAR NOT NULL,
        selection VARCHAR NOT NULL, whole BOOLEAN NOT NULL, compared INTEGER NOT NULL,
        changed INTEGER NOT NULL, duration_s DOUBLE NOT NULL, place VARCHAR NOT NULL""",
    "verdicts": """run VARCHAR NOT NULL, case_id VARCHAR NOT NULL, verdict VARCHAR NOT NULL,
        origin_stage VARCHAR, pass_name VARCHAR, group_id VARCHAR, nondeterministic VARCHAR NOT NULL""",
    "groups": """run VARCHAR NOT NULL, group_id VARCHAR NOT NULL, title VARCHAR NOT NULL,
        severity VARCHAR NOT NULL, origin_stage VARCHAR NOT NULL, pass_name VARCHAR,
        charged VARCHAR NOT NULL, representative VARCHAR NOT NULL, members INTEGER NOT NULL""",
    # of one session on one GPU
    "sessions": """session VARCHAR NOT NULL, created VARCHAR NOT NULL, gpu VARCHAR NOT NULL,
        gpu_name VARCHAR NOT NULL, target VARCHAR NOT NULL, driver VARCHAR NOT NULL,
        reference VARCHAR NOT NULL, sm_clock_mhz DOUBLE, memory_clock_mhz DOUBLE, temperature_c DOUBLE,
        power_w DOUBLE,
        throttled VARCHAR NOT NULL, trustworthy BOOLEAN NOT NULL, processes INTEGER NOT NULL""",
    "timings": """session VARCHAR NOT NULL, version VARCHAR NOT NULL, case_id VARCHAR NOT NULL,
        median_us DOUBLE NOT NULL, ratio DOUBLE NOT NULL, ratio_low DOUBLE NOT NULL,
        ratio_high DOUBLE NOT NULL, noise_floor DOUBLE NOT NULL, outputs VARCHAR NOT NULL""",
}

_KEYED_BY_TWO = frozenset({"inventories", "compilations", "stage_costs", "facts"})
"""Tables whose key is their first two columns; that of the others is the first. New rows replace all rows
with the same key.
"""

NOT_CARRIED = frozenset({"binary_bytes"})
"""Facts that may differ for the same machine code: names and debug information are in the file."""


def columns(table: str) -> tuple[str, ...]:
    return tuple(part.split()[0] for part in TABLES[table].replace("\n", " ").split(","))


class HistoryError(IrdiffError):
    """A history cannot be read or written, or has another schema."""


class Database:
    """Use `writing` or `reading`."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        self.run(query, parameters)
        return list(self._connection.fetchall())

    def records(self, make: Callable[..., T], query: str, parameters: Sequence[object] = ()) -> list[T]:
        """Calls `make` with the columns of each row as keyword arguments."""
        self.run(query, parameters)
        names = [column[0] for column in self._connection.description]
        return [make(**dict(zip(names, values, strict=True))) for values in self._connection.fetchall()]

    def value(self, query: str, parameters: Sequence[object] = ()) -> Any:
        return next((values[0] for values in self.rows(query, parameters)), None)

    def run(self, statement: str, parameters: Sequence[object] = ()) -> None:
        self._connection.execute(statement, list(parameters))

    def put(self, table: str, rows: Iterable[Row]) -> int:
        """Replaces rows with the same key (see `_KEYED_BY_TWO`). Returns how many there are."""
        import numpy as np

        listed = list(rows)
        if not listed:
            return 0
        arrays = {}
        for name, values in zip(columns(table), zip(*listed, strict=True), strict=True):
            arrays[name] = np.empty(len(listed), dtype=object)
            arrays[name][:] = values
        self._connection.register("incoming", arrays)
        try:
            return self._take(table, "SELECT * FROM incoming")
        finally:
            self._connection.unregister("incoming")

    def put_parquet(self, table: str, path: Path) -> int:
        """Raises HistoryError if the file has other columns."""
        schema = self.rows("SELECT name FROM parquet_schema(?) WHERE num_children IS NULL", [str(path)])
        if {name for (name,) in schema} != set(columns(table)):
            raise HistoryError(
                f"{path} does not hold the table {table!r} of {SCHEMA!r}",
                hint="export it with this irdiff: irdiff history export --parquet DIR",
            )
        names = ", ".join(columns(table))
        return self._take(table, f"SELECT {names} FROM read_parquet(?)", [str(path)])  # noqa: S608

    def _take(self, table: str, query: str, parameters: Sequence[object] = ()) -> int:
        self.run(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT * FROM {table} LIMIT 0")  # noqa: S608
        self.run(f"INSERT INTO fresh {query}", parameters)
        key = columns(table)[: 2 if table in _KEYED_BY_TWO else 1]
        same = " AND ".join(f"kept.{name} = fresh.{name}" for name in key)
        self.run(f"DELETE FROM {table} kept WHERE EXISTS (SELECT 1 FROM fresh WHERE {same})")  # noqa: S608
        self.run(f"INSERT INTO {table} FROM fresh")
        return int(self.value("SELECT count(*) FROM fresh"))


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Database]:
    """Creates the file if necessary. Changes within the block are kept as a whole or not at all. Raises
    HistoryError.
    """
    with _locked(path, fcntl.LOCK_EX), _connect(path, read_only=False) as connection:
        database = Database(connection)
        connection.begin()
        _prepare(database, path)
        yield database
        connection.commit()  # what is not committed is gone once the connection is closed


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Database]:
    """Raises HistoryError."""
    if not path.is_file():
        raise HistoryError(
            f"there is no history {path}", hint="make one: irdiff history backfill triton==3.8.0..3.9.0"
        )
    with _locked(path, fcntl.LOCK_SH), _connect(path, read_only=True) as connection:
        database = Database(connection)
        _check(database, path)
        yield database


@contextlib.contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    """Waits for those who hold the file, each for one transaction."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f"{path.name}.lock").open("a") as file:
            fcntl.flock(file, how)
            yield
    except OSError as error:
        raise HistoryError(
            f"the history {path} cannot be opened: {error.strerror or error}",
            hint="name another file: --db FILE",
        ) from error


def _connect(path: Path, *, read_only: bool) -> Any:
    import duckdb

    try:
        return duckdb.connect(str(path), read_only=read_only)
    except duckdb.Error as error:
        reason = str(error).splitlines()[0][:200]
        raise HistoryError(
            f"{path} cannot be opened as a history: {reason}", hint="name another file: --db FILE"
        ) from error


def _prepare(database: Database, path: Path) -> None:
    """Runs in the caller's transaction, so a file has all tables, or none."""
    if database.value("SELECT count(*) FROM duckdb_tables() WHERE NOT internal AND NOT temporary"):
        _check(database, path)
        return
    for name, definition in TABLES.items():
        database.run(f"CREATE TABLE {name} ({definition})")
    database.run("INSERT INTO meta VALUES ('schema', ?)", [SCHEMA])


def _check(database: Database, path: Path) -> None:
    has_meta = database.value("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'meta'")
    schema = database.value("SELECT value FROM meta WHERE name = 'schema'") if has_meta else None
    _check_schema(schema, path)


def _check_schema(schema: object, path: Path) -> None:
    if schema != SCHEMA:
        raise HistoryError(
            f"{path} has schema {str(schema)[:80]!r}, this irdiff reads {SCHEMA!r}",
            hint="name another file: --db FILE, or another folder",
        )


def export(database: Database, folder: Path) -> dict[str, int]:
    """Returns the number of rows of each table. Raises HistoryError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HistoryError(
            f"{folder} cannot be written: {error.strerror}", hint="name another folder"
        ) from error
    counts = {}
    for table in TABLES:
        path = str(folder / f"{table}.parquet").replace("'", "''")
        database.run(f"COPY {table} TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        counts[table] = int(database.value(f"SELECT count(*) FROM {table}"))  # noqa: S608
    return counts


def take(database: Database, folder: Path) -> dict[str, int]:
    """Adds the files of `export`, and replaces the same versions, runs and sessions. Raises HistoryError if a
    table is missing, or of another schema.
    """
    files = {table: folder / f"{table}.parquet" for table in TABLES}
    missing = [path.name for path in files.values() if not path.is_file()]
    if missing:
        raise HistoryError(
            f"{folder} lacks {missing[0]}", hint="give a folder that `irdiff history export` wrote"
        )
    schema = database.value("SELECT value FROM read_parquet(?) WHERE name = 'schema'", [str(files["meta"])])
    _check_schema(schema, folder)
    return {table: database.put_parquet(table, path) for table, path in files.items() if table != "meta"}
