"""Matches the lines of two canonical texts, up to the numbers of values. Pure.

One inserted operation renumbers every value after it, so a plain line diff of IR shows hundreds of lines
where one was added. Here lines are matched by what they do and by what their operands do, some steps up
(`_rounds`); a matched pair counts as the same only where one renaming of values, followed from the first
line on, turns base's line into head's. Nothing that differs in more than such a renaming is hidden.

Machine code has registers, not values: a pair that differs in registers alone is `RENAMED`, which a
reader may fold away but which is never called the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice, takewhile

from irdiff.compare import alignment
from irdiff.compare.alignment import Gap
from irdiff.texts import ir_of

_WORD = re.compile(r"[\w.]+|\S")
_DEPTHS = (4, 2, 1, 0)
_MOST_PAIRS = 10_000
_FEWEST_COMMON = 0.4
"""The share of words that two lines must have in common for one to have become the other."""


class Kind(StrEnum):
    SAME = " "
    RENAMED = "~"
    REMOVED = "-"
    ADDED = "+"


@dataclass(frozen=True)
class DiffRow:
    """One line of the diff: indices into base and head, None where a side has none."""

    kind: Kind
    base: int | None
    head: int | None
    partner: int | None = None
    """For a removed or added line, the index of the line on the other side that it seems to have become."""


@dataclass(frozen=True)
class Aligned:
    rows: tuple[DiffRow, ...]
    names: Mapping[str, str]
    """Head's name of each value of base that both have."""


def align(stage: str, base: Sequence[str], head: Sequence[str]) -> Aligned:
    """Rows in order; runs of removed lines come before the added lines that replace them."""
    left, right = _both(stage, base, head)
    renaming = _Renaming(left, right)
    rows = _with_partners(_rows(left, right, renaming), left, right)
    for diff_row in rows:
        if diff_row.kind is Kind.REMOVED and diff_row.base is not None and diff_row.partner is not None:
            renaming.bind_definitions(diff_row.base, diff_row.partner)
    return Aligned(rows=tuple(rows), names={} if left.machine else renaming.to_head)


def without_partners(stage: str, base: Sequence[str], head: Sequence[str]) -> list[DiffRow]:
    """The rows of `align`, which takes twice as long, for who does not show them beside each other."""
    left, right = _both(stage, base, head)
    return _rows(left, right, _Renaming(left, right))


def _both(stage: str, base: Sequence[str], head: Sequence[str]) -> tuple[_Text, _Text]:
    shapes: dict[str, int] = {}
    names: dict[str, str] = {}
    left = _Text(stage, base, shapes, names)
    return left, _Text(stage, head, shapes, names, left)


MARK_LEGEND = (
    "names in lines of base are replaced by those of head where irdiff matched the values; a name with a "
    "prime (%r1') has no match at head"
)


def in_numbering_of_head(stage: str, line: str, names: Mapping[str, str]) -> str:
    """Returns a line of base with the names that head has for its values.

    A value keeps base's number, with a `'` behind it, if the alignment of lines found no value of head for
    it. The same number without a `'` is another value.
    """
    return ir_of(stage).NAMES.sub(lambda match: names.get(match[0], f"{match[0]}'"), line)


class _Text:
    """Lines split into what is compared and the names in them."""

    def __init__(
        self,
        stage: str,
        lines: Sequence[str],
        shapes: dict[str, int],
        names: dict[str, str],
        other: _Text | None = None,
    ) -> None:
        """`shapes`: a number for each line without its names. `names`: each name once. Both share these.
        other: the text of the other side, which begins with the same lines.
        """
        self.ir = ir_of(stage)
        self.lines = lines
        self.machine = self.ir.HAS_REGISTERS
        start = _equal_lines(lines, other.lines) if other else 0
        self.shapes: list[int] = other.shapes[:start] if other else []
        self.names: list[tuple[str, ...]] = other.names[:start] if other else []
        for line in islice(lines, start, None):
            self.shapes.append(shapes.setdefault(self.shape(line), len(shapes)))
            self.names.append(tuple([names.setdefault(name, name) for name in self.ir.NAMES.findall(line)]))
        self.defined: dict[str, int] = {}
        for index, names_of_line in enumerate(self.names):
            for name in names_of_line:
                self.defined.setdefault(name, index)

    def shape(self, line: str) -> str:
        return self.ir.NAMES.sub("\0", line)

    def words(self, index: int) -> Counter[str]:
        return Counter(_WORD.findall(self.shape(self.lines[index])))

    def defined_at(self, index: int) -> list[str]:
        return [name for name in dict.fromkeys(self.names[index]) if self.defined[name] == index]

    def operands(self) -> Iterator[tuple[int, ...]]:
        """Yields for each line the lines that define its names; -1 for names that the line itself defines."""
        for index, names in enumerate(self.names):
            places = tuple(map(self.defined.__getitem__, names))
            yield tuple([-1 if place == index else place for place in places]) if index in places else places


