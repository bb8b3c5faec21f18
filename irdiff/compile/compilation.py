"""Compiles both sides of cases, as far as there is anything to compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from irdiff.model import Compiled, Launch, Outcome, Pair, Sides, Target
from irdiff.parallel import of_both

if TYPE_CHECKING:
    from irdiff.capture.catalog import Catalog
    from irdiff.resolve.sides import Side


class Compiler(Protocol):
    """Workers, or tools in their place. A case that does not compile is a value."""

    def compile(self, side: Side, launch: Launch, target: Target, *, attempt: int | None = None) -> Outcome:
        """Each `attempt` uses another process, with random addresses and hashes."""

    def captured_again(self, side: Side, workload: str, target: Target) -> Catalog:
        """Uses another process."""


@dataclass(frozen=True, kw_only=True)
class Compilation:
    pair: Pair
    outcomes: Sides[Outcome | None]
    """None for a side that was not compiled: it launches nothing, or there is nothing to compare."""
    is_same_input: bool
    """True if both sides give one compiler the same input, which compiles: it was compiled at most once, and
    there is nothing to compare.
    """

    @property
    def both(self) -> Sides[Outcome] | None:
        """Returns None unless both sides have an outcome."""
        base, head = self.outcomes
        return Sides(base=base, head=head) if base and head else None


class CaseCompiler:
    def __init__(self, compiler: Compiler, sides: Sides[Side], *, reuse: bool) -> None:
        """`reuse`: whether equal inputs of equal toolchains are the same without compiling both."""
        self._compiler = compiler
        self._sides = sides
        self._reuse = reuse

    def compile(self, pair: Pair) -> Compilation:
        """Equal inputs under equal toolchains give the same code if there is any, and if no stage opens a
        file: one side is compiled, or was in an earlier run, and shows both.
        """
        base, head = pair.base, pair.head
        if not isinstance(base, Launch) or not isinstance(head, Launch):
            return Compilation(pair=pair, outcomes=self._alone(pair), is_same_input=False)
        ours, theirs = (side.toolchain.digest for side in self._sides)
        if self._reuse and base.digest and base.digest == head.digest and ours == theirs:
            outcome = self._made("base", base, pair.target)
            if isinstance(outcome, Compiled) and not outcome.opened:
                return Compilation(pair=pair, outcomes=Sides(base=None, head=None), is_same_input=True)
        launches = Sides(base=base, head=head)
        outcomes = of_both(lambda name: self._made(name, launches.of(name), pair.target))
        return Compilation(
            pair=pair, outcomes=Sides(base=outcomes.base, head=outcomes.head), is_same_input=False
        )

    def _alone(self, pair: Pair) -> Sides[Outcome | None]:
        """Compiles the one side that launches; a case that head has removed is not compiled."""
        launches = Sides(base=pair.base if pair.head is not None else None, head=pair.head)

        def outcome(name: str) -> Outcome | None:
            launch = launches.of(name)
            return self._made(name, launch, pair.target) if isinstance(launch, Launch) else None

        return of_both(outcome)

    def _made(self, name: str, launch: Launch, target: Target) -> Outcome:
        return self._compiler.compile(self._sides.of(name), launch, target)
