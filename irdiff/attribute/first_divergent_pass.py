"""The pass after which two pipelines differ for good, from the IR that each printed between its passes.

A difference often appears and heals again: a layout chosen differently and cleaned up by a later pass. So the
states are compared from the end back to the last equal pair; what lies behind it is responsible. Passes are
aligned by name, so that one that was added, removed or moved is named as such.

Synchronization is inserted by a pass of its own in one release and by the lowering in another. A pass that
only inserts barriers or fences which a later pass inserts on the other side is not responsible for what
differs after both: the later one is, and the note says what moved.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from irdiff.attribute.pass_states import END, State

_SYNCHRONIZATION = re.compile(r"\bbar\.|barrier|fence")
_BAR = re.compile(r"bar\.(?<!\wbar\.)")
"""The first of these, as a word: the pattern begins with letters, so that a search is a search for them."""

ADDED = "runs on head only"
REMOVED = "runs on base only"
MOVED = "runs at another place"
OTHER_OPTIONS = "has other options"

Same = Callable[[State, State], bool]


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """The pass after which the states of both sides are never equal again."""

    name: str
    note: str
    """Says how the pass itself differs: other options, another place, or on one side only. Begins with a verb
    or with the name of a pass.
    """
    masked: tuple[str, ...]
    """Passes that began a difference which a later pass took back."""
    entering: tuple[int, int]
    """States of base and head, by index, that enter the step; equal but for what the note says has moved."""
    leaving: tuple[int, int]


def find_divergence(base: Sequence[State], head: Sequence[State], same: Same) -> Divergence | None:
    """None where the states are equal at the end, or never were equal, or one side has none."""
    blocks = SequenceMatcher(
        None, [state.name for state in base], [state.name for state in head], autojunk=False
    ).get_matching_blocks()
    # indices of states before the same pass, and of both ends, increasing on both sides
    pairs = [(block.a + k, block.b + k) for block in blocks for k in range(block.size)]
    equal: dict[int, bool] = {}

    def is_equal(number: int) -> bool:
        if number not in equal:
            i, j = pairs[number]
            equal[number] = same(base[i], head[j])
        return equal[number]

    last = len(pairs) - 1
    if last < 0 or is_equal(last):
        return None
    while last >= 0 and not is_equal(last):
        last -= 1
    if last < 0 and not same(base[0], head[0]):
        return None
    i, j = pairs[last] if last >= 0 else (0, 0)
    began = [n for n in range(1, last + 1) if is_equal(n - 1) and not is_equal(n)]
    masked = tuple(dict.fromkeys(base[pairs[n][0] - 1].name for n in began))
    leaving = pairs[last + 1]
    if last >= 0 and not same(base[i + 1], head[j + 1]):
        name, note, leaving = base[i].name, _option_change(base[i], head[j]), (i + 1, j + 1)
    else:
        if last >= 0:
            i, j = i + 1, j + 1  # the common pass is innocent: what follows it runs on one side only
        name, note = _one_sided(base[i : leaving[0] + 1], head[j : leaving[1] + 1], base, head, same)
    found = Divergence(name=name, note=note, masked=masked, entering=(i, j), leaving=leaving)
    return _after_moved_synchronization(found, base, head, pairs)


def _one_sided(
    ours: Sequence[State], theirs: Sequence[State], base: Sequence[State], head: Sequence[State], same: Same
) -> tuple[str, str]:
    """The pass that only one side runs between an equal pair of states and one that differs, and a note."""
    removed, added = _working(ours, same), _working(theirs, same)
    at_base, at_head = Counter(s.name for s in base), Counter(s.name for s in head)
    notes = [f"{name} {MOVED if at_head[name] >= at_base[name] else REMOVED}" for name in removed]
    notes += [f"{name} {MOVED if at_base[name] >= at_head[name] else ADDED}" for name in added]
    return next(iter([*added, *removed]), END), ", ".join(dict.fromkeys(notes))


def _working(states: Sequence[State], same: Same) -> list[str]:
    """The passes that made any difference to their input; the last state is only an output."""
    pairs = list(itertools.pairwise(states))
    working = [before.name for before, after in pairs if not same(before, after)]
    return working or [before.name for before, _ in pairs]


def _after_moved_synchronization(
    found: Divergence, base: Sequence[State], head: Sequence[State], pairs: Sequence[tuple[int, int]]
) -> Divergence:
    """The step after which both sides synchronize as often again, where the pass found did nothing else."""
    before = found.leaving
    if not _only_synchronizes(base[before[0]], head[before[1]]):
        return found
    most = _synchronizations(base[before[0]]) | _synchronizations(head[before[1]])
    for i, j in pairs:
        if i <= before[0] or j <= before[1]:
            continue
        now = _synchronizations(base[i])
        if now == _synchronizations(head[j]) and now >= most:  # fewer on both sides: they were not inserted
            name = base[i - 1].name
            return replace(found, name=name, note=_moved(found, name), entering=before, leaving=(i, j))
        before = i, j
    return found


def _moved(first: Divergence, later: str) -> str:
    for side, other, runs in (("head", "base", ADDED), ("base", "head", REMOVED)):
        if first.note == f"{first.name} {runs}":
            where = f"{first.name} runs on {side} only"
            return f"{where}. It inserts barriers and fences, as many as {other} inserts in {later}"
    differs = f" ({first.note})" if first.note else ""
    return f"{first.name}{differs} inserts barriers and fences, as many as the other side inserts in {later}"


def _only_synchronizes(base: State, head: State) -> bool:
    """Returns True if two states differ only in barriers and fences."""
    ours, theirs = Counter(base.operations()), Counter(head.operations())
    differing = (ours - theirs) + (theirs - ours)
    return bool(differing) and all(_SYNCHRONIZATION.search(name) for name in differing)


def _synchronizations(state: State) -> Counter[str]:
    """Counts the barriers and fences of a state, whatever dialect or assembly spells them."""
    found: Counter[str] = Counter()
    for part in state.parts():
        found["fence"] += part.count("fence")
        found["barrier"] += part.count("barrier")
        if "bar." in part:
            found["barrier"] += len(_BAR.findall(part))
    return found


def _option_change(base: State, head: State) -> str:
    if base.options is None or head.options is None:
        return ""
    change = word_change(base.options.split(), head.options.split())
    return f"{OTHER_OPTIONS}: {change}" if change else ""


def word_change(base: Sequence[str], head: Sequence[str]) -> str:
    """`-O1 → -O2 -g`: the words that only one side has; empty where both have the same."""
    gone = " ".join(word for word in base if word not in head)
    new = " ".join(word for word in head if word not in base)
    return f"{gone or '(none)'} → {new or '(none)'}" if gone or new else ""
