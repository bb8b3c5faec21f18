"""What the compared cases run of the native sources in which two compilers differ: by pass, and by line.

It tells code that ran and changed nothing from code that was never reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.attribute.attributor import Replayer
from irdiff.attribute.exercise import Exerciser, sentences
from irdiff.attribute.line_counter import LineCounter, summarize
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EditedLines, Launch, Pair, Sides
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.store import Store
from irdiff.words import first_few

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class EditedSources:
    sides: Sides[Side]
    pairs: Sequence[Pair]
    compiler: WorkerCompiler
    replayer: Replayer
    store: Store
    jobs: int
    report: Report

    def named(self) -> tuple[str, ...]:
        """A note of the edited sources and the passes that they define; none where no source is edited."""
        if not self.sides.base.edited:
            return ()
        used = "; ".join(
            f"{path}: {first_few(names, _SHOWN) or 'no pass'}"
            for path, names in self.sides.base.edited.items()
        )
        return (f"edited sources and the passes that they define (--exercised counts the cases): {used}",)

    def exercised(self) -> tuple[str, ...]:
        """For each edited source how many cases run a pass that it defines: one more compilation of base."""
        edited = self.sides.base.edited
        if not edited:
            return ()
        exerciser = Exerciser(side=self.sides.base, compiler=self.compiler, replayer=self.replayer)
        launches = [(pair.base, pair.target) for pair in self.pairs if isinstance(pair.base, Launch)]
        rows = in_parallel(
            lambda job: exerciser.of_launch(*job), launches, self.jobs, "exercise", self.report
        )
        told = sentences(edited, [row for row in rows if row is not None])
        return (*told, *(() if self.sides.head.counting else (_no_counts(self.sides),)))

    def lines(self) -> EditedLines | None:
        """The same by line, where head's compiler was built to count them, too."""
        head = self.sides.head
        if head.counting is None:
            return None
        counter = LineCounter(side=head, counting=head.counting, compiler=self.compiler, store=self.store)
        launches = [(pair.head, pair.target) for pair in self.pairs if isinstance(pair.head, Launch)]
        rows = in_parallel(
            lambda job: counter.of_launch(*job), launches, self.jobs, "edited lines", self.report
        )
        return summarize(head.counting, len(launches), (row for row in rows if row is not None))


def _no_counts(sides: Sides[Side]) -> str:
    base, head = (side.toolchain.spec for side in sides)
    return (
        "which edited lines ran is not known: no compiler was built to count them "
        f"(irdiff toolchain build {_revision_of(head)} --coverage {_revision_of(base)})"
    )


def _revision_of(spec: str) -> str:
    """As it was typed: a label is `main (1a2b3c4d5e)`."""
    return spec.partition(" ")[0]
