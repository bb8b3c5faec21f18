"""Basic blocks, and where the two ways of a branch join: its immediate post-dominator. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class Leads(NamedTuple):
    """The successors of an instruction."""

    is_branch: bool
    """A block ends here."""
    to_target: bool
    on: bool
    """To the instruction behind it."""
    ends: bool
    """Lanes may end here, or jump to a place that no operand names."""
    calls: bool = False
    """A call: the instructions behind it run later."""


STRAIGHT_ON = Leads(is_branch=False, to_target=False, on=True, ends=False)


class CodeForm(Protocol):
    @property
    def leads(self) -> Leads: ...


class CodeInstruction(Protocol):
    """An instruction of any machine, as far as the control flow needs it."""

    @property
    def place(self) -> int: ...
    @property
    def target(self) -> int | None: ...
    @property
    def form(self) -> CodeForm: ...
    @property
    def shown_place(self) -> str:
        """How sentences call its place."""


def successors(ins: CodeInstruction, count: int) -> list[int]:
    leads = ins.form.leads
    after = [ins.place + 1] if leads.on and ins.place + 1 < count else []
    return [ins.target, *after] if leads.to_target and ins.target is not None else after


def sources_first(targets: Sequence[Sequence[int]]) -> list[int]:
    """Returns the blocks that the first one leads to, each behind all that lead to it, except for the way
    back in a loop.
    """
    left, entered, open_ = list[int](), {0}, [(0, iter(targets[0]))]
    while open_:
        number, ways = open_[-1]
        new = next((target for target in ways if target not in entered), None)
        if new is None:
            left.append(number)
            open_.pop()
        else:
            entered.add(new)
            open_.append((new, iter(targets[new])))
    return left[::-1]


def block_starts(instructions: Sequence[CodeInstruction]) -> list[int]:
    count, starts = len(instructions), {0}
    for ins in instructions:
        if ins.form.leads.is_branch:
            starts.update(successors(ins, count))
            if ins.place + 1 < count:
                starts.add(ins.place + 1)
    return sorted(starts)


@dataclass(frozen=True)
class BasicBlocks:
    """The blocks of a kernel, in the order of the code."""

    starts: list[int]
    """Places of instructions."""
    ends: list[int]
    """Behind the last."""
    after: list[list[int]]
    before: list[list[int]]


def basic_blocks(code: Sequence[CodeInstruction]) -> BasicBlocks:
    count, starts = len(code), block_starts(code)
    ends = [*starts[1:], count]
    block_of = {start: n for n, start in enumerate(starts)}
    after = [[block_of[place] for place in successors(code[end - 1], count)] for end in ends]
    before: list[list[int]] = [[] for _ in starts]
    for n, others in enumerate(after):
        for other in others:
            before[other].append(n)
    return BasicBlocks(starts, ends, after, before)


def post_dominators(instructions: Sequence[CodeInstruction]) -> dict[int, int | None]:
    """Block leader → the leader of the block that every path from its end reaches first."""
    count, ordered = len(instructions), block_starts(instructions)
    leaders = set(ordered)
    end_of = {
        start: (ordered[n + 1] if n + 1 < len(ordered) else count) - 1 for n, start in enumerate(ordered)
    }
    following = {
        start: [leader for leader in successors(instructions[end], count) if leader in leaders]
        for start, end in end_of.items()
    }
    every = frozenset(ordered) | {count}
    sets: dict[int, frozenset[int]] = dict.fromkeys(ordered, every)
    changed = True
    rounds = 0
    while changed and rounds < 200:
        changed, rounds = False, rounds + 1
        for start in reversed(ordered):
            after = [sets[leader] for leader in following[start]]
            if instructions[end_of[start]].form.leads.ends:  # lanes that go on do not meet those that ended
                after.append(frozenset({count}))
            joined = frozenset.intersection(*after) if after else frozenset({count})
            new = joined | {start}
            if new != sets[start]:
                sets[start], changed = new, True
    immediate: dict[int, int | None] = {}
    for start in ordered:
        others = sets[start] - {start, count}
        nearest = [leader for leader in others if len(sets[leader]) == len(sets[start]) - 1]
        immediate[end_of[start]] = nearest[0] if nearest else None
    return immediate
