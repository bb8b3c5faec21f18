"""The blast radius by family (matmul, attention, …) or kernel, and by target.

The share is changed ÷ compared; cases that did not compile at head are in neither number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irdiff.backends.stages import BINARIES, ORDER
from irdiff.model import COMPARED_VERDICTS, Case, Run, Verdict

_ORIGINS = tuple(stage for stage in ORDER if stage not in BINARIES)
"""Stages that have a colour in `report.css`."""


@dataclass(frozen=True)
class Share:
    cases: Sequence[Case]

    @property
    def broken(self) -> int:
        return sum(case.verdict is Verdict.BROKEN for case in self.cases)

    @property
    def words(self) -> str:
        """`12/36`, `12/36, 2 broken`, `2 broken`; empty without cases."""
        verdicts = Counter(case.verdict for case in self.cases)
        compared = sum(verdicts[name] for name in COMPARED_VERDICTS)
        parts = [f"{verdicts[Verdict.CHANGED]}/{compared}"] if compared else []
        return ", ".join(parts + ([f"{self.broken} broken"] if self.broken else []))

    @property
    def workload(self) -> str:
        """Returns the common beginning of the workloads' names."""
        return os.path.commonprefix([case.workload for case in self.cases])  # noqa: RUF071 - no paths

    @property
    def parts(self) -> list[tuple[str, int]]:
        """Counts cases by colour, which is a class in `report.css`."""
        counts = Counter(map(css_class, self.cases))
        order = [f"v-{Verdict.BROKEN}", *(f"s-{stage}" for stage in _ORIGINS), "s-other"]
        return [(name, counts[name]) for name in dict.fromkeys([*order, *sorted(counts)]) if counts[name]]

    @property
    def parts_in_words(self) -> str:
        return ", ".join(f"{name[2:]} {count}" for name, count in self.parts)


@dataclass(frozen=True, kw_only=True)
class Family:
    name: str
    cells: tuple[Share, ...]
    """The shares of the targets, in the run's order, and that of all."""


def of(workload: str) -> str:
    return workload.partition("/")[0]


def compared(run: Run) -> list[Family]:
    """Returns kernels if all are of one family; nothing if there is only one kernel."""
    shown: list[Family] = []
    for name_of in (lambda case: of(case.workload), lambda case: case.kernel):
        if len(shown) < 2:
            shown = [family for family in _table(run, name_of) if family.cells[-1].words]
    return shown if len(shown) > 1 else []


def _table(run: Run, name_of: Callable[[Case], str]) -> list[Family]:
    cases_by_name: dict[str, list[Case]] = {}
    for case in run.cases:
        cases_by_name.setdefault(name_of(case), []).append(case)
    return [
        Family(
            name=name,
            cells=(
                *(Share([case for case in cases if case.target == target.name]) for target in run.targets),
                Share(cases),
            ),
        )
        for name, cases in sorted(cases_by_name.items())
    ]


def css_class(case: Case) -> str:
    """Colours a case by the first changed stage if it changed, else by its verdict."""
    if case.verdict is not Verdict.CHANGED:
        return f"v-{case.verdict.value}"
    stage = case.origin.stage if case.origin else ""
    return f"s-{stage}" if stage in _ORIGINS else "s-other"
