"""Blast radius by family (matmul, attention, …) and target. Pure.

A family is the folder of a workload: `matmul` of `matmul/pointer`. As in the radius of a target, what is
counted is changed ÷ compared; what did not compile at head is in neither number and is said beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irdiff.model import COMPARED_VERDICTS, Case, Run, Verdict


@dataclass(frozen=True, kw_only=True)
class Share:
    """The cases of one family, on one target or on all."""

    changed: int
    compared: int
    broken: int

    @property
    def words(self) -> str:
        """`12/36`, `12/36, 2 broken`, `2 broken`; empty where there is no such case."""
        compared = f"{self.changed}/{self.compared}" if self.compared else ""
        broken = f"{self.broken} broken" if self.broken else ""
        return ", ".join(part for part in (compared, broken) if part)

    @property
    def percent(self) -> str:
        return f"{self.changed / self.compared:.0%}" if self.compared else ""


@dataclass(frozen=True, kw_only=True)
class Family:
    name: str
    by_target: tuple[Share, ...]
    """The shares of the targets, in the order of the run."""
    total: Share


def of(workload: str) -> str:
    return workload.partition("/")[0]


def table(run: Run) -> list[Family]:
    """The families by name. Empty where all cases are of one family: the targets' radius says the same."""
    cases: dict[str, list[Case]] = {}
    for case in run.cases:
        cases.setdefault(of(case.workload), []).append(case)
    rows = [
        Family(
            name=name,
            by_target=tuple(
                _share(case for case in found if case.target == target.name) for target in run.targets
            ),
            total=_share(found),
        )
        for name, found in sorted(cases.items())
    ]
    shown = [row for row in rows if row.total.words]
    return shown if len(shown) > 1 else []


def _share(cases: Iterable[Case]) -> Share:
    verdicts = [case.verdict for case in cases]
    return Share(
        changed=verdicts.count(Verdict.CHANGED),
        compared=sum(verdict in COMPARED_VERDICTS for verdict in verdicts),
        broken=verdicts.count(Verdict.BROKEN),
    )
