"""A history as a folder of Parquet files, one a table, for a bucket or another tool; and back."""

from __future__ import annotations

from pathlib import Path

from irdiff.history.database import Database, HistoryError
from irdiff.history.schema import SCHEMA, TABLES


def export(database: Database, folder: Path) -> dict[str, int]:
    """Writes every table to `folder`; returns the rows of each. Raises HistoryError."""
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
    """Adds what `export` wrote; what the history has of the same versions, runs and sessions is replaced.

    Raises HistoryError where the folder does not hold every table, or is of another schema.
    """
    files = {table: folder / f"{table}.parquet" for table in TABLES}
    missing = [path.name for path in files.values() if not path.is_file()]
    if missing:
        raise HistoryError(
            f"{folder} lacks {missing[0]}", hint="give a folder that `irdiff history export` wrote"
        )
    schema = database.value("SELECT value FROM read_parquet(?) WHERE name = 'schema'", [str(files["meta"])])
    if schema != SCHEMA:
        raise HistoryError(f"{folder} has schema {str(schema)[:80]!r}, this irdiff reads {SCHEMA!r}")
    return {table: database.put_parquet(table, path) for table, path in files.items() if table != "meta"}
