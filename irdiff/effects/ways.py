"""The ways from each access of memory to others, by the barriers, fences and waits on them. Pure.

A way is described by the separators on it, and by which of them stand before which.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.values import Values

_OWN = re.compile(r"wgmma\.fence|(?:cp\.async|wgmma)\.(?:bulk\.)?(?:commit_group|wait_group|wait_all)")
GROUPS = re.compile(r"(cp\.async\.bulk|cp\.async|wgmma)\.(commit_group|wait_group|wait_all)")
_MAX_AGE = 8
"""Groups of copies or matrix instructions, of which the oldest are one."""
IN_BACKGROUND = re.compile(r"wgmma\.mma_async|cp\.(?:reduce\.)?async\.(?:c[ag]|bulk)|tcgen05\.(?:mma|cp)")
SIGNALS = re.compile(r"cp\.async\.bulk(?!.*bulk_group)|tcgen05\.(?:mma|cp)")
"""Matches what ends with an `mbarrier`. A copy to global memory does not: a thread waits for its group."""
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
    """True for a thread's own wait, group or order of registers: others see what it waits for."""
    return _OWN.match(event.operation.name) is not None


def is_of_all(values: Values, event: Event) -> bool:
    """True for a barrier that all threads of a block come to."""
    is_plain = event.guard is None and [values.value_of(each) for each in event.operands] == [0]
    return is_plain and _OF_ALL.match(event.operation.name) is not None


def is_wait_for_groups(name: str) -> bool:
    group = GROUPS.match(name)
    return group is not None and group[2] != "commit_group"


Kind = tuple[str, int | None, tuple[int, ...]]
"""The name, predicate and operands of what separates accesses."""


def are_global(pair: Sequence[Event]) -> bool:
    """A barrier of AMD alone does not order accesses of global memory."""
    return {each.effect.space for each in pair} == {"global"}


def kind_of(barrier: Event) -> Kind:
    """Returns the same for whatever separates accesses alike: a barrier of all threads has several names."""
    name = _BARRIER_OF_ALL if _OF_ALL.match(barrier.operation.name) else barrier.operation.name
    return name, barrier.guard, barrier.operands


def _is_fence_of_all(kind: Kind) -> bool:
    name, guard, _ = kind
    return guard is None and _FENCE_OF_PROXIES.match(name) is not None


def is_barrier_of_all(kind: Kind) -> bool:
    name, guard, operands = kind
    return name == _BARRIER_OF_ALL and guard is None and len(operands) < 2


def _may_change_places(one: Kind, other: Kind) -> bool:
    """A fence of proxies without a predicate may stand before or after a barrier of all threads. It has to
    lie on the way between the accesses, in the block of the one that is not of the generic proxy (Lustig
    et al., "Mixed-proxy extensions for the NVIDIA PTX memory consistency model", ISCA 2022, section 5.4).
    """
    return any(_is_fence_of_all(a) and is_barrier_of_all(b) for a, b in ((one, other), (other, one)))


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


class _WayStep(NamedTuple):
    """The effect of an event on the ways that reach it."""

    access: int = 0
    """Its bit, if it is an access."""
    start: int = 0
    """The way that begins at the access."""
    letter: int | None = None
    """The separator that it is."""
    late: int = 0
    """The accesses that the separator comes too early for."""
    waits_for_none: bool = False
    """True if it comes too early for all that runs in the background."""
    group: tuple[str, int] | None = None
    """The kind of what it waits for; how many of its youngest groups it leaves, `_CLOSES` or `_ENDS_ALL`."""
    is_wait: bool = False
    """True if it separates only what it waits for."""


_Split = list[tuple[int, int]]
"""Ways, each with the accesses that it is the way of."""


