"""The sequence of operations of a text: names, numbers and attributes apart, what it does in which order.

No rule renames, drops or moves an operation, so texts whose sequences differ cannot have the same
canonical form. That is much cheaper to find out than the canonical form, and true of most changes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_MLIR = re.compile(r"\n(?:%[^\n= ]*(?:, [^\n= ]+)* = )?\"?([a-z_]+\.[a-z_0-9.]+)")
_PATTERNS = {
    "llir": re.compile(
        r"\n(?:%(?:\"[^\"\n]*+\"|[^ \n]+) = ([a-z]+)"
        r"|(store|br|ret|call|tail|switch|fence|unreachable)(?=[ \n]))"
    ),
    "ptx": re.compile(r"\n(?:@!?%\w+ )?([a-z][\w.:]*+)(?=[ ;])"),
    "amdgcn": re.compile(r"\n([svdbgf][a-z0-9]*+_[a-z0-9_]++)(?=[ \n])"),
    "ttir": _MLIR,
    "ttgir": _MLIR,
    "glir": _MLIR,
    "source": _MLIR,
}
_SHOWS_OPERATION = {
    "ptx": re.compile(r"\n[ \t]*+[a-z][\w.:]*+[ \t;]"),
    "amdgcn": re.compile(r"\n[ \t]*+[svdbgf][a-z0-9]*+_[a-z0-9_]++[ \t\n]"),
}
_FIRST_PIECE = 2048
_DEBUG_SECTION = re.compile(r"\.section[ \t]+\.debug_")


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Two texts read side by side, as far as their operations agree."""

    shown: bool
    """Whether both show an operation at all."""
    same: bool
    """Whether both have the same operations in the same order."""
    base: str
    head: str
    """The stripped texts, whole where `same`."""


def read_together(ir: str, base: str, head: str, strip: Callable[[str], str]) -> Reading:
    """Strip both texts piece by piece until their operations differ.

    Most changes show within the first pieces, and a piece is stripped as the whole text would be.
    """
    pattern = _PATTERNS[ir]
    sides = _Side(base, strip, pattern), _Side(head, strip, pattern)
    left, right = sides[0].operations, sides[1].operations
    same = True
    compared = 0
    while same and not (sides[0].done and sides[1].done):
        for side in sides:
            side.read()
        until = min(len(left), len(right))
        same = left[compared:until] == right[compared:until]
        compared = until
    texts = ["".join(side.pieces) for side in sides]
    return Reading(
        shown=bool(left and right),
        same=same and len(left) == len(right),
        base=texts[0],
        head=texts[1],
    )


def differing_part(base: str, head: str) -> tuple[slice, slice]:
    """Where both are without the whole lines that they begin and end with alike.

    Both parts begin with a line break, or at the beginning of the text.
    """
    length = min(len(base), len(head))
    start = max(0, base.rfind("\n", 0, _how_many(lambda low, high: base[low:high] == head[low:high], length)))
    tails = len(base), len(head)
    alike = _how_many(
        lambda low, high: base[tails[0] - high : tails[0] - low] == head[tails[1] - high : tails[1] - low],
        length - start,
    )
    end = base.find("\n", len(base) - alike)
    left = len(base) - end if end >= 0 else 0
    return slice(start, len(base) - left), slice(start, len(head) - left)


def shows_operation(ir: str, text: str) -> bool:
    """Whether a text of PTX or AMDGCN begins to do something before anything goes on beyond a line."""
    found = _SHOWS_OPERATION[ir].search(text)
    return found is not None and not goes_on(text[: found.start()])


def goes_on(text: str) -> bool:
    """Whether there is the beginning of a block comment, or of a section of debug information."""
    return "/*" in text or ")*" in text or (".debug_" in text and bool(_DEBUG_SECTION.search(text)))


def _how_many(alike: Callable[[int, int], bool], limit: int) -> int:
    """How many characters are alike: ever smaller pieces are much faster to compare than one by one."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if alike(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


class _Side:
    def __init__(self, text: str, strip: Callable[[str], str], pattern: re.Pattern[str]) -> None:
        self._pieces = _pieces(text)
        self._strip = strip
        self._pattern = pattern
        self.pieces: list[str] = []
        self.operations: list[object] = []
        self.done = False

    def read(self) -> None:
        piece = next(self._pieces, None)
        if piece is None:
            self.done = True
            return
        stripped = self._strip(piece)
        before = "" if self.pieces else "\n"
        self.pieces.append(stripped)
        # an operation begins behind a line break and may end at one: each piece shares one with the next
        self.operations += self._pattern.findall(f"{before}{stripped}\n")


def _pieces(text: str) -> Iterator[str]:
    """Whole lines, each piece but the first beginning with the line break before it.

    Strings, locations and comments end with their line. What may go on, a block comment or a section of
    debug information, is not cut: all that follows is one piece.
    """
    start, size = 0, _FIRST_PIECE
    while (end := text.find("\n", start + size)) >= 0:
        piece = text[start:end]
        if goes_on(piece):
            break
        yield piece
        start, size = end, size * 2
    yield text[start:]
