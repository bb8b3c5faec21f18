"""Notes between which instructions an `s_nop` stands: one gives a result, and the other one reads it. Pure.

Only an `s_nop` whose purpose is not known is compared here. `ir/amdgcn/wait_states` explains the others, on
the targets for which it has rules, and they are left out. If head lacks such an `s_nop`, has a shorter one,
or has it between other instructions, this is not shown (`whole_functions`). Source: AMD Instinct MI300 ISA,
4.5 "Manually Inserted Wait States".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irdiff.ir.program import Act, Instruction

_MOST = 20
"""Instructions further apart need none."""


class WaitStates:
    """The instructions of one block, and where its wait states stand among them."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, Instruction]] = []
        """Each with the value that it gives; -1 for none."""
        self._places: dict[int, int] = {}
        """By effect, how many instructions stand before it."""

    def see(self, each: Instruction, results: Sequence[int]) -> None:
        effect = each.operation.effect
        if effect is None or effect.act is not Act.STATES:
            self._instructions.append((results[0] if results else -1, each))

    def stand(self, number: int) -> None:
        """Wait states stand behind what was seen."""
        self._places[number] = len(self._instructions)

    def between(self, number: int) -> Mapping[tuple[int, int], int]:
        """By result and what reads it behind the wait states, how many instructions further that is."""
        if number not in self._places:
            return {}
        place, writers, distances = self._places[number], dict[str, int](), dict[tuple[int, int], int]()
        for n in range(max(place - _MOST, 0), place):
            writers |= dict.fromkeys(self._instructions[n][1].results, n)
        for n in range(place, min(place + _MOST, len(self._instructions))):
            value, each = self._instructions[n]
            for writer in (writers[name] for name in each.reads if name in writers):
                distances.setdefault((self._instructions[writer][0], value), n - writer)
            for name in each.results:
                writers.pop(name, None)
        return distances
