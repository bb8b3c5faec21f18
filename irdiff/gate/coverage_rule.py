from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irdiff.compare.cases import not_compared
from irdiff.gate.objections import Objection, unknown, violated
from irdiff.gate.policy import CoverageRule
from irdiff.model import COMPARED_VERDICTS, Case, Run, Verdict
from irdiff.report import edit_coverage
from irdiff.words import counted

_UNCOMPARED = frozenset({Verdict.FAILING, Verdict.UNSUPPORTED})


def is_whole(run: Run) -> bool:
    chosen = run.options
    return not chosen.cases and not chosen.tiers and chosen.shard == (1, 1)


def unexamined(run: Run) -> Iterator[tuple[str, Objection]]:
    """Yields the clauses at the top of a report."""
    return ((clause, unknown("irdiff could not look at it")) for clause in run.unexamined)


def not_launched(run: Run) -> Iterator[tuple[str, Objection]]:
    for file in run.reach.files if run.reach else ():
        if file.not_run:
            words = f"new or changed, and ran in no launch: {', '.join(file.not_run)}"
            yield file.path, violated(words)
    for path in edit_coverage.none_read(run):
        if not path.endswith(".py"):  # one without kernels: a test, a script
            words = "no launch reads it, nor any other file that changed"
            yield path, unknown(words)


def _least(rule: CoverageRule, cases: Sequence[Case], run: Run) -> int:
    """One case suffices for a small corpus, where the share decides. A corpus is small if all of it was
    compared and no failed workload may hide launches. New launches have nothing to be compared with.
    """
    hiding = any(case.verdict is Verdict.FAILING and not any(case.launches) for case in cases)
    old = sum(case.verdict is not Verdict.ADDED for case in cases)
    is_small = rule.or_whole and is_whole(run) and old < rule.min_compared and not hiding
    return 1 if is_small else rule.min_compared


def not_compared_enough(
    rule: CoverageRule, present: Mapping[str, Sequence[Case]], run: Run
) -> Iterator[tuple[str, Objection]]:
    """Yields targets; `present` are the selected cases of each."""
    names = dict.fromkeys([*rule.required_targets, *(target.name for target in run.targets)])
    for target in names:
        cases = present.get(target, [])
        blind = sum(map(not_compared, cases))
        compared = sum(case.verdict in COMPARED_VERDICTS for case in cases) - blind
        failed = sum(case.verdict in _UNCOMPARED for case in cases) + blind
        least = _least(rule, cases, run)
        if target in rule.required_targets and compared < least:
            detail = f"{counted(compared, 'case')} compared, at least {least} are required"
            yield target, violated(detail)
        elif 100 * failed > rule.max_uncompared_percent * len(cases):
            detail = f"{failed} of {counted(len(cases), 'case')} could not be compared"
            yield target, violated(detail)
