"""Which registers are written while something that runs in the background still uses them. Pure.

`wgmma` reads its first factor and adds to its sum until a thread waits for its group; a load of tensor memory
writes its registers until the thread waits for its loads (PTX ISA, "wgmma.mma_async", "tcgen05.wait").
"""

from __future__ import annotations

import re

from irdiff.ir.program import WAITS_FOR_LOADS, BlockNode, Graph

LOAD = "tcgen05.ld."
_MATRIX = "wgmma.mma_async"
_GROUP, _WAIT = "wgmma.commit_group", "wgmma.wait_group"
_OF_32_BITS = re.compile(r"%[rf]\d+$")
"""Not a descriptor or a predicate."""
_MAX_AGE = 16
_Running = dict[tuple[str, int, bool], int]
"""Of each register, the line of what uses it, and whether this is a matrix instruction: how many groups have
ended since, in the way on which these are fewest."""


def overwritten(graph: Graph) -> set[int]:
    """The lines of what runs, of whose registers one is written."""
    return _flow(graph)[0]


def loading(graph: Graph) -> list[set[str]]:
    """By block, the registers that loads of tensor memory may still write when it is entered."""
    return [{register for register, _, is_matrix in own if not is_matrix} for own in _flow(graph)[1]]


def _flow(graph: Graph) -> tuple[set[int], list[_Running]]:
    """The lines as of `overwritten`, and what runs when each block is entered."""
    lines = set[int]()
    entering: list[_Running] = [{} for _ in graph]
    names = {each.operation.name for node in graph for each in node.block.instructions}
    waiting = [*range(len(graph))][::-1] if any(name.startswith((_MATRIX, LOAD)) for name in names) else []
    while waiting:
        number = waiting.pop()
        running = _through(graph[number], dict(entering[number]), lines)
        for target in graph[number].targets:
            own = entering[target]
            younger = {key: age for key, age in running.items() if age < own.get(key, _MAX_AGE + 1)}
            if younger:
                own.update(younger)
                waiting.append(target)
    return lines, entering


def _through(node: BlockNode, running: _Running, lines: set[int]) -> _Running:
    """What runs at the end of a block; adds to `lines`."""
    for each in node.block.instructions:
        name = each.operation.name
        is_matrix = name.startswith(_MATRIX)
        if running and not is_matrix and each.results:
            written = {key for key in running if key[0] in each.results}
            lines |= {line for _, line, _ in written}
            running = {key: age for key, age in running.items() if key not in written or key[2]}
        if is_matrix or name.startswith(LOAD):
            used = filter(_OF_32_BITS.match, (*each.results, *(each.reads if is_matrix else ())))
            running |= {(register, each.line, is_matrix): 0 for register in used}
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
