"""Compares synchronization: what keeps fewer accesses in order, and what only waits for more. Pure.

A barrier of AMD orders accesses to global memory only together with a wait, and this wait may stand there for
another reason. So nobody can tell whether base wanted the order. If such a barrier is gone, the order of two
accesses to global memory is not shown, and no hazard.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from irdiff.effects import memory_order, order, separation, ways
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.uniform import is_harmless
from irdiff.effects.witnesses import Witnesses, code, noun
from irdiff.ir.program import Act
from irdiff.ir.synchronization import WAIT_IN_LLVM_IR
from irdiff.model import Harmless, Hazard, HazardKind, NotShown

_Difference = Hazard | Harmless | NotShown
_SEPARATES = re.compile(r"bar\b|barrier\b|fence|s_barrier|tcgen05\.wait|llvm\..*(?:barrier|bar\.)")
_NEEDED_ONLY_BETWEEN = re.compile(
    r"bar\.(?:warp\.)?sync|barrier\.(?:cta\.)?sync|s_barrier|tcgen05\.wait::st|llvm\..*barrier(?!\.cluster)"
)
"""Barriers of all threads of a block and waits for stores to tensor memory: they keep accesses apart and do
no more. A wait for loads also says when their registers may be read.
"""
_FENCE = "fence.proxy.async.shared::cta"
_TELLS = re.compile(r"arrive|cluster|mbarrier|\.(?:acquire|release|acq_rel|volatile|relaxed)")
_SUM_UP = frozenset({Act.ATOMIC, Act.LANES})
_SUMS = re.compile(r"[._](add|min|max|and|or|xor|exch|cas|inc|dec|swap|cmpswap)(?=[._]|$)")
_WAITS_FOR = re.compile(r"wait_(?:group|all)|wait\.asyncmark|wait_group")
"""With a number: as many of the youngest may still run."""
_GROUPS = re.compile(r"(?:cp\.async|wgmma)\.(?:bulk\.)?(?:commit|wait)_group|wgmma\.fence")
_COUNTS = re.compile(r"(?<!cluster\.)arrive|expect_tx|mbarrier\.(?:init|inval)|commit")


class Synchronization:
    """Compares the synchronization of two numbered functions."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses) -> None:
        self._base, self._head = base, head
        self._values = base.values
        self._witnesses = witnesses
        self.separation = separation.Separation(base, head)

    def gone(self, event: Event) -> Iterator[_Difference]:
        name, act = event.operation.word, event.effect.act
        before, after = (self._count(side, name) for side in (self._base, self._head))
        if act is Act.STATES:
            yield NotShown(reason="there are fewer wait states", detail=name)
        elif _GROUPS.match(name) and self._groups(self._base) != self._groups(self._head):
            yield self._group_gone(event)
        elif not _SEPARATES.match(name):
            if _COUNTS.search(name) and before > after:
                what = f"lacks {noun(event)}, which base has"
                witness = self._witnesses.alone(event, is_gone=True)
                yield Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
            else:
                yield from self._of_wait(event) if before > after else [self._elsewhere(event)]
        else:
            yield self._separates_less(event)

    def _group_gone(self, event: Event) -> _Difference:
        """Where no other group or wait is new or gone, whoever reads what a copy writes may miss the wait."""
        ours, theirs = self._groups(self._base), self._groups(self._head)
        is_alone = not theirs - ours and {*(ours - theirs)} == {ways.kind_of(event)}
        lost = self.separation.lost(event) if is_alone else None
        pair = lost.pair if lost else None
        # who read what a copy wrote has waited for it, by whatever wait: then the place may be written again
        is_wait_of_copies = "wait" in event.operation.word and {each.effect.act for each in pair or ()} == {
            Act.COPY
        }
        if pair and not is_wait_of_copies:
            return self._missed(event, pair)
        witness = self._witnesses.alone(event, is_gone=True)
        return NotShown(reason=f"{noun(event)} is gone, and groups are waited for otherwise", witness=witness)

    @staticmethod
    def _groups(side: NumberedFunction) -> Counter[object]:
        """Groups and waits for them, by what they are and how many a wait leaves unfinished."""
        events = (event for block in side.blocks for event in block.events)
        return Counter(ways.kind_of(event) for event in events if _GROUPS.match(event.operation.word))

    def _of_wait(self, event: Event) -> Iterator[_Difference]:
        """A wait for what runs in the background: what starts it, and what reads behind it."""
        own = next(block.events for block in self._base.blocks if event in block.events)
        place = own.index(event)
        started = [each for each in own[:place] if each.effect.act in (Act.COPY, Act.MATRIX)]
        others = [
            each
            for block in self._base.blocks
            for each in block.events
            if each.effect.act in (Act.COPY, Act.MATRIX)
        ]
        one = next(iter([*started[-1:], *others[-1:]]), None)
        after = [*own[place + 1 :], *(each for block in self._base.blocks for each in block.events)]
        read = next(
            (each for each in after if each.effect.act in (Act.LOAD, Act.MATRIX) and each != one), None
        )
        witness = self._witnesses.alone(event, is_gone=True)
        if one is None or read is None:
            yield NotShown(
                reason=f"{noun(event)} is gone, and what it waits for is not seen", witness=witness
            )
            return
        yield self._missed(event, (one, read))

    def _missed(
        self, event: Event, pair: tuple[Event, Event], moved: Sequence[Event] = ()
    ) -> Hazard | NotShown:
        """moved: what has changed places."""
        between = f"{noun(event)} between a {noun(pair[0])} and a {noun(pair[1])}"
        what, witness = f"has no {between}, which base has", self._witnesses.ordered(*pair, event)
        if moved and ways.is_wait_for_groups(event.operation.name):
            what = f"does not wait for a {noun(pair[0])} before a {noun(pair[1])}, as base does"
            witness = self._witnesses.of_all((*pair, *moved))
        if event.operation.word == "s_barrier" and ways.are_global(pair):
            reason = f"{between} is gone, and it may have been there for shared memory alone"
            return NotShown(reason=reason, witness=witness)
        return Hazard(kind=HazardKind.ORDER, what=what, witness=witness)

    def _separates_less(self, event: Event) -> _Difference:
        lost = self.separation.lost(event)
        if lost.pair and event.operation.word.startswith("fence ") and self._waits_more():
            return self._elsewhere(event)
        if lost.pair:
            return self._missed(event, lost.pair)
        is_divided = separation.is_divided(self._base, event) or not is_harmless(self._base, event)
        if lost.is_complete and self._is_only_between(event) and not is_divided:
            what = f"{noun(event)} is gone: the synchronization that remains orders the same accesses"
            return Harmless(what=what)
        return self._elsewhere(event)

    def _waits_more(self) -> bool:
        """True if head has more of AMD's waits, which order like fences."""
        before, after = (self._count(side, WAIT_IN_LLVM_IR) for side in (self._base, self._head))
        return after > before

    def _is_only_between(self, event: Event) -> bool:
        """True if an event keeps accesses apart and does no more."""
        is_fence = event.operation.word == _FENCE
        return _NEEDED_ONLY_BETWEEN.match(event.operation.word) is not None or (
            is_fence and not self._tells_otherwise()
        )

    def _tells_otherwise(self) -> bool:
        """True if threads of base may wait for one another by more than barriers of all threads."""
        names = {event.operation.word for block in self._base.blocks for event in block.events}
        return any(_TELLS.search(name) for name in names)

    def _elsewhere(self, event: Event) -> NotShown:
        name = event.operation.word
        before, after = (self._count(side, name) for side in (self._base, self._head))
        words = "is gone" if before > after else "is in another place"
        witness = self._witnesses.alone(event, is_gone=True)
        return NotShown(
            reason=f"{noun(event)} {words}, and it is not shown that the rest is enough", witness=witness
        )

    def new(self, event: Event) -> Iterator[_Difference]:
        name = event.operation.word
        is_divided = _SEPARATES.match(name) and separation.is_divided(self._head, event)
        is_barrier = ways.BARRIER.match(name) is not None
        is_alone = is_divided or (is_barrier and not self.separation.is_in_step)
        if is_harmless(self._head, event) and not is_alone:
            yield Harmless(what=f"{noun(event)} is new")
        else:
            reason = f"{noun(event)} is new, and not shown to be harmless"
            yield NotShown(reason=reason, witness=self._witnesses.alone(event, is_gone=False))

    def exchanged(self, one: Event, other: Event, *, is_alone: bool) -> Iterator[_Difference]:
        """Two effects of base, the first of which stands behind the second at head.

        is_alone: whether the order of effects is all that differs, so no new one makes up for it.
        """
        what = f"makes the {noun(other)} before the {noun(one)}, which base makes first"
        witness = self._witnesses.ordered(one, other)
        barriers = [each for each in (one, other) if each.effect.act is Act.SYNC]
        if barriers:
            lost = [self.separation.lost(each) for each in barriers]
            for barrier, of_it in zip(barriers, lost, strict=True):
                if of_it.pair:
                    yield self._missed(barrier, of_it.pair, (one, other))
                    return
            is_late = "wait" in one.operation.word and self._is_only_between(other)
            is_barrier = not is_late and all(
                self._is_only_between(each) or ways.is_own(each) for each in barriers
            )
            if not is_barrier and is_alone:
                yield Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
                return
            if is_barrier and all(each.is_complete for each in lost):
                yield Harmless(
                    what=f"{noun(barriers[0])} is in another place: the same accesses are kept apart"
                )
                return
        elif order.same_bytes(self._values, one, other) or _publishes(one, other):
            yield Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
            return
        yield NotShown(reason=f"a {noun(one)} and a {noun(other)} have changed places", witness=witness)

    @staticmethod
    def _count(side: NumberedFunction, name: str) -> int:
        return sum(each.operation.word == name for block in side.blocks for each in block.events)


