"""Finds registers that are read or written while an instruction in the background still uses them. Pure.

`wgmma` reads its first factor and adds to its sum until a thread waits for its group; a load of tensor memory
writes its registers until the thread waits for its loads (PTX ISA, "wgmma.mma_async", "tcgen05.wait"). There
are four cases:

- Head reads a register that is still being written, and base reads it behind the wait. Head may read another
  value. For `wgmma` this is a hazard. For a load of tensor memory it is not shown, because LLVM moves
  instructions over this wait, and ptxas may wait by itself (`difference`).
- Head overwrites a register that is still being read or written, and base does not. This is not shown, for
  `wgmma` and for loads of tensor memory (`whole_functions`).
- Head reads the sum of a `wgmma` behind a wait that does not wait for it, because its group is not complete
  there, and base does not. This is not shown.
- An instruction accesses a register, a `wgmma` uses the register next, and no `wgmma.fence` stands between
  them on some path of head; on base one does. This is not shown, because ptxas may add the fence. Two `wgmma`
  that add to the same registers need no fence (PTX ISA, "wgmma.fence").
"""

from __future__ import annotations

import re
from typing import NamedTuple

from irdiff.ir.program import WAITS_FOR_LOADS, BlockNode, Graph, Instruction

LOAD = "tcgen05.ld."
_MATRIX = "wgmma.mma_async"
_GROUP, _WAIT = "wgmma.commit_group", "wgmma.wait_group"
_OF_32_BITS = re.compile(r"%[rf]\d+$")
"""No descriptors and no predicates."""
_MAX_AGE = 16
_FENCE = "wgmma.fence"
_ANY_REGISTER, _NO_FENCE = -1, "no fence"
"""The place, and the name, that stand for there being no fence before an instruction at all."""
_Running = dict[tuple[str, int, bool, int], int]
"""Maps (register, line of the instruction that uses it, is that a matrix instruction, place of the register
among those that it uses) to the number of groups that were committed since. If several paths lead here, it
is the smallest number.
"""
Use = tuple[int, int]
"""(line of an instruction in the background, place of a register among those that it uses)."""


class Uses(NamedTuple):
    """The uses of registers that other instructions disturb."""

    overwritten: set[Use]
    """Written before the wait."""
    read: set[Use]
    """Sums of matrix instructions that are read before the wait."""
    unfenced: set[Use]
    """Accessed before, without a fence between. The place is -1 where no fence was before."""


def disturbed(graph: Graph) -> Uses:
    uses = Uses(set(), set(), set())
    _flow(graph, uses)
    _see_fences(graph, uses.unfenced)
    return uses


def loading(graph: Graph) -> list[set[str]]:
    """Returns, for each block, the registers that loads of tensor memory may still write at its begin."""
    running = _flow(graph, Uses(set(), set(), set()))
    return [{register for register, _, is_matrix, _ in own if not is_matrix} for own in running]


def _flow(graph: Graph, uses: Uses) -> list[_Running]:
    """Returns the instructions that still run when each block is entered. Adds to `uses`."""
    entering: list[_Running] = [{} for _ in graph]
    names = {each.operation.name for node in graph for each in node.block.instructions}
    waiting = [*range(len(graph))][::-1] if any(name.startswith((_MATRIX, LOAD)) for name in names) else []
    sums = _sums(graph)
    while waiting:
        number = waiting.pop()
        running = _through(graph[number], dict(entering[number]), sums, uses)
        for target in graph[number].targets:
            own = entering[target]
            younger = {key: age for key, age in running.items() if age < own.get(key, _MAX_AGE + 1)}
            if younger:
                own.update(younger)
                waiting.append(target)
    return entering


def _sums(graph: Graph) -> set[tuple[str, int]]:
    """Returns (register, line of the matrix instruction that adds to it)."""
    instructions = (each for node in graph for each in node.block.instructions)
    matrices = (each for each in instructions if each.operation.name.startswith(_MATRIX))
    return {(register, each.line) for each in matrices for register in each.results}


def _through(node: BlockNode, running: _Running, sums: set[tuple[str, int]], uses: Uses) -> _Running:
    """Returns the instructions that still run at the end of a block. Adds to `uses`."""
    for each in node.block.instructions:
        name = each.operation.name
        is_matrix = name.startswith(_MATRIX)
        if running:
            read = {*each.reads} - {*each.results} if is_matrix else each.reads
            uses.read.update(key[1::2] for key in running if key[0] in read and key[:2] in sums)
        if running and not is_matrix and each.results:
            written = {key for key in running if key[0] in each.results}
            uses.overwritten.update(key[1::2] for key in written)
            running = {key: age for key, age in running.items() if key not in written or key[2]}
        if is_matrix or name.startswith(LOAD):
            running |= {(name, each.line, is_matrix, place): 0 for place, name in enumerate(_used(each))}
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


def _used(each: Instruction) -> list[str]:
    """Returns the registers that an instruction in the background uses, first those that it writes."""
    is_matrix = each.operation.name.startswith(_MATRIX)
    return [*filter(_OF_32_BITS.match, (*each.results, *(each.reads if is_matrix else ())))]


def _see_fences(graph: Graph, unfenced: set[Use]) -> None:
    """Adds the uses of registers by matrix instructions that no fence stands before on some path."""
    instructions = (each for node in graph for each in node.block.instructions)
    matrices = [each for each in instructions if each.operation.name.startswith(_MATRIX)]
    registers = {register for each in matrices for register in _used(each)}
    entering = [{_NO_FENCE}, *(set[str]() for _ in graph[1:])]
    waiting, seen = [0] if matrices else [], set[int]()
    while waiting:
        number = waiting.pop()
        seen.add(number)
        accessed = _accessed(graph[number], {*entering[number]}, registers, unfenced)
        for target in graph[number].targets:
            if target not in seen or not accessed <= entering[target]:
                entering[target] |= accessed
                waiting.append(target)


def _accessed(node: BlockNode, accessed: set[str], registers: set[str], unfenced: set[Use]) -> set[str]:
    """Returns the registers that are accessed behind the last fence of a block. Adds to `unfenced`."""
    for each in node.block.instructions:
        name = each.operation.name
        if name.startswith(_FENCE):
            accessed = accessed if each.operation.is_guarded else set()
        elif name.startswith(_MATRIX):
            used = [(_ANY_REGISTER, _NO_FENCE), *enumerate(_used(each))]
            unfenced.update((each.line, place) for place, register in used if register in accessed)
        else:
            accessed |= registers.intersection((*each.results, *each.reads))
    return accessed
