"""Finds registers that are read or written while an instruction in the background still uses them. Pure.

`wgmma` reads its first factor and adds to its sum until a thread waits for its group; a load of tensor memory
writes its registers until the thread waits for its loads (PTX ISA, "wgmma.mma_async", "tcgen05.wait"). There
are two cases:

- Head reads a register that is still being written, and base reads it behind the wait. Head may read another
  value. For `wgmma` this is a hazard. For a load of tensor memory it is not shown, because LLVM moves
  instructions over this wait, and ptxas may wait by itself (`difference`).
- Head overwrites a register that is still being read or written, and base does not. This is not shown, for
  `wgmma` and for loads of tensor memory (`whole_functions`).
"""

from __future__ import annotations

import re

from irdiff.ir.program import WAITS_FOR_LOADS, BlockNode, Graph

LOAD = "tcgen05.ld."
_MATRIX = "wgmma.mma_async"
_GROUP, _WAIT = "wgmma.commit_group", "wgmma.wait_group"
_OF_32_BITS = re.compile(r"%[rf]\d+$")
"""No descriptors and no predicates."""
_MAX_AGE = 16
_Running = dict[tuple[str, int, bool, int], int]
"""Maps (register, line of the instruction that uses it, is that a matrix instruction, place of the register
among those that it uses) to the number of groups that were committed since. If several paths lead here, it
is the smallest number.
"""


def overwritten(graph: Graph) -> set[tuple[int, int]]:
    """Returns, for each register that is written meanwhile, (line of the instruction that uses it, its place
    among the registers that this instruction uses).
    """
    return _flow(graph)[0]


def loading(graph: Graph) -> list[set[str]]:
    """Returns, for each block, the registers that loads of tensor memory may still write at its begin."""
    return [{register for register, _, is_matrix, _ in own if not is_matrix} for own in _flow(graph)[1]]


def _flow(graph: Graph) -> tuple[set[tuple[int, int]], list[_Running]]:
    """Returns what `overwritten` returns, and the instructions that still run when each block is entered."""
    written = set[tuple[int, int]]()
    entering: list[_Running] = [{} for _ in graph]
    names = {each.operation.name for node in graph for each in node.block.instructions}
    waiting = [*range(len(graph))][::-1] if any(name.startswith((_MATRIX, LOAD)) for name in names) else []
    while waiting:
        number = waiting.pop()
        running = _through(graph[number], dict(entering[number]), written)
        for target in graph[number].targets:
            own = entering[target]
            younger = {key: age for key, age in running.items() if age < own.get(key, _MAX_AGE + 1)}
            if younger:
                own.update(younger)
                waiting.append(target)
    return written, entering


def _through(node: BlockNode, running: _Running, overwritten: set[tuple[int, int]]) -> _Running:
    """Returns the instructions that still run at the end of a block. Adds to `overwritten`."""
    for each in node.block.instructions:
        name = each.operation.name
        is_matrix = name.startswith(_MATRIX)
        if running and not is_matrix and each.results:
            written = {key for key in running if key[0] in each.results}
            overwritten |= {(line, place) for _, line, _, place in written}
            running = {key: age for key, age in running.items() if key not in written or key[2]}
        if is_matrix or name.startswith(LOAD):
            used = filter(_OF_32_BITS.match, (*each.results, *(each.reads if is_matrix else ())))
            running |= {(register, each.line, is_matrix, place): 0 for place, register in enumerate(used)}
        elif name.startswith(_GROUP):
            running = {key: min(age + key[2], _MAX_AGE) for key, age in running.items()}
        elif each.operation.is_guarded:
            continue
        elif name.startswith(_WAIT):
            left = next((operand for operand in each.operation.operands if isinstance(operand, int)), 0)
            running = {key: age for key, age in running.items() if not key[2] or age <= left}
        elif name.startswith(WAITS_FOR_LOADS):
            running = {key: age for key, age in running.items() if key[2]}
    return running
