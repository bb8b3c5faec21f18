"""A pack: many files of a store as one object, so that a cold machine asks for hundreds and not for tens of
thousands.

    "irdiff-pack/1", a line feed, 8 digits (the length of the table), the table, the files one after another

The table is JSON, zstd-compressed: `[[name, size in bytes], …]`. Files are as they lie in the store: objects
compressed, records with their checksum. A pack is named by the SHA-256 of all of it. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import zstandard

from irdiff.errors import StoreError
from irdiff.store import FILE_NAME

_START = b"irdiff-pack/1\n"
HEAD_BYTES = len(_START) + 8
_LENGTH = re.compile(rb"[0-9]{8}")
_MAX_TABLE_BYTES = 64 << 20


class DamagedPackError(StoreError):
    """A pack is not what its name says, or not a pack."""


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    rows = sorted(files)
    table = json.dumps([[name, len(content)] for name, content in rows], separators=(",", ":"))
    small = zstandard.ZstdCompressor().compress(table.encode())
    return b"".join([_START, b"%08d" % len(small), small, *(content for _, content in rows)])


def unpacked(pack: bytes) -> Iterator[tuple[str, memoryview]]:
    """Names, each one that a store may have, with their files. Raises DamagedPackError."""
    place = HEAD_BYTES + table_bytes(pack[:HEAD_BYTES])
    rows = table_of(pack[HEAD_BYTES:place])
    if place + sum(size for _, size in rows) != len(pack):
        raise DamagedPackError("the files of a pack are not as long as its table says")
    view = memoryview(pack)
    for name, size in rows:
        yield name, view[place : place + size]
        place += size


def table_bytes(head: bytes) -> int:
    """How long the table is, from the first HEAD_BYTES. Raises DamagedPackError."""
    length = head[len(_START) :]
    if not head.startswith(_START) or not _LENGTH.fullmatch(length):
        raise DamagedPackError("this is no pack of irdiff's store")
    return int(length)


def table_of(content: bytes) -> list[tuple[str, int]]:
    """Names and sizes. Raises DamagedPackError."""
    try:
        text = zstandard.ZstdDecompressor().decompress(content, max_output_size=_MAX_TABLE_BYTES)
        rows = [(str(name), int(size)) for name, size in json.loads(text)]
    except (zstandard.ZstdError, ValueError, TypeError, MemoryError) as error:
        raise DamagedPackError(f"the table of a pack cannot be read: {error}") from error
    if any(size < 0 or not FILE_NAME.fullmatch(name) for name, size in rows):
        raise DamagedPackError("a pack names files that no store has")
    return rows
