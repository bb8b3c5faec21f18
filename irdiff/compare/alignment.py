"""Finds the lines that are the same in two canonical texts, in near-linear time. Pure.

Myers' and `difflib`'s algorithms are quadratic where two texts differ much, and LLVM IR of a large
kernel has 50,000 lines. So the equal ends are matched first, then lines that occur once on both sides are
taken as anchors (Bram Cohen's patience diff), and only the small gaps that are left are matched exactly. In
a gap that is too large for that, each line is matched greedily with the next equal one that is near.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from difflib import SequenceMatcher

Gap = tuple[int, int, int, int]
"""Half-open ranges of both sides: base from, base to, head from, head to."""

MAX_EXACT_CELLS = 250_000
"""The largest gap, in lines times lines, that is matched exactly. It takes at most some 50 ms."""


def matching(base: Iterable[Hashable], head: Iterable[Hashable]) -> list[tuple[int, int]]:
    """Pairs of indices of equal lines, increasing on both sides."""
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in base]
    right = [numbers.setdefault(line, len(numbers)) for line in head]
    pairs: list[tuple[int, int]] = []
    gaps = [(0, len(left), 0, len(right))]
    while gaps:
        a, b, c, d = gaps.pop()
        while a < b and c < d and left[a] == right[c]:
            pairs.append((a, c))
            a, c = a + 1, c + 1
        while a < b and c < d and left[b - 1] == right[d - 1]:
            b, d = b - 1, d - 1
            pairs.append((b, d))
        if a == b or c == d:
            continue
        anchors = _anchors(left, right, (a, b, c, d))
        if anchors:
            for i, j in anchors:
                gaps.append((a, i, c, j))
                pairs.append((i, j))
                a, c = i + 1, j + 1
            gaps.append((a, b, c, d))
        else:
            pairs += _match_gap(left, right, (a, b, c, d))
    pairs.sort()
    return pairs


def equal_ends(left: Sequence[str], right: Sequence[str]) -> tuple[int, int]:
    """Returns (how many items are the same at the beginning, how many of the others at the end)."""
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    end = 0
    while end < min(len(left), len(right)) - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return start, end


def _anchors(left: Sequence[int], right: Sequence[int], gap: Gap) -> list[tuple[int, int]]:
    """Longest run, increasing on both sides, of lines that occur once on each side of the gap."""
    a, b, c, d = gap
    once_left, once_right = _unique(left, a, b), _unique(right, c, d)
    common = sorted((once_left[line], once_right[line]) for line in once_left if line in once_right)
    tails: list[int] = []
    where: list[int] = []
    before: list[int] = []
    for index, (_, position) in enumerate(common):
        place = bisect.bisect_left(tails, position)
        before.append(where[place - 1] if place else -1)
        tails[place : place + 1] = [position]
        where[place : place + 1] = [index]
    anchors = []
    index = where[-1] if where else -1
    while index >= 0:
        anchors.append(common[index])
        index = before[index]
    return anchors[::-1]


def _unique(lines: Sequence[int], start: int, end: int) -> dict[int, int]:
    counts = Counter(lines[start:end])
    return {lines[i]: i for i in range(start, end) if counts[lines[i]] == 1}


def _match_gap(left: Sequence[int], right: Sequence[int], gap: Gap) -> list[tuple[int, int]]:
    a, b, c, d = gap
    if (b - a) * (d - c) > MAX_EXACT_CELLS:
        return _match_in_windows(left, right, gap)
    matcher = SequenceMatcher(None, left[a:b], right[c:d], autojunk=False)
    return [
        (a + block.a + k, c + block.b + k)
        for block in matcher.get_matching_blocks()
        for k in range(block.size)
    ]


def _match_in_windows(left: Sequence[int], right: Sequence[int], gap: Gap) -> list[tuple[int, int]]:
    """Greedy: each line with the next equal one that is still ahead and near."""
    a, b, c, d = gap
    places: dict[int, list[int]] = {}
    for j in range(c, d):
        places.setdefault(right[j], []).append(j)
    pairs, front, reach = [], c, max(64, (d - c) // 16)
    for i in range(a, b):
        rows = places.get(left[i], ())
        index = bisect.bisect_left(rows, front)
        if index < len(rows) and rows[index] - front <= reach:
            pairs.append((i, rows[index]))
            front = rows[index] + 1
    return pairs
