"""A pack: many files of a store as one, so that a cold machine asks for few objects and makes few files.

    "irdiff-pack/1", a line feed, 8 digits (the length of the table), the table, the files one after another

The table is JSON, zstd-compressed: `[[name, size in bytes], …]`. Files are as they lie in the store: objects
compressed, records with their checksum. A pack is named by the SHA-256 of all of it. A store reads its packs
where they are: a file that it does not have by itself may be in one.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import threading
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from irdiff.errors import StoreError

FILE_NAME = re.compile(r"(?:objects/[0-9a-f]{2}|records/\w[\w-]*/[0-9a-f]{2})/[0-9a-f]{62}", re.ASCII)
"""Of every file that a pack may hold, relative to the store."""
PACK_START = b"irdiff-pack/1\n"
HEAD_BYTES = len(PACK_START) + 8
_REST = re.compile(r"[0-9a-f]{62}")
"""Of a digest, after its first two digits."""
_LENGTH = re.compile(rb"[0-9]{8}")
_MAX_TABLE_BYTES = 64 << 20

Table = list[tuple[str, int]]
"""Names of files, with their sizes in bytes."""


class DamagedPackError(StoreError):
    """A pack is not what its name says, or not a pack."""


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    rows = sorted(files)
    table = json.dumps([[name, len(content)] for name, content in rows], separators=(",", ":"))
    small = zstandard.ZstdCompressor().compress(table.encode())
    return b"".join([PACK_START, b"%08d" % len(small), small, *(content for _, content in rows)])


def unpacked(pack: bytes) -> Iterator[tuple[str, memoryview]]:
    """Names, each one that a store may have, with their files. Raises DamagedPackError."""
    rows, place = checked_table(pack)
    view = memoryview(pack)
    for name, size in rows:
        yield name, view[place : place + size]
        place += size


def checked_table(pack: bytes) -> tuple[Table, int]:
    """The table of a whole pack, and where its first file begins. Raises DamagedPackError."""
    return _read_table(io.BytesIO(pack), len(pack))


def table_bytes(head: bytes) -> int:
    """How long the table is, from the first HEAD_BYTES. Raises DamagedPackError."""
    length = head[len(PACK_START) :]
    if not head.startswith(PACK_START) or not _LENGTH.fullmatch(length):
        raise DamagedPackError("this is no pack of irdiff's store")
    return int(length)


def table_of(content: bytes) -> Table:
    """Names and sizes. Raises DamagedPackError."""
    try:
        text = zstandard.ZstdDecompressor().decompress(content, max_output_size=_MAX_TABLE_BYTES)
        rows = [(str(name), int(size)) for name, size in json.loads(text)]
    except (zstandard.ZstdError, ValueError, TypeError, MemoryError) as error:
        raise DamagedPackError(f"the table of a pack cannot be read: {error}") from error
    if any(size < 0 or not FILE_NAME.fullmatch(name) for name, size in rows):
        raise DamagedPackError("a pack names files that no store has")
    return rows


def _read_table(file: BinaryIO, length: int) -> tuple[Table, int]:
    """As `checked_table`, of a file that is at its beginning."""
    head = file.read(HEAD_BYTES)
    start = HEAD_BYTES + table_bytes(head)
    rows = table_of(file.read(start - HEAD_BYTES))
    if start + sum(size for _, size in rows) != length:
        raise DamagedPackError("the files of a pack are not as long as its table says")
    return rows, start


class LocalPacks:
    """The packs of a folder, and where in them each file is. Their tables are read when the first file is
    asked for. Thread-safe.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._paths: list[str] = []
        self._places = array("Q")
        """Of each file three numbers: of its pack, its first byte there, its size."""
        self._place_of: dict[str, dict[bytes, int]] | None = None
        """By kind and digest: where in `_places`. A large store has a million, so names are not kept."""

    def path(self, digest: str) -> Path:
        return self._folder / digest[:2] / digest[2:]

    def names(self, digest: str) -> frozenset[str]:
        """Of the files of one pack; none where it is not here, or damaged."""
        try:
            return frozenset(name for name, _ in _table_of_file(self.path(digest))[0])
        except (OSError, DamagedPackError):
            return frozenset()

    def attach(self, path: Path, table: Table, start: int) -> None:
        """A pack that has come; `start` is where its first file begins."""
        with self._lock:
            if self._place_of is not None:  # otherwise it is found with the others
                self._attach(self._place_of, path, table, start)

    def size(self, name: str) -> int:
        """Of a file, in bytes; 0 where no pack has it."""
        place = self._place(name)
        return 0 if place is None else self._places[place + 2]

    def read(self, name: str) -> bytes | None:
        """A file as it lies in a pack, not checked; None where none has it."""
        place = self._place(name)
        if place is None:
            return None
        number, start, size = self._places[place : place + 3]
        content = b""
        with contextlib.suppress(OSError):
            descriptor = os.open(self._paths[number], os.O_RDONLY | os.O_CLOEXEC)
            try:
                content = os.pread(descriptor, size, start)
            finally:
                os.close(descriptor)
        if len(content) == size:
            return content
        self.forget(name)  # the pack was removed meanwhile
        return None

    def forget(self, name: str) -> None:
        """From now on no pack has this file, as far as this process is concerned."""
        kind, digest = _split(name)
        self._known().get(kind, {}).pop(digest, None)

    def _place(self, name: str) -> int | None:
        kind, digest = _split(name)
        return self._known().get(kind, {}).get(digest)

    def _known(self) -> dict[str, dict[bytes, int]]:
        if self._place_of is None:
            with self._lock:
                if self._place_of is None:
                    self._place_of = self._read_tables()
        return self._place_of

    def _read_tables(self) -> dict[str, dict[bytes, int]]:
        known: dict[str, dict[bytes, int]] = {}
        # others have the names of files that are being written, and will have another one
        whole = filter(lambda path: _REST.fullmatch(path.name), self._folder.glob("[0-9a-f][0-9a-f]/*"))
        for path in sorted(whole):
            with contextlib.suppress(OSError, DamagedPackError):
                self._attach(known, path, *_table_of_file(path))
        return known

    def _attach(self, known: dict[str, dict[bytes, int]], path: Path, table: Table, start: int) -> None:
        number = len(self._paths)
        self._paths.append(str(path))
        for name, size in table:
            kind, digest = _split(name)
            known.setdefault(kind, {}).setdefault(digest, len(self._places))
            self._places.extend((number, start, size))
            start += size


def _split(name: str) -> tuple[str, bytes]:
    kind, first, rest = name.rsplit("/", 2)
    return kind, bytes.fromhex(first + rest)


def _table_of_file(path: Path) -> tuple[Table, int]:
    """Raises OSError and DamagedPackError."""
    with path.open("rb") as file:
        return _read_table(file, os.fstat(file.fileno()).st_size)
