"""The rounds of loops: which values variables have in them, and whether two conditions end a loop in the same
round: `i < 64` and `i != 64` do, if `i` begins at 0. Pure.

The variables of the loop begin at a value and grow by a constant. Both conditions are computed for many
rounds, of which those count until one of them changes. What else they depend on gets two values in turn.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from irdiff.effects.evaluation import of_integers
from irdiff.effects.nodes import operands_of, reached, signed
from irdiff.effects.numbering import NumberedFunction
from irdiff.effects.values import Values

_GIVEN = 64, 37
_MOST_ROUNDS = 2_000
_MOST_NODES = 64
_ONES = (1 << 64) - 1
_Joins = Mapping[int, Sequence[int]]
"""The values that enter each."""


def are_equal(values: Values, joins: tuple[_Joins, _Joins], base: int, head: int) -> bool:
    """Only where the loop ends."""
    order = _operands_first(values, (base, head))
    steps = {each: step for own in joins for each in order if (step := _step(values, own, each))}
    if not steps or len(order) > _MOST_NODES or any(_is_join(values, each) for each in {*order} - {*steps}):
        return False
    return all(_end_together(values, order, steps, (base, head), given) for given in _GIVEN)


def _is_join(values: Values, number: int) -> bool:
    return bool(values.keys[number][0] == "join")


def _operands_first(values: Values, numbers: Sequence[int]) -> list[int]:
    def below(number: int) -> list[int]:
        return operands_of(values.keys[number]) if _is_computed(values, number) else []

    return sorted(itertools.islice(reached(numbers, below), _MOST_NODES + 1))  # operands have lower numbers


def _is_computed(values: Values, number: int) -> bool:
    return values.keys[number][0] in ("bits", "sum", "lt", "eq", "not", "and", "or", "xor")


def _step(values: Values, joins: _Joins, number: int) -> tuple[int, int] | None:
    """The value that a variable of a loop begins at, and by how much it grows."""
    entering = joins.get(number, ())
    if len(entering) != 2 or not _is_join(values, number):
        return None
    for begin, other in (entering, entering[::-1]):
        for width in (32, 64):
            constant, terms = values.linear(width, other)
            if terms == ((number, 1),):
                return begin, signed(constant, width)
    return None


def _end_together(
    values: Values,
    order: Sequence[int],
    steps: Mapping[int, tuple[int, int]],
    conditions: tuple[int, int],
    given: int,
) -> bool:
    results = _results(values, order, steps, given)
    ours, theirs = ([each & 1 for each in results[condition]] for condition in conditions)
    end = next((n for n, each in enumerate(ours, 1) if each != ours[0]), None)
    return end is not None and ours[:end] == theirs[:end]


def _results(
    values: Values, order: Sequence[int], steps: Mapping[int, tuple[int, int]], given: int
) -> dict[int, Sequence[int]]:
    """Returns what each value is in each round."""
    results = dict[int, Sequence[int]]()
    for number in order:
        key = values.keys[number]
        if number in steps:
            begin, growth = steps[number]
            start = values.value_of(begin)
            first = given if start is None else start
            results[number] = [(first + growth * n) & _ONES for n in range(_MOST_ROUNDS)]
        elif _is_computed(values, number):
            results[number] = of_integers(key, [results[each] for each in operands_of(key)])
        else:
            constant = values.value_of(number)
            results[number] = [given if constant is None else constant] * _MOST_ROUNDS
    return results


class LoopVariable(NamedTuple):
    """A variable that begins at a constant and grows by a constant each round."""

    block: int
    begin: int
    growth: int
    last: int | None
    """The number of the last round; None where that is not known."""
    fastest: int
    """The growth of that variable of the loop that grows fastest."""

    def at(self, round_: int) -> int:
        return (self.begin + self.growth * round_) & _ONES


def variables(side: NumberedFunction, joins: _Joins) -> dict[int, LoopVariable]:
    """The variables of loops, by number."""
    values, fastest, last = side.values, defaultdict[int, int](int), dict[int, int | None]()
    steps = dict[int, tuple[int, int, int]]()
    for number, entering in joins.items():
        begin, growth = _step(values, joins, number) or (0, 0)
        if growth and (start := values.value_of(begin)) is not None:
            block = values.keys[number][1]
            steps[number] = block, start, growth
            fastest[block] = max(fastest[block], abs(growth))
            if block not in last:
                last[block] = _last_round(side, joins, block, is_first=entering[0] != begin)
    return {
        number: LoopVariable(block, start, growth, last[block], fastest[block])
        for number, (block, start, growth) in steps.items()
    }


def _last_round(side: NumberedFunction, joins: _Joins, block: int, *, is_first: bool) -> int | None:
    """By the branch that each round comes to last. is_first: which of two ways leads back."""
    if len(side.graph[block].sources) != 2:
        return None
    before, now = block, side.graph[block].sources[0 if is_first else 1]
    while len(side.graph[now].targets) == len(side.graph[now].sources) == 1:
        before, now = now, side.graph[now].sources[0]
    condition, targets = side.blocks[now].condition, side.graph[now].targets
    if condition is None or len({*targets}) != 2:
        return None
    order = _operands_first(side.values, (condition,))
    steps = {each: step for each in order if (step := _step(side.values, joins, each))}
    is_of_loop = all(side.values.keys[each][1] == block for each in steps)
    others = {each for each in order if not _is_computed(side.values, each)} - steps.keys()
    starts = {*others, *(begin for begin, _ in steps.values())}
    if not steps or not is_of_loop or any(side.values.value_of(each) is None for each in starts):
        return None
    outcomes = _results(side.values, order, steps, 0)[condition]
    goes_on = int(targets[0] == before)
    return next((n for n, each in enumerate(outcomes) if each & 1 != goes_on), None)
