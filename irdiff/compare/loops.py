"""How many loops enclose each line of a canonical text. Pure.

In structured MLIR a loop is an operation with a region. Elsewhere it is a backward branch: the lines
between a label and a later jump to it. Irreducible control flow is not recognized; Triton makes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate

_STRUCTURED = re.compile(r"(?:%[^=]*= )?(?:scf\.(?:for|while|parallel|forall)|affine\.for)\b")
_LABEL = re.compile(r"(\^\w+|%?[\w.$-]+|\$L\d+|\.L\w+)(?=[:(])")
_JUMP = re.compile(r"\bbra\b|\bbr\b|\bcond_br\b|s_c?branch|llvm\.br|cf\.|llvm\.cond_br|\bswitch\b|BRA\b")
_DESTINATION = re.compile(r"label (%[\w.$-]+)|(\^\w+)|(\$L\w+)|(\.L\w+)")


def depths(lines: Sequence[str]) -> list[int]:
    """One number a line, 0 outside of every loop."""
    change = [0] * (len(lines) + 1)
    _structured(lines, change)
    _jumps(lines, change)
    return list(accumulate(change))[: len(lines)]


def weight(depths_of_lines: Iterable[int]) -> float:
    """The weight of the deepest line: 1/2 outside of loops, 1 from depth 2 on. Each loop runs a line some ten
    times as often, and the scale is logarithmic.
    """
    return 0.5 + 0.25 * min(max(depths_of_lines), 2)


def _structured(lines: Sequence[str], change: list[int]) -> None:
    regions: list[bool] = []
    for number, line in enumerate(lines):
        if line.startswith("}") and regions:
            is_loop = regions.pop()
            change[number] -= is_loop
            if line.endswith("{"):  # the second region of the same operation
                regions.append(is_loop)
                change[number + 1] += is_loop
        elif line.endswith("{"):
            is_loop = _STRUCTURED.match(line) is not None
            regions.append(is_loop)
            if is_loop:
                change[number + 1] += 1


def _jumps(lines: Sequence[str], change: list[int]) -> None:
    labels: dict[str, int] = {}
    ends: dict[int, int] = {}
    for number, line in enumerate(lines):
        label = _LABEL.match(line) if line.endswith(":") or line.startswith("^") else None
        if label:
            labels[label.group(1)] = number
        elif _may_name_a_label(line) and _JUMP.search(line):
            for found in _DESTINATION.finditer(line):
                target = labels.get(next(text for text in found.groups() if text))
                if target is not None:
                    ends[target] = number
    for start, end in ends.items():
        change[start] += 1
        change[end + 1] -= 1


def _may_name_a_label(line: str) -> bool:
    """A quick test that is true of every line in which `_DESTINATION` finds anything."""
    return "label %" in line or "^" in line or "$L" in line or ".L" in line