def _publishes(one: Event, other: Event) -> bool:
    """True if other threads rely on the order of two accesses: the first keeps order and is no release, or
    the second keeps order and is no acquire.
    """
    return (one.operation.keeps_order and "release" not in one.operation.word) or (
        other.operation.keeps_order and "acquire" not in other.operation.word
    )


def has_new_fences(base: NumberedFunction, head: NumberedFunction) -> bool:
    ours, theirs = (
        Counter(
            event.operation.word
            for block in side.blocks
            for event in block.events
            if event.operation.word.startswith("fence")
        )
        for side in (base, head)
    )
    return bool(theirs - ours)


def renamed(witnesses: Witnesses, one: Event, other: Event, *, is_fenced: bool) -> _Difference:
    """One effect that orders accesses, by another operation.

    is_fenced: whether head has fences that base lacks, which may order what the operation no longer does.
    """
    ours, theirs = one.operation.word, other.operation.word
    witness = witnesses.of(one, other)
    if ours == f"{theirs}.read":
        return Harmless(what=f"{noun(other)} waits for more")
    words = f"{code(one.operation)} → {code(other.operation)}"
    if memory_order.is_comparable(one, other):
        if memory_order.is_less(one, other) or theirs == f"{ours}.read":
            if is_fenced and one.effect.act is Act.ATOMIC:
                reason = "an atomic operation orders accesses less, and a fence is new"
                return NotShown(reason=reason, detail=words, witness=witness)
            return Hazard(kind=HazardKind.ORDER, what=f"orders accesses less: {words}", witness=witness)
        if memory_order.unordered(ours) == memory_order.unordered(theirs):
            return Harmless(what=f"accesses are ordered more: {words}")
    is_other = one.effect.act is other.effect.act is Act.ATOMIC and memory_order.is_equal(one, other)
    reason = "another operation" if is_other else "may order accesses differently"
    return other_sum(witnesses, one, other) or NotShown(reason=reason, detail=words, witness=witness)


