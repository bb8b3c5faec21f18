"""Compares values on samples: everything that a kernel reads gets random numbers, the same on both sides.
Pure.

Equal results prove nothing. If few of them are normal numbers, as where an exponential of a large number is
zero, more samples are drawn. Different results show that two values differ, provided that `floats` implements
every operation in them. Near results show that only rounding differs (`nearness`). A value that depends on an
unknown operation is not computed.

The samples are floats around the constants of both computations, then floats of several magnitudes with both
signs, then integers of several magnitudes. A *choice* is a comparison, a selection, a minimum or a maximum.
Two results are near only if the samples try both outcomes of every choice that only one side makes: if
`min(x, 1e30)` is `x` in every sample, nothing is decided. If one side alone divides, or takes a root or a
logarithm, both are computed once more, with zeros, infinities, NaN, 1e30 and 1e-30 in place of the values
that both sides share: `x / x` is no number at 0, so it is not near 1.

If a variable of a loop begins at a constant and grows by a constant, it gets values that it has in some
round, and all such variables of one loop those of the same round. If a constant ends the loop, no round
behind the last one is tried (`rounds`).

Only samples in which an effect happens count: its predicate is true, and the branches lead to it. If two
addresses or values differ only in other samples, this is not shown.
"""

from __future__ import annotations

import functools
import math
import operator
import random
import re
from collections.abc import Collection, Mapping, Sequence

from irdiff.effects import floats, nearness
from irdiff.effects.evaluation import ONES, Tried, literal, of_samples
from irdiff.effects.floats import Bits, to_int, to_ints
from irdiff.effects.nearness import Fields, Likeness
from irdiff.effects.nodes import Key, operands_of, signed
from irdiff.effects.rounds import LoopVariable
from irdiff.effects.values import Values
from irdiff.ir.program import Act, Operation

_AROUND, _SIGNED, _INTEGERS, _SMALL, COUNT = 6, 14, 22, 26, 34
"""Where each kind of samples ends: floats around the constants of both computations; floats of several
magnitudes with both signs; the same without signs; integers of several magnitudes; small integers, so that
equal ones occur.
"""
_FLOATS = (0x2C, 0x34, 0x38, 0x3C, 0x3E, 0x3F, 0x40, 0x42, 0x48)
"""The upper bytes of floats, of any format: of f32 from 2e-12 to 5e5, of f16 from 0.06 to 16."""
_DRAWS = 8
"""So often are floats tried at most, on other samples, until enough results are normal numbers: twice without
any is the end.
"""
_RUNS = 4
"""The number of computations with other rounding."""
_OPAQUE = frozenset({"join", "event", "waited for", "like", "parameter", "undefined"})
_GIVEN = frozenset({"parameter", "undefined", "like"})
_THREAD = re.compile(r"workitem\.id\.x$|sreg\.tid\.x$")
_PLACE_IN_GRID = re.compile(r"%(?P<size>n?)ctaid\.(?P<axis>[xyz])")
_GIVES_ANY = re.compile(r"ld\.param|s_load_dword|elect\.|llvm\.nvvm\.elect")
"""Parameters of a kernel, and the number of an elected lane, may have any value."""
_ENOUGH = 4
"""The fewest samples in which all conditions have the required truths."""
_OF_OTHER_DIMENSIONS = {"%tid.y": 0, "%tid.z": 0, "%ntid.y": 1, "%ntid.z": 1}
"""Blocks of Triton have one dimension."""
_SIGN_EXTENDS = re.compile(r"\.s\d+$|_s(?:byte|short)|_i(?:8|16)$")
_MULTIPLE = 64
_ENDS = 8
"""In so many samples a variable of a loop has one of its first or last values."""
_MAX_NODES = 60_000
_SIGN = 1 << 31
_EDGES = (
    0,
    _SIGN,
    0x7F80_0000,
    0xFF80_0000,
    0x7FC0_0000,
    0x7149_F2CA,
    0xF149_F2CA,
    0x0DA2_4260,
    0x7C00_7C00,
    0x0400_0400,
)
"""As f32: zeros, infinities, NaN, ±1e30 and 1e-30; as f16: infinity and the least normal number."""
_SHARE_OF_EDGES = 0.5
_LARGEST = 0x7F7F_FFFF
_LIMIT_OF_INTEGERS = 0x4F00_0000
"""2^31, beyond which a conversion gives the greatest integer of 32 bits."""