class _WaysOfSide:
    """The ways through each block of one side."""

    def __init__(self, steps: Sequence[Sequence[_WayStep]]) -> None:
        self._steps = steps
        self.accesses = functools.reduce(operator.or_, (step.access for own in steps for step in own), 0)
        self._through: dict[tuple[int, int], tuple[dict[int, _Split], _Split]] = {}
        self.directly: dict[int, Ways] = {}
        """By access, the ways to it from others before it in its block."""
        self.leaving = [self._run(number) for number in range(len(steps))]
        """By block, the ways from its accesses to its end."""

    def _run(self, number: int) -> _Split:
        before = Ways()
        for step in self._steps[number]:
            if step.access:
                self.directly[step.access] = dict(before)
                before[step.start] = before.get(step.start, 0) | step.access
            before = _behind(before, step)
        return [*before.items()]

    def through(self, number: int, way: int) -> tuple[dict[int, _Split], _Split]:
        """A way that enters a block, where it reaches each access, and where it leaves."""
        if (number, way) not in self._through:
            now, reached, split = {way: -1}, dict[int, _Split](), [(way, -1)]
            for step in self._steps[number]:
                if step.access:
                    reached[step.access] = split
                behind = _behind(now, step)
                if behind is not now:
                    now, split = behind, [*behind.items()]
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
            _WaysOfSide(_steps(side, letters, bits, is_oldest=is_oldest)) for side in (base, head)
        )
        self._together = defaultdict[int, dict[tuple[int, int], int]](dict)
        """By access, the ways of base and of head on the same paths."""
        self.left_running = 0
        """The accesses that still run where head ends, and that base waits for."""
        self._follow([node.targets for node in base.graph])

    def _follow(self, targets: Sequence[Sequence[int]]) -> None:
        new: list[dict[tuple[int, int], int]] = [{} for _ in targets]
        entered: list[dict[tuple[int, int], int]] = [{} for _ in targets]

        def enter(number: int, ways: Collection[tuple[int, int, int]]) -> None:
            if not targets[number]:
                running = (own for one, other, own in ways if other >> _STATE and not one >> _STATE)
                self.left_running = functools.reduce(operator.or_, running, self.left_running)
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
        """True if head has the access."""
        return bool(access & self._head.accesses)

    def worse(self, access: int, mask: int, enough: int = 0) -> int:
        """The accesses from which head has a way that base has more on, of separators in a mask.

        enough: separators any of which keeps apart what those in the mask do.
        A way within a block is compared with all of base: the shortest of these is within the block, too.
        """
        together = self._together[access]
        worse_accesses = 0
        for (one, other), accesses in together.items():
            if one & mask & ~other and not other & enough:
                worse_accesses |= accesses
        for way, accesses in self._head.directly[access].items():
            left = accesses & ~worse_accesses
            if not left or not mask & ~way or way & enough:
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
) -> list[list[_WayStep]]:
    """By block, of the events that change ways.

    Neither a barrier of threads nor a fence waits for what runs in the background: its thread waits before.
    is_oldest: whether a wait for groups ends all of them: so it is for what the oldest round of a loop began.
    """
    events = [event for block in side.blocks for event in block.events]
    at_line = dict[int, int]()
    for event in events:
        if event.number in bits:
            at_line[event.line] = at_line.get(event.line, 0) | bits[event.number]
    is_told = any(event.operation.name.startswith("cp.async.mbarrier") for event in events)
    waits = {kind[0]: n for kind, n in letters.items() if is_wait_for_groups(kind[0])}

    def step(event: Event) -> _WayStep:
        name, access = event.operation.name, bits.get(event.number, 0)
        is_wait = event.guard is None and name in waits  # how many groups it leaves does not count for these
        letter = waits[name] if is_wait else None if access else letters.get(kind_of(event))
        late = functools.reduce(operator.or_, (at_line.get(line, 0) for line in event.pending), 0)
        return _WayStep(
            access=access,
            start=_running(_runs_as(name), 0) if access and IN_BACKGROUND.match(name) else 0,
            letter=letter,
            late=late if letter is not None else 0,
            waits_for_none=_WAITS_FOR_NONE.match(name) is not None,
            group=_group(event, side.values, is_told=is_told, is_oldest=is_oldest),
            is_wait=is_wait_for_groups(name),
        )

    steps = ([step(event) for event in block.events] for block in side.blocks)
    return [[each for each in own if each.access or each.group or each.letter is not None] for own in steps]


_KINDS = "cp.async.bulk", "cp.async", "wgmma", "tcgen05"
_SIGNALLED = "what an `mbarrier` tells of"
_CLOSES, _ENDS_ALL = -2, -1
_STATE = _MOST + _MOST * _MOST
"""Above the separators of a way: of what kind the access runs in the background, and in which of its groups,
the youngest first; the first is not complete. 0 where it has ended.
"""


def _runs_as(name: str) -> str:
    return next(each for each in _KINDS if name.replace("cp.reduce.", "cp.").startswith(each))


def _running(kind: str, age: int) -> int:
    return 1 + _KINDS.index(kind) + len(_KINDS) * min(age, _MAX_AGE) << _STATE


def _group(event: Event, values: Values, *, is_told: bool, is_oldest: bool) -> tuple[str, int] | None:
    name = event.operation.name
    if ENDS_WAITING.match(name):
        return _SIGNALLED, int(is_told)
    if not (group := GROUPS.match(name)):
        return None
    kind, word = group.groups()
    if word == "commit_group":
        return kind, _CLOSES
    if word != "wait_group":
        return kind, _ENDS_ALL
    if is_oldest:
        return kind, 0
    counts = (values.value_of(each) for each in event.operands)
    return kind, next((each for each in counts if each is not None), 0)


def _after(way: int, group: tuple[str, int]) -> int:
    """A way behind what waits for groups, or closes one. No `wait_group` waits for what is not committed."""
    state = (way >> _STATE) - 1
    if state < 0:
        return way
    age, kind = divmod(state, len(_KINDS))
    plain, own = way & (1 << _STATE) - 1, _KINDS[kind]
    waited, count = group
    if waited == _SIGNALLED:
        return way if own == "wgmma" or (own == "cp.async" and not count) else plain
    if waited != own:
        return way
    if count == _CLOSES:
        return plain | _running(own, age + 1)
    return way if age <= count else plain


def _behind(ways: Ways, step: _WayStep) -> Ways:
    """Longer by a separator, but for accesses that it comes too early for."""
    _, _, letter, late, waits_for_none, group, is_wait = step
    if letter is None and group is None:
        return ways
    behind = Ways()
    for way, accesses in ways.items():
        is_late = letter is None or (waits_for_none and way >> _STATE)
        for those, is_longer in ((accesses & late, False), (accesses & ~late, not is_late)):
            if those:
                new = _after(way, group) if group else way
                if is_longer and letter is not None and not (is_wait and new >> _STATE):
                    new = _longer(new, letter)
                behind[new] = behind.get(new, 0) | those
    return behind