def other_sum(witnesses: Witnesses, one: Event, other: Event) -> Hazard | None:
    """Returns a hazard if two atomic operations, or exchanges between lanes, compute something else."""
    sums = [_SUMS.search(each.operation.word) for each in (one, other)]
    before, after = (found[1] if found else "" for found in sums)
    if not before or not after or before == after or {one.effect.act, other.effect.act} - _SUM_UP:
        return None
    what = f"computes `{after}` in a {noun(other)}, not `{before}`"
    return Hazard(kind=HazardKind.VALUE, what=what, witness=witnesses.of(one, other))


def is_group_wait(event: Event) -> bool:
    return "wait_group" in event.operation.word


def is_of_mbarrier(event: Event) -> bool:
    """True if an operation names an `mbarrier`, arrives at a barrier (not of a cluster), or commits."""
    return "mbarrier" in event.operation.word or _COUNTS.search(event.operation.word) is not None


def of_states(one: Event, other: Event) -> _Difference:
    before, after = (int(each.operation.word.split()[-1]) for each in (one, other))
    if after > before:
        return Harmless(what="there are more wait states")
    return NotShown(reason="there are fewer wait states", detail=f"{before + 1} → {after + 1}")


def counts(
    sides: Sequence[NumberedFunction],
    witnesses: Witnesses,
    one: Event,
    other: Event,
    pair: tuple[int, int],
) -> _Difference | None:
    """A wait that leaves more unfinished, or fewer; None for what is no such wait."""
    numbers = [sides[0].values.value_of(each) for each in pair]
    if one.effect.act is not Act.SYNC or not _WAITS_FOR.search(one.operation.word) or None in numbers:
        return None
    before, after = (int(each or 0) for each in numbers)
    if after < before:
        return Harmless(what=f"{noun(other)} waits for more")
    what = f"leaves {after} groups unfinished at a {noun(other)}, where base leaves {before}"
    witness = witnesses.of(one, other)
    if len({_groups_of_kind(side, one) for side in sides}) > 1:  # of more groups, more may be left
        return NotShown(reason="there are other groups, and waits for them", detail=what, witness=witness)
    return Hazard(kind=HazardKind.ORDER, what=what, witness=witness)


def _groups_of_kind(side: NumberedFunction, wait: Event) -> tuple[int, int]:
    """How many groups of what a wait is for are made, and how many waits for them there are."""
    kind = wait.operation.word.partition("wait_group")[0]
    words = [each.operation.word for block in side.blocks for each in block.events]
    own = [word for word in words if word.startswith(kind)]
    return sum("commit_group" in word for word in own), sum("wait_group" in word for word in own)
