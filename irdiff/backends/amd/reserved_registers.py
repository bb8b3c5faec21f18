"""Registers that the header of a kernel reserves, and those that its code names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irdiff.model import CodeLine
from irdiff.words import counted

_REGISTER = re.compile(r"(?<![\w.$@])([vas])(?:(\d+)\b|\[\d+:(\d+)\])")
"""A vector, accumulation or scalar register."""
_DECLARED = re.compile(r"\.amdhsa_(next_free_[vs]gpr|accum_offset) (\d+)$")


def overused_registers(assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    """The header of a kernel reserves registers; code that uses more of them breaks."""
    declared = {
        match[1]: (int(match[2]), n) for n, line in enumerate(assembly, 1) if (match := _DECLARED.match(line))
    }
    if "next_free_vgpr" not in declared:
        return
    highest = _highest(assembly)
    (used, at), (accumulators, at_accumulator) = highest["v"], highest["a"]
    whole, line = declared["next_free_vgpr"]
    begin, begin_line = declared.get("accum_offset", (whole, line))
    reservations = [(used, at, min(whole, begin) if accumulators else whole, line, "v")]
    if "accum_offset" in declared:
        reservations = [
            (used, at, max(begin, 0) if accumulators or begin < whole else whole, begin_line, "v")
        ]
        reservations += [(accumulators + begin, at_accumulator, whole, line, "a")] if accumulators else []
    if "next_free_sgpr" in declared:
        reservations.append((*highest["s"], *declared["next_free_sgpr"], "s"))
    for count, place, limit, where, kind in reservations:
        if count > limit:
            lines = tuple(CodeLine(number=n, text=assembly[n - 1][:200]) for n in sorted({place, where}))
            yield f"reserves {counted(limit, 'register')} for `{kind}` and uses {count}", lines


def _highest(text: Sequence[str]) -> dict[str, tuple[int, int]]:
    """One more than the highest register of each kind that code names, and the line."""
    highest = dict.fromkeys("vas", (0, 0))
    for number, line in enumerate(text, 1):
        if line.startswith((".", "-", "amdhsa")):
            continue
        for kind, single, last in _REGISTER.findall(line):
            if (count := int(single or last) + 1) >= highest[kind][0]:
                highest[kind] = count, number
    return highest
