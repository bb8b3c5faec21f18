"""The natural loops of a kernel: a branch back to a block that every way to the branch passes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.ir.blocks import BasicBlocks, CodeInstruction, basic_blocks


@dataclass(frozen=True, kw_only=True)
class CodeLoop:
    first: int
    """Place of its first instruction."""
    branches: tuple[int, ...]
    """Places of the branches back to it."""
    places: frozenset[int]
    depth: int
    """1 for a loop in no other."""


def loops(code: Sequence[CodeInstruction]) -> list[CodeLoop]:
    """By first place."""
    blocks = basic_blocks(code)
    dominators = _dominators(blocks)
    tails: dict[int, list[int]] = {}
    for block, others in enumerate(blocks.after):
        for other in others:
            if dominators[block] >> other & 1:
                tails.setdefault(other, []).append(block)
    bodies = {head: _body(head, ends, blocks) for head, ends in tails.items()}
    loops_of_graph = []
    for head, body in sorted(bodies.items()):
        places = frozenset(p for block in body for p in range(blocks.starts[block], blocks.ends[block]))
        loops_of_graph.append(
            CodeLoop(
                first=blocks.starts[head],
                branches=tuple(sorted(blocks.ends[block] - 1 for block in tails[head])),
                places=places,
                depth=sum(head in other for other in bodies.values()),
            )
        )
    return loops_of_graph


def innermost(loops_of_graph: Sequence[CodeLoop], count: int) -> list[int | None]:
    """Place → index of the innermost loop that it lies in."""
    of_place: list[int | None] = [None] * count
    for index, loop in sorted(enumerate(loops_of_graph), key=lambda numbered: -len(numbered[1].places)):
        for place in loop.places:
            of_place[place] = index
    return of_place


def _dominators(blocks: BasicBlocks) -> list[int]:
    """Block → bits of the blocks that every way to it passes; those that nothing leads to have all."""
    count = len(blocks.starts)
    everything = (1 << count) - 1
    dominators = [1] + [everything] * (count - 1)
    changed = True
    while changed:
        changed = False
        for block in range(1, count):
            new = everything
            for other in blocks.before[block]:
                new &= dominators[other]
            new |= 1 << block
            if new != dominators[block]:
                dominators[block], changed = new, True
    return dominators


def _body(head: int, tails: Sequence[int], blocks: BasicBlocks) -> set[int]:
    body, waiting = {head}, list(tails)
    while waiting:
        block = waiting.pop()
        if block not in body:
            body.add(block)
            waiting += blocks.before[block]
    return body