def _equal_lines(one: Iterable[str], other: Iterable[str]) -> int:
    """Returns how many lines at the beginning are the same."""
    return sum(1 for _ in takewhile(lambda lines: lines[0] == lines[1], zip(one, other, strict=False)))


_Operands = Sequence[tuple[int, ...]]
_Keys = tuple[Sequence[int], Sequence[int]]
"""A number for each line of both sides: equal where lines do the same with operands that do the same."""


def _rounds(left: _Text, right: _Text) -> list[_Keys]:
    """The keys to match by, the strictest first: by how many steps up operands are followed.

    Machine code is matched as it stands first.
    """
    plain = left.shapes, right.shapes
    if left.machine:
        numbers: dict[str, int] = {}
        whole = [[numbers.setdefault(line, len(numbers)) for line in text.lines] for text in (left, right)]
        return [(whole[0], whole[1]), plain]
    by_depth: dict[int, _Keys] = {0: plain}
    keys: _Keys = plain
    operands = list(left.operands()), list(right.operands())
    for depth in range(1, _DEPTHS[0] + 1):
        keys = by_depth[depth] = _one_step_further(plain, operands, keys)
    return [by_depth[depth] for depth in _DEPTHS]


def _one_step_further(plain: _Keys, operands: tuple[_Operands, _Operands], above: _Keys) -> _Keys:
    numbers: dict[tuple[int, ...], int] = {}

    def of(shapes: Sequence[int], places: _Operands, keys: Sequence[int]) -> list[int]:
        key_of = [*keys, -1].__getitem__  # that of place -1 stands last
        return [
            numbers.setdefault((shape, *map(key_of, each)), len(numbers))
            for shape, each in zip(shapes, places, strict=True)
        ]

    return of(plain[0], operands[0], above[0]), of(plain[1], operands[1], above[1])


# matching


def _match(rounds: Sequence[_Keys]) -> list[tuple[int, int]]:
    gaps = [(0, len(rounds[0][0]), 0, len(rounds[0][1]))]
    matched: list[tuple[int, int]] = []
    for base, head in rounds:
        for i, n, j, m in gaps:
            pairs = alignment.matching(base[i:n], head[j:m])
            matched += [(i + a, j + b) for a, b in pairs]
        matched.sort()
        gaps = list(_gaps(matched, len(base), len(head)))
    return matched


def _gaps(matched: Sequence[tuple[int, int]], n: int, m: int) -> Iterator[Gap]:
    i = j = 0
    for base, head in [*matched, (n, m)]:
        if base > i and head > j:
            yield i, base, j, head
        i, j = base + 1, head + 1


# rows


def _rows(left: _Text, right: _Text, renaming: _Renaming) -> list[DiffRow]:
    rows: list[DiffRow] = []
    removed: list[DiffRow] = []
    added: list[DiffRow] = []
    i = j = 0
    for base, head in [*_match(_rounds(left, right)), (len(left.lines), len(right.lines))]:
        removed += [DiffRow(Kind.REMOVED, index, None) for index in range(i, base)]
        added += [DiffRow(Kind.ADDED, None, index) for index in range(j, head)]
        i, j = base + 1, head + 1
        if base == len(left.lines):
            break
        kind = renaming.follow(base, head)
        if kind is Kind.REMOVED:
            removed.append(DiffRow(Kind.REMOVED, base, None))
            added.append(DiffRow(Kind.ADDED, None, head))
            continue
        rows += [*removed, *added, DiffRow(kind, base, head)]
        removed, added = [], []
    return [*rows, *removed, *added]


