"""Decides whether two results differ by rounding only. Pure.

Each result comes with others that rounding of the same operations might have given: the value is computed
four more times, and each time a random error is added to the result of each operation that only one side has
(`samples`). The error is at most what the operation's floating-point format and its approximation allow. The
greatest distance of these results from the first is the *spread* of a side.

Two results are near if their distance is at most twice the sum of both spreads, plus one rounding of the
format. Two small numbers are therefore not near just because they are small. And if large numbers cancel, the
small remainder may differ by as much as the rounding errors of the large numbers allow. Results are other
values if they are farther apart than 16 times this bound, and than a fixed share of the greater one. Anything
between is not decided.

Only floats can be near. If an integer or a predicate was computed from floats, those floats must be near.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import Enum

from irdiff.effects import floats
from irdiff.effects.floats import Column, to_ints
from irdiff.effects.nodes import is_pack, operands_of
from irdiff.effects.values import Values

Fields = tuple[tuple[int, str], ...]
"""Where floats begin in a value, and their formats."""
_DEPTH = 6
_ROOM = 2
_CLEARLY = 16
_MOST_OF_ROUNDING = {"f16": 0.02, "bf16": 0.06, "f32": 2e-3, "f64": 2e-3}
"""Results whose distance is a smaller part of them are not called other values."""
_ENOUGH = 4
"""Samples in which a result is a normal number."""
_SIZES = floats.SIZES


class Likeness(Enum):
    UNKNOWN = "unknown"
    """It could not be tried, or samples do not decide."""
    EQUAL = "equal"
    NEAR = "near"
    """Up to rounding."""
    OTHER = "other"


def fields(values: Values, base: int, head: int) -> Fields:
    """Where both values have floats; empty where that is not known, or not the same."""
    ours, theirs = (_fields(values, each, _DEPTH) for each in (base, head))
    if ours is None or theirs is None:  # a value that is read is taken for what the other side has there
        read, other = (base, theirs) if ours is None else (head, ours)
        return other or () if _is_read(values, read) else ()
    return ours if ours == theirs else ()


def _is_read(values: Values, number: int, depth: int = _DEPTH) -> bool:
    """True if a value is what is read, or bits of it in other places."""
    key = values.keys[number]
    if depth and (is_pack(key) or key[0] in ("bits", "trunc")):
        return all(_is_read(values, each, depth - 1) for each in operands_of(key))
    return key[0] in ("text", "const", "join", "event", "parameter", "undefined") or (
        key[0] == "part" and values.keys[key[1]][0] == "event"
    )


def _fields(values: Values, number: int, depth: int) -> Fields | None:
    key = values.keys[number]
    if computation := floats.computation(str(key[0])):
        found, place = [], 0
        for kind in computation.formats:
            found.append((place, kind))
            place += _SIZES[kind]
        return tuple(found) or None
    if not depth:
        return None
    match key:
        case _, *parts if is_pack(key):
            own = [_fields(values, each, depth - 1) for each in parts]
            size = max((place + _SIZES[kind] for each in own for place, kind in each or ()), default=0)
            return _merged([None if each is None else _moved(each, n * size) for n, each in enumerate(own)])
        case "select", _, one, other:
            return fields(values, one, other) or None
        case "bits", constant, terms:
            rows = [(_fields(values, atom, depth - 1), places, int(mask)) for (atom, places), mask in terms]
            found_ = _merged([None if own is None else _cut(own, places, mask) for own, places, mask in rows])
            signs = sum(1 << place + _SIZES[kind] - 1 for place, kind in found_ or ())
            return None if constant & ~signs else found_
        case "trunc", width, value:
            inner = _fields(values, value, depth - 1)
            return None if inner is None else _cut(inner, 0, (1 << width) - 1)
    return None


def _moved(own: Fields, places: int) -> Fields:
    return tuple((place + places, kind) for place, kind in own)


def _merged(parts: Sequence[Fields | None]) -> Fields | None:
    return tuple(sorted(each for part in parts for each in part or ())) if None not in parts else None


def _cut(own: Fields, places: int, mask: int) -> Fields | None:
    """Returns the floats that a shift and a mask leave: the upper half of an f32 is a bf16; a sign may go."""
    fields_left = list[tuple[int, str]]()
    for place, kind in _moved(own, places):
        size = _SIZES[kind]
        whole = (1 << size - 1) - 1
        left = (mask >> place if place >= 0 else mask << -place) & (1 << size) - 1
        if place >= 0 and left & whole == whole:
            fields_left.append((place, kind))
        elif kind == "f32" and place >= -16 and left & whole == 0x7FFF0000:
            fields_left.append((place + 16, "bf16"))
        elif left:
            return None
    return tuple(fields_left)


TriedFloats = tuple[Likeness, bool]
"""The likeness in one sample, and whether its result is a normal number, so that it tells something."""
NOT_TRIED: TriedFloats = Likeness.UNKNOWN, False


def of_floats(
    where: Fields, ours: Sequence[Column], theirs: Sequence[Column], *, usual: int
) -> Iterator[TriedFloats]:
    """Yields what each sample says. Each side has its result first, then what rounding might have made of it.

    usual: in so many samples floats that are read are normal numbers; in others, one way to compute a result
    may overflow and another may not.
    """
    size = max(place + _SIZES[kind] for place, kind in where)
    sides = [[to_ints(column, size) for column in side] for side in (ours, theirs)]
    between = sum((1 << _SIZES[kind]) - 1 << place for place, kind in where)
    values = [
        [
            zip(*(floats.decoded(kind, [each >> place for each in column]) for column in side), strict=True)
            for side in sides
        ]
        for place, kind in where
    ]
    for n, (one, other) in enumerate(zip(sides[0][0], sides[1][0], strict=True)):
        likenesses, is_normal = {Likeness.EQUAL}, False
        for (_, kind), (mine, its) in zip(where, values, strict=True):
            parts = next(mine), next(its)
            if n < usual or all(map(math.isfinite, (*parts[0], *parts[1]))):
                likenesses.add(_of_parts(kind, *parts))
                is_normal = is_normal or floats.SMALLEST[kind] <= abs(parts[0][0]) < math.inf
        if (one ^ other) & ~between:
            yield Likeness.UNKNOWN, False
        else:
            yield next(each for each in _GRAVEST if each in likenesses), is_normal


def _of_parts(kind: str, ours: Sequence[float], theirs: Sequence[float]) -> Likeness:
    a, b = ours[0], theirs[0]
    if a == b or (math.isnan(a) and math.isnan(b)):
        return Likeness.EQUAL
    largest, apart = max(abs(a), abs(b)), abs(a - b)
    spread = sum(max(abs(each - side[0]) for each in side) for side in (ours, theirs))
    bound = _ROOM * spread + floats.ERRORS[kind] * largest + floats.SMALLEST[kind]
    if not math.isfinite(bound):
        return Likeness.UNKNOWN
    if apart <= bound:
        return Likeness.NEAR
    is_other = apart > _CLEARLY * bound and apart > _MOST_OF_ROUNDING[kind] * largest
    return Likeness.OTHER if is_other else Likeness.UNKNOWN


def together(samples: Sequence[TriedFloats]) -> Likeness:
    """Returns the gravest likeness; UNKNOWN if that is not OTHER and too few results are normal numbers."""
    likeness = _gravest(samples)
    is_told = likeness is Likeness.OTHER or _has_normal(samples)
    return likeness if is_told else Likeness.UNKNOWN


def is_enough(samples: Sequence[TriedFloats]) -> bool:
    """True if the gravest likeness is OTHER or UNKNOWN, or enough results are normal numbers."""
    return _gravest(samples) in (Likeness.OTHER, Likeness.UNKNOWN) or _has_normal(samples)


def _gravest(samples: Sequence[TriedFloats]) -> Likeness:
    likenesses = {likeness for likeness, _ in samples}
    return next(each for each in _GRAVEST if each in likenesses)


def _has_normal(samples: Sequence[TriedFloats]) -> bool:
    return sum(is_normal for _, is_normal in samples) >= _ENOUGH


_GRAVEST = (Likeness.OTHER, Likeness.UNKNOWN, Likeness.NEAR, Likeness.EQUAL)
