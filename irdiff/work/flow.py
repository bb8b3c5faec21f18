"""Basic blocks, and where the two ways of a branch join: its immediate post-dominator. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.work.opcodes import BRANCHES
from irdiff.work.sass import SassInstruction

_ENDS = frozenset({"EXIT", "RET", "BRX", "BRXU", "JMX", "KILL", "BPT"})


def successors(ins: SassInstruction, count: int) -> list[int]:
    conditional = ins.predicate is not None or any(row.kind in ("P", "UP") for row in ins.operands)
    after = [ins.place + 1] if ins.place + 1 < count else []
    if ins.opcode == "BRA" and ins.target is not None:
        return [ins.target, *after] if conditional else [ins.target]
    if ins.opcode == "CALL" and ins.target is not None:
        return [ins.target, *after]
    if ins.opcode in _ENDS:
        return after if ins.predicate is not None else []
    return after


def block_starts(instructions: Sequence[SassInstruction]) -> list[int]:
    count, starts = len(instructions), {0}
    for ins in instructions:
        if ins.opcode in BRANCHES:
            starts.update(successors(ins, count))
            if ins.place + 1 < count:
                starts.add(ins.place + 1)
    return sorted(starts)


def post_dominators(instructions: tuple[SassInstruction, ...]) -> dict[int, int | None]:
    """Block leader → the leader of the block that every path from its end reaches first."""
    count, ordered = len(instructions), block_starts(instructions)
    leaders = set(ordered)
    end_of = {
        start: (ordered[n + 1] if n + 1 < len(ordered) else count) - 1 for n, start in enumerate(ordered)
    }
    following = {
        start: [row for row in successors(instructions[end], count) if row in leaders]
        for start, end in end_of.items()
    }
    every = frozenset(ordered) | {count}
    sets: dict[int, frozenset[int]] = dict.fromkeys(ordered, every)
    changed = True
    rounds = 0
    while changed and rounds < 200:
        changed, rounds = False, rounds + 1
        for start in reversed(ordered):
            after = [sets[row] for row in following[start]]
            joined = frozenset.intersection(*after) if after else frozenset({count})
            new = joined | {start}
            if new != sets[start]:
                sets[start], changed = new, True
    found: dict[int, int | None] = {}
    for start in ordered:
        others = sets[start] - {start, count}
        nearest = [row for row in others if len(sets[row]) == len(sets[start]) - 1]
        found[end_of[start]] = nearest[0] if nearest else None
    return found
