"""Events of one iteration of a loop, and how they move from one iteration to the next. Pure.

Arrays broadcast to (warps of all programs, 32 lanes); what is said of programs has one value each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.execution.memory_costs import Access
from irdiff.execution.state import Array

NEVER = np.iinfo(np.int64).max
_OUTCOMES = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip
Move = tuple[Array | None, Array | None]
"""By how much both sides of a comparison, or the addresses of an access, move in a period."""


@dataclass(frozen=True, slots=True)
class IntegerComparison:
    """A comparison of integers in an iteration: both sides as int64."""

    place: int
    left: Array | None
    right: Array | None
    kind: str
    least: int
    most: int


def same_mask(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(
        np.broadcast_arrays(one, other)[0], np.broadcast_arrays(one, other)[1]
    )


def equal(one: Array, other: Array, where: Array) -> bool:
    different = one != other
    return not (different.any() and (different & where).any())


def until_flip(event: IntegerComparison, moves: Move, mask: Array, programs: int) -> Array:
    """Periods of each program until the comparison has another outcome in one of its lanes, or overflows."""
    step_a, step_b = moves
    unmoved = np.full(programs, NEVER)
    if event.left is None or event.right is None or step_a is None or step_b is None:
        return unmoved
    if not step_a.any() and not step_b.any():
        return unmoved
    left, right, a, b = event.left, event.right, step_a, step_b
    periods = np.minimum(
        _outcome(event.kind, *np.broadcast_arrays(left - right, a - b)), _overflow(left, a, event)
    )
    periods = np.minimum(periods, _overflow(right, b, event))
    if periods.size == 1:
        return np.full(programs, periods.flat[0])
    where = mask if periods.shape[1] > 1 else mask.any(axis=1, keepdims=True)
    least: Array = np.where(where, periods, NEVER).reshape(programs, -1).min(axis=1)
    return least


def _outcome(kind: str, x: Array, d: Array) -> Array:
    """Periods until `x` compares with zero in another way, where it moves by `d` each."""
    far = np.full(x.shape, NEVER)
    size = np.maximum(np.abs(d), 1)
    up, down = d > 0, d < 0
    if kind in ("LT", "GE"):
        far = np.where((x < 0) & up, -(x // size), far)
        return np.where((x >= 0) & down, x // size + 1, far)
    if kind in ("LE", "GT"):
        far = np.where((x <= 0) & up, -x // size + 1, far)
        return np.where((x > 0) & down, -(-x // size), far)
    far = np.where((x == 0) & (d != 0), 1, far)
    ahead = (x != 0) & (d != 0) & (x % size == 0) & ((x < 0) == up)
    return np.where(ahead, np.abs(x) // size, far)


def _overflow(side: Array, step: Array, event: IntegerComparison) -> Array:
    room = np.where(step > 0, event.most - side, side - event.least)
    return np.where(step != 0, room // np.maximum(np.abs(step), 1), NEVER)


def moves(event: Any, old: Any) -> Move | None:
    """By how much an event moved since the period before; None where that is an event of another kind."""
    if type(event) is not type(old):
        return None
    if isinstance(event, Access):
        if (event.addresses is None) != (old.addresses is None):
            return None
        return (None, None) if event.addresses is None else (event.addresses - old.addresses, None)
    if event.left is None or event.right is None or old.left is None or old.right is None:
        return None, None
    return event.left - old.left, event.right - old.right


def even_moves(
    now: Sequence[Any], before: Sequence[Any], first: Sequence[Any], mask: Array
) -> list[Move] | None:
    """How events moved in the last of two periods; None where they did not move so in the one before, too."""
    even: list[Move] = []
    for event, old, oldest in zip(now, before, first, strict=True):
        moved, earlier = moves(event, old), moves(old, oldest)
        if moved is None or not evenly(moved, earlier, mask):
            return None
        even.append(moved)
    return even


def evenly(steps: Any, earlier: Any, mask: Array) -> bool:
    """True if an event moved by the same amount in both periods."""
    if steps is None or earlier is None:
        return False
    warps = mask.any(axis=1, keepdims=True)
    for one, other in zip(steps, earlier, strict=True):
        if one is None or other is None:
            if one is not other:
                return False
        elif not equal(one, other, mask if max(one.shape[1], other.shape[1]) > 1 else warps):
            return False
    return True


def as_foreseen(event: Any, old: Any, moved: Move, ahead: Array, mask: Array) -> bool:
    """True if an event is the one of `ahead` periods before, moved; `ahead`: (warps, 1)."""
    if type(event) is not type(old) or event.place != old.place:
        return False
    names = ("addresses",) if isinstance(event, Access) else ("left", "right")
    for name, step in zip(names, moved, strict=False):
        now, then = getattr(event, name), getattr(old, name)
        if now is None or then is None or step is None:
            if (now is None) != (then is None):
                return False
            continue
        where = mask
        if isinstance(event, Access) and event.active is not None and old.active is not None:
            if ((event.active != old.active) & mask).any():
                return False
            where = mask & event.active
        wide = max(now.shape[1], then.shape[1]) > 1
        if not equal(now, then + step * ahead, where if wide else where.any(axis=1, keepdims=True)):
            return False
    return isinstance(event, Access) or _comes_out_as(event, old, mask)


def _comes_out_as(event: IntegerComparison, old: IntegerComparison, mask: Array) -> bool:
    """Returns false if a comparison has another outcome than before: what follows may cost something else."""
    if event.left is None or event.right is None or old.left is None or old.right is None:
        return True
    compare = _OUTCOMES[event.kind]
    now, then = compare(event.left, event.right), compare(old.left, old.right)
    return equal(now, then, mask if max(now.shape[1], then.shape[1]) > 1 else mask.any(axis=1, keepdims=True))
