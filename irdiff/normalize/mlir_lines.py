r"""Two MLIR texts compared line by line, without the canonical form of either where that can be done.

A text is taken apart into aliases, the module, its code, and definitions of locations. Texts of another shape
are left to the full form, and so is every pair that cannot be judged here.

Why the answer is that of the canonical forms (the rules are those of `mlir`; all but the numbering of names,
the kernel's name and the aliases' definitions are about one line at a time):

*equal*: each line of the one text and that line of the other are the same, or are once what `mlir.strip`
drops is gone, or have the same rows but for names of values and blocks. Names must then be renamed one-to-one
over both whole texts: names so renamed are defined in the same places and scopes, and get the same numbers.
Lines with an alias that is not defined alike are compared by their rows. As symbols are the same, so is the
kernel's name.

*different*: up to some pair of lines each line has one row where the other has one, and the rows of that pair
differ even when names are passed over. Numbering changes nothing but names, so the canonical forms differ in
that row. Rows with a symbol are not judged: it could be the kernel's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from irdiff.normalize import mlir
from irdiff.normalize.lexing import C_STRING, KERNEL

_DEFINES_LOCATION = re.compile(r"#loc[0-9]*+ = loc\((?!#)")
_LOCATIONS = re.compile(r"(?:\n#loc[0-9]*+ = loc\((?!#).*+)*+\n*")
"""`loc(#` is left out, since `mlir.strip` takes it for the end of an operation."""
_ALIAS = re.compile(r"([#!][A-Za-z_][\w$-]*+) = ([#!](?:[^\"%^@/{]|\{(?!\s*$))*+)")
_ALIAS_USE = re.compile(r"[#!][A-Za-z_][\w$-]*+")
_STRAY_ALIAS = re.compile(r"^[ \t]*+(?:[#!]|loc\()", re.M)
"""What may become the definition of an alias, which holds for the whole text."""
_INNER_MODULE = re.compile(r"^[ \t]*+module\b", re.M)
_JOINED = re.compile(r"(?<!,)\)[\w.$-]")
"""Where a location goes from between them, what stands on both sides becomes one name."""
_MODULE = re.compile(r"module(?: attributes \{[^@#!/%^]*\})? \{")
_LOCATION_AT_END = re.compile(r" loc\(#loc[0-9]*\)(?=\n|\Z)")
"""A plain one: `mlir.strip` makes the same of the line with it and without."""
_NAME = re.compile(r"(%[A-Za-z0-9_.$-]+)")
"""One constant beginning, which is what the search is fast with."""
_TOKEN = re.compile(rf"{C_STRING.pattern[:-1]}|[%^][A-Za-z0-9_.$-]+)")
_PLAIN_BEGINNING = re.compile(r" *+((?:[^ #!{\"/@^\t]| (?! ))*+[{\"]?)")
"""Of a line without locations: what no rule but the numbering of names can change."""
_FIRST_PART = 8
"""Pairs of lines."""
_LONG_LINE = 4096
"""Characters; the line of a module has a few hundred."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the canonical forms would say."""

    equal: bool
    header_equal: bool
    """False where the texts differ: they were not read to the end."""


def compare(base: str, head: str) -> Answer | None:
    """None where only the canonical forms can tell. Of texts that `check_text` has passed."""
    left, right = _taken_apart(base), _taken_apart(head)
    if left is None or right is None:
        return None
    (ours, our_header), (theirs, their_header) = _module(left.module), _module(right.module)
    if not ours or ours != theirs:
        return None
    if left.head != right.head and (left.aliases is None or right.aliases is None):
        return None
    differ, header_equal = _Lines(left, right).differ(), our_header == their_header
    if differ is None or not (differ or header_equal or not _INNER_MODULE.search(left.code)):
        return None
    return Answer(equal=not differ, header_equal=header_equal and not differ)


@dataclass(frozen=True, kw_only=True)
class _Text:
    head: list[str]
    """What stands before the module and defines no location: definitions of aliases."""
    module: str
    """The line that begins the module."""
    code: str
    """The lines after it, to the end of the module."""
    tail: str
    """What is left; definitions of locations where nothing is amiss."""

    @cached_property
    def aliases(self) -> dict[str, str] | None:
        """None where there is anything else."""
        found = [_ALIAS.fullmatch(line) for line in self.head if line]
        plain = all(found) and not any(KERNEL in line for line in self.head)
        return {alias[1]: alias[2] for alias in found if alias} if plain else None


