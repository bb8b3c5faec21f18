"""Compares two functions of one shape, and gives each difference its evidence. Pure.

Effects that only one side has are paired within their block. The predicate, address and operands of a pair
are followed down to the values that differ first. Those are tried on samples. What is shown to differ is a
hazard, what is near is rounding, and what cannot be decided is not shown. `doubts` then decides which hazards
stay hazards beside the other differences.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irdiff.effects import (
    facets,
    order,
    pairs,
    predicates,
    rounding,
    rounds,
    synchronization,
    whole_functions,
)
from irdiff.effects.doubts import Difference, Doubts, writes
from irdiff.effects.facets import Facet
from irdiff.effects.nearness import Likeness
from irdiff.effects.numbering import LOADS, Event, NumberedFunction
from irdiff.effects.roots import Root, Roots
from irdiff.effects.uniform import Uniform
from irdiff.effects.witnesses import Witnesses, code, noun
from irdiff.ir.program import PRIVATE, Act
from irdiff.model import Harmless, Hazard, HazardKind, NotShown, Rounding, RoundingKind

_MAX_NOT_SHOWN = 4
"""More are not told."""
_PLAIN = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC, Act.COPY})


class Differences:
    """The differences of two numbered functions whose blocks correspond."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction, witnesses: Witnesses) -> None:
        self._sides = self._base, self._head = base, head
        self._values = base.values
        self._witnesses = witnesses
        self._sync = synchronization.Synchronization(base, head, witnesses)
        self._threads = predicates.Threads(base)
        self.shared = base.values_of & head.values_of
        self._roots = Roots(base, head, self.shared, {})
        self._samples = self._roots.samples_of_both()
        self._doubts = Doubts()
        self._used: list[Facet] = []

    def similarity(self, base: int, head: int) -> Likeness:
        """Compares two values by samples of what both sides have."""
        return self._samples.compare(base, head)

    @functools.cached_property
    def _uniform(self) -> tuple[Uniform, Uniform]:
        return Uniform(self._base), Uniform(self._head)

    @functools.cached_property
    def uses(self) -> set[Likeness]:
        """Returns what samples say of the values that differ where effects or branches use them."""
        return {self._roots.tried(facet.base, facet.head) for facet in self._used}

    def all(self) -> list[Difference]:
        """Empty where both do the same."""
        return self._doubts.settled(self._each())

    def if_harmless(self) -> list[Harmless] | None:
        """None as soon as one is not harmless."""
        harmless = dict[Harmless, None]()
        for each in self._each():
            if not isinstance(each, Harmless):
                return None
            harmless[each] = None
        return [*harmless]

    def _each(self) -> Iterator[Difference]:
        both = list(zip(self._base.blocks, self._head.blocks, strict=True))
        unequal = [
            (pairs.unequal(one.events, other.events), pairs.unequal(other.events, one.events))
            for one, other in both
        ]
        exchanged = [_in_another_order(*events) for events in unequal]
        paired = [
            [pair for pair in pairs.paired(*events) if all(pair) or not any(map(_is_pure, pair))]
            for events in unequal
        ]
        matched = [(one, other) for own in paired for one, other in own if one and other]
        partners = {one.number: other.number for one, other in matched}
        self._roots = Roots(self._base, self._head, self.shared, partners)
        conditions = [
            (n, a.condition, b.condition) for n, (a, b) in enumerate(both) if a.condition != b.condition
        ]
        changed, differences = any(paired) or conditions, list[Difference]()
        for each in itertools.chain(
            self._of_all(paired, conditions, {id(each) for row in exchanged for each in row}),
            self._of_lanes([event for events in exchanged for event in events]),
            whole_functions.pending(*self._sides, self._witnesses, self._sync.separation),
        ):
            differences.append(each)
            yield each
        if changed and not differences:
            differences.append(NotShown(reason="effects differ, and where is not found"))
            yield differences[0]
        if not any(isinstance(each, Hazard | NotShown) for each in differences):
            pairs_ = [pair for own in paired for pair in own]
            is_rounded = any(isinstance(each, Rounding) for each in differences)
            yield from whole_functions.others(
                *self._sides, self._witnesses, self._sync, pairs_, is_rounded=is_rounded
            )

    def _of_all(
        self,
        paired: Sequence[Sequence[tuple[Event | None, Event | None]]],
        conditions: Sequence[tuple[int, int | None, int | None]],
        exchanged: set[int],
    ) -> Iterator[Difference]:
        used = list[Facet]()
        alone = list[tuple[Event | None, Event | None]]()
        for one, other in (pair for own in paired for pair in own):
            if not (one and other):
                alone.append((one, other))
            elif id(one) not in exchanged:
                yield from self._noted(self._of_names(one, other), one)
                if self._has_same_stores(one, other):
                    yield Harmless(
                        what=f"{noun(one)} is made by other threads of several that store the same"
                    )
                else:
                    used += facets.of_pair(self._values, one, other)
                    self._doubts.are_copies_shared_out |= _is_other_copy(one, other)
        if len(conditions) > 1 and _are_exchanged([(before, after) for _, before, after in conditions]):
            self._doubts.is_place_unclear = self._doubts.is_control_unclear = True
            yield NotShown(reason="branches have changed places")
            conditions = []
        for number, before, after in conditions:
            if before is not None and after is not None:
                what, name = "takes a branch, or ends a loop, by another condition", f"branch {number}"
                used.append(
                    Facet(
                        kind=HazardKind.CONTROL, what=what, noun=name, base=before, head=after, branch=number
                    )
                )
            else:
                self._doubts.is_place_unclear = self._doubts.is_control_unclear = True
                yield NotShown(reason="a block ends otherwise")
        stored = [facet for facet in used if facet.is_stored_to_share]
        self._doubts.are_values_elsewhere = len(stored) > 1 and (
            Counter(facet.base for facet in stored) == Counter(facet.head for facet in stored)
        )
        self._used = used
        yield from self._of_facets()
        for one, other in alone:
            event = one or other
            assert event
            if event.effect.act in (Act.SYNC, Act.STATES):
                yield from self._noted(self._sync.gone(event) if one else self._sync.new(event), event)
            else:
                yield self._alone(event, is_gone=bool(one))

    def _noted(self, differences: Iterable[Difference], *events: Event) -> Iterator[Difference]:
        """Remembers what a wait for groups, a barrier in memory, or a copy makes differ."""
        for each in differences:
            if any(event.effect.act is Act.COPY for event in events):
                self._doubts.of_copies.add(each)
            if any(map(synchronization.is_of_mbarrier, events)):
                self._doubts.of_mbarriers[each] = events[0].operation.word
            if any(map(synchronization.is_group_wait, events)):
                self._doubts.of_waits.add(each)
            yield each

    # one pair

    def _of_names(self, one: Event, other: Event) -> Iterator[Difference]:
        ours, theirs = one.operation, other.operation
        if ours.name == theirs.name:
            return
        if ours.word == theirs.word:
            yield self._witnesses.early(one, other)
        elif one.effect.act is Act.STATES:
            yield synchronization.of_states(one, other)
        elif one.effect.act in (Act.SYNC, Act.ATOMIC) or ours.keeps_order or theirs.keeps_order:
            is_fenced = synchronization.has_new_fences(*self._sides)
            yield synchronization.renamed(self._witnesses, one, other, is_fenced=is_fenced)
        elif one.effect.act is Act.MATRIX or (ours.is_float and theirs.is_float):
            yield self._other_arithmetic(one, other)
        elif (
            one.effect.size != other.effect.size and one.address == other.address and one.effect.act in _PLAIN
        ):
            what = f"makes a {noun(one)} of {other.effect.size} bytes, not of {one.effect.size}"
            yield Hazard(kind=HazardKind.ACCESS, what=what, witness=self._witnesses.of(one, other))
        else:
            if other_sum := synchronization.other_sum(self._witnesses, one, other):
                yield other_sum
                return
            self._doubts.is_place_unclear |= one.effect.act in _PLAIN
            self._doubts.writes_moved.add(one.effect.space)
            words = f"{code(ours)} → {code(theirs)}"
            yield NotShown(reason="another operation", detail=words, witness=self._witnesses.of(one, other))

    def _other_arithmetic(self, one: Event, other: Event) -> Difference:
        ours, theirs = one.operation.word, other.operation.word
        witness, shapes = self._witnesses.of(one, other), [_SHAPE.findall(name) for name in (ours, theirs)]
        if shapes[0] == shapes[1] and _SHAPE.sub("", _TYPES.sub("", ours)) == _SHAPE.sub(
            "", _TYPES.sub("", theirs)
        ):
            return Rounding(kind=RoundingKind.PRECISION, base=ours, head=theirs, witness=witness)
        return Hazard(
            kind=HazardKind.VALUE,
            what=f"computes {code(other.operation)}, not {code(one.operation)}",
            witness=witness,
        )

    def _has_same_stores(self, one: Event, other: Event) -> bool:
        """True if two stores differ in their predicates alone, and are the same under either."""
        parts = [(each.operation.name, each.lanes, each.address, each.operands) for each in (one, other)]
        base, head = facets.guards(self._values, one, other)
        return base != head and parts[0] == parts[1] and self._threads.are_equal(base, head, one)

    def _of_facets(self) -> Iterator[Difference]:
        count = 0
        for facet in self._used:
            is_doubted = facet.kind is HazardKind.VALUE or self._doubts.is_place_unclear
            if count >= _MAX_NOT_SHOWN and is_doubted and facet.kind is not HazardKind.ORDER:
                self._doubts.is_control_unclear |= facet.kind is HazardKind.CONTROL
                if facet.events and (facet.is_address or facet.is_guard):
                    self._doubts.writes_moved.add(facet.events[0].effect.space)
                continue  # whatever it is, it is not shown
            for each in self._noted(self._of_facet(facet), *(facet.events or ())[:1]):
                count += isinstance(each, NotShown)
                yield each

    def _of_facet(self, facet: Facet) -> Iterator[Difference]:
        if facet.kind is HazardKind.ORDER and facet.events:
            fewer = synchronization.counts(
                self._sides, self._witnesses, *facet.events, (facet.base, facet.head)
            )
            if fewer:
                yield fewer
                return
        roots = self._roots.between(facet.base, facet.head)
        if (
            roots
            and (early := [each for each in map(self._of_waiting, roots) if each])
            and len(early) == len(roots)
        ):
            yield from early
        elif roots:  # else it differs only since effects do that are a pair
            yield from self._of_roots(facet, roots)

    def _of_roots(self, facet: Facet, roots: Sequence[Root]) -> Iterator[Difference]:
        is_place = facet.is_address or facet.is_guard
        if not is_place and all(self._roots.is_rounding(root) for root in roots):
            for root in roots:
                kind, ours, theirs = rounding.kind_of(self._values, self.shared, root.base, root.head)
                witness = self._witnesses.of_values(root.base, root.head)
                yield Rounding(kind=kind, base=ours, head=theirs, witness=witness)
            return
        if is_place and facet.events and writes(facet.events[0].effect.act):
            self._doubts.writes_moved.add(facet.events[0].effect.space)
        if facet.is_address and facet.events:
            effect = facet.events[0].effect
            self._doubts.moved[effect.act, effect.space] |= {each.constants for each in roots}
        root = next((each for each in roots if each.similarity is Likeness.OTHER), roots[0])
        witness = self._witnesses.of_facet(facet.events, root.base, root.head)
        if self._is_shown(facet, roots):
            yield Hazard(kind=facet.kind, what=facet.what, witness=witness, detail=self._detail(root))
            return
        self._doubts.is_place_unclear |= is_place or facet.kind is HazardKind.CONTROL
        self._doubts.is_copy_unclear |= is_place and any(map(_is_of_copies, facet.events or ()))
        self._doubts.is_control_unclear |= facet.kind is HazardKind.CONTROL
        is_equal = all(each.similarity is Likeness.EQUAL for each in roots)
        why = "equal in every sample, but not proved equal" if is_equal else "not proved equal"
        yield NotShown(reason=f"another expression computes the {facet.noun}: {why}", witness=witness)

    def _of_waiting(self, root: Root) -> Difference | None:
        """Returns the difference of two values that wait differently for what they read; None for others."""
        made = [self._values.made_by.get(each) for each in (root.base, root.head)]
        if self._values.keys[root.base][0] == "waited for" and self._values.keys[root.base][2] == root.head:
            witness = self._witnesses.of_values(root.base, root.head)
            if self._values.keys[root.base][1] == LOADS:  # LLVM moves it so, and ptxas may wait by itself
                reason = "head reads what a load of tensor memory writes before the wait for it"
                return NotShown(reason=reason, witness=witness)
            what = "reads what a matrix unit writes before the wait for it, which base waits for"
            return Hazard(kind=HazardKind.ORDER, what=what, witness=witness)
        if self._values.keys[root.head][0] == "waited for" and self._values.keys[root.head][2] == root.base:
            return NotShown(reason="base reads what is written in the background before the wait for it")
        if not (made[0] and made[1]) or made[0].word != made[1].word or made[0].early == made[1].early:
            return None
        return self._witnesses.early_values((made[0], root.base), (made[1], root.head))

    def _is_shown(self, facet: Facet, roots: Sequence[Root]) -> bool:
        """True if samples, or the only root of the difference, show that two values differ."""
        if facet.events:
            event = facet.events[0]
            is_chosen = facet.is_guard and self._threads.choose(facet.base, facet.head, event)
            if is_chosen or self._has_other_lanes(event):
                return False
        keys = [self._values.keys[each] for each in (facet.base, facet.head)]
        if facet.is_guard and all(key[0] == "or" and key[1] > 1 for key in keys):
            return False  # AMD: lanes that are joined again may be all that there were
        if facet.events and _is_prefetch(facet.events[0]):
            return False
        if facet.events and "tensormap" in facet.events[0].operation.word:
            return False  # a descriptor may be kept in another place
        if facet.events and facet.events[0].operation.word.startswith("tcgen05.mma"):
            fixed = [constant >> 46 & 7 for constant in roots[0].constants or ()]
            if fixed and fixed[0] != fixed[1] == 1:
                return False  # what head has is fixed (PTX ISA, "Shared Memory Descriptor", bits 46 to 48)
        if any(map(self._roots.may_be_equal, roots)) or not self._is_other(facet, roots):
            return False
        if facet.branch is not None and self._leaves_in_same_round(facet.branch, facet):
            return False
        return not self._is_equal_where_it_counts(facet)

    def _is_other(self, facet: Facet, roots: Sequence[Root]) -> bool:
        """True if two values are shown to differ, wherever their effect is reached or not."""
        if self._samples.compare(facet.base, facet.head) is Likeness.OTHER:
            return True
        root = roots[0]
        if len(roots) > 1 or root.is_guess or root.is_cut:
            return False
        if predicates.are_opposite(self._values, root.base, root.head):
            return True
        is_control = facet.kind is HazardKind.CONTROL  # elsewhere a difference may be lost on the way
        is_seen = (
            is_control
            or self._roots.tried(facet.base, facet.head) is not Likeness.EQUAL
            or self._samples.differ_at_a_bound(facet.base, facet.head)
        )
        return is_seen and root.similarity is Likeness.OTHER

    def _is_equal_where_it_counts(self, facet: Facet) -> bool:
        """True if two values are equal in all samples in which their effect is reached and acts.

        What a masked store would store elsewhere does not count.
        """
        conditions = set[tuple[int, bool]]()
        if facet.is_guard:
            return False
        for side, uniform, event in zip(self._sides, self._uniform, facet.events or (), strict=False):
            conditions |= uniform.on_every_way_to(event)
            masks = (mask for mask in (event.guard, event.lanes) if mask is not None)
            conditions |= {(mask, True) for mask in masks if mask != side.all_lanes}
        return bool(conditions) and self._roots.are_equal_where(facet.base, facet.head, conditions)

    def _leaves_in_same_round(self, branch: int, facet: Facet) -> bool:
        """True if a branch ends a loop, and both conditions do so in the same round."""
        is_exit = self._uniform[0].is_exit(branch)
        return is_exit and rounds.are_equal(self._values, self._roots.joins, facet.base, facet.head)

    def _has_other_lanes(self, event: Event) -> bool:
        """True for an exchange between lanes, if the sides have other numbers of these."""
        counts = (
            sum(each.effect.act is Act.LANES for block in side.blocks for each in block.events)
            for side in self._sides
        )
        return event.effect.act is Act.LANES and len({*counts}) > 1

    def _detail(self, root: Root) -> str:
        """How a root differs: a constant, or the operation."""
        if root.constants:
            return f"{root.constants[0]} → {root.constants[1]}"
        keys = [self._values.keys[each] for each in (root.base, root.head)]
        if keys[0][0] == keys[1][0] == "text":
            return f"{keys[0][1]} → {keys[1][1]}"
        names = [self._witnesses.name_of(each) for each in (root.base, root.head)]
        if all(name.startswith("not ") for name in names):
            names = [name.removeprefix("not ") for name in names]
        return f"{names[0]} → {names[1]}" if all(names) and names[0] != names[1] else ""

    # effects that only one side has

    def _alone(self, event: Event, *, is_gone: bool) -> Difference:
        act, space = event.effect.act, event.effect.space
        if _is_prefetch(event):
            words = "is gone" if is_gone else "is new"
            reason = f"a {noun(event)} {words}, and whether its operands are valid is not shown"
            return NotShown(reason=reason, witness=self._witnesses.alone(event, is_gone=is_gone))
        (self._doubts.gone if is_gone else self._doubts.new)[act, space] += 1
        name = f"a {noun(event)}"
        words = f"lacks {name} that base makes" if is_gone else f"makes {name} that base does not make"
        witness = self._witnesses.alone(event, is_gone=is_gone)
        if self._is_part_of_another(event, self._head if is_gone else self._base):
            self._doubts.is_place_unclear = True
            return NotShown(
                reason=f"one side makes a {noun(event)} as a part of a wider one", witness=witness
            )
        if act in (Act.STORE, Act.ATOMIC, Act.COPY, Act.MATRIX) and space != PRIVATE:
            side = self._base if is_gone else self._head
            if any(order.same_bytes(self._values, event, each) for each in _others(side, event)):
                return NotShown(reason=f"a {noun(event)} to bytes that are written twice", witness=witness)
            if space == "shared" and act is Act.STORE and not _is_read(side, event):
                return NotShown(reason=f"a {noun(event)} that nothing reads", witness=witness)
            hazard = Hazard(kind=HazardKind.ACCESS, what=words, witness=witness)
            if space == "global":
                self._doubts.lost_writes.add(hazard)
            return hazard
        self._doubts.is_place_unclear = True
        return NotShown(reason=f"a {noun(event)} is {'gone' if is_gone else 'new'}", witness=witness)

    def _is_part_of_another(self, event: Event, side: NumberedFunction) -> bool:
        """True if a side makes a wider access of the same kind that certainly touches a common byte."""
        return any(
            each.effect.act is event.effect.act
            and each.effect.size > event.effect.size > 0
            and order.same_bytes(self._values, event, each)
            for block in side.blocks
            for each in block.events
        )

    def _of_lanes(self, exchanges: list[Event]) -> Iterator[Difference]:
        """The order counts for sums, and not for the greatest of all."""
        if not exchanges:
            return
        values, numbers = self._values, {event.number for event in exchanges}
        taken = {n for n, key in enumerate(values.keys) if key[0] == "part" and key[1] in numbers}
        sums = (
            made
            for number, made in values.made_by.items()
            if made.is_float and made.commutes and not made.associates
            if not taken.isdisjoint(values.keys[number][1:])
        )
        witness = self._witnesses.of(exchanges[0], exchanges[-1])
        if (made := next(sums, None)) is None:
            yield NotShown(reason="lanes are combined in another order", witness=witness)
        else:
            kind = RoundingKind.REDUCTION_ORDER
            yield Rounding(kind=kind, base=made.word, head=made.word, witness=witness)


