"""Finds where two values begin to differ: the operations that are not the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from irdiff.effects import predicates, rounding, rounds
from irdiff.effects.nearness import Likeness
from irdiff.effects.nodes import WITH_WIDTH, Key, operands_of, used_bits
from irdiff.effects.numbering import NumberedFunction
from irdiff.effects.samples import Samples

_MAX_PAIRS = 50_000
"""The most pairs of values that one `Roots` looks at. A pair counts each time."""
Linear = tuple[int, tuple[tuple[int, int], ...]]
_NEAR = 5
_CLEARLY = 0.5
_LINEAR = frozenset(["sum", "bits"])
_CLOSE = frozenset({Likeness.NEAR, Likeness.EQUAL})
_COMMUTES = frozenset(["sum", "bits", "mul", "and", "or", "xor", "eq"])
_SET_BY_A_LAUNCH = re.compile(r"s(?:1?\d|20)|v[0-2]|%.*")
"""Registers that have a value when a kernel begins: at most 16 scalar registers of the user, and 5 of the
system. Source: "User Guide for AMDGPU Backend" of LLVM, "Initial Kernel Execution State".
"""


class Root(NamedTuple):
    """Two values whose operations, or constants, differ."""

    base: int
    head: int
    constants: tuple[int, int] | None = None
    """Set if nothing but a constant differs."""
    similarity: Likeness = Likeness.UNKNOWN
    """The result of comparing the two values on samples."""
    is_guess: bool = False
    """True below an operation whose operands may change places: irdiff may have paired the wrong ones."""
    is_cut: bool = False
    """True if the search ended here. The two values begin to differ somewhere below."""


class Roots:
    """Finds the roots of pairs of values, each pair once."""

    def __init__(
        self,
        base: NumberedFunction,
        head: NumberedFunction,
        shared: Collection[int],
        partners: Mapping[int, int],
    ) -> None:
        """partners: maps an effect that only base has to the effect of head that it is compared with."""
        self._values = base.values
        self._shared = shared
        self._partners = partners
        self._taken_for = {head: base for base, head in partners.items()}
        self._near: dict[int, frozenset[int]] = {}
        self.joins = _entering(base), _entering(head)
        self._variables = rounds.variables(base, self.joins[0])
        self._samples = Samples(base.values, shared, self._taken_for, self._variables)
        self._found: dict[tuple[int, int], list[Root]] = {}
        self._looked = 0
        self._steps: dict[tuple[int, int], tuple[bool, list[tuple[int, int]]] | Root] = {}
        """Maps a pair to its root if it is one; else to (whether its operands are a guess, the pairs of
        operands).
        """

    def between(self, base: int, head: int) -> list[Root]:
        """Returns nothing if the values are equal, or differ only because they come from effects that are
        partners.
        """
        roots = self._found.get((base, head))
        if roots is None:
            roots = self._found[base, head] = list(self._walk(base, head))
        return roots

    def _walk(self, base: int, head: int) -> Iterator[Root]:
        waiting, seen, is_told = [(base, head, False)], set[tuple[int, int]](), False
        while waiting:
            self._looked += 1
            ours, theirs, is_guess = waiting.pop()
            pair = ours, theirs
            if ours == theirs or pair in seen:
                continue
            seen.add(pair)
            if self._looked > _MAX_PAIRS and len(seen) > 1:  # what differs at once is always told
                break
            step = self._steps.get(pair)
            if step is None:
                step = self._steps[pair] = self._step(*pair)
            if isinstance(step, Root):
                is_told = True
                yield step._replace(is_guess=True) if is_guess else step
            else:
                is_told = is_told or self._values.keys[ours][0] == "event"
                is_guess = is_guess or step[0]
                waiting += [(one, other, is_guess) for one, other in step[1]]
        if waiting or not (is_told or base == head):
            yield Root(base, head, is_cut=True)

    def _step(self, base: int, head: int) -> tuple[bool, list[tuple[int, int]]] | Root:
        if self._samples.fields(base, head) and rounding.has_floats(self._values, base, head, depth=0):
            similarity = self._samples.compare(base, head)
            if similarity in _CLOSE:
                return Root(base, head, similarity=similarity)
        below = self._below(base, head)
        if below is None:
            root = self._root(base, head)
            if self.may_be_equal(root):
                return root
            similarity = self._samples.compare(base, head)
            is_constant = root.constants is not None and similarity is Likeness.UNKNOWN
            return root._replace(similarity=Likeness.OTHER if is_constant else similarity)
        return len(below) > 1 and self._is_ambiguous(base, head), below

    def _is_ambiguous(self, base: int, head: int) -> bool:
        """True if the operands may change places, and it is unclear which of them belong together."""
        if not self._commutes(base):
            return False
        ours, theirs = (operands_of(self._values.keys[each])[:2] for each in (base, head))
        if len(ours) != 2 or len(theirs) != 2 or self._values.keys[base][0] in _LINEAR:
            return True
        return abs(self._likeness(ours, theirs) - self._likeness(ours, theirs[::-1])) < _CLEARLY

    def samples_of_both(self) -> Samples:
        """Returns samples of what both sides have, without any value that is taken for another."""
        return Samples(self._values, self._shared, {}, self._variables)

    def tried(self, base: int, head: int) -> Likeness:
        """Compares two values on samples. Partners count as equal."""
        return self._samples.compare(base, head)

    def are_equal_where(self, base: int, head: int, conditions: Collection[tuple[int, bool]]) -> bool:
        """As `Samples.are_equal_where`. Partners count as equal."""
        return self._samples.are_equal_where(base, head, conditions)

    def is_rounding(self, root: Root) -> bool:
        """True for two floats that are near, or equal in every sample."""
        return root.similarity in _CLOSE and bool(self._samples.fields(root.base, root.head))

    def may_be_equal(self, root: Root) -> bool:
        """True if two values may be equal wherever they are used, whatever samples say.

        A compiler may use any value in place of a register that nothing wrote and no launch sets. And it may
        use `or` in place of a sum if it knows that no bit is set in both operands, as in variables of loops.
        """
        base, head = (self._values.keys[each] for each in (root.base, root.head))
        is_unwritten = base[0] == "undefined" and not _SET_BY_A_LAUNCH.fullmatch(str(base[1]))
        return is_unwritten or ("or" in (base[0], head[0]) and {base[0], head[0]} <= {"or", "sum", "bits"})

    def _commutes(self, number: int) -> bool:
        made = self._values.made_by.get(number)
        return self._values.keys[number][0] in _COMMUTES or (made is not None and made.commutes)

    def _root(self, base: int, head: int) -> Root:
        ours, theirs = self._values.value_of(base), self._values.value_of(head)
        one, other = self._values.keys[base], self._values.keys[head]
        if ours is not None and theirs is not None:
            return Root(base, head, (ours, theirs))
        if one[0] == other[0] == "bits" and one[1] == other[1]:
            masks = [(a, b) for a, b in zip(one[2], other[2], strict=False) if a != b]
            if len(one[2]) == len(other[2]) and all(
                a[0] == b[0] and self._values.bits(a[0][0]) >= 0 for a, b in masks
            ):  # and not where a bit may be 0 always
                ((_, places), mask), (_, its) = masks[0]
                return Root(base, head, (used_bits(places, mask), used_bits(places, its)))
        if one[0] in _LINEAR or other[0] in _LINEAR:
            (a, mine), (b, its) = self._linear(base, head)
            begins = self._begins(0, a, mine), self._begins(1, b, its)
            if a != b and all(self._may_be_one(x, y) for x, y in zip_longest(mine, its)):
                return Root(base, head, (a, b) if begins[0] != begins[1] else None)
            factors, others = dict(mine), dict(its)
            if a == b and factors.keys() == others.keys():
                atom = next(each for each in factors if factors[each] != others[each])
                return Root(base, head, (factors[atom], others[atom]))
        return Root(base, head)

    def _may_be_one(self, one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
        """True if two terms are the same, or are variables of the same loop that may be the same."""
        if one is None or other is None or one == other:
            return one == other
        keys = self._values.keys[one[0]], self._values.keys[other[0]]
        return one[1] == other[1] and keys[0][0] == keys[1][0] == "join" and keys[0][1] == keys[1][1]

    def _begins(self, side: int, constant: int, terms: tuple[tuple[int, int], ...]) -> int:
        """Returns the constant of a sum if variables of loops have the values that they begin with."""
        entering = ((self.joins[side].get(atom, (atom,))[0], times) for atom, times in terms)
        return constant + sum((self._values.value_of(first) or 0) * times for first, times in entering)

    def _linear(self, *numbers: int) -> list[Linear]:
        keys = [self._values.keys[number] for number in numbers]
        width = next((key[1] for key in keys if key[0] == "sum"), 64)
        return [self._values.linear(width, number) for number in numbers]

    def _below(self, base: int, head: int) -> list[tuple[int, int]] | None:
        """Returns the pairs of operands that may differ; None if the operations themselves differ."""
        one, other = self._values.keys[base], self._values.keys[head]
        if {one[0], other[0]} <= _LINEAR:
            of_bits = self._of_bits(one, other) if one[0] == other[0] == "bits" else None
            pairs = of_bits or self._of_sums(*self._linear(base, head))
            return pairs if pairs != [(base, head)] else None
        if (
            one[0] != other[0]
            or len(one) != len(other)
            or (one[0] == "lt" and self._is_at_bound(base, head))
            or one[0] in ("const", "text", "undefined", "parameter")
        ):
            return None
        match one[0]:
            case "part":
                return [(one[1], other[1])] if one[2:] == other[2:] else None
            case "event":  # an effect is told by itself
                return [] if self._partners.get(base) == head else None
            case "join":
                ours, theirs = self.joins[0].get(base), self.joins[1].get(head)
                if one[1] != other[1] or ours is None or theirs is None or len(ours) != len(theirs):
                    return None
                self._samples.take(head, base)
                return list(zip(ours, theirs, strict=True))
            case "select" if one[2:] == other[:1:-1]:  # the same two values, the other way around
                return [(one[1], self._values.invert(other[1]))]
            case "select" if self._is_guarded(one) and self._is_guarded(other):
                return list(zip(one[2:], other[2:], strict=True))
        skipped = 1 + (one[0] in WITH_WIDTH)
        ours, theirs = one[skipped:], other[skipped:]
        if one[:skipped] != other[:skipped] or sorted(ours) == sorted(theirs):  # they changed places
            return None
        common = set(ours) & set(theirs)
        if (made := self._values.made_by.get(base)) and made.associates:
            left = ([each for each in side if each not in common] for side in (ours, theirs))
            return list(zip(*left, strict=True))
        if len(ours) == 2 and len(common) == 1 and ours[0] != theirs[0] and ours[1] != theirs[1]:
            return [(next(x for x in ours if x not in common), next(x for x in theirs if x not in common))]
        crossed = (*theirs[1::-1], *theirs[2:])  # operands that may change places are in the order of numbers
        if self._commutes(base) and self._likeness(ours, crossed) > self._likeness(ours, theirs):
            theirs = crossed
        return [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]]

    def _likeness(self, ours: Sequence[int], theirs: Sequence[int]) -> float:
        """Rates the similarity of the first two operands: equal values, equal operations, results of the same
        effects.
        """
        likeness = 0.0
        for a, b in zip(ours[:2], theirs[:2], strict=True):
            mine, its = self._effects_below(a), self._effects_below(b)
            shared = len(mine & its) / len(mine | its) if mine or its else 0.0
            likeness += 2 * (a == b) + (self._values.keys[a][0] == self._values.keys[b][0]) + 3 * shared
        return likeness

    def _effects_below(self, number: int) -> frozenset[int]:
        """Returns the effects that a value is computed from in few steps, by their numbers on base."""
        effects_near = self._near.get(number)
        if effects_near is None:
            effects, waiting = set[int](), [(number, _NEAR)]
            while waiting:
                now, left = waiting.pop()
                key = self._values.keys[now]
                if key[0] == "event":
                    effects.add(self._taken_for.get(now, now))
                elif left:
                    waiting += [(each, left - 1) for each in operands_of(key)]
            effects_near = self._near[number] = frozenset(effects)
        return effects_near

    def _is_at_bound(self, base: int, head: int) -> bool:
        """True if two different comparisons differ for one value alone: `0 < x` and `0 <= x`."""
        values = self._values
        both = ((each, values.invert(each)) for each in (base, head))
        made = (next(filter(None, map(values.made_by.get, each)), None) for each in both)
        words = {each.word for each in made if each}
        return len(words) == 2 and predicates.are_opposite(self._values, base, head)

    def _is_guarded(self, key: Key) -> bool:
        """True for a choice between the result of an effect and the value before it, by the effect's
        predicate.
        """
        parts = [self._values.keys[each] for each in key[2:]]
        events = [self._values.keys[each[1]] for each in parts if each[0] == "part"]
        return any(each[0] == "event" and each[2] in (key[1], self._values.invert(key[1])) for each in events)

    @staticmethod
    def _of_sums(one: Linear, other: Linear) -> list[tuple[int, int]] | None:
        ours, theirs = dict(one[1]), dict(other[1])
        left = sorted((f, a) for a, f in ours.items() if theirs.get(a) != f)
        right = sorted((f, a) for a, f in theirs.items() if ours.get(a) != f)
        if one[0] != other[0] or [f for f, _ in left] != [f for f, _ in right]:
            return None
        return [(a, b) for (_, a), (_, b) in zip(left, right, strict=True)]

    @staticmethod
    def _of_bits(one: Key, other: Key) -> list[tuple[int, int]] | None:
        if one[1] != other[1]:
            return None
        (ours, mine), (theirs, its) = (list(zip(*key[2], strict=True)) for key in (one, other))
        is_same = mine == its and [n for _, n in ours] == [n for _, n in theirs]
        if not is_same:
            return None
        atoms = [a for a, _ in ours], [b for b, _ in theirs]
        return [(a, b) for a, b in zip(*atoms, strict=True) if a != b]


def _entering(side: NumberedFunction) -> dict[int, tuple[int, ...]]:
    """Maps the number of each join to the values that enter it."""
    return {number: values for number, (_, values) in side.entering_joins.items()}
