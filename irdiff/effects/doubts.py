"""Decides which differences stay hazards beside the other differences of a function. Pure.

Several changes may cancel each other out. So a difference of the kind access, control or value is `not shown`
if

- loads and stores of the same memory are at other addresses, or some accesses of a memory are gone and others
  are new. But if all accesses that moved are of global memory and moved by the same constant, they touch
  other bytes than on base, and stay hazards;
- an address, a predicate, a condition or the number of accesses is not shown;
- one side makes an access as a part of a wider one, which is of another kind (volatile, for example);
- a copy in the background has another source and another destination: other threads may copy the same bytes.

A difference of the kind value is also `not shown` if anything else is, or if at least two values that are
stored to shared memory differ, and head stores the same values as base in exchanged places.

A store to global memory that one side alone makes is a hazard in all of these cases, if only this side makes
such stores, no other store to global memory has another address or predicate, and all branches are decided.
No load can make up for such a store.

A difference of the kind order is `not shown` if a branch is not decided: head may never take the path on
which the order is missing. An operation on an mbarrier that is missing or has another address is a hazard
only if nothing else is not shown and only one kind of operation differs. If the initialization, the arrivals
and the waits are all at another address, the kernel may have moved the whole mbarrier. Then differences of
copies that arrive at it are `not shown`, too. A wait for groups of copies is no certain hazard if the place
that a copy writes is not shown.

Code that needs more than its launch gives (`agreement`) is not doubted: nothing else can make up for it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from irdiff.ir.program import Act
from irdiff.model import Harmless, Hazard, HazardKind, NotShown, Rounding

Difference = Hazard | Rounding | NotShown | Harmless


class Doubts:
    """Remembers what is not shown, or has another place."""

    def __init__(self) -> None:
        self.moved: dict[tuple[Act, str], set[tuple[int, int] | None]] = defaultdict(set)
        """The accesses at other addresses: what they do and where, and by which constants."""
        self.is_place_unclear = False
        """True if a predicate, address, condition or number of accesses is not shown."""
        self.is_copy_unclear = False
        """True if the place or predicate of a copy, or of an access of shared memory, is not shown: then
        other waits may be enough.
        """
        self.are_copies_shared_out = False
        """True if a copy has another source and another destination: then other threads may copy the same."""
        self.is_control_unclear = False
        self.gone: Counter[tuple[Act, str]] = Counter()
        self.new: Counter[tuple[Act, str]] = Counter()
        self.writes_moved: set[str] = set()
        """The spaces in which a write has another place or predicate."""
        self.are_values_elsewhere = False
        """True if head stores the same values to shared memory as base, in exchanged places."""
        self.of_waits: set[Difference] = set()
        """Differences of waits for groups of copies or matrix instructions."""
        self.of_mbarriers: dict[Difference, str] = {}
        """By difference that an operation on a barrier in memory makes, the name of the operation."""
        self.of_copies: set[Difference] = set()
        """Differences of copies in the background, which may arrive at barriers in memory."""
        self.lost_writes: set[Difference] = set()
        """Writes of global memory by one side alone: no load makes up for these."""

    def settled(self, found: Iterable[Difference]) -> list[Difference]:
        """Turns each hazard that is doubtful beside the others into one that is not shown."""
        own = list(dict.fromkeys(found))
        is_any_not_shown = any(isinstance(each, NotShown) for each in own)
        are_mbarriers_moved = len({*self.of_mbarriers.values()}) > 1
        are_mbarriers_unclear = is_any_not_shown or are_mbarriers_moved
        is_unclear = self.is_place_unclear or self.are_copies_shared_out or self._is_arranged()
        is_value_unclear = is_unclear or self.are_values_elsewhere or is_any_not_shown

        is_lost = not self.is_control_unclear and self._is_write_lost()

        def is_doubted(each: Hazard) -> bool:
            if each.kind is HazardKind.ORDER:
                is_of_wait = self.is_copy_unclear and each in self.of_waits
                is_of_mbarrier = are_mbarriers_unclear and each in self.of_mbarriers
                return self.is_control_unclear or is_of_wait or is_of_mbarrier
            if each in self.lost_writes and is_lost:
                return False
            if are_mbarriers_moved and each in self.of_copies:
                return True
            return is_value_unclear if each.kind is HazardKind.VALUE else is_unclear

        why = "accesses or values may be arranged differently"
        return [
            NotShown(reason=why, detail=each.what, witness=each.witness)
            if isinstance(each, Hazard) and is_doubted(each)
            else each
            for each in own
        ]

    def _is_write_lost(self) -> bool:
        """True if at most one side makes writes of global memory alone, and all others stay in place."""
        sides = [{act for act, space in side if _is_seen(act, space)} for side in (self.gone, self.new)]
        return not all(sides) and self.writes_moved.isdisjoint(("global", ""))

    def _is_arranged(self) -> bool:
        """True if another access of the same memory may make up for what differs in one."""
        if any(space == other for _, space in self.gone for _, other in self.new):
            return True
        places = {*map(_in_memory, (*self.moved, *self.gone, *self.new))}
        both = {space for is_written, space in places if (not is_written, space) in places}
        one = {pair for pairs_ in self.moved.values() for pair in pairs_}
        is_shift = both == {"global"} and len(one) == 1 and None not in one  # elements do not change places
        return bool(both) and not is_shift


def _in_memory(place: tuple[Act, str]) -> tuple[bool, str]:
    """Returns whether an act writes, and where. Without a space it is shared memory: a copy has that at one
    end, and a matrix instruction reads it.
    """
    act, space = place
    return writes(act) and act is not Act.MATRIX, space or "shared"


def writes(act: Act) -> bool:
    return act is not Act.LOAD


def _is_seen(act: Act, space: str) -> bool:
    """True if an access, or what may be one, may write global memory, which others read."""
    return act not in (Act.LOAD, Act.LANES, Act.STATES) and space in ("global", "")