def _with_partners(rows: Sequence[DiffRow], left: _Text, right: _Text) -> list[DiffRow]:
    partnered: list[DiffRow] = []
    for is_pair, group in groupby(rows, key=lambda diff_row: diff_row.kind in (Kind.SAME, Kind.RENAMED)):
        run = list(group)
        partnered += run if is_pair else _partnered(run, left, right)
    return partnered


def _partnered(run: Sequence[DiffRow], left: _Text, right: _Text) -> list[DiffRow]:
    """Each line with the one it seems to have become: by its place, or where counts differ by its words."""
    removed = [row for row in run if row.kind is Kind.REMOVED]
    added = [row for row in run if row.kind is Kind.ADDED]
    if len(removed) == len(added):
        pairs = [(index, index) for index in range(len(removed))]
    elif len(removed) * len(added) <= _MOST_PAIRS:
        pairs = _alike(
            [left.words(diff_row.base) for diff_row in removed if diff_row.base is not None],
            [right.words(diff_row.head) for diff_row in added if diff_row.head is not None],
        )
    else:
        pairs = []
    became = {i: added[j].head for i, j in pairs}
    was = {j: removed[i].base for i, j in pairs}
    return [
        *(
            DiffRow(diff_row.kind, diff_row.base, None, became.get(index))
            for index, diff_row in enumerate(removed)
        ),
        *(
            DiffRow(diff_row.kind, None, diff_row.head, was.get(index))
            for index, diff_row in enumerate(added)
        ),
    ]


def _alike(left: Sequence[Counter[str]], right: Sequence[Counter[str]]) -> list[tuple[int, int]]:
    """Pairs in order that have most words in common in all; lines that have few in common are no pair."""
    shares = [[_share(ours, theirs) for theirs in right] for ours in left]
    best = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(len(left) - 1, -1, -1):
        for j in range(len(right) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], shares[i][j] + best[i + 1][j + 1])
    pairs = []
    i = j = 0
    while i < len(left) and j < len(right):
        if best[i][j] == best[i + 1][j]:
            i += 1
        elif best[i][j] == best[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def _share(ours: Counter[str], theirs: Counter[str]) -> float:
    whole = (ours | theirs).total()
    share = (ours & theirs).total() / whole if whole else 0.0
    return share if share >= _FEWEST_COMMON else 0.0


class _Renaming:
    """The one-to-one renaming of base's values to head's, found line by line."""

    def __init__(self, left: _Text, right: _Text) -> None:
        self._left, self._right = left, right
        self.to_head: dict[str, str] = {}
        self._to_base: dict[str, str] = {}

    def follow(self, base: int, head: int) -> Kind:
        """SAME, RENAMED, or REMOVED where the pair differs in more than the renaming."""
        if self._left.machine:
            same = self._left.lines[base] == self._right.lines[head]
            return Kind.SAME if same else Kind.RENAMED
        names = list(zip(self._left.names[base], self._right.names[head], strict=True))
        if all(self._fits(ours, theirs) for ours, theirs in names):
            for ours, theirs in names:
                if not self._fits(ours, theirs):
                    return Kind.REMOVED
                self._bind(ours, theirs)
            return Kind.SAME
        for ours, theirs in names:
            # what the changed line defines is still the counterpart of what it defined
            if self._left.defined[ours] == base and self._right.defined[theirs] == head:
                self._bind(ours, theirs)
        return Kind.REMOVED

    def bind_definitions(self, base: int, head: int) -> None:
        """Notes that the values which a line of base defines became those of its line of head."""
        ours, theirs = self._left.defined_at(base), self._right.defined_at(head)
        if len(ours) == len(theirs):
            for name, other in zip(ours, theirs, strict=True):
                self._bind(name, other)

    def _fits(self, ours: str, theirs: str) -> bool:
        return self.to_head.get(ours, theirs) == theirs and self._to_base.get(theirs, ours) == ours

    def _bind(self, ours: str, theirs: str) -> None:
        if self._fits(ours, theirs):
            self.to_head[ours], self._to_base[theirs] = theirs, ours
