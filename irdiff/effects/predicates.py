"""Predicates that differ: whether one opposes the other, or other threads do the same work. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.values import Values
from irdiff.ir.program import Act


def are_opposite(values: Values, base: int, head: int) -> bool:
    """Whether two comparisons of the same two values differ where these are equal."""
    keys = [values.keys[each] for each in (base, head)]
    bare = [values.keys[key[1]] if key[0] == "not" else key for key in keys]
    if not all(key[0] in ("lt", "eq") for key in bare) or {*bare[0][2:]} != {*bare[1][2:]}:
        return False
    return len({(key[0] == "eq") != (whole[0] == "not") for key, whole in zip(bare, keys, strict=True)}) == 2


def choose_threads(side: NumberedFunction, base: int, head: int, event: Event) -> bool:
    """Whether only which thread of several does the same work differs.

    As many have to, or one that is elected; or all lanes store the same.
    """
    values = side.values
    always = values.node("const", 1)
    ours, theirs = (_parts(values, each) - {always} for each in (base, head))
    if not all(_is_of_thread(values, each) for each in ours ^ theirs):
        return False
    if event.effect.act is Act.STORE and not _varies(side, (*event.address, *event.operands)):
        return True
    sides = ours - theirs, theirs - ours
    counts = {_count(values, own) for own in sides}
    return all(sides) and (len(counts) == 1 or None in counts)


def _varies(side: NumberedFunction, numbers: Iterable[int]) -> bool:
    return any(map(side.lanes.varies, numbers))


def _parts(values: Values, number: int) -> set[int]:
    """What a predicate is the conjunction of."""
    key = values.keys[number]
    return _parts(values, key[2]) | _parts(values, key[3]) if key[0] == "and" else {number}


def _is_of_thread(values: Values, number: int) -> bool:
    made = values.made_by.get(number)
    is_elected = made is not None and made.word.startswith("elect.")
    return is_elected or values.in_threads(number) is not None


def _count(values: Values, parts: Collection[int]) -> int | None:
    """In how many threads all of them are true; None where that is not known."""
    rows = [values.in_threads(each) for each in parts]
    known = [row for row in rows if row is not None]
    return sum(map(all, zip(*known, strict=True))) if len(known) == len(rows) else None
