"""Which instructions decide what a launch executes: addresses, branches, masks, barriers. Pure.

A backward data flow over registers, from what decides: an instruction is computed only where one of its
results can reach an address, a predicate, a branch or a barrier. Everything else is counted and not computed,
which is most of a kernel: no value of a matrix or of a float decides where it is stored. Sources of
instructions whose results are unknown anyway do not matter. Bits of an int stand for registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irdiff.backends.nvidia.execution import register_use
from irdiff.backends.nvidia.execution.register_use import RegisterUse
from irdiff.ir.blocks import basic_blocks
from irdiff.ir.sass.instructions import SassInstruction

_WRITE_SHARED = frozenset({"STS", "STSM", "ATOMS"})


@dataclass(frozen=True)
class Deciding:
    computed: tuple[bool, ...]
    """Place → whether the values that the instruction writes are needed."""
    following: tuple[int, ...]
    """Place → the first place from there on that must be looked at."""


def deciding(code: Sequence[SassInstruction]) -> Deciding:
    """Instructions whose values decide branches, masks and addresses."""
    uses = register_use.of_function(code)
    computed = _computed(code, uses)
    if any(computed[ins.place] and ins.opcode == "LDS" for ins in code):
        # any thread may have written what is read: all that is written to shared memory is needed
        writes = [ins.opcode in _WRITE_SHARED for ins in code]
        uses = [
            replace(use, decides=use.decides | use.reads) if shared else use
            for use, shared in zip(uses, writes, strict=True)
        ]
        computed = [one or other for one, other in zip(_computed(code, uses), writes, strict=True)]
    following = [len(code)] * (len(code) + 1)
    for place in range(len(code) - 1, -1, -1):
        following[place] = place if computed[place] or uses[place].counts else following[place + 1]
    return Deciding(computed=tuple(computed), following=tuple(following))


def _computed(code: Sequence[SassInstruction], uses: Sequence[RegisterUse]) -> list[bool]:
    blocks = basic_blocks(code)
    starts, ends, after, before = blocks.starts, blocks.ends, blocks.after, blocks.before
    needed_in, computed = [0] * len(starts), [False] * len(code)
    waiting, queued = list(range(len(starts))), set(range(len(starts)))
    while waiting:
        n = waiting.pop()
        queued.discard(n)
        leads_anywhere = code[ends[n] - 1].opcode in register_use.LEADS_ANYWHERE
        needed = register_use.EVERYTHING if leads_anywhere else 0
        for other in after[n]:
            needed |= needed_in[other]
        for place in range(ends[n] - 1, starts[n] - 1, -1):
            use = uses[place]
            if use.writes & needed:
                computed[place] = True
                needed = needed & ~use.kills | use.reads
            needed |= use.decides
        if needed != needed_in[n]:
            needed_in[n] = needed
            again = [other for other in before[n] if other not in queued]
            waiting += again
            queued.update(again)
    return computed
