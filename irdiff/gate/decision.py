"""The first questions of a release manager: slower, faster, meaning, outputs, what was not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from irdiff.compare.cases import not_compared
from irdiff.gate import timings
from irdiff.gate.timings import TimedCase
from irdiff.model import Expected, Meaning, Run, Verdict
from irdiff.report import edit_coverage
from irdiff.timing.results import BAD_OUTPUTS, CaseTiming, OutputStatus, Speed, TimingResults
from irdiff.words import counted, first_few

_SHOWN = 3
_EQUAL = {
    OutputStatus.EQUAL: "bitwise equal",
    OutputStatus.CLOSE: "different within the workload's tolerance",
}


def of(run: Run, timing: TimingResults | None) -> Iterator[tuple[str, str]]:
    timed = timings.of_results(timing) if timing else ()
    yield "does not compile", _broken(run)
    yield "slower", _moved(timed, Speed.SLOWER)
    yield "faster", _moved(timed, Speed.FASTER)
    yield "meaning", _meaning(run)
    yield "outputs", _outputs(timing.cases if timing else ())
    yield "not timed", _not_timed(run, timed)
    yield "not compared", _not_compared(run)


def _broken(run: Run) -> str:
    broken = [case.id for case in run.cases if case.verdict is Verdict.BROKEN]
    return (
        f"{counted(len(broken), 'case')}: {first_few(broken, _SHOWN)}" if broken else "none that did before"
    )


def _moved(timed: Sequence[TimedCase], speed: Speed) -> str:
    """A quick look, and times of a busy or throttled GPU, are no answer."""
    measured = [each for each in timed if each.is_timed]
    if not measured:
        return "nothing was timed"
    moved = [(each.slower_percent or 0.0, each.case) for each in measured if each.speed is speed]
    if not moved:
        return f"none of {len(measured)} timed cases"
    percent, case = max(moved) if speed is Speed.SLOWER else min(moved)
    return f"{len(moved)} of {len(measured)} timed cases, the most `{case}` {percent:+.1f} %"


def _meaning(run: Run) -> str:
    changed = [case for case in run.cases if case.verdict is Verdict.CHANGED]
    if not changed:
        return "no case changed"
    meanings = Counter(
        case.summary.effects.kind if case.summary and case.summary.effects else Meaning.NOT_SHOWN
        for case in changed
    )
    counts = ", ".join(f"{meanings[meaning]} {meaning}" for meaning in Meaning if meanings[meaning])
    return f"of {counted(len(changed), 'changed case')}: {counts}"


def _outputs(timed: tuple[CaseTiming, ...]) -> str:
    statuses = Counter(timing.outputs.status for timing in timed)
    if not statuses:
        return "nothing was run"
    words = [f"{statuses[status]} {name}" for status, name in _EQUAL.items() if statuses[status]]
    wrong = [timing.case for timing in timed if timing.outputs.status in BAD_OUTPUTS]
    words += [f"{len(wrong)} wrong or missing ({first_few(wrong, _SHOWN)})"] if wrong else []
    unknown = statuses.total() - len(wrong) - sum(statuses[status] for status in _EQUAL)
    words += [f"{unknown} not compared"] if unknown else []
    return f"of {counted(statuses.total(), 'case')}: {', '.join(words)}"


def _not_timed(run: Run, timed: Sequence[TimedCase]) -> str:
    measured = {each.case for each in timed if each.is_timed}
    rest = [case for case in run.cases if case.verdict is Verdict.CHANGED and case.id not in measured]
    if not rest:
        return "no changed case"
    by_target = Counter(case.target for case in rest)
    where = ", ".join(f"{count} on {target}" for target, count in by_target.items())
    expected = Counter(case.expected.expected for case in rest if case.expected)
    hints = ", ".join(f"{expected[word]} {word}" for word in Expected if expected[word])
    return f"{counted(len(rest), 'changed case')} ({where})" + (
        f"; without a measurement: {hints}" if hints else ""
    )


def _not_compared(run: Run) -> str:
    failing = sum(case.verdict in (Verdict.FAILING, Verdict.UNSUPPORTED) for case in run.cases)
    blind = sum(map(not_compared, run.cases))
    parts = (
        [f"{counted(failing, 'case')} that {'compiles' if failing == 1 else 'compile'} on neither side"]
        if failing
        else []
    )
    parts += [f"the code of {counted(blind, 'case')}"] if blind else []
    parts += edit_coverage.not_looked_at(run)
    return "; ".join(parts) or "nothing, as far as irdiff knows"