def _taken_apart(text: str) -> _Text | None:
    start = 0 if text.startswith("module") else text.find("\nmodule") + 1
    code = text.find("\n", start) + 1
    last = text.rfind("\n}") + 1
    if not (start or text.startswith("module")) or last < code or code - start > _LONG_LINE:
        return None
    end = text.find("\n", last)
    if end < 0:
        end = len(text)
    found = _Text(
        head=[line for line in text[:start].split("\n") if not _DEFINES_LOCATION.match(line)],
        module=text[start : code - 1],
        code=text[code:end],
        tail=text[end:],
    )
    plain = "*" not in text or not ("/*" in text or ")*" in text)  # a location between them goes
    return found if plain and found.code.isascii() else None


@lru_cache(maxsize=256)
def _module(line: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The row of the line that begins a module, and the header; no row for another line."""
    if not _MODULE.fullmatch(line):
        return "", ()
    header: dict[str, str] = {}
    row = mlir.rows_of_lines((), [line], header)[0]
    return row, tuple(header.items())


class _Lines:
    def __init__(self, left: _Text, right: _Text) -> None:
        self._left = left
        self._right = right
        self._moved = (
            _moved_aliases(left.aliases or {}, right.aliases or {}) if left.head != right.head else None
        )
        self._same: list[str] = []
        """Lines that are the same without their locations."""
        self._names: set[tuple[str, str]] = set()
        """Each name (and string) of the other lines, with what stands for it on the other side."""

    def differ(self) -> bool | None:
        """None where it is not known."""
        if self._moved is None and self._left.code == self._right.code:
            return False if self._end_alike() else None
        ours, theirs = self._left.code.split("\n"), self._right.code.split("\n")
        for pairs in _in_growing_parts(self._unequal(ours, theirs)):
            one, other = _bare(*("\n".join(lines) for lines in zip(*pairs, strict=True)))
            differ = False if self._are_same(one, other) else self._any_differs(one, other, pairs)
            if differ is not False:
                return differ
        same = len(ours) == len(theirs) and self._end_alike() and self._renamed_one_to_one(ours, theirs)
        if same and self._moved and _JOINED.search(self._left.code):
            return None
        return False if same else None

    def _unequal(self, ours: list[str], theirs: list[str]) -> list[tuple[str, str]]:
        pairs = zip(ours, theirs, strict=False)
        if self._moved is None:
            return [(one, other) for one, other in pairs if one != other]
        return [(one, other) for one, other in pairs if one != other or self._moved.search(one)]

    def _are_same(self, one: str, other: str) -> bool:
        """Whether lines without locations differ in names only, which are noted."""
        if self._moved and self._moved.search(one):
            return False
        if one == other:
            self._same.append(one)
            return True
        pattern = _TOKEN if '"' in one or "^" in one else _NAME
        left, right = pattern.split(one), pattern.split(other)
        if left[::2] != right[::2]:
            return False
        self._names.update(zip(left[1::2], right[1::2], strict=True))
        return True

    def _any_differs(self, ones: str, others: str, pairs: list[tuple[str, str]]) -> bool | None:
        """Line by line, since the lines are not the same all together; `pairs` has them with locations."""
        waiting: list[tuple[str, str]] = []
        for one, other, pair in zip(ones.split("\n"), others.split("\n"), pairs, strict=True):
            if self._are_same(one, other):
                continue
            if _begin_otherwise(one, other):
                return None if self._rows_differ(waiting) is None else True
            waiting.append(pair)
        return self._rows_differ(waiting)

    def _rows_differ(self, pairs: list[tuple[str, str]]) -> bool | None:
        if not pairs:
            return False
        if self._has_stray_alias:
            return None
        sides = zip((self._left.aliases, self._right.aliases), zip(*pairs, strict=True), strict=True)
        ours, theirs = (
            mlir.rows_of_lines(_used(aliases, lines), lines, {}) if aliases is not None else None
            for aliases, lines in sides
        )
        if ours is None or theirs is None:
            return None
        for one, other in zip(ours, theirs, strict=True):
            if not one or not other or "\n" in one or "\n" in other or one.startswith("module"):
                return None
            left, right = _TOKEN.split(one), _TOKEN.split(other)
            if left[::2] != right[::2]:
                unclear = "@" in one or "@" in other or not self._end_alike()
                return None if unclear else True
            self._names.update(zip(left[1::2], right[1::2], strict=True))
        return False

    def _end_alike(self) -> bool:
        """Whether nothing but definitions of locations follows the code of both."""
        return all(_LOCATIONS.fullmatch(text.tail) for text in (self._left, self._right))

    @cached_property
    def _has_stray_alias(self) -> bool:
        return any(_STRAY_ALIAS.search(text.code) for text in (self._left, self._right))

    def _renamed_one_to_one(self, ours: list[str], theirs: list[str]) -> bool:
        renamed = [pair for pair in self._names if pair[0] != pair[1]]
        if not renamed:
            return True
        before, after = (set(names) for names in zip(*self._names, strict=True))
        if not len(before) == len(after) == len(self._names):
            return False
        if any(one[0] != other[0] or one[0] == '"' for one, other in renamed):
            return False
        lines = [one for one, other in zip(ours, theirs, strict=True) if one == other]
        same = "\n".join([*self._left.head, *lines, *self._same])
        if _JOINED.search(same):
            return False
        kept = set((_TOKEN if "^" in same else _NAME).findall(same))
        return all(
            kept.isdisjoint(names) and KERNEL not in "".join(names) for names in zip(*renamed, strict=True)
        )


def _moved_aliases(left: dict[str, str], right: dict[str, str]) -> re.Pattern[str] | None:
    """Finds the aliases that do not stand for the same on both sides, and some more."""
    if left == right:
        return None
    moved = {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}
    more = moved
    while more:
        more = {name for name in left.keys() - moved if not moved.isdisjoint(_ALIAS_USE.findall(left[name]))}
        moved |= more
    return re.compile("|".join(map(re.escape, sorted(moved))))


def _used(aliases: dict[str, str], lines: tuple[str, ...]) -> list[str]:
    """The definitions of the aliases that these lines need."""
    found: dict[str, str] = {}
    names = set(_ALIAS_USE.findall("\n".join(lines)))
    while names:
        name = names.pop()
        if name in aliases and name not in found:
            found[name] = f"{name} = {aliases[name]}"
            names.update(_ALIAS_USE.findall(aliases[name]))
    return list(found.values())


def _in_growing_parts(pairs: list[tuple[str, str]]) -> Iterator[list[tuple[str, str]]]:
    """So that little is read of texts that differ early."""
    start, size = 0, _FIRST_PART
    while start < len(pairs):
        yield pairs[start : start + size]
        start, size = start + size, size * 4


def _bare(one: str, other: str) -> tuple[str, str]:
    """Lines without their locations, and buffers in one spelling."""
    one, other = _LOCATION_AT_END.sub("", one), _LOCATION_AT_END.sub("", other)
    if not (_is_spelled_out(one) or _is_spelled_out(other)):
        return one, other
    pairs = [
        (mlir.respelled(left), mlir.respelled(right))
        if _is_spelled_out(left) or _is_spelled_out(right)
        else (left, right)
        for left, right in zip(one.split("\n"), other.split("\n"), strict=True)
    ]
    return "\n".join([left for left, _ in pairs]), "\n".join([right for _, right in pairs])


def _is_spelled_out(lines: str) -> bool:
    """Whether there may be a location, or something with two spellings."""
    return ("loc(" in lines and lines.count("loc(") != lines.count("alloc(")) or "amdg.buffer_" in lines


def _begin_otherwise(one: str, other: str) -> bool:
    """Whether already the plain beginnings of two lines without locations differ, names passed over."""
    left, right = _NAME.sub("%", _beginning(one)), _NAME.sub("%", _beginning(other))
    length = min(len(left), len(right))
    return left[:length] != right[:length]


def _beginning(line: str) -> str:
    found = _PLAIN_BEGINNING.match(line)
    return found.group(1) if found and not found.group(1).startswith("module") else ""
