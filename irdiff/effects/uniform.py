"""Finds barriers that all threads reach, because the branches around them have the same outcome in all
threads. Pure.

Synchronization that only head has is harmless under three conditions: the instruction is on a list of
instructions that only wait; it has no predicate; and, if it is a barrier, all threads that it waits for reach
it.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Collection, Mapping, Sequence

from irdiff.effects import order, races
from irdiff.effects.nodes import operands_of, reached
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.ir.blocks import sources_first
from irdiff.ir.program import PRIVATE, Act
from irdiff.ir.synchronization import ONLY_WAITS

_OF_THREADS = re.compile(r"bar\b|barrier\b|s_barrier|llvm\..*barrier")
_OPAQUE = frozenset({"waited for", "like"})
_NAMED = frozenset({"text", "undefined"})
PER_THREAD = re.compile(
    r"%tid|%laneid|%warpid|%lanemask|workitem|elect|mbcnt|lane|clock|globaltimer|ballot|smid"
)
_LOADS_ALIKE = re.compile(
    r"ldu?\.|load\b|(?:global|flat|buffer|scratch|s|s_buffer)_load_(?!tr)|ds_read2?_(?!.*tr|addtid)"
)
"""Loads that give each thread what stands at its address; of others each lane gets another part."""
_MAX_NODES = 20_000


def is_harmless(side: NumberedFunction, event: Event) -> bool:
    """True if synchronization that only this side has cannot change what the kernel does."""
    name = event.operation.word
    if event.effect.act is Act.STATES:
        return True
    if event.guard is not None or not ONLY_WAITS.match(name):
        return False
    if not _OF_THREADS.match(name):
        return True
    is_of_all = not [each for each in event.operands if side.values.value_of(each) != 0]
    return is_of_all and Uniform(side).is_reached_by_all(event)


class Uniform:
    """Decides which values are the same in all threads of a thread block.

    are_loads_alike: whether threads that load from one address are taken to get the same, even if the kernel
    writes there meanwhile.
    """

    def __init__(self, side: NumberedFunction, *, are_loads_alike: bool = False) -> None:
        self._side = side
        self._are_loads_alike = are_loads_alike
        self._entering = side.entering_joins
        self._events = {event.number: event for block in side.blocks for event in block.events}
        self._targets = [node.targets for node in side.graph]
        ends = {number for number, own in enumerate(self._targets) if not own}
        self._behind = _on_every_way(self._targets, ends)
        """By block, itself and those that every way from it to an end leads through, a bit for each."""
        self._before = _on_every_way([node.sources for node in side.graph], {0})
        """By block, itself and those that every way to it leads through, a bit for each."""
        self._on_every_way: dict[int, set[tuple[int, bool]]] = {}

    def is_reached_by_all(self, event: Event) -> bool:
        """Leaves out conditions that are computed from the result of the event itself, as in a loop that
        waits.
        """
        blocks = (n for n, block in enumerate(self._side.blocks) if event in block.events)
        conditions = (each for number in blocks for each in self._conditions(number))
        return not any(self._varies(each, event.number) for each in conditions)

    def is_met_by_all(self, event: Event) -> bool:
        """True if all threads reach synchronization, and it acts in all of them or in none."""
        is_alike = event.guard is None or not self._varies(event.guard, event.number)
        return is_alike and self.is_reached_by_all(event)

    def _conditions(self, number: int) -> list[int]:
        """Returns the conditions of the branches that decide whether, or how often, a block runs."""
        conditions, waiting, seen = list[int](), [number], set[int]()
        while waiting:
            now = waiting.pop()
            for branch, targets in enumerate(self._targets):
                always = now != branch and self._behind[branch] >> now & 1
                if always or branch in seen or not any(self._behind[each] >> now & 1 for each in targets):
                    continue
                seen.add(branch)
                waiting.append(branch)
                condition = self._side.blocks[branch].condition
                conditions += [condition] if condition is not None and len(targets) > 1 else []
        return conditions

    @functools.cached_property
    def _choosing(self) -> list[list[int]]:
        """By block, the conditions that decide by which edge threads come to it."""
        conditions: list[list[int]] = [[] for _ in self._targets]
        ranks = {number: n for n, number in enumerate(sources_first(self._targets))}
        for branch, targets in enumerate(self._targets):
            condition = self._side.blocks[branch].condition
            if condition is not None and len({*targets}) > 1:
                for meeting in _meetings(self._targets, ranks, branch):
                    conditions[meeting].append(condition)
        return conditions

    def is_exit(self, branch: int) -> bool:
        """True if one path from a branch leads back to it, and another does not."""
        leading = {branch in _reached(self._targets, target, -1) for target in self._targets[branch]}
        return len(leading) > 1

    def on_every_way_to(self, event: Event) -> set[tuple[int, bool]]:
        """Returns (condition, its outcome) for the branches that always have this outcome when an effect is
        reached.
        """
        place = next(n for n, block in enumerate(self._side.blocks) if event in block.events)
        if place not in self._on_every_way:
            self._on_every_way[place] = self._conditions_on_every_way(place)
        return self._on_every_way[place]

    def _conditions_on_every_way(self, place: int) -> set[tuple[int, bool]]:
        conditions = set[tuple[int, bool]]()
        for before, block in enumerate(self._side.blocks):
            condition, targets = block.condition, self._targets[before]
            is_before = self._before[place] >> before & 1 and before != place
            if condition is None or len({*targets}) < 2 or not is_before:
                continue
            leading = [place in _reached(self._targets, target, before) for target in targets]
            if leading.count(True) == 1:
                conditions.add((condition, leading[0]))
        return conditions

    def _may_load_others(self, event: Event) -> bool:
        """True if threads may get different values at one address.

        They do of memory of their own, of a load that asks anew or gives lanes other parts, and where the
        kernel may write between two of their loads. If a store to another pointer wrote the same place, both
        would race at base, too.
        """
        space, operation = event.effect.space, event.operation
        if event.effect.act is not Act.LOAD or space == PRIVATE:
            return True
        if operation.reads_anew or operation.keeps_order or not _LOADS_ALIKE.match(operation.name):
            return True
        if self._are_loads_alike:
            return False
        writers = (each for block in self._side.blocks for each in block.events if _may_write(each, space))
        return ".nc" not in operation.name and any(
            not order.never_meet(self._side.values, event, each)
            and races.share_a_buffer(self._side.values, event, each)
            for each in writers
        )

    def _varies(self, value: int, trusted: int) -> bool:
        """True if a value may differ between threads. It looks at everything that the value is computed from;
        for one that several edges bring to a block, at the conditions that decide which edge is taken and how
        often the block runs, too.

        trusted: an event whose result is taken for the same in all threads.
        """
        waiting, seen = [value], {trusted}
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            if len(seen) > _MAX_NODES:
                return True
            key = self._side.values.keys[number]
            if key[0] in _OPAQUE or PER_THREAD.search(f"{key[0]} {key[-1] if key[0] in _NAMED else ''}"):
                return True
            if key[0] == "join":
                if number not in self._entering:
                    return True
                block, values = self._entering[number]
                waiting += [*values, *self._conditions(block), *self._choosing[block]]
            elif key[0] == "event":
                event = self._events.get(number)
                if event is None or event.guard is not None or self._may_load_others(event):
                    return True
                waiting += [*event.address, *event.operands]
            else:
                waiting += operands_of(key)
        return False


def _may_write(event: Event, space: str) -> bool:
    """Assumes that copies and matrix instructions write no global memory that threads load."""
    if event.effect.act in (Act.STORE, Act.ATOMIC):
        return not space or event.effect.space in ("", space)
    return event.effect.act is Act.OPAQUE or (
        space != "global" and event.effect.act in (Act.COPY, Act.MATRIX)
    )


def _meetings(targets: Sequence[Sequence[int]], ranks: Mapping[int, int], branch: int) -> set[int]:
    """Returns the blocks at which ways that part at a branch meet again.

    A way bears the name of the edge that it began with, and, behind a block where ways of different names
    meet, the name of this block. Ways end where they come to the branch again.
    """
    names = dict[int, int]()
    coming = {target: {~target} for target in targets[branch]}
    while coming:
        number = min(coming, key=ranks.__getitem__)
        own = names.get(number)
        ways = coming.pop(number) | ({own} if own is not None else set())
        name = number if len(ways) > 1 else ways.pop()
        if own in (name, number):
            continue
        names[number] = name
        for target in targets[number] if number != branch else ():
            coming.setdefault(target, set()).add(name)
    return {number for number, name in names.items() if number == name}


def _reached(targets: Sequence[Sequence[int]], begin: int, without: int) -> set[int]:
    """Returns the blocks on paths from `begin`, itself included, that do not lead through `without`."""
    return {*reached([begin] * (begin != without), lambda number: {*targets[number]} - {without})}


def _on_every_way(targets: Sequence[Sequence[int]], ends: Collection[int]) -> list[int]:
    """Returns, for each block, itself and the blocks that every path from it to an end leads through."""
    blocks = range(len(targets))
    behind = [1 << number if number in ends else -1 for number in blocks]
    changed = True
    while changed:
        changed = False
        for number in blocks if 0 in ends else reversed(blocks):
            if number not in ends and targets[number]:
                new = (
                    functools.reduce(operator.and_, (behind[each] for each in targets[number])) | 1 << number
                )
                changed = changed or new != behind[number]
                behind[number] = new
    return behind