class Samples:
    def __init__(
        self,
        values: Values,
        shared: Collection[int],
        partners: Mapping[int, int],
        variables: Mapping[int, LoopVariable],
        draw: int = 0,
    ) -> None:
        """shared: values that both sides have. partners: maps a value of head to the value of base that
        counts as equal to it. variables: those of base's loops. draw: other samples for each number.
        """
        self._draw = draw
        self._draws: list[Samples] = []
        """Others, as far as they were needed."""
        self._variables = variables
        self._values = values
        self._shared = shared
        self._partners = dict(partners)
        self._tried: dict[tuple[int, int], Tried | None] = {}
        """By number and run; run 0 rounds to nearest."""
        self._unsure: set[int] = set()
        """Values that depend on one whose random bits may be bits that it never has."""
        self._singular: set[int] = set()
        """The values of one side alone in which that side divides, or takes a root or a logarithm."""
        self._edges: Edges | None = None
        self._one_sided: set[int] = set()
        """The values of one side alone in which a comparison, a minimum or another choice has one outcome in
        all samples: the other outcome was not tried.
        """

    def take(self, head: int, base: int) -> None:
        """From now on the value of head counts as equal to the value of base, unless it has a partner."""
        if head not in self._partners and head not in self._shared:
            self._partners[head] = base
            self._edges = None
            self._draws.clear()
            self._tried = {number: tried for number, tried in self._tried.items() if tried is not None}

    def compare(self, base: int, head: int) -> Likeness:
        """Compares integers only in samples without signs, because an integer may be one that is never
        negative.
        """
        ours, theirs = self.of(base), self.of(head)
        if ours is None or theirs is None:
            return Likeness.UNKNOWN
        fields = self.fields(base, head)
        is_equal = all(map(_same, ours, theirs))
        if is_equal and not fields:
            return Likeness.EQUAL
        if fields:
            tried = self._of_floats(fields, base, head)
            for draw in range(1, _DRAWS):
                is_hopeless = draw > 1 and not any(is_normal for _, is_normal in tried)
                if is_hopeless or nearness.is_enough(tried):
                    break
                if len(self._draws) < draw:
                    others = Samples(self._values, self._shared, self._partners, self._variables, draw)
                    others._constants = self._constants
                    self._draws.append(others)
                tried += self._draws[draw - 1]._of_floats(fields, base, head)
            likeness = nearness.together(tried)
            if likeness is Likeness.OTHER:
                return likeness
            is_tried = self._one_sided.isdisjoint((base, head)) and self._agree_at_edges(base, head)
            return likeness if is_tried else Likeness.UNKNOWN
        sides = self._runs(base, head)
        if sides is None:
            return Likeness.UNKNOWN
        both = zip(*(zip(*side, strict=True) for side in sides), strict=True)
        is_sure = self._unsure.isdisjoint((base, head)) and any(map(_are_apart, [*both][_SIGNED:]))
        return Likeness.OTHER if is_sure else Likeness.UNKNOWN

    def _runs(self, base: int, head: int) -> list[list[Tried]] | None:
        """By side, the results in each run; None if one cannot be computed."""
        runs = [[self.of(each, run) for run in range(_RUNS + 1)] for each in (base, head)]
        sides = [[tried for tried in side if tried is not None] for side in runs]
        return sides if [*map(len, runs)] == [*map(len, sides)] else None

    def _of_floats(self, fields: Fields, base: int, head: int) -> list[nearness.TriedFloats]:
        one, other = self.of(base), self.of(head)
        if one is not None and other is not None and all(map(_same, one, other)):
            return [*nearness.of_floats(fields, [one], [other], usual=_INTEGERS)]
        sides = self._runs(base, head)
        return [*nearness.of_floats(fields, *sides, usual=_INTEGERS)] if sides else [nearness.NOT_TRIED]

    def _agree_at_edges(self, base: int, head: int) -> bool:
        """True if two floats are near also where an operation of one side alone has no number to give."""
        if self._singular.isdisjoint((base, head)):
            return True
        self._edges = self._edges or Edges(self._values, self._shared, self._partners, self._variables)
        return self._edges.are_near(base, head)

    def are_equal_where(self, base: int, head: int, conditions: Collection[tuple[int, bool]]) -> bool:
        """True if two values differ in some sample, but in none in which the conditions have these truths."""
        ours, theirs = self.of(base), self.of(head)
        truths = [(self.of(number), truth) for number, truth in conditions]
        if ours is None or theirs is None or any(tried is None for tried, _ in truths):
            return False
        places = [
            place
            for place in range(COUNT)
            if all(tried and bool(to_int(tried[place], 64)) is truth for tried, truth in truths)
        ]
        equal = {place for place in range(COUNT) if _same(ours[place], theirs[place])}
        return len(places) >= _ENOUGH and equal.issuperset(places) and len(equal) < COUNT

    def differ_at_a_bound(self, base: int, head: int) -> bool:
        """True if two comparisons with the same parameter of the kernel have different outcomes for some
        value of it.
        """
        keys = [self._values.keys[each] for each in (base, head)]
        if keys[0][0] == keys[1][0] == "not":
            keys = [self._values.keys[key[1]] for key in keys]
        one, other = keys
        if one[0] != "lt" or one[:2] != other[:2]:
            return False
        for place in (2, 3):
            bound, sides = one[place], [self.of(key[5 - place]) for key in keys]
            is_given = bound == other[place] and _GIVES_ANY.match(str(self._values.keys[bound][0]))
            if is_given and None not in sides and self._unsure.isdisjoint(key[5 - place] for key in keys):
                both = zip(*(side[_SIGNED:] for side in sides if side), strict=True)
                return any(to_int(a) // _MULTIPLE != to_int(b) // _MULTIPLE for a, b in both)
        return False

    @functools.cached_property
    def _constants(self) -> tuple[int, ...]:
        """Returns the bits of all floating-point constants of both sides."""
        values = self._values
        operands = (
            operand
            for number, operation in values.made_by.items()
            if operation.is_float
            for operand in operands_of(values.keys[number])
        )
        bits_of_constants = (_bits_of_constant(key) for key in map(values.keys.__getitem__, operands))
        return tuple(sorted({_LIMIT_OF_INTEGERS, *filter(None, bits_of_constants)}))

    def _by_chance(self, seed: object) -> Tried:
        return _by_chance(repr((seed, self._draw)) if self._draw else repr(seed), self._constants)

    def fields(self, base: int, head: int) -> Fields:
        return nearness.fields(self._values, base, head)

    def of(self, number: int, run: int = 0) -> Tried | None:
        """Returns the value in each sample; None if it cannot be computed."""
        waiting = [number]
        while waiting:
            now = waiting[-1]
            if (now, run) in self._tried:
                waiting.pop()
                continue
            if len(self._tried) > _MAX_NODES:
                return None
            key = self._values.keys[now]
            below = [] if self._is_leaf(now, key) else operands_of(key)
            if run and now in self._shared:
                below = []
            if missing := [each for each in below if (each, run) not in self._tried]:
                waiting += missing
                continue
            if not run:
                self._tried[now, 0] = self._compute(now, key, below)
            else:
                self._tried[now, run] = self._disturbed(now, run, below)
            waiting.pop()
        return self._tried[number, run]

    def _disturbed(self, number: int, run: int, below: list[int]) -> Tried | None:
        """Computes a value with other rounding in each operation that only one side has."""
        plain = self.of(number)
        parts = [self._tried[each, run] for each in below]
        if plain is None or None in parts or number in self._shared:
            return plain
        key = self._values.keys[number]
        computation = floats.computation(str(key[0]))
        is_rounded = computation is not None and computation.error > 0
        is_other = any(part is not self._tried[each, 0] for part, each in zip(parts, below, strict=True))
        if not (is_rounded or is_other):
            return plain
        results = of_samples(key, [part for part in parts if part is not None]) if is_other else plain
        if results is None or not is_rounded or computation is None:
            return results
        dice = random.Random(f"{number} {run}")  # noqa: S311 - as of samples
        return computation.disturbed(results, dice)

    def _is_leaf(self, _: int, key: Key) -> bool:
        return key[0] in _OPAQUE or (key[0] == "part" and self._values.keys[key[1]][0] == "event")

    def _compute(self, number: int, key: Key, below: list[int]) -> Tried | None:
        if self._is_leaf(number, key):
            return self._leaf(number, key)
        if key == ("all lanes",):
            return (ONES,) * COUNT
        if key[0] == "text" and (place := _PLACE_IN_GRID.fullmatch(str(key[1]))):
            return self._in_grid(place["axis"], is_size=bool(place["size"]))
        if key[0] in ("const", "text"):
            return _constant(key, self._values.threads) or self._by_chance(key[1])
        parts = [tried for each in below if (tried := self._tried[each, 0]) is not None]
        if len(parts) == len(below) and (results := of_samples(key, parts)):
            if not self._unsure.isdisjoint(below):
                self._unsure.add(number)
            if number not in self._shared and (not self._singular.isdisjoint(below) or _is_singular(key)):
                self._singular.add(number)
            if number not in self._shared and (
                not self._one_sided.isdisjoint(below) or _is_one_sided(key, parts, results)
            ):
                self._one_sided.add(number)
            return results
        if _THREAD.search(str(key[0])):
            return _constant(("text", "%tid.x"), self._values.threads)
        if number not in self._shared:
            return None
        if _GIVES_ANY.match(str(key[0])):
            tried = self._by_chance(number)
            is_elected = "elect" in key[0]  # a lane, and whether it is this one
            return tuple((each, to_int(each) & 1) for each in tried) if is_elected else _aligned(tried)
        self._unsure.add(number)
        return self._by_chance(number)

    def _in_grid(self, axis: str, *, is_size: bool) -> Tried:
        """The number of a block, which is less than how many there are. Small ones come last."""
        most, dice = (1 << 31 if axis == "x" else 1 << 16) - 9, random.Random(axis)  # noqa: S311 - likewise
        large = [dice.choice((dice.randrange(most), most - dice.randrange(8))) for _ in range(_INTEGERS)]
        numbers = (*large, *(to_int(each) % most for each in self._by_chance(axis)[_INTEGERS:]))
        if not is_size:
            return numbers
        return tuple(
            n + 1 + to_int(each) % 8
            for n, each in zip(numbers, self._by_chance(f"behind {axis}"), strict=True)
        )

    def _rounds(self, variable: LoopVariable) -> tuple[int, ...]:
        """All variables of a loop are in the same round. The first and the last rounds come last."""
        tried, last = self._by_chance(f"round of {variable.block}"), variable.last
        if last is None:
            steps = max(_MULTIPLE, 1 << variable.fastest.bit_length() - 1)
            return tuple(each // variable.fastest for each in to_ints(_aligned(tried, steps)))
        ends = [n // 2 if n % 2 else last - n // 2 for n in range(_ENDS)]
        return *(each % (last + 1) for each in to_ints(tried[_ENDS:])), *(min(max(n, 0), last) for n in ends)

    def _leaf(self, number: int, key: Key) -> Tried | None:
        whole = key[1] if key[0] == "part" else number
        partner = self._partners.get(whole)
        if partner is None and key[0] not in _GIVEN and whole not in self._shared:
            return None
        seed = whole if partner is None else partner, *(key[2:] if key[0] == "part" else ())
        tried = self._by_chance(seed)
        if key[0] == "part" and (made := self._values.made_by.get(whole)):
            return _narrow(tried, made)
        if key[0] != "join":
            return tried
        if variable := self._variables.get(whole if partner is None else partner):
            return tuple(map(variable.at, self._rounds(variable)))
        _, _, (_, zeros, range_) = key
        if range_:
            least, most = range_
            return tuple(
                (least + to_int(each) % (most - least + 1)) >> zeros << zeros & ONES for each in tried
            )
        return _aligned(tried, max(_MULTIPLE, 1 << zeros))


class Edges(Samples):
    """Samples in which what both sides have is zero, infinite, not a number, very large or very small."""

    def are_near(self, base: int, head: int) -> bool:
        fields = self.fields(base, head)
        runs = [[self.of(each, run) for run in range(_RUNS + 1)] for each in (base, head)]
        sides = [[tried for tried in side if tried is not None] for side in runs]
        if any(map(operator.ne, map(len, runs), map(len, sides))):
            return False
        likenesses = {likeness for likeness, _ in nearness.of_floats(fields, *sides, usual=COUNT)}
        return likenesses <= {Likeness.EQUAL, Likeness.NEAR}

    def _is_leaf(self, number: int, key: Key) -> bool:
        is_given = number in self._shared and key[0] not in ("const", "text", "all lanes")
        return is_given or super()._is_leaf(number, key)

    def _by_chance(self, seed: object) -> Tried:
        dice, plain = random.Random(repr(seed)), super()._by_chance(seed)  # noqa: S311 - as of samples
        return tuple(
            _EDGES[n % len(_EDGES)]
            if n < len(_EDGES) or dice.random() < _SHARE_OF_EDGES
            else plain[n % _INTEGERS]
            for n in range(COUNT)
        )


@functools.lru_cache(maxsize=1 << 12)
def _by_chance(seed: str, constants: tuple[int, ...]) -> Tried:
    """Returns random values: bits that are a number in every floating-point format, then integers."""
    dice = random.Random(seed)  # noqa: S311 - samples, the same each time
    around = [_around(constants, dice) for _ in range(_AROUND)]
    large = [
        sum(
            (dice.choice(_FLOATS) | (sample < _SIGNED and dice.choice((0, 0x80)))) << 16 * n + 8
            | dice.randrange(256) << 16 * n
            for n in range(2)
        )
        for sample in range(_AROUND, _INTEGERS)
    ]
    middle = [dice.randrange(1, 1 << dice.randrange(4, 22)) for _ in range(_SMALL - _INTEGERS)]
    small = [0, *(dice.randrange(0, 8) for _ in range(1, COUNT - _SMALL))]
    dice.shuffle(small)
    return (*around, *large, *middle, *small)


def _is_singular(key: Key) -> bool:
    computation = floats.computation(str(key[0]))
    return computation is not None and computation.is_singular


def _narrow(tried: Tried, load: Operation) -> Tried:
    """Limits the samples of a load of fewer than 32 bits to what it can return, such as numbers below 256."""
    effect = load.effect
    if not effect or effect.act is not Act.LOAD or effect.size not in (1, 2) or "d16" in load.name:
        return tried
    width = 8 * effect.size
    whole = to_ints(tried, width)
    if _SIGN_EXTENDS.search(load.name):
        return tuple(signed(each, width) & (1 << 32) - 1 for each in whole)
    return tuple(whole)


def _is_one_sided(key: Key, parts: list[Tried], results: Tried) -> bool:
    """Returns True for an operation that chooses, if its choice is the same in all samples."""
    if key[0] in ("select", "eq", "lt"):
        truths = parts[0] if key[0] == "select" else results
        return len({bool(to_int(each, 64)) for each in truths}) == 1
    computation = floats.computation(str(key[0]))
    if computation is None or not computation.is_choice:
        return False
    if not computation.formats:
        return len({*map(to_int, results)}) == 1
    return not all(any(map(_same, part, results)) for part in parts)


def _same(one: Bits, other: Bits) -> bool:
    return one == other or to_int(one, 64) == to_int(other, 64)


def _are_apart(results: tuple[tuple[Bits, ...], tuple[Bits, ...]]) -> bool:
    """True if each side has one result, however it rounds, and the two results differ."""
    ours, theirs = ({to_int(each, 64) for each in side} for side in results)
    return len(ours) == len(theirs) == 1 and ours != theirs


def _bits_of_constant(key: Key) -> int | None:
    """Returns None for 0, and for a constant that is not finite."""
    bits = int(key[1]) if key[0] == "const" else literal(str(key[1])) if key[0] == "text" else None
    if not bits or (isinstance(bits, float) and not math.isfinite(bits)):
        return None
    whole = to_int(bits, 32)
    return whole if math.isfinite(floats.decoded("f32", [whole])[0]) else None


def _around(constants: Sequence[int], dice: random.Random) -> int:
    """Returns the bits of a random float between half and twice a constant, with either sign."""
    near = dice.choice(constants)
    return min(max((near & ~_SIGN) + dice.randrange(-1 << 23, 1 << 23), 0), _LARGEST) | dice.choice(
        (0, _SIGN)
    )


def _aligned(tried: Tried, factor: int = _MULTIPLE) -> Tried:
    """Rounds samples of sizes, pointers and counters: a compiler may know that these are multiples."""
    return tuple(value * factor if value < factor else value & -factor for value in to_ints(tried))


def _constant(key: Key, threads: int) -> Tried | None:
    if key[0] == "const":
        return (int(key[1]) & ONES,) * COUNT
    text = str(key[1])
    size = threads if text == "%ntid.x" and threads else _OF_OTHER_DIMENSIONS.get(text)
    if size is not None:
        return (size,) * COUNT
    if text in ("%tid.x", "%laneid"):
        dice = random.Random("thread")  # noqa: S311 - likewise
        rows = [*(dice.randrange(threads or 32) for _ in range(_SMALL)), *range(COUNT - _SMALL)]
        return tuple(row % 32 if text == "%laneid" else row for row in rows)
    if (value := literal(text)) is not None:
        return (value,) * COUNT
    return None
