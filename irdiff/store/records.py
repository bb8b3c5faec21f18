"""Records in one SQLite file: a JSON value under a kind and a key.

SQLite has no checksums, so each row carries a digest of kind, key and value. The journal is a rollback
journal, which works on a network file system and in a read-only folder.

A damaged file is left as it is, and `records-2.sqlite3` begins next to `records-1.sqlite3`. Renaming it would
not be safe: another process may have it open, and would leave its journal to the new file.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from irdiff.config import DAY_S

T = TypeVar("T")
Row = tuple[str, str, bytes]
"""Kind, key, value."""

_NAME = re.compile(r"records-([0-9]{1,9})\.sqlite3(-journal)?", re.ASCII)
_WAIT_S = 300.0
_TRIES = 3
_MARKED_TOGETHER = 500
_DAMAGED = {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""SQLITE_ERROR too: the statements are correct, so the table is not."""
_TABLE = """CREATE TABLE IF NOT EXISTS records
    (kind TEXT, key TEXT, value BLOB, digest BLOB, used REAL, PRIMARY KEY (kind, key))"""


class Records:
    """Thread-safe. Reading raises nothing; writing raises OSError or sqlite3.Error."""

    def __init__(self, folder: Path) -> None:
        self.damaged: list[str] = []
        self._folder = folder
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._number = 1
        self._used: set[tuple[str, str]] = set()

    def get(self, kind: str, key: str) -> bytes | None:
        query = "SELECT value, digest, used FROM records WHERE kind = ? AND key = ?"
        matches = self._query(query, (kind, key))
        if not matches:
            return None
        value, digest, used = matches[0]
        if not _is_whole(kind, key, value, digest):
            self.remove([(kind, key)])
            return None
        if not (isinstance(used, float) and time.time() - used < DAY_S):
            with self._lock:
                self._used.add((kind, key))
                if len(self._used) >= _MARKED_TOGETHER:
                    self._mark_used()
        return bytes(value)

    def put(self, records: Iterable[Row], *, replace: bool) -> None:
        now = time.time()
        word = "REPLACE" if replace else "IGNORE"
        self._write(
            f"INSERT OR {word} INTO records VALUES (?, ?, ?, ?, ?)",  # noqa: S608 - one of two words
            [(kind, key, value, _digest(kind, key, value), now) for kind, key, value in records],
        )

    def keys(self, kind: str) -> list[str]:
        return [key for (key,) in self._query("SELECT key FROM records WHERE kind = ?", (kind,))]

    def remove(self, names: Iterable[tuple[str, str]]) -> None:
        self._attempt("DELETE FROM records WHERE kind = ? AND key = ?", names)

    # housekeeping

    def usage(self) -> tuple[int, int]:
        """Returns the number of records, and the bytes of their files."""
        size_bytes = 0
        for _, path in self._files():
            with contextlib.suppress(OSError):
                size_bytes += path.stat().st_size
        counts = self._query("SELECT count(*) FROM records")
        return (counts[0][0] if counts else 0), size_bytes

    def by_use(self) -> list[tuple[float, int]]:
        """Returns when each was used last, and about how many bytes it takes; the oldest first."""
        size = "2 * (length(kind) + length(key)) + length(value) + 60"
        columns = f"ifnull(CAST(used AS REAL), 0.0), ifnull({size}, 60)"  # for damaged ones, too
        return self._query(f"SELECT {columns} FROM records ORDER BY 1")  # noqa: S608

    def prune(self, used_until: float, kind: str) -> None:
        """Removes records that were not used since, and all of a kind."""
        self._attempt("DELETE FROM records WHERE used IS NULL OR used <= ? OR kind = ?", [(used_until, kind)])
        self._query("VACUUM")

    def remove_left(self) -> None:
        """Removes damaged files."""
        for number, path in self._files():
            if number < self._number:
                with contextlib.suppress(OSError):
                    path.unlink()

    def remove_damaged(self) -> list[str]:
        """Checks the whole file and each record. Returns the names of what was damaged."""
        before = len(self.damaged)
        if any(text != "ok" for (text,) in self._query("PRAGMA integrity_check")):
            with self._lock:
                self._leave()
        newly_damaged = self.damaged[before:]
        for kind, key in self._query("SELECT kind, key FROM records"):
            matches = self._query("SELECT value, digest FROM records WHERE kind = ? AND key = ?", (kind, key))
            if matches and not _is_whole(kind, key, *matches[0]):
                self.remove([(kind, key)])
                newly_damaged.append(f"{kind} {key}")
        return newly_damaged

    def close(self) -> None:
        with self._lock:
            self._mark_used()
            self._close()

    # use

    def _mark_used(self) -> None:
        if self._used:
            now = time.time()
            uses = [(now, kind, key) for kind, key in self._used]
            self._used.clear()
            self._attempt("UPDATE records SET used = ? WHERE kind = ? AND key = ?", uses)

    # the file

    def _query(self, query: str, values: tuple[str, ...] = ()) -> list[Any]:
        """Returns nothing if the file cannot be read."""
        try:
            return self._with_connection(
                lambda connection: connection.execute(query, values).fetchall(), new=False
            )
        except (OSError, sqlite3.Error):
            return []

    def _attempt(self, statement: str, parameters: Iterable[tuple[object, ...]]) -> None:
        """Ignores failures: nothing depends on the write."""
        with contextlib.suppress(OSError, sqlite3.Error):
            self._write(statement, list(parameters))

    def _write(self, statement: str, parameters: list[tuple[object, ...]]) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(statement, parameters)
                connection.execute("COMMIT")
            except BaseException:
                self._close()  # which undoes it
                raise

        self._with_connection(write, new=True)

    def _with_connection(self, ask: Callable[[sqlite3.Connection], T], *, new: bool) -> T:
        with self._lock:
            for number in range(_TRIES):
                try:
                    return ask(self._opened(new=new))
                except sqlite3.DatabaseError as error:
                    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                    if code not in _DAMAGED or number == _TRIES - 1:
                        raise
                    self._leave()
        raise AssertionError("every try returns or raises")

    def _opened(self, *, new: bool) -> sqlite3.Connection:
        """Raises FileNotFoundError if there is no file and `new` is false."""
        if self._connection is None:
            self._number = max([self._number, *(number for number, _ in self._files())])
            path = self._path()
            if new:
                self._folder.mkdir(parents=True, exist_ok=True)
            elif not path.exists():
                raise FileNotFoundError(path)
            self._connection = _opened(path)
        return self._connection

    def _leave(self) -> None:
        """Continues with the next file, because this one is damaged."""
        self._close()
        self.damaged.append(self._path().name)
        self._number += 1

    def _close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _path(self) -> Path:
        return self._folder / f"records-{self._number}.sqlite3"

    def _files(self) -> Iterator[tuple[int, Path]]:
        for path in self._folder.glob("records-*"):
            if match := _NAME.fullmatch(path.name):
                yield int(match[1]), path


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        for statement in ("PRAGMA synchronous = OFF", "PRAGMA journal_mode = TRUNCATE", _TABLE):
            connection.execute(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def _digest(kind: str, key: str, value: bytes) -> bytes:
    return hashlib.sha256(f"{kind} {key}\n".encode() + value).digest()


def _is_whole(kind: str, key: str, value: object, digest: object) -> bool:
    return isinstance(value, bytes) and _digest(kind, key, value) == digest
