"""The ways from each access of memory to others, by the barriers, fences and waits on them. Pure.

A way is described by the separators on it, and by which of them stand before which.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.values import Values

_OWN = re.compile(r"wgmma\.fence|(?:cp\.async|wgmma)\.(?:bulk\.)?(?:commit_group|wait_group|wait_all)")
GROUPS = re.compile(r"(cp\.async\.bulk|cp\.async|wgmma)\.(commit_group|wait_group|wait_all)")
_MAX_AGE = 8
"""Groups of copies or matrix instructions, of which the oldest are one."""
IN_BACKGROUND = re.compile(r"wgmma\.mma_async|cp\.(?:reduce\.)?async\.(?:c[ag]|bulk)|tcgen05\.(?:mma|cp)")
SIGNALS = re.compile(r"cp\.async\.bulk(?!.*bulk_group)|tcgen05\.(?:mma|cp)")
"""What ends with an `mbarrier`: not a copy to global memory, which a thread waits for by its group."""
ENDS_WAITING = re.compile(r"mbarrier\.(?:try|test)_wait")
_OF_ALL = re.compile(r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?$")
_BARRIER_OF_ALL = "bar.sync"
_FENCE_OF_PROXIES = re.compile(r"fence\.proxy\.async\.shared::cta$")
BARRIER = re.compile(r"(?:s_|llvm\..*\.)?bar")
_WAITS_FOR_NONE = re.compile(rf"{BARRIER.pattern}|fence\.proxy")
Ways = dict[int, int]
"""By separators, as a bit for each that stands on a way and for each that stands before another, the accesses
that such a way begins at, by their bits."""
_MOST = 1 << 6


def is_own(event: Event) -> bool:
    """Whether it is a thread's own wait, group or order of registers: others see what it waits for."""
    return _OWN.match(event.operation.name) is not None


def is_of_all(values: Values, event: Event) -> bool:
    """Whether it is a barrier that all threads of a block come to."""
    is_plain = event.guard is None and [values.value_of(each) for each in event.operands] == [0]
    return is_plain and _OF_ALL.match(event.operation.name) is not None


Kind = tuple[str, int | None, tuple[int, ...]]
"""The name, predicate and operands of what separates accesses."""


def are_global(pair: Sequence[Event]) -> bool:
    """Whether two accesses are of global memory, which a barrier of AMD alone does not order."""
    return {each.effect.space for each in pair} == {"global"}


def kind_of(barrier: Event) -> Kind:
    """What separates accesses alike: a barrier of all threads has several names."""
    name = _BARRIER_OF_ALL if _OF_ALL.match(barrier.operation.name) else barrier.operation.name
    return name, barrier.guard, barrier.operands


def _is_fence_of_all(kind: Kind) -> bool:
    name, guard, _ = kind
    return guard is None and _FENCE_OF_PROXIES.match(name) is not None


def _is_barrier_of_all(kind: Kind) -> bool:
    name, guard, operands = kind
    return name == _BARRIER_OF_ALL and guard is None and len(operands) < 2


def _may_change_places(one: Kind, other: Kind) -> bool:
    """A fence of proxies without a predicate may stand before or after a barrier of all threads. It has to
    lie on the way between the accesses, in the block of the one that is not of the generic proxy (Lustig
    et al., "Mixed-proxy extensions for the NVIDIA PTX memory consistency model", ISCA 2022, section 5.4).
    """
    return any(_is_fence_of_all(a) and _is_barrier_of_all(b) for a, b in ((one, other), (other, one)))


def mask_of(letters: Mapping[Kind, int]) -> int:
    """These separators, and the order of those that may not change places."""
    mask = sum(1 << n for n in letters.values())
    for (one, a), (other, b) in itertools.permutations(letters.items(), 2):
        if not _may_change_places(one, other):
            mask |= _before(a, b)
    return mask


def _before(one: int, other: int) -> int:
    return 1 << _MOST + one * _MOST + other


def _longer(way: int, letter: int) -> int:
    """A way with a separator at its end."""
    others = way & (1 << _MOST) - 1 & ~(1 << letter)
    while others:
        one = others & -others
        way |= _before(one.bit_length() - 1, letter)
        others ^= one
    return way | 1 << letter


