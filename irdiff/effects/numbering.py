"""Numbers the values and effects of two functions of one shape, in one table. Pure.

A register that enters a block with several values is a *join*. All joins start as what the first entry gives,
and are told apart until nothing more has to be: two joins stay equal where the same values enter, from
whichever register (the partition of Alpern, Wegman and Zadeck, POPL 1988). Equal numbers on both sides then
are equal values, loops included.

An effect is numbered by its block, operation, predicate, address and operands, and by how many equal ones the
block had before. What it stands before or after is no part of the number: `order` compares that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irdiff.effects.blocks import EXEC, BlockNode, Graph, read_by
from irdiff.effects.lanes import Lanes
from irdiff.effects.program import Act, Effect, Function, Instruction, Operand, ReadError
from irdiff.effects.values import Values

_MAX_ROUNDS = 60


class Event(NamedTuple):
    """An effect in its place."""

    instruction: Instruction
    effect: Effect
    number: int
    like: int
    """The number without how many equal ones the block had before."""
    guard: int | None
    """The predicate's number; None where it always acts."""
    lanes: int | None
    address: tuple[int, ...]
    operands: tuple[int, ...]


class NumberedBlock(NamedTuple):
    events: tuple[Event, ...]
    condition: int | None


@dataclass(slots=True)
class _MaskedValue:
    """A register that was written in some lanes only."""

    lanes: int
    value: int
    below: int | _MaskedValue
    flat: int | None = field(default=None, compare=False)
    """Once it is asked for: one value for all lanes."""


_State = dict[str, "int | _MaskedValue"]


