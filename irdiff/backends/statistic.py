"""A statistic: what is counted of a compiled kernel, and in which unit. It says nothing about time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from irdiff.model import Fact

OF_TEXT = "the text of the stage"
"""The source of facts that count words of a text: one that is missing is 0."""


def value_of(name: str, facts: Mapping[str, Fact]) -> Fact | None:
    """A fact of one side, None where it is not known. What a counted text does not have, it has 0 times."""
    return facts.get(name, 0 if f"{name.partition('.')[0]}.total" in facts else None)


class Direction(StrEnum):
    UP = "up"
    DOWN = "down"


class Resource(IntEnum):
    """The subjects of statistics, in the order of every report."""

    SPILLS = 0
    STACK = 1
    OCCUPANCY = 2
    BLOCKS = 3
    WORK = 4
    """Counted work of a launch."""
    SHARED_MEMORY = 5
    REGISTERS = 6
    TENSOR_MEMORY = 7
    BARRIERS = 8
    INSTRUCTIONS = 9
    """Instructions of the text, not as they are executed."""
    CODE = 10
    TIME = 11


@dataclass(frozen=True)
class Statistic:
    resource: Resource
    name: str
    """As reports say it. Two backends may measure the same thing in different units."""
    unit: str
    facts: tuple[str, ...]
    """The facts that add up to it."""
    source: str
    """Where its facts are read from."""
    denied: Direction = Direction.UP
    """Which move a `fact` rule of a gate denies."""
    should_be_none: bool = False
    """Memory that stands in for registers, which a kernel should do without."""

    def of(self, facts: Mapping[str, Fact]) -> float | None:
        """Its value on one side; None where the facts do not say."""
        values = [value for name in self.facts if isinstance(value := value_of(name, facts), (int, float))]
        return float(sum(values)) if values else None

    def is_denied(self, base: float, head: float) -> bool:
        return head > base if self.denied is Direction.UP else head < base