class _Running:
    """What runs in the background: of each kind by groups, the youngest first; the first is not complete."""

    def __init__(self, groups: Mapping[str, tuple[int, ...]], *, is_told: bool, is_oldest: bool) -> None:
        self.groups = dict(groups)
        self._is_oldest = is_oldest
        """Whether a wait ends all: so it is for what the oldest round of a loop began."""
        self._is_told = is_told
        """Whether copies tell an `mbarrier` that they have ended."""

    def all(self) -> int:
        return functools.reduce(operator.or_, itertools.chain(*self.groups.values()), 0)

    def add(self, name: str, bit: int) -> None:
        name = name.replace("cp.reduce.", "cp.")
        kind = next((each for each in ("cp.async.bulk", "cp.async", "wgmma") if name.startswith(each)), name)
        first, *others = self.groups.get(kind, (0,))
        self.groups[kind] = (first | bit, *others)

    def see(self, event: Event, values: Values, bits: Mapping[int, int]) -> None:
        name = event.operation.name
        if event.number in bits and IN_BACKGROUND.match(name):
            self.add(name, bits[event.number])
        if ENDS_WAITING.match(name):
            kept = ("wgmma",) if self._is_told else ("wgmma", "cp.async")
            self.groups = {kind: own for kind, own in self.groups.items() if kind in kept}
        elif group := GROUPS.match(name):
            kind, word = group.groups()
            own = self.groups.get(kind, (0,))
            if word == "commit_group":
                older = functools.reduce(operator.or_, own[_MAX_AGE - 1 :], 0)
                self.groups[kind] = (0, *own[: _MAX_AGE - 1], *([older] if older else []))
            else:
                left = [values.value_of(each) for each in event.operands]
                is_all = word != "wait_group" or self._is_oldest
                count = -1 if is_all else next((each for each in left if each is not None), 0)
                self.groups[kind] = own[: count + 1] or (0,)

    def joined(self, other: _Running) -> _Running:
        both = {
            kind: tuple(
                itertools.starmap(
                    operator.or_,
                    itertools.zip_longest(
                        self.groups.get(kind, (0,)), other.groups.get(kind, (0,)), fillvalue=0
                    ),
                )
            )
            for kind in {**self.groups, **other.groups}
        }
        return _Running(both, is_told=self._is_told, is_oldest=self._is_oldest)


class _Step(NamedTuple):
    """An access, or a separator."""

    access: int
    """Its bit; 0 for a separator."""
    letter: int = 0
    late: int = 0
    """The accesses that the separator comes too early for."""


_Split = list[tuple[int, int]]
"""Ways, each with the accesses that it is the way of."""


class _Side:
    """The ways through each block of one side."""

    def __init__(self, steps: Sequence[Sequence[_Step]]) -> None:
        self._steps = steps
        self.accesses = functools.reduce(operator.or_, (step.access for own in steps for step in own), 0)
        self._through: dict[tuple[int, int], tuple[dict[int, _Split], _Split]] = {}
        self.directly: dict[int, Ways] = {}
        """By access, the ways to it from others before it in its block."""
        self.leaving = [self._run(number) for number in range(len(steps))]
        """By block, the ways from its accesses to its end."""

    def _run(self, number: int) -> _Split:
        before = Ways()
        for access, letter, late in self._steps[number]:
            if access:
                self.directly[access] = dict(before)
                before[0] = before.get(0, 0) | access
            else:
                before = _separated(before, letter, late)
        return [*before.items()]

    def through(self, number: int, way: int) -> tuple[dict[int, _Split], _Split]:
        """A way that enters a block, where it reaches each access, and where it leaves."""
        if (number, way) not in self._through:
            now, reached, split = {way: -1}, dict[int, _Split](), [(way, -1)]
            for access, letter, late in self._steps[number]:
                if access:
                    reached[access] = split
                else:
                    now = _separated(now, letter, late)
                    split = [*now.items()]
            self._through[number, way] = reached, split
        return self._through[number, way]