class NumberedFunction:
    """One function while it is numbered."""

    def __init__(
        self, values: Values, graph: Graph, function: Function, made_by: dict[int, Instruction]
    ) -> None:
        self.values = values
        self.graph = graph
        self.made_by = made_by
        """What computes a value, the first that does."""
        self.joins: list[dict[str, int]] = [{} for _ in graph]
        """The class of each join, by block and register."""
        self.stale = set(range(len(graph)))
        """The blocks whose joins are told apart since the last round."""
        self.blocks = [NumberedBlock((), None)] * len(graph)
        self.computed: set[int] = set()
        self.lanes = Lanes(values, made_by)
        self._asynchronous = function.asynchronous
        self._entered: list[_State | None] = [None] * len(graph)
        self._out: list[_State] = [{}] * len(graph)
        self.all_lanes = values.node("all lanes")
        self._parameters = {name: values.node("parameter", n) for n, name in enumerate(function.parameters)}

    def run(self) -> set[int]:
        """One round, with the joins as they are known; the blocks that are entered otherwise than before."""
        entered = set[int]()
        for number, node in enumerate(self.graph):
            if number not in self.stale and min(node.sources, default=-1) not in entered:
                continue
            state = self._entering(number, node)
            if self._entered[number] != state:
                self._entered[number] = dict(state)
                self.blocks[number] = _Block(self, number, node, state).run()
                self._out[number] = state
                entered.add(number)
        self.stale.clear()
        return entered

    def entering(self, number: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """What enters a block in each join, and in each register that may become one, from each side.

        The entry is entered from outside too.
        """
        states = [self._out[source] for source in self.graph[number].sources]
        first, *others = states if number else [self._first(), *states]
        joins = self.joins[number]
        for register in self.graph[number].live if others else ():
            value = first.get(register)
            if register in joins or any(value is not state.get(register) for state in others):
                yield register, tuple([self.flat(state, register) for state in (first, *others)])

    def _first(self) -> _State:
        return {EXEC: self.all_lanes, **self._parameters}

    def _entering(self, number: int, node: BlockNode) -> _State:
        before = self._out[min(node.sources)] if number else self._first()
        state = {name: before[name] for name in node.live if name in before}
        for register, class_ in self.joins[number].items():
            state[register] = self.values.node("join", number, class_)
        return state

    def flat(self, state: _State, register: str) -> int:
        """A register that nothing wrote is, on AMD, what a kernel is given, by the register's name."""
        value = state.get(register)
        return self.values.node("undefined", register) if value is None else self._flat(value)

    def _flat(self, value: int | _MaskedValue) -> int:
        if isinstance(value, int):
            return value
        if value.flat is None:
            value.flat = self.values.select(value.lanes, value.value, self._flat(value.below))
        return value.flat

    def waited(self, event: Event, state: _State) -> None:
        """What a matrix unit wrote is another value after a wait."""
        for register in self._asynchronous & state.keys() if "wait" in event.instruction.name else ():
            old = self.flat(state, register)
            if self.values.value_of(old) is None:
                state[register] = self.values.node("waited for", event.number, old)


class _Block:
    """One block while it is numbered; changes the state that it is entered with."""

    def __init__(self, function: NumberedFunction, number: int, node: BlockNode, state: _State) -> None:
        self._function, self._number, self._node, self._state = function, number, node, state
        self._values = function.values
        self._seen: Counter[int] = Counter()

    def run(self) -> NumberedBlock:
        events: list[Event] = []
        for each in self._node.block.instructions:
            operands = tuple([self._read(operand) for operand in each.operands])
            if each.name.startswith("v_readlane"):  # it may read a lane that is off
                flat = (self._function.flat(self._state, name) for name in read_by(each))
                operands = tuple(
                    [next(flat) if isinstance(name, str) else self._read(name) for name in each.operands]
                )
            if each.name == "copies":  # all at once
                self._state.update(zip(each.results, operands, strict=True))
                continue
            if each.effect is None:
                results = self._results(each, operands)
            else:
                events.append(self._event(each, each.effect, operands))
                count = len(each.results)
                results = [self._values.part(events[-1].number, place, count) for place in range(count)]
            self._write(each, results)
            if events and each.effect:
                self._function.waited(events[-1], self._state)
        operand = self._node.block.condition
        condition = None if operand is None else self._read(operand)
        if self._node.is_turned and condition is not None:
            condition = self._values.invert(condition)
        return NumberedBlock(tuple(events), condition)

    def _read(self, operand: Operand) -> int:
        if isinstance(operand, str):
            value = self._state.get(operand)
            if isinstance(value, int):
                return value
            if value is not None and value.lanes == self._state[EXEC]:
                return value.value
            return self._function.flat(self._state, operand)
        return (
            self._values.constant(operand)
            if isinstance(operand, int)
            else self._values.node("text", operand.text)
        )

    def _results(self, each: Instruction, operands: tuple[int, ...]) -> Sequence[int]:
        values = self._values
        if each.compute:
            name, width = each.compute
            if name == "copy":
                return operands
            if name == "select" and values.keys[operands[0]][::2] == ("mask", self._state[EXEC]):
                operands = (values.keys[operands[0]][1], *operands[1:])  # in the lanes of the comparison
            if name in _NARROW and width:
                operands = tuple([self._narrow(operand, width) for operand in operands])
            found = [values.compute(name, width, operands)]
        else:
            number = values.node(each.name, *_ordered(each, operands))
            self._function.made_by.setdefault(number, each)
            count = len(each.results)
            found = [number] if count == 1 else [values.part(number, place, count) for place in range(count)]
        for number in found:
            self._function.made_by.setdefault(number, each)
        self._function.computed.update(found)
        return found

    def _narrow(self, operand: int, width: int) -> int:
        value = self._values.value_of(operand)
        return operand if value is None else self._values.constant(value, width)

    def _guard(self, each: Instruction) -> int | None:
        if each.guard is None:
            return None
        guard = self._read(each.guard)
        guard = self._values.invert(guard) if each.negated else guard
        return None if self._values.value_of(guard) else guard

    def _write(self, each: Instruction, results: Sequence[int]) -> None:
        state = self._state
        if each.guard is None and not each.masked:
            state.update(zip(each.results, results, strict=True))
            return
        lanes, guard = state[EXEC], self._guard(each)
        assert isinstance(lanes, int)
        for register, value in zip(each.results, results, strict=True):
            if guard is not None:
                state[register] = self._values.select(guard, value, self._function.flat(state, register))
            elif not each.masked or lanes == self._function.all_lanes:
                state[register] = value
            else:
                below = state.get(register, self._values.node("undefined", register))
                below = below.below if isinstance(below, _MaskedValue) and below.lanes == lanes else below
                state[register] = _MaskedValue(lanes, value, below)

    def _event(self, each: Instruction, effect: Effect, operands: tuple[int, ...]) -> Event:
        is_narrow = effect.space not in ("", "global") or effect.act is Act.MATRIX  # of tensor memory
        width = 32 if is_narrow else 64
        address = tuple(
            self._values.moved(width, self._read(part), offset) for part, offset in effect.address
        )
        operands, guard = _ordered(each, operands), self._guard(each)
        if effect.act is Act.MATRIX:  # an accumulator that it sets to 0 first, whatever was there
            keys = self._values.keys
            nothing = self._values.node("undefined", "")
            operands = tuple([nothing if keys[part][0] == "undefined" else part for part in operands])
        if guard is not None and effect.act is Act.STORE and effect.space == "shared":
            guard = self._function.lanes.relevant(guard, (*address, *operands))
        lanes = self._state[EXEC] if each.masked else None
        assert not isinstance(lanes, _MaskedValue)
        like = self._values.node("like", self._number, each.name, guard, lanes, address, operands)
        number = self._values.node("event", each.name, guard, like, self._seen[like])
        self._seen[like] += 1
        self._function.made_by.setdefault(number, each)
        return Event(each, effect, number, like, guard, lanes, address, operands)


_NARROW = frozenset(
    {"add", "sub", "neg", "mul", "mad", "not", "shl", "shr", "sar", "and", "or", "xor", "eq", "ne"}
    | {sign + order for sign in "su" for order in ("lt", "le", "gt", "ge")}
)
"""Functions that take a constant in their own width."""


def _ordered(each: Instruction, operands: tuple[int, ...]) -> tuple[int, ...]:
    return (*sorted(operands[:2]), *operands[2:]) if each.commutes else operands


def number(base: NumberedFunction, head: NumberedFunction) -> None:
    """Numbers both until no join has to be told from another. Raises ReadError."""
    classes = 0
    for _ in range(_MAX_ROUNDS):
        sides = [(side, side.run()) for side in (base, head)]
        places = {
            target for side, entered in sides for each in entered for target in side.graph[each].targets
        }
        heirs: set[tuple[int, int]] = set()
        known: dict[tuple[int, int, tuple[int, ...]], int] = {}
        found: list[tuple[NumberedFunction, tuple[int, str], int]] = []
        for side, _ in sides:
            for place, register, entering in [(n, *row) for n in sorted(places) for row in side.entering(n)]:
                own = side.joins[place].get(register, -1)
                if own < 0 and len(set(entering)) == 1:
                    continue
                key = place, own, entering
                if key not in known:  # the first keeps the class, each other gets a new one
                    is_heir = own >= 0 and (place, own) not in heirs
                    heirs.add((place, own))
                    classes += not is_heir
                    known[key] = own if is_heir else classes
                if known[key] != own:
                    found.append((side, (place, register), known[key]))
        if not found:
            return
        for side, (place, register), class_ in found:
            side.joins[place][register] = class_
            side.stale.add(place)
    raise ReadError("joins that do not settle")
