"""Texts kept in memory in compressed form. IR between passes has up to 31 MB; 0.5 MB of that are left."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

import zstandard

_BLOCK_LINES = 1000


def pack(content: bytes | bytearray) -> bytes:
    packed = zstandard.ZstdCompressor(level=1).compress(content)
    return bytes(memoryview(packed))  # a copy: `packed` holds a buffer as large as the worst case needs


def unpack(packed: bytes) -> bytes:
    return zstandard.ZstdDecompressor().decompress(packed)


def _pack_text(text: str) -> bytes:
    return pack(text.encode(errors="surrogatepass"))


def _unpack_text(packed: bytes) -> str:
    return unpack(packed).decode(errors="surrogatepass")


class PackedLines(Sequence[str]):
    """Lines without line breaks in them; not thread-safe."""

    def __init__(self, lines: Iterable[str]) -> None:
        rest = iter(lines)
        self._blocks: list[bytes] = []
        self._length = 0
        while block := list(islice(rest, _BLOCK_LINES)):
            self._blocks.append(_pack_text("\n".join(block)))
            self._length += len(block)
        self._number = -1
        self._lines: list[str] = []

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        number, place = divmod(range(self._length)[index], _BLOCK_LINES)
        if number != self._number:
            self._number, self._lines = number, _unpack_text(self._blocks[number]).split("\n")
        return self._lines[place]

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from _unpack_text(block).split("\n")