class WaysOfBoth:
    """The ways of both sides from accesses to others, side by side: on one path of blocks."""

    def __init__(
        self,
        base: NumberedFunction,
        head: NumberedFunction,
        letters: Mapping[Kind, int],
        bits: Mapping[int, int],
        *,
        is_oldest: bool,
    ) -> None:
        self._base, self._head = (
            _Side(_steps(side, letters, bits, is_oldest=is_oldest)) for side in (base, head)
        )
        self._together = defaultdict[int, dict[tuple[int, int], int]](dict)
        """By access, the ways of base and of head on the same paths."""
        self._follow([node.targets for node in base.graph])

    def _follow(self, targets: Sequence[Sequence[int]]) -> None:
        new: list[dict[tuple[int, int], int]] = [{} for _ in targets]
        entered: list[dict[tuple[int, int], int]] = [{} for _ in targets]

        def enter(number: int, ways: Iterable[tuple[int, int, int]]) -> None:
            for target in targets[number]:
                for one, other, accesses in ways:
                    if added := accesses & ~entered[target].get((one, other), 0):
                        entered[target][one, other] = entered[target].get((one, other), 0) | added
                        new[target][one, other] = new[target].get((one, other), 0) | added
                        waiting.append(target)

        waiting = list[int]()
        for number in range(len(targets)):
            enter(number, [*_both(self._base.leaving[number], self._head.leaving[number], -1)])
        while waiting:
            number = waiting.pop()
            ways, new[number] = new[number], {}
            for (one, other), accesses in ways.items():
                ours, mine = self._base.through(number, one)
                theirs, its = self._head.through(number, other)
                for access in ours.keys() & theirs.keys():
                    together = self._together[access]
                    for a, b, those in _both(ours[access], theirs[access], accesses):
                        together[a, b] = together.get((a, b), 0) | those
                enter(number, [*_both(mine, its, accesses)])

    def lead_to(self, access: int) -> bool:
        """Whether head has an access."""
        return bool(access & self._head.accesses)

    def worse(self, access: int, mask: int) -> int:
        """The accesses from which head has a way that base has more on, of separators in a mask.

        A way within a block is compared with all of base: the shortest of these is within the block, too.
        """
        together = self._together[access]
        worse_accesses = 0
        for (one, other), accesses in together.items():
            if one & mask & ~other:
                worse_accesses |= accesses
        for way, accesses in self._head.directly[access].items():
            left = accesses & ~worse_accesses
            if not left or not mask & ~way:
                continue
            ours = itertools.chain(
                self._base.directly.get(access, {}).items(), ((one, n) for (one, _), n in together.items())
            )
            for own, mine in ours:
                if not own & mask & ~way:
                    left &= ~mine
            worse_accesses |= left
        return worse_accesses


def _both(ours: _Split, theirs: _Split, accesses: int) -> Iterator[tuple[int, int, int]]:
    for (one, a), (other, b) in itertools.product(ours, theirs):
        if those := accesses & a & b:
            yield one, other, those


def _steps(
    side: NumberedFunction, letters: Mapping[Kind, int], bits: Mapping[int, int], *, is_oldest: bool
) -> list[list[_Step]]:
    """By block.

    Neither a barrier of threads nor a fence waits for what runs in the background: its thread waits before.
    """
    at_line = dict[int, int]()
    for event in (event for block in side.blocks for event in block.events if event.number in bits):
        at_line[event.line] = at_line.get(event.line, 0) | bits[event.number]
    all_steps = list[list[_Step]]()
    for block, running in zip(side.blocks, _running(side, bits, is_oldest=is_oldest), strict=True):
        steps = list[_Step]()
        for event in block.events:
            name = event.operation.name
            if event.number in bits:
                steps.append(_Step(bits[event.number]))
            elif (letter := letters.get(kind_of(event))) is not None:
                late = functools.reduce(operator.or_, (at_line.get(line, 0) for line in event.pending), 0)
                late |= running.all() if _WAITS_FOR_NONE.match(name) else 0
                steps.append(_Step(0, letter, late))
            running.see(event, side.values, bits)
        all_steps.append(steps)
    return all_steps


def _running(side: NumberedFunction, bits: Mapping[int, int], *, is_oldest: bool) -> list[_Running]:
    """What runs in the background when a block is entered."""
    names = {event.operation.name for block in side.blocks for event in block.events}
    is_told = any(each.startswith("cp.async.mbarrier") for each in names)
    start = _Running({}, is_told=is_told, is_oldest=is_oldest)
    entering = [start] * len(side.graph)
    waiting = list(range(len(entering)))[::-1]
    while waiting:
        number = waiting.pop()
        running = entering[number].joined(start)
        for event in side.blocks[number].events:
            running.see(event, side.values, bits)
        for target in side.graph[number].targets:
            together = entering[target].joined(running)
            if together.groups != entering[target].groups:
                entering[target] = together
                waiting.append(target)
    return [each.joined(start) for each in entering]


def _separated(ways: Ways, letter: int, late: int) -> Ways:
    """Longer by a separator, but for accesses that it comes too early for."""
    longer = Ways()
    for way, accesses in ways.items():
        for new, those in ((way, accesses & late), (_longer(way, letter), accesses & ~late)):
            if those:
                longer[new] = longer.get(new, 0) | those
    return longer
