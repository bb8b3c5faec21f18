"""The blast radius: changed ÷ compared, per target and stage, always with the counts. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irdiff.model import COMPARED_VERDICTS, Case, Radius, StageRadius, StageStatus, Summary, Target, Verdict


def summarize(cases: Sequence[Case], targets: Sequence[Target]) -> Summary:
    counts = Counter(case.verdict for case in cases)
    return Summary(
        cases=len(cases),
        compared=sum(counts[verdict] for verdict in COMPARED_VERDICTS),
        verdicts={verdict: counts[verdict] for verdict in Verdict},
        radius={
            target.name: _radius([case for case in cases if case.target == target.name]) for target in targets
        },
    )


def _radius(cases: Sequence[Case]) -> Radius:
    compared = [case for case in cases if case.verdict in COMPARED_VERDICTS]
    changed = sum(case.verdict is Verdict.CHANGED for case in compared)
    names = list(dict.fromkeys(name for case in compared for name in case.stages))
    return Radius(
        compared=len(compared),
        changed=changed,
        fraction=round(changed / len(compared), 6) if compared else 0.0,
        stages={name: _stage(name, compared) for name in names},
    )


def _stage(name: str, cases: Sequence[Case]) -> StageRadius:
    statuses = [case.stages.get(name, StageStatus.ABSENT) for case in cases]
    return StageRadius(
        compared=sum(status is not StageStatus.ABSENT for status in statuses),
        changed=sum(status is StageStatus.CHANGED for status in statuses),
    )
