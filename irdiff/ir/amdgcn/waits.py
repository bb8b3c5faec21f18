"""Checks that operands of AMD assembly have arrived when they are read: what `s_waitcnt` is for. Pure.

A load counts in `vmcnt` or `lgkmcnt` until a wait lets no more than so many younger ones be unfinished. Loads
to registers and stores finish in their order, except scalar loads, for which only a count of 0 is enough. An
instruction that reads too early gets another name, so it is another value. It does not matter which waits
stand where, as long as they are enough. A barrier says which accesses may still run: what needs them behind
it is for `effects` to say. Source: AMD Instinct MI300 ISA, 4.4 "Manually Inserted Wait States".
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from irdiff.ir.blocks import sources_first
from irdiff.ir.program import (
    EARLY,
    PRIVATE,
    Act,
    Awaited,
    BlockNode,
    Early,
    Effect,
    Graph,
    Instruction,
    Operation,
)

_WAIT = "s_waitcnt "
"""Begins the name of a wait; the counts follow."""
_COUNTERS = {
    "vmcnt": re.compile(r"(?:global|buffer|scratch|flat|tbuffer)_(?!wbl2|inv|gl|wb)"),
    "lgkmcnt": re.compile(r"ds_|flat_"),
    "": re.compile(r"s_(?:load|buffer_load|sendmsg)"),
}
"""The operations that each counter counts. Scalar loads, whose order is not known, have no counter here."""
_COUNT = re.compile(r"(vmcnt|lgkmcnt)\((\d+)\)")
_MOST = 63
"""More of a counter are not told apart."""
_STORES, _SHARED, _CACHES, _ATOMICS = "stores", "shared memory", "a write-back of caches", "atomics"
_KINDS = (_STORES, _SHARED, _CACHES, _ATOMICS)
_BARRIER = "s_barrier"
_NEEDS_OTHERS = frozenset({Act.SYNC, Act.ATOMIC, Act.OPAQUE, Act.STORE})
"""Before which earlier accesses may have to be finished, whatever registers they have."""


def name_of(opcode: str, rest: str) -> str | None:
    """The name of a wait, as `marked` takes it apart; None for what is no wait."""
    return f"{_WAIT}{rest.strip()}" if opcode.startswith("s_waitcnt") else None


@functools.lru_cache(maxsize=1 << 12)
def _counters(name: str) -> tuple[str, ...]:
    return tuple(counter for counter, of in _COUNTERS.items() if of.match(name))


@functools.lru_cache(maxsize=1 << 12)
def _is_wait(name: str) -> bool:
    return name.startswith(_WAIT)


@functools.lru_cache(maxsize=1 << 10)
def _waits(name: str) -> tuple[tuple[str, int], ...]:
    """The counters that an instruction waits for, and how many operations each may leave unfinished.

    Scalar loads finish in any order, so that only a count of 0 waits for them.
    """
    text = name.removeprefix(_WAIT)
    counts = [("vmcnt", 0), ("lgkmcnt", 0)] if text == "0" else [(a, int(n)) for a, n in _COUNT.findall(text)]
    return *counts, *((("", 0),) if ("lgkmcnt", 0) in counts else ())


class _Pending:
    """Operations that are not finished."""

    def __init__(self) -> None:
        self.issued = dict.fromkeys(_COUNTERS, 0)
        """How many operations each counter has seen."""
        self.last: dict[str, dict[str | int, int]] = {counter: {} for counter in _COUNTERS}
        """Which of them, by counter and register (or `stores`, …), and by the line of each."""
        self.seen: set[int] = set()
        """The lines whose effects other threads see: all but loads to registers from global memory."""
        self.line = 0
        """The line of the previous instruction."""
        self.counted: set[str] = set()
        """The counters that have seen this line."""
        self.copies: set[int] = set()
        """Numbers of `vmcnt` whose accesses write shared memory."""

    def merge(self, other: _Pending) -> bool:
        """Takes over what is less finished there; whether anything is."""
        changed = not other.seen <= self.seen
        self.seen |= other.seen
        for counter, last in self.last.items():
            behind = self.issued[counter] - other.issued[counter]
            for register, number in other.last[counter].items():
                if register not in last or last[register] < number + behind:
                    last[register], changed = number + behind, True
        behind = self.issued["vmcnt"] - other.issued["vmcnt"]
        new = {number + behind for number in other.copies} - self.copies
        self.copies |= new
        return changed or bool(new)

    def wait(self, name: str) -> None:
        for counter, count in _waits(name):
            limit = self.issued[counter] - count
            self.last[counter] = {name: n for name, n in self.last[counter].items() if n > limit}
            if counter == "vmcnt":
                self.copies = {n for n in self.copies if n > limit}

    def mark(self, each: Instruction) -> tuple[Early | None, frozenset[int]]:
        """Returns what an instruction does not wait for, and its lines; a late load would overwrite what is
        written now, too.
        """
        pending = [of_counter for of_counter in self.last.values() if of_counter]
        names = *each.reads, *each.results
        early = {
            (name, n)
            for n, of_counter in enumerate(pending)
            if not of_counter.keys().isdisjoint(names)
            for name in names
            if name in of_counter
        }
        if early:
            numbers = {(n, pending[n][name]) for name, n in early}
            return Early(registers=len({name for name, _ in early})), self._lines(numbers, pending)
        effect = each.operation.effect
        if not effect or effect.act not in _NEEDS_OTHERS:
            return None, frozenset()
        running = frozenset(line for of_counter in pending for line in of_counter if line in self.seen)
        if each.operation.name.startswith(_BARRIER):
            return None, running
        is_relaxed = effect.act in (Act.STORE, Act.ATOMIC) and not each.operation.keeps_order
        is_plain = is_relaxed and effect.act is Act.STORE
        awaited = (_CACHES,) if is_plain else (_STORES, _SHARED, _CACHES, _ATOMICS)
        kinds = {what for of_counter in pending for what in of_counter if what in awaited}
        atomics = int(is_relaxed and _ATOMICS in kinds)
        memory = sum(1 << _KINDS.index(what) for what in kinds if not (atomics and what == _ATOMICS))
        copies = 0 if is_plain else len(self.copies)
        marked = Early(memory=memory, copies=copies, atomics=atomics)
        return (marked, running) if any(marked) else (None, frozenset())

    @staticmethod
    def _lines(
        numbers: Collection[tuple[int, int]], pending: Sequence[Mapping[str | int, int]]
    ) -> frozenset[int]:
        return frozenset(
            line
            for n, of_counter in enumerate(pending)
            for line, number in of_counter.items()
            if isinstance(line, int) and (n, number) in numbers
        )

    def advance(self, each: Instruction) -> None:
        name = each.operation.name
        if _is_wait(name):
            self.wait(name)
            return
        for of_counter in self.last.values():
            if of_counter:
                for register in each.results:
                    of_counter.pop(register, None)
        if not (counters := _counters(name)):
            if name.startswith("buffer_wbl2"):
                self.last["vmcnt"][_CACHES] = self.issued["vmcnt"]
            return
        if each.line != self.line or not each.line:
            self.line, self.counted = each.line, set()
        for counter in counters:  # one instruction may be read as several accesses
            self.issued[counter] = number = self.issued[counter] + (counter not in self.counted)
            self.counted.add(counter)
            self.last[counter].update(dict.fromkeys(each.results, number))
            self.last[counter][each.line] = number
            if counter == "lgkmcnt":
                self.last[counter][_SHARED] = number
                self.seen.add(each.line)
            elif counter and (effect := each.operation.effect) and _is_seen(effect):
                self.seen.add(each.line)
                if effect.act is Act.COPY:
                    self.copies = {max(n, number - _MOST) for n in (*self.copies, number)}
                else:
                    is_atomic = effect.act is Act.ATOMIC and not each.operation.keeps_order
                    self.last[counter][_ATOMICS if is_atomic else _STORES] = number


def _is_seen(effect: Effect) -> bool:
    """By other threads: a load is not, nor what a thread keeps in its scratch memory."""
    return effect.act is not Act.LOAD and effect.space != PRIVATE


def marked(graph: Graph) -> Graph:
    """The graph without waits, and with another name for what reads too early."""
    entering = [_Pending() for _ in graph]
    rank = {number: n for n, number in enumerate(sources_first([node.targets for node in graph]))}
    waiting = set(range(len(graph)))
    while waiting:
        number = min(waiting, key=rank.__getitem__)
        waiting.remove(number)
        state = _Pending()
        state.merge(entering[number])
        for each in graph[number].block.instructions:
            state.advance(each)
        waiting |= {each for each in graph[number].targets if entering[each].merge(state)}
    return tuple(
        node._replace(block=node.block._replace(instructions=tuple(_through(node, state))))
        for node, state in zip(graph, entering, strict=True)
    )


def unfinished(graphs: Iterable[Graph], base: Graph) -> list[list[list[Awaited]]]:
    """By graph and block, all that counts where a marked graph leaves something unfinished, or must be behind
    it, and the waits in front.
    """
    instructions = [each for node in base for each in node.block.instructions]
    lines = frozenset[int]().union(*(each.pending for each in instructions))
    late = (each for each in instructions if each.line in lines)
    counters = {counter for each in late for counter in _counters(each.operation.name)}
    if any(each.operation.early for each in instructions):
        counters |= {*_COUNTERS}
    return [[[*_awaited(node, counters)] for node in graph] for graph in graphs]


def _awaited(node: BlockNode, counters: set[str]) -> Iterator[Awaited]:
    limits = dict[str, int]()
    for name, effect in ((each.operation.name, each.operation.effect) for each in node.block.instructions):
        for counter, count in _waits(name) if _is_wait(name) else ():
            if counter in counters:
                limits[counter] = min(limits.get(counter, count), count)
        if not counters.isdisjoint(_counters(name)) or (counters and effect and effect.act in _NEEDS_OTHERS):
            yield Awaited(name, limits)
            limits = {}
    yield Awaited("", limits)


def _through(node: BlockNode, state: _Pending) -> Iterator[Instruction]:
    for each in node.block.instructions:
        if not _is_wait(each.operation.name):
            early, pending = state.mark(each)
            operation = _early(each.operation, early) if early else each.operation
            yield each._replace(operation=operation, pending=pending) if early or pending else each
        state.advance(each)


@functools.lru_cache(maxsize=1 << 12)
def _early(operation: Operation, early: Early) -> Operation:
    name = EARLY.join((operation.name, *map(str, early)))
    return replace(operation, name=name, compute=None, early=early)
