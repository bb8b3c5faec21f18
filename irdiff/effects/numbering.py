"""Numbers the values and effects of two functions of one shape, in one table. Pure.

A register that enters a block with several values is a *join*. All joins start as what the first entry gives,
and are told apart until nothing more has to be: two joins stay equal where the same values enter, from
whichever register (the partition of Alpern, Wegman and Zadeck, POPL 1988). Equal numbers on both sides then
are equal values, loops included. A join ends with as many bits that are 0 as each value that enters it: a
variable that begins at 0 and grows by 64 is a multiple of 64. A join has a range, too: a variable that goes
through the slots of a buffer is small. A register that two values are packed into each time is two joins.

An effect is numbered by its block, operation, predicate, address and operands, and by how many equal ones the
block had before. What it stands before or after is no part of the number: `order` compares that. A load that
is equal to an earlier one, with nothing between them that writes there or waits, is that load.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from irdiff.effects import registers_in_use, uniform_masks
from irdiff.effects.blocks import EXEC
from irdiff.effects.functions import compute
from irdiff.effects.known_bits import Range
from irdiff.effects.nodes import Key, is_pack, ones
from irdiff.effects.values import Values
from irdiff.effects.wait_states import WaitStates
from irdiff.ir.program import (
    COPY,
    WAITS_FOR_LOADS,
    Act,
    BlockNode,
    Effect,
    Function,
    Graph,
    Instruction,
    Operand,
    Operation,
    ReadError,
    Slot,
)

_MAX_ROUNDS = 60
_WIDE = (-1, 255)
"""The range of a variable of a loop that begins in it, until a value enters that may lie outside."""
LOADS = 0
"""Stands for the event in what is "waited for", where that is loads of tensor memory."""
_HALF = " half "
"""Between a register and 0 or 1: two values that enter a block in one register are two joins."""
_VIRTUAL = re.compile(r"%(?:p|r[dqs]?|fd?)\d+")


class Event(NamedTuple):
    """An effect in its place."""

    operation: Operation
    effect: Effect
    number: int
    like: int
    """The number without how many equal ones the block had before."""
    guard: int | None
    """The predicate's number; None where it always acts."""
    lanes: int | None
    address: tuple[int, ...]
    operands: tuple[int, ...]
    line: int
    pending: frozenset[int]
    """As of `Instruction`."""
    between: Mapping[tuple[int, int], int] = {}
    """The result of `WaitStates.between`, for wait states."""


class JoinClass(NamedTuple):
    """Joins that are equal."""

    number: int
    zeros: int
    """Each value that enters ends with as many bits that are 0."""
    range: Range | None
    """The least and the greatest value that may enter, as signed numbers of 32 bits."""


class NumberedBlock(NamedTuple):
    events: tuple[Event, ...]
    condition: int | None


@dataclass(slots=True, unsafe_hash=True)
class _MaskedValue:
    """A register that was written in some lanes only."""

    lanes: int
    value: int
    below: _Raw
    flat: int | None = field(default=None, compare=False)
    """Once it is asked for: one value for all lanes."""


_Raw = int | str | _MaskedValue
"""The value of a register; its name where nothing wrote it."""
_State = dict[str, "int | _MaskedValue"]
_Like = tuple[int, int | None, int | None, tuple[int, ...], tuple[int, ...]]
"""The parts of an event after its number."""


Move = Callable[[Operation, Effect, tuple[int, ...]], tuple[int, ...]]
"""Another address for an access."""


