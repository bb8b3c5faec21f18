"""How many loops enclose each line of a canonical text. Pure.

In structured MLIR a loop is an operation with a region. Elsewhere it is a backward branch: the lines
between a label and a later jump to it. Irreducible control flow is not recognized; Triton makes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, kw_only=True)
class Jumps:
    """How an IR spells control flow."""

    label: re.Pattern[str]
    """A line that is a label; its first group is the name."""
    jump: re.Pattern[str]
    destination: re.Pattern[str]
    """A label in a jump; its first group is the name."""
    marks: tuple[str, ...]
    """A line in which `destination` finds anything has one of these: a quick test."""


def depths(lines: Sequence[str], jumps: Jumps, loop: re.Pattern[str] | None = None) -> list[int]:
    """One number a line, 0 outside of every loop. `loop` matches operations whose regions are loops."""
    change = [0] * (len(lines) + 1)
    if loop:
        _structured(lines, loop, change)
    _jumps(lines, jumps, change)
    return list(accumulate(change))[: len(lines)]


def weight(depths_of_lines: Iterable[int]) -> float:
    """The weight of the deepest line: 1/2 outside of loops, 1 from depth 2 on. Each loop runs a line some ten
    times as often, and the scale is logarithmic.
    """
    return 0.5 + 0.25 * min(max(depths_of_lines), 2)


def _structured(lines: Sequence[str], loop: re.Pattern[str], change: list[int]) -> None:
    regions: list[bool] = []
    for number, line in enumerate(lines):
        if line.startswith("}") and regions:
            is_loop = regions.pop()
            change[number] -= is_loop
            if line.endswith("{"):  # the second region of the same operation
                regions.append(is_loop)
                change[number + 1] += is_loop
        elif line.endswith("{"):
            is_loop = loop.match(line) is not None
            regions.append(is_loop)
            if is_loop:
                change[number + 1] += 1


def _jumps(lines: Sequence[str], jumps: Jumps, change: list[int]) -> None:
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        label = jumps.label.match(line) if line.endswith(":") else None
        if label:
            labels[label.group(1)] = number
        elif any(mark in line for mark in jumps.marks) and jumps.jump.search(line):
            for match in jumps.destination.finditer(line):
                target = labels.get(match.group(1))
                if target is not None:
                    ends[target] = number
    for start, end in ends.items():
        change[start] += 1
        change[end + 1] -= 1
