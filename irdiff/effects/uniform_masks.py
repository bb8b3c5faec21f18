"""Finds registers that hold zero or all ones on every path to a block: masks of no lane or all lanes. Pure.

AMD's compiler keeps the condition of a branch as a mask of lanes, and tests the mask in one of several ways:
it compares the mask with zero, or with all ones; or it makes a 0 or a 1 of the mask, and compares that. For
the masks named here all these tests have the same outcome. For other masks they may not.
"""

from __future__ import annotations

from irdiff.ir.program import Graph, Instruction, Slot

_OF_MASKS = {"copy": 0, "half": 0, "select": 1}
"""Functions whose result is one of their operands, from this place on, or a half of it."""
_MASKS = (0, -1)


def of_blocks(graph: Graph) -> list[frozenset[str]]:
    """Returns the registers that hold such a mask when a block is entered, by block."""
    instructions = (each for node in graph for each in node.block.instructions)
    if not any(_is_mask(each, frozenset()) for each in instructions):
        return [frozenset()] * len(graph)
    everywhere = frozenset(name for node in graph for name in node.live)
    entering = [everywhere if number else frozenset() for number in range(len(graph))]
    waiting = {*range(len(graph))}
    while waiting:
        number = min(waiting)
        waiting.remove(number)
        leaving = _leaving(graph, number, entering[number])
        for target in graph[number].targets:
            if target and not entering[target] <= leaving:
                entering[target] &= leaving
                waiting.add(target)
    return entering


def _leaving(graph: Graph, number: int, masks: frozenset[str]) -> frozenset[str]:
    held = {*masks}
    for each in graph[number].block.instructions:
        (held.update if _is_mask(each, held) else held.difference_update)(each.results)
    return frozenset(held)


def _is_mask(instruction: Instruction, held: set[str] | frozenset[str]) -> bool:
    operation = instruction.operation
    if operation.compute is None or operation.compute[0] not in _OF_MASKS:
        return False
    if operation.is_guarded or operation.masked:
        return False
    operands = operation.operands[_OF_MASKS[operation.compute[0]] :]
    return all(
        instruction.reads[each.place] in held if isinstance(each, Slot) else each in _MASKS
        for each in operands
    )