_SHAPE = re.compile(r"\bm\d+n\d+k\d+\b|_\d+x\d+x\d+_?")
_TYPES = re.compile(r"\.?(?:tf32|b?f16|f32|f64|e\dm\d|xf32)|bf8|fp8|_1k\b")


def _is_of_copies(event: Event) -> bool:
    """True if an event copies in the background, or may read what such a copy has written."""
    return event.effect.act is Act.COPY or event.effect.space == "shared"


def _is_prefetch(event: Event) -> bool:
    """A prefetch changes no value, but it may fail if a descriptor or a size is not valid."""
    return event.operation.word.startswith(("cp.async.bulk.prefetch", "prefetch"))


def _is_other_copy(one: Event, other: Event) -> bool:
    """True if two copies have other sources and other destinations."""
    addresses = list(zip(one.address, other.address, strict=False))
    return one.effect.act is Act.COPY and len(addresses) > 1 and all(a != b for a, b in addresses)


def _are_exchanged(conditions: Sequence[tuple[int | None, int | None]]) -> bool:
    before, after = (Counter(side) for side in zip(*conditions, strict=True))
    return before == after


def _others(side: NumberedFunction, event: Event) -> Iterator[Event]:
    return (
        each
        for block in side.blocks
        for each in block.events
        if each is not event and each.effect.act is Act.STORE
    )


def _is_read(side: NumberedFunction, store: Event) -> bool:
    """True if an effect other than stores and synchronization may touch the bytes of a store."""
    events = (event for block in side.blocks for event in block.events)
    others = (each for each in events if each.effect.act not in (Act.STORE, Act.SYNC, Act.LANES, Act.STATES))
    return any(
        each.effect.space in ("", "shared") or each.effect.act not in (Act.LOAD, Act.ATOMIC)
        for each in others
        if not order.never_meet(side.values, store, each)
    )


def _is_pure(event: Event | None) -> bool:
    """True if an effect does no more than give a result: whoever reads that tells of it."""
    return event is not None and event.effect.act is Act.LANES


def _in_another_order(gone: Iterable[Event], new: Iterable[Event]) -> list[Event]:
    """Exchanges between lanes that both sides of a block have, in two orders."""
    sides = [[each for each in side if each.effect.act is Act.LANES] for side in (gone, new)]
    names = [[(each.operation.name, *map(repr, pairs.texts(each))) for each in side] for side in sides]
    return [] if names[0] == names[1] or Counter(names[0]) != Counter(names[1]) else [*sides[0], *sides[1]]