class NumberedFunction:
    """One function while it is numbered."""

    def __init__(self, values: Values, graph: Graph, function: Function, move: Move | None = None) -> None:
        """move: where accesses are taken to be, in place of where they are."""
        self.values = values
        self.move = move
        self.graph = graph
        self.joins: list[dict[str, JoinClass]] = [{} for _ in graph]
        """By block and register."""
        self.stale = set(range(len(graph)))
        """The blocks whose joins are told apart since the last round."""
        self.blocks = [NumberedBlock((), None)] * len(graph)
        self.lines: dict[int, int] = {}
        """Where a value is computed first."""
        self.pending: dict[int, frozenset[int]] = {}
        """By value, as of `Instruction`."""
        self._asynchronous = function.asynchronous
        self.loaded_late = function.loaded_late
        self.loading = registers_in_use.loading(graph) if self.loaded_late else []
        """By block, the registers that loads of tensor memory may still write when it is entered."""
        self._entered: list[_State | None] = [None] * len(graph)
        self._out: list[_State] = [{}] * len(graph)
        self.all_lanes = values.node("all lanes")
        self.uniform_masks = uniform_masks.of_blocks(graph)
        self.has_states = [
            any(
                (effect := each.operation.effect) and effect.act is Act.STATES
                for each in node.block.instructions
            )
            for node in graph
        ]
        """By block, whether wait states stand in it."""
        self._parameters = {name: values.node("parameter", n) for n, name in enumerate(function.parameters)}

    def run(self, part: Sequence[int]) -> set[int]:
        """One round, with the joins as they are known; the blocks that are entered otherwise than before."""
        entered = set[int]()
        for number in part:
            node = self.graph[number]
            if number not in self.stale and min(node.sources, default=-1) not in entered:
                continue
            self.stale.discard(number)
            state = self._entering(number, node)
            if self._entered[number] != state:
                self._entered[number] = dict(state)
                self.blocks[number] = _Block(self, number, node, state).run()
                self._out[number] = state
                entered.add(number)
        return entered

    def entering(self, number: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields what enters a block in each join, and in each register that may become one, from each block
        so far.

        The entry is entered from outside too. A register with two values each time is two joins.
        """
        sources = (each for each in self.graph[number].sources if self._entered[each] is not None)
        states = [*([] if number else [self._first()]), *(self._out[each] for each in sources)]
        joins = self.joins[number]
        registers = {name.partition(_HALF)[0] for name in joins}
        for register in self.graph[number].live if len(states) > 1 else ():
            value = states[0].get(register)
            if register not in registers:
                for state in states:
                    if state.get(register) is not value:
                        break
                else:
                    continue
            values = tuple([self.flat(state.get(register, register)) for state in states])
            keys = [self.values.keys[each] for each in values]
            if register not in joins and all(map(_is_pair, keys)):
                yield from ((f"{register}{_HALF}{n}", tuple([key[1 + n] for key in keys])) for n in (0, 1))
            else:
                yield register, values

    def _first(self) -> _State:
        return {EXEC: self.all_lanes, **self._parameters}

    def _entering(self, number: int, node: BlockNode) -> _State:
        before = self._out[min(node.sources)] if number else self._first()
        state = {name: before[name] for name in node.live if name in before}
        joins = self.joins[number]
        for name, class_ in joins.items():
            register, _, half = name.partition(_HALF)
            value = self.values.node("join", number, class_)
            if name in self.uniform_masks[number]:
                self.values.uniform_masks.add(value)
            if not half:
                state[register] = value
            elif register not in joins and _is_pair(whole := self.values.keys[self.flat(state[register])]):
                parts = [*whole[1:]]
                parts[int(half)] = value
                width = int(whole[0].partition(" ")[2] or 0)
                state[register] = self.values.pack(*parts, width=width)
        return state

    def flat(self, raw: _Raw) -> int:
        """A register that nothing wrote is, on AMD, what a kernel is given, by the register's name.

        One of PTX has no value then, whatever its name.
        """
        if isinstance(raw, int):
            return raw
        if isinstance(raw, str):
            return self.values.node("undefined", "" if _VIRTUAL.fullmatch(raw) else raw)
        if raw.flat is None:
            raw.flat = self.values.select(raw.lanes, raw.value, self.flat(raw.below))
        return raw.flat

    @functools.cached_property
    def entering_joins(self) -> dict[int, tuple[int, tuple[int, ...]]]:
        """By the number of a join, its block and the values that enter it, once all are numbered."""
        return {
            self.values.node("join", block, joins[register]): (block, values)
            for block, joins in enumerate(self.joins)
            for register, values in (self.entering(block) if joins else ())
            if register in joins
        }

    @functools.cached_property
    def values_of(self) -> set[int]:
        """All that it computes, reads or enters a block with, once all are numbered."""
        events = (event.number for block in self.blocks for event in block.events)
        joins = (
            self.values.node("join", block, class_)
            for block, own in enumerate(self.joins)
            for class_ in own.values()
        )
        return {*self.lines, *events, *joins}

    def locate(self, results: Sequence[int], each: Instruction) -> None:
        """Remembers where values are computed."""
        lines = self.lines
        for result in results:
            if result not in lines:
                lines[result] = each.line
            if each.pending:
                self.pending[result] = each.pending

    def waited(self, event: Event, state: _State, settled: set[str], loading: set[str]) -> None:
        """Gives what a matrix unit wrote another value after a wait; one that leaves nothing waits for all.

        Registers that a load of tensor memory wrote get another value, too. Each wait for loads is for all of
        them, so the value is the same behind every wait.

        settled: the registers that no matrix unit can write to now; they keep their values.
        loading: those that loads of tensor memory may write.
        """
        if event.operation.name.startswith(WAITS_FOR_LOADS) and event.guard is None:
            for register in _in_order(loading & state.keys()):
                state[register] = self.values.node("waited for", LOADS, self.flat(state[register]))
                self.lines.setdefault(self.flat(state[register]), event.line)
            loading.clear()
        if not self._asynchronous or "wait" not in event.operation.name:
            return
        is_whole = [self.values.value_of(each) for each in event.operands] == [0]
        for register in _in_order(self._asynchronous & state.keys() - settled):
            old = self.flat(state[register])
            while is_whole and self.values.keys[old][0] == "waited for":
                old = self.values.keys[old][2]
            if self.values.value_of(old) is None:
                state[register] = self.values.node("waited for", event.number, old)
                self.lines.setdefault(self.flat(state[register]), event.line)
        if is_whole and event.guard is None:
            settled |= self._asynchronous


def _in_order(registers: Iterable[str]) -> list[str]:
    """By their numbers: which value is numbered first decides its samples, and must not depend on chance."""
    return sorted(registers, key=lambda name: (len(name), name))


def _is_pair(key: Key) -> bool:
    return is_pack(key) and len(key) == 3


class _Block:
    """One block while it is numbered; changes the state that it is entered with."""

    def __init__(self, function: NumberedFunction, number: int, node: BlockNode, state: _State) -> None:
        self._function, self._number, self._node, self._state = function, number, node, state
        self._values = function.values
        self._seen: Counter[int] = Counter()
        self._events: list[Event] = []
        self._states = WaitStates()
        self._settled = set[str]()
        self._loading = set(function.loading[number] if function.loading else ())
        self._loaded: defaultdict[str, dict[int, Event]] = defaultdict(dict)
        """By space, the loads since it may have been written, by what is equal of equal ones."""

    def run(self) -> NumberedBlock:
        """Remembers what an operation gives of the same values in the same lanes."""
        state, earlier, function, keys = self._state, self._values.results, self._function, self._values.keys
        is_seen = function.loaded_late or function.has_states[self._number]
        for each in self._node.block.instructions:
            operation, names, reads = each[:3]
            read = [state.get(name, name) for name in reads]
            if operation.effect is None:
                key = operation, state[EXEC], *read
                results = earlier.get(key)
                if results is None:
                    results = earlier[key] = self._results(operation, read, len(names))
                if operation.compute != COPY:
                    is_part = len(results) > 1 and keys[results[0]][0] == "part"
                    function.locate((*results, keys[results[0]][1]) if is_part else results, each)
            else:
                event = self._event(each, operation.effect, read)
                results = self._parts(event.number, len(names))
            if is_seen:
                self._see(each, results)
            if operation.is_guarded or (operation.masked and state[EXEC] != function.all_lanes):
                self._write(operation, names, read, results)
            else:
                for name, value in zip(names, results, strict=True):
                    state[name] = value
            if operation.effect:
                self._settled.difference_update(names)
                function.waited(event, state, self._settled, self._loading)
        events = tuple(
            [event._replace(between=self._states.between(event.number)) for event in self._events]
            if function.has_states[self._number]
            else self._events
        )
        condition = self._node.block.condition
        if condition is None:
            return NumberedBlock(events, None)
        value = self._read(condition, [])
        turned = self._values.invert(value) if self._node.is_turned else value
        return NumberedBlock(events, turned)

    def _see(self, each: Instruction, results: Sequence[int]) -> None:
        self._states.see(each, results)
        if not self._function.loaded_late.isdisjoint(each.results):
            is_late = each.operation.name.startswith(registers_in_use.LOAD)
            (self._loading.update if is_late else self._loading.difference_update)(each.results)

    def _read(self, operand: Operand | Slot, read: Sequence[_Raw]) -> int:
        if isinstance(operand, Slot):
            return self._value(read[operand.place])
        if isinstance(operand, str):
            return self._value(self._state.get(operand, operand))
        return (
            self._values.constant(operand)
            if isinstance(operand, int)
            else self._values.node("text", operand.text)
        )

    def _value(self, raw: _Raw) -> int:
        if isinstance(raw, _MaskedValue) and raw.lanes == self._state[EXEC]:
            return raw.value
        return self._function.flat(raw)

    def _parts(self, number: int, count: int) -> tuple[int, ...]:
        return tuple([self._values.part(number, place, count) for place in range(count)])

    def _results(self, operation: Operation, read: Sequence[_Raw], count: int) -> tuple[int, ...]:
        values, made_by = self._values, self._values.made_by
        if operation.name.startswith("v_readlane"):  # it may read a lane that is off
            read = [self._function.flat(raw) for raw in read]
        operands = tuple([self._read(operand, read) for operand in operation.operands])
        if not operation.compute:
            if operation.associates:
                parts = (values.joined(operation.name, each) for each in operands)
                operands = tuple(sorted({*itertools.chain.from_iterable(parts)}))
            whole = values.times_one(operation.name, *operands)
            if whole is None:
                whole = values.node(operation.name, *_ordered(operation, operands))
            made_by.setdefault(whole, operation)
            results = (whole,) if count == 1 else self._parts(whole, count)
        elif operation.compute == COPY:
            return operands
        else:
            name, width = operation.compute
            if name == "select" and values.keys[operands[0]][::2] == ("mask", self._state[EXEC]):
                operands = (values.keys[operands[0]][1], *operands[1:])  # in the lanes of the comparison
            if name in _NARROW and width:
                count = 1 if name in _SHIFTS else len(operands)  # by how much is a number of 32 bits
                operands = (*(self._narrow(each, width) for each in operands[:count]), *operands[count:])
            results = (compute(values, name, width, operands),)
        for number in results:
            made_by.setdefault(number, operation)
        return results

    def _narrow(self, operand: int, width: int) -> int:
        value = self._values.value_of(operand)
        return operand if value is None else self._values.constant(value, width)

    def _guard(self, operation: Operation, read: Sequence[_Raw]) -> int | None:
        if not operation.is_guarded:
            return None
        guard = self._value(read[-1])
        guard = self._values.invert(guard) if operation.negated else guard
        return None if self._values.value_of(guard) else guard

    def _write(
        self, operation: Operation, names: Sequence[str], read: Sequence[_Raw], results: Sequence[int]
    ) -> None:
        state, lanes, guard = self._state, self._state[EXEC], self._guard(operation, read)
        assert isinstance(lanes, int)
        for register, value in zip(names, results, strict=True):
            below = state.get(register, register)
            if guard is not None:
                state[register] = self._values.select(guard, value, self._function.flat(below))
            elif not operation.masked or lanes == self._function.all_lanes:
                state[register] = value
            else:
                if isinstance(below, _MaskedValue) and below.lanes == lanes:
                    below = below.below
                state[register] = _MaskedValue(lanes, value, below)

    def _event(self, each: Instruction, effect: Effect, read: Sequence[_Raw]) -> Event:
        values, operation = self._values, each.operation
        key = self._number, operation, self._state[EXEC], self._function.move, *read
        parts = values.event_parts.get(key)
        if parts is None:
            parts = values.event_parts[key] = self._like(operation, effect, read)
        like, guard, lanes, address, operands = parts
        if like in self._loaded[effect.space]:
            return self._loaded[effect.space][like]
        number = values.node("event", operation.name, guard, like, self._seen[like])
        self._seen[like] += 1
        values.made_by.setdefault(number, operation)
        event = Event(
            operation, effect, number, like, guard, lanes, address, operands, each.line, each.pending
        )
        self._events.append(event)
        if effect.act is Act.STATES:
            self._states.stand(number)
        if effect.act is Act.LOAD and not operation.reads_anew:
            self._loaded[effect.space][like] = event
        elif effect.act is Act.STORE and effect.space and not operation.keeps_order:
            self._loaded[effect.space].clear()
            self._loaded[""].clear()
        elif effect.act not in (Act.LOAD, Act.LANES, Act.STATES) or operation.keeps_order:
            self._loaded.clear()
        return event

    def _like(self, operation: Operation, effect: Effect, read: Sequence[_Raw]) -> _Like:
        values, guard = self._values, self._guard(operation, read)
        is_narrow = effect.space not in ("", "global") or effect.act is Act.MATRIX  # of tensor memory
        width = 32 if is_narrow else 64
        address = tuple(
            values.moved(width, self._read(part, read), offset) for part, offset in effect.address
        )
        operands = _ordered(operation, tuple([self._read(operand, read) for operand in operation.operands]))
        if self._function.move:
            address = self._function.move(operation, effect, address)
        lanes = self._state[EXEC] if operation.masked else None
        assert not isinstance(lanes, _MaskedValue)
        like = values.node("like", self._number, operation.name, guard, lanes, address, operands)
        return like, guard, lanes, address, operands


_SHIFTS = frozenset({"shl", "shr", "sar"})
_NARROW = frozenset(
    {"add", "sub", "neg", "mul", "mad", "not", *_SHIFTS, "and", "or", "xor", "eq", "ne"}
    | {"smin", "smax", "umin", "umax", "mul24"}
    | {sign + order for sign in "su" for order in ("lt", "le", "gt", "ge")}
)
"""Functions that take a constant in their own width."""


def _ordered(operation: Operation, operands: tuple[int, ...]) -> tuple[int, ...]:
    return (*sorted(operands[:2]), *operands[2:]) if operation.commutes else operands


def number(base: NumberedFunction, head: NumberedFunction) -> None:
    """Numbers both until no join has to be told from another, loop by loop. Raises ReadError."""
    classes = 0
    sides = base, head
    for part in _parts(base.graph):
        places = part
        for _ in range(_MAX_ROUNDS):
            heirs: set[tuple[int, JoinClass]] = set()
            class_of: dict[tuple[int, JoinClass | None, tuple[int, ...], bool], JoinClass] = {}
            for side, place in itertools.product(sides, places):
                for register, entering in [*side.entering(place)]:
                    own = side.joins[place].get(register)
                    if own is None and len(set(entering)) == 1:
                        continue
                    key = place, own, entering, register in side.uniform_masks[place]
                    if key not in class_of:  # the first keeps the class, each other gets a new one
                        zeros, range_ = min(map(base.values.zeros, entering)), _range(base.values, entering)
                        is_of_own = own and own.zeros <= zeros and _holds(own.range, range_)
                        if own and is_of_own and (place, own) not in heirs:
                            heirs.add((place, own))
                            class_of[key] = own
                        else:
                            classes += 1
                            class_of[key] = JoinClass(classes, zeros, _widened(own, range_))
                    if class_of[key] != own:
                        side.joins[place][register] = class_of[key]
                        side.stale.add(place)
            entered = {each for side in sides for each in side.run(part)}
            places = [each for each in part if not entered.isdisjoint(base.graph[each].sources)]
            if not places:
                places = _narrowed(sides, part)
            if not places:
                break
        else:
            raise ReadError("joins that do not settle")


def _narrowed(sides: Sequence[NumberedFunction], part: Sequence[int]) -> list[int]:
    """Gives joins that are settled the range of what enters them; the places of these joins."""
    entering = defaultdict[tuple[int, JoinClass], list[int]](list)
    for side, place in itertools.product(sides, part):
        for register, values in side.entering(place) if side.joins[place] else ():
            if register in side.joins[place]:
                entering[place, side.joins[place][register]] += values
    narrowed = {
        key: key[1]._replace(range=range_)
        for key, values in entering.items()
        if key[1].range == _WIDE and (range_ := _range(sides[0].values, values)) != _WIDE
    }
    for side, place in itertools.product(sides, part):
        for register, own in side.joins[place].items():
            if (place, own) in narrowed:
                side.joins[place][register] = narrowed[place, own]
                side.stale.add(place)
    return sorted({place for place, _ in narrowed})


def _range(values: Values, entering: Sequence[int]) -> Range | None:
    ranges = [each for each in map(values.range_of, entering) if each]
    least, most = min(ranges, default=(0, 0))[0], max((each[1] for each in ranges), default=0)
    return (least, most) if len(ranges) == len(entering) and _holds(_WIDE, (least, most)) else None


def _widened(own: JoinClass | None, entering: Range | None) -> Range | None:
    """The range of a new class: as many bits as enter at first, then a wide one, then none."""
    if entering is None or (own and own.range in (None, _WIDE) and not _holds(own.range, entering)):
        return None
    if own is None:
        return entering[0], ones(max(entering[1], 0).bit_length())
    return own.range if _holds(own.range, entering) else _WIDE


def _holds(one: Range | None, other: Range | None) -> bool:
    return one is None or (other is not None and one[0] <= other[0] and other[1] <= one[1])


def _parts(graph: Graph) -> list[list[int]]:
    """Loops, and blocks outside of them, each before what it leads to."""
    reached, changed = [1 << number for number in range(len(graph))], True
    while changed:
        changed = False
        for number in range(len(graph) - 1, -1, -1):
            for target in graph[number].targets:
                changed = changed or bool(reached[target] & ~reached[number])
                reached[number] |= reached[target]
    parts: dict[int, list[int]] = {}
    for number, blocks in enumerate(reached):
        parts.setdefault(blocks, []).append(number)
    return [parts[blocks] for blocks in sorted(parts, key=int.bit_count, reverse=True)]
