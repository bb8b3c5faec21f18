"""Leaves out of a report what an earlier run showed already, and counts it: `--baseline RUN`.

A case is in the baseline if the earlier run has it with the same verdict, the same digest of its concrete
edit, read by the same normalizers, and the same facts and findings. That digest covers the executing code of
both sides if it differs, else every text, and the differences in the launch. A case without such a digest is
never in the baseline, nor one that is nondeterministic: its code may differ each time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from irdiff.compare import radius
from irdiff.group import report_classes
from irdiff.model import Case, ChangeGroup, Run


@dataclass(frozen=True, kw_only=True)
class News:
    """The new part of a run, as a run, and how much the baseline had."""

    run: Run
    left_out: tuple[Case, ...]
    groups: int
    """Groups of which every case is left out."""


def news(run: Run, earlier: Run) -> News:
    baseline = _left_out(run, earlier)
    if not baseline:
        return News(run=run, left_out=(), groups=0)
    cases = tuple(case for case in run.cases if case.id not in baseline)
    of_id = {case.id: case for case in cases}
    groups = tuple(left for group in run.groups if (left := _left(group, of_id)))
    names = {case.target for case in cases}
    targets = tuple(target for target in run.targets if target.name in names)
    summary = radius.summarize(cases, targets)
    return News(
        run=replace(run, cases=cases, groups=groups, targets=targets, summary=summary),
        left_out=tuple(case for case in run.cases if case.id in baseline),
        groups=len(run.groups) - len(groups),
    )


def _left_out(run: Run, earlier: Run) -> frozenset[str]:
    if run.normalizer_version != earlier.normalizer_version:
        return frozenset()
    before = {case.id: case for case in earlier.cases}
    return frozenset(case.id for case in run.cases if _is_same(case, before.get(case.id)))


def _is_same(case: Case, before: Case | None) -> bool:
    if before is None or case.edit is None or case.nondeterministic or before.nondeterministic:
        return False
    return _evidence(case) == _evidence(before)


def _evidence(case: Case) -> tuple[object, ...]:
    return (case.verdict, case.edit, case.facts, case.findings, case.stages)


def _left(group: ChangeGroup, cases: Mapping[str, Case]) -> ChangeGroup | None:
    """Restricts a group to these cases, with the gravest as example if its own is not among them."""
    members = tuple(member for member in group.members if member in cases)
    if group.representative in cases or not members:
        return replace(group, members=members) if members else None
    summaries = {member: summary for member in members if (summary := cases[member].summary)}
    example = max(summaries, key=lambda member: report_classes.gravity(summaries[member]), default=members[0])
    left = replace(group, members=members, representative=example)
    summary = summaries.get(example)
    return replace(left, severity=summary.severity, reasons=summary.reasons) if summary else left
