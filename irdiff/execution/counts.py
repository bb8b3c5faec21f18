"""Counts of a launch by column and instruction, with sums over some of them and over loops. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from irdiff.counted_work import Amount
from irdiff.execution.memory_costs import COLUMNS
from irdiff.ir import loop_tree
from irdiff.ir.blocks import CodeInstruction
from irdiff.ir.loop_tree import CodeLoop

_Instruction = TypeVar("_Instruction", bound=CodeInstruction)


@dataclass(frozen=True)
class Counts(Generic[_Instruction]):
    """Counts by column and instruction."""

    code: Sequence[_Instruction]
    lanes: int
    """Lanes of a warp."""
    sure: Any
    beyond: Any

    def amount(self, column: str, places: Collection[int] | None = None) -> Amount:
        at = COLUMNS.index(column)
        chosen = slice(None) if places is None else list(places)
        low = float(self.sure[at, chosen].sum())
        return Amount(round(low), round(low + float(self.beyond[at, chosen].sum())))

    def bounded(self, column: str, unknown: str, places: Collection[int] | None = None) -> Amount:
        """With accesses at unknown addresses: each takes one sector or wavefront to one a lane."""
        surely, requests = self.amount(column, places), self.amount(unknown, places)
        return Amount(surely.low + requests.low, surely.high + self.lanes * requests.high)

    def sectors(self, places: Collection[int] | None = None) -> Amount:
        return self.bounded("sectors", "unknown_requests", places)

    def wavefronts(self, places: Collection[int] | None = None) -> Amount:
        return self.bounded("wavefronts", "unknown_wavefronts", places)

    def grouped(
        self, name_of: Callable[[_Instruction], str | None], column: str = "executed"
    ) -> dict[str, Amount]:
        """By name, without those that nothing was counted of."""
        places: dict[str, list[int]] = defaultdict(list)
        for ins in self.code:
            if (name := name_of(ins)) is not None:
                places[name].append(ins.place)
        amounts = {name: self.amount(column, places[name]) for name in sorted(places)}
        return {name: amount for name, amount in amounts.items() if amount.high}


@dataclass(frozen=True)
class CountedLoop:
    """A loop that runs: how often, and the instructions whose innermost loop it is."""

    loop: CodeLoop
    inside: list[int]
    """Places."""
    entries: Amount
    iterations: Amount


def _again(table: Counts[Any], loop: CodeLoop) -> Amount:
    """Times that a warp comes back to the first instruction: by a branch, or from the one before it."""
    by_branch = [place for place in loop.branches if table.code[place].target == loop.first]
    others = [place for place in loop.branches if place not in by_branch]
    taken, passed, left = (
        table.amount("taken", by_branch), table.amount("executed", others), table.amount("taken", others),
    )  # fmt: skip
    return Amount(taken.low + passed.low - left.low, taken.high + passed.high - left.high)


def counted_loops(table: Counts[Any]) -> list[CountedLoop]:
    tree = loop_tree.loops(table.code)
    places: dict[int, list[int]] = defaultdict(list)
    for place, index in enumerate(loop_tree.innermost(tree, len(table.code))):
        if index is not None:
            places[index].append(place)
    loops = []
    for index, loop in enumerate(tree):
        iterations, again = table.amount("executed", [loop.first]), _again(table, loop)
        if iterations.high:
            entries = Amount(iterations.low - again.low, iterations.high - again.high)
            loops.append(CountedLoop(loop, places[index], entries, iterations))
    return loops
