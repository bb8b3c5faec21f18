"""How often an average warp runs each instruction of a counted launch, and what one execution moves. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irdiff.work import CountedLaunch


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Half of what only may happen, because data decide it, counts as if it happened."""

    executed: Any
    """Times that an average warp runs each instruction."""
    totals: dict[str, Any]
    """By `memory_costs.COLUMNS`: what all warps of the grid together do with each instruction."""
    undecided: float
    """Share of the executed instructions that data decide."""

    def each(self, column: str, place: int) -> float:
        """Returns the figure of a column for one execution by one warp; 0 for what never runs."""
        times = float(self.totals["executed"][place])
        return float(self.totals[column][place]) / times if times else 0.0

    def total(self, column: str) -> float:
        return float(self.totals[column].sum())


def of_counted(counted: CountedLaunch) -> Profile:
    totals = {name: sure + counted.beyond[name] / 2 for name, sure in counted.sure.items()}
    executed = totals["executed"]
    return Profile(
        executed=executed / max(1, counted.work.warps),
        totals=totals,
        undecided=float(counted.beyond["executed"].sum() / max(1.0, float(executed.sum()))),
    )
