"""Whether an edit takes synchronization away, or adds it. Pure.

A fence, barrier or wait that is gone may be a race; one more costs only time. For an operation that counts
arrivals, one more is as wrong as one fewer. A barrier that left a loop counts as gone, for the loop ran it in
every round. `s_waitcnt` counts only where nothing else differs: AMD's code generator puts one before each use
of what is loaded, so their number follows the order of the rest.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable, Sequence

from irdiff.compare import loops
from irdiff.compare.edits import EditLine
from irdiff.compare.line_forms import typeless

FENCE = re.compile(r"fence|membar|buffer_(?:wbl2|inv)|s_dcache")
BARRIER = re.compile(r"(?<!sched\.)(?<!sched\.group\.)(?<!sched_)barrier|\bbar\.|\bbar\b")
"""The marks that keep AMD's scheduler from moving instructions are no barriers."""
WAIT = re.compile(r"wait|depbar|commit_group")
SIGNAL = re.compile(r"mbarrier|arrive|expect|(?:init|inval|wait)_barrier|cluster")
"""Operations that count arrivals."""
_BY_CODE_GENERATOR = re.compile(r"s_wait")
_PENDING = re.compile(r"(\b(?:num|pendings) = |\b(?:vmcnt|lgkmcnt|vscnt|expcnt)\(|wait_group\S* )(\d+)")
"""What a wait counts, and how many of these operations it leaves unfinished."""


def taken(pattern: re.Pattern[str], lines: Sequence[EditLine]) -> float:
    """How far there is less synchronization of a kind, in all or in loops, or it says less than before."""
    found = _of_kind(pattern, lines)
    weaker = _net(found) < 0 or _net(line for line in found if line.depth) < 0
    weaker = weaker or any(_differs(line) and not _waits_for_more(line) for line in found)
    return loops.weight(line.depth for line in found) if weaker else 0.0


def added(lines: Sequence[EditLine]) -> float:
    """How far there is more of a kind, or waits for more, while nothing of it is taken away."""
    more: list[EditLine] = []
    for pattern in (FENCE, BARRIER, WAIT):
        found = _of_kind(pattern, lines)
        if not taken(pattern, lines) and (_net(found) > 0 or any(map(_waits_for_more, found))):
            more += found
    return loops.weight(line.depth for line in more) if more else 0.0


def _of_kind(pattern: re.Pattern[str], lines: Sequence[EditLine]) -> list[EditLine]:
    found = [line for line in lines if _matches(pattern, line.text) and not _matches(SIGNAL, line.text)]
    if len(found) == len(lines):
        return found
    return [line for line in found if not _BY_CODE_GENERATOR.match(line.text)]


@functools.lru_cache(maxsize=1 << 14)
def _matches(pattern: re.Pattern[str], text: str) -> bool:
    """Each kind is asked for several times, of the lines of one edit."""
    return pattern.search(text) is not None


def _net(lines: Iterable[EditLine]) -> int:
    return sum(1 if line.sign == "+" else -1 for line in lines)


def _differs(line: EditLine) -> bool:
    """Whether the line has another count, scope or ordering than the one that stands in its place."""
    return line.partner is not None and typeless(line.text) != typeless(line.partner)


def _waits_for_more(line: EditLine) -> bool:
    """Whether head's wait is base's and leaves fewer unfinished: it is stricter, so it makes no race."""
    if line.partner is None:
        return False
    before, after = (line.partner, line.text) if line.sign == "+" else (line.text, line.partner)
    if _PENDING.sub(r"\1", typeless(before)) != _PENDING.sub(r"\1", typeless(after)):
        return False
    ours, theirs = ([int(count) for _, count in _PENDING.findall(text)] for text in (before, after))
    return ours != theirs and all(map(operator.ge, ours, theirs))
