"""Lists the predicates, addresses and operands in which two paired effects differ. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from irdiff.effects.numbering import Event
from irdiff.effects.values import Values
from irdiff.effects.witnesses import noun
from irdiff.ir.program import Act
from irdiff.model import HazardKind


@dataclass(frozen=True, kw_only=True)
class Facet:
    """One thing that a pair of effects, or of branches, uses."""

    kind: HazardKind
    what: str
    """As `Hazard.what`, where it is shown to differ."""
    noun: str
    base: int
    head: int
    events: tuple[Event, Event] | None = None
    is_address: bool = False
    is_guard: bool = False
    branch: int | None = None
    """The block that ends with the branch, if it is one."""

    @property
    def is_stored_to_share(self) -> bool:
        """True for a value that goes to shared memory, where other threads may load it."""
        return (
            self.events is not None
            and self.kind is HazardKind.VALUE
            and self.events[0].effect.space == "shared"
        )


def guards(values: Values, *events: Event) -> list[int]:
    return [_truth(values, each.guard) for each in events]


def _truth(values: Values, predicate: int | None) -> int:
    return values.node("const", 1) if predicate is None else predicate


def of_pair(values: Values, one: Event, other: Event) -> Iterator[Facet]:
    name = f"a {noun(one)}"
    for before, after in ((one.guard, other.guard), (one.lanes, other.lanes)):
        if before != after:
            which = "without a" if after is None else "under a" if before is None else "under another"
            yield Facet(
                kind=HazardKind.ACCESS, what=f"makes {name} {which} predicate", noun=f"predicate of {name}",
                base=_truth(values, before), head=_truth(values, after), events=(one, other), is_guard=True,
            )  # fmt: skip
    for is_address, mine, its in (
        (True, one.address, other.address),
        (False, one.operands, other.operands),
    ):
        part, kind, what = _use(one, name, is_address=is_address)
        for a, b in zip(mine, its, strict=True) if len(mine) == len(its) else ():
            if a != b:
                yield Facet(
                    kind=kind, what=what, noun=f"{part} of {name}", base=a, head=b, events=(one, other),
                    is_address=is_address or one.effect.act in (Act.COPY, Act.MATRIX),
                )  # fmt: skip


def _use(event: Event, name: str, *, is_address: bool) -> tuple[str, HazardKind, str]:
    """How an effect uses what it reads, and what it is where that differs."""
    act = event.effect.act
    part = "address" if is_address else "value" if act in (Act.STORE, Act.ATOMIC) else "operand"
    if act is Act.SYNC or part == "operand":
        what = f"gives {name} another operand"
    else:
        what = f"makes {name} at another address" if is_address else f"stores another value by {name}"
    if act is Act.SYNC:
        return part, HazardKind.ORDER, what
    return part, HazardKind.VALUE if part == "value" or act is Act.LANES else HazardKind.ACCESS, what
