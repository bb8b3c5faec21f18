"""The loops of a kernel: stretches of code that a branch at their end leads back to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.work.sass import SassInstruction


@dataclass(frozen=True, kw_only=True)
class CodeLoop:
    first: int
    """Places of instructions."""
    last: int
    branches: tuple[int, ...]
    """Back to the first."""
    depth: int
    """1 for a loop in no other."""


def loops(instructions: Sequence[SassInstruction]) -> list[CodeLoop]:
    """By first place; an outer loop before those in it."""
    branches: dict[int, list[int]] = {}
    for ins in instructions:
        if ins.opcode == "BRA" and ins.target is not None and ins.target < ins.place:
            branches.setdefault(ins.target, []).append(ins.place)
    found: list[CodeLoop] = []
    open_ends: list[int] = []
    for first in sorted(branches):
        last = max(branches[first])
        while open_ends and open_ends[-1] < first:
            open_ends.pop()
        open_ends.append(last)
        found.append(CodeLoop(first=first, last=last, branches=tuple(branches[first]), depth=len(open_ends)))
    return found


def innermost(found: Sequence[CodeLoop], count: int) -> list[int | None]:
    """Place → index of the innermost loop that it lies in."""
    of_place: list[int | None] = [None] * count
    for index, loop in sorted(enumerate(found), key=lambda row: row[1].first - row[1].last):
        of_place[loop.first : loop.last + 1] = [index] * (loop.last + 1 - loop.first)
    return of_place
