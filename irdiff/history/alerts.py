"""Finds what the newest version of a series moved beyond noise, and writes it as an issue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from irdiff.compare import statistics
from irdiff.history import change_points, steps
from irdiff.history.lines import SeriesLines, TimingLine, VersionPair
from irdiff.history.steps import Step
from irdiff.model import COMPARED_VERDICTS, Verdict
from irdiff.report import templates
from irdiff.timing.results import BAD_OUTPUTS, OutputStatus

_SPILLS = {fact for statistic in statistics.SPILLS for fact in statistic.facts}
_HAS_CODE = {*COMPARED_VERDICTS, Verdict.FIXED, Verdict.ADDED}


@dataclass(frozen=True, kw_only=True)
class Slowdown:
    case_id: str
    gpu: str
    share: float
    """How much slower than its level before; negative if faster."""
    allowed: float
    """The largest move that its own noise explains."""
    after_us: float
    edit: str
    """The title of its change group in this version, with its pass; empty without a group."""

    @property
    def before_us(self) -> float:
        return self.after_us / (1 + self.share)


@dataclass(frozen=True, kw_only=True)
class OtherOutputs:
    """On a GPU, a version wrote other results than the one before, or faulted."""

    case_id: str
    gpu: str
    outputs: str
    """`fault`, or `different`."""


@dataclass(frozen=True, kw_only=True)
class Alert:
    series: str
    version: str
    before: str
    """Empty if it was compared with none."""
    compared: int
    not_compared: int
    """Cases that failed, are gone, new, unsupported or nondeterministic, and those that only the previous
    version has.
    """
    is_across_series: bool
    """It was compared with a version of another series alone: the two have no order."""
    broken: tuple[str, ...]
    wrong: tuple[OtherOutputs, ...]
    grave: tuple[Step, ...]
    """Steps whose edits may be wrong, or that spill more."""
    slower: tuple[Slowdown, ...]
    faster: tuple[Slowdown, ...]
    bisect: tuple[str, ...]

    @property
    def is_news(self) -> bool:
        return bool(self.broken or self.wrong or self.grave or self.slower)

    @property
    def headline(self) -> str:
        counts = [
            (len(self.broken), "no longer compiles" if len(self.broken) == 1 else "no longer compile"),
            (len(self.wrong), "with other outputs"),
            (len(self.slower), "slower"),
            (len(self.grave), "edit to review" if len(self.grave) == 1 else "edits to review"),
        ]
        return ", ".join(f"{count} {word}" for count, word in counts if count)


def check(series: SeriesLines, place: int | None = None) -> Alert:
    """Checks the newest version by default, even if it was compared with none."""
    last = len(series.versions) - 1 if place is None else place
    pair = next((pair for pair in reversed(series.pairs) if pair.head == last), None)
    verdicts = pair.verdicts if pair else {}
    compared = sum(each.verdict in COMPARED_VERDICTS and not each.is_unstable for each in verdicts.values())
    new_steps = [step for step in steps.find(series) if step.head == last]
    grave = tuple(step for step in new_steps if _is_grave(step))
    broken = tuple(sorted(case for case, each in verdicts.items() if each.verdict == Verdict.BROKEN))
    moved = sorted(_moved_times(series, last, _edits(new_steps)), key=lambda slowdown: slowdown.share)
    slower = tuple(slowdown for slowdown in reversed(moved) if slowdown.share > 0)
    wrong = tuple(_other_outputs(series, last))
    bisect = [step.bisect for step in grave]
    if pair:
        cases = [
            *broken[:1],
            *(each.case_id for each in wrong[:1]),
            *(slowdown.case_id for slowdown in slower[:1]),
        ]
        bisect[:0] = [steps.bisect_command(series, pair.base, last, case) for case in cases]
    return Alert(
        series=series.name,
        version=series.versions[last].label,
        before=series.versions[pair.base].label if pair else "",
        compared=compared,
        not_compared=len(verdicts.keys() | _former_cases(series, pair)) - compared,
        is_across_series=pair is None and last in series.across,
        broken=broken,
        wrong=wrong,
        grave=grave,
        slower=slower,
        faster=tuple(slowdown for slowdown in moved if slowdown.share < 0),
        bisect=tuple(dict.fromkeys(filter(None, bisect)))[:3],
    )


def _former_cases(series: SeriesLines, pair: VersionPair | None) -> set[str]:
    before = next((each for each in series.pairs if pair and each.head == pair.base), None)
    verdicts = before.verdicts.items() if before else ()
    return {case for case, each in verdicts if each.verdict != Verdict.REMOVED}


def _is_grave(step: Step) -> bool:
    if step.is_hazard:
        return True
    return any(move.fact in _SPILLS and move.after > move.before for move in step.moves)


def _edits(new_steps: Iterable[Step]) -> dict[str, str]:
    return {
        case: f"{step.title} (pass {step.group.pass_name})" if step.group.pass_name else step.title
        for step in new_steps
        if step.group
        for case in step.cases
    }


def _other_outputs(series: SeriesLines, last: int) -> Iterator[OtherOutputs]:
    """Compares with the version that the same sessions ran before; both stand against one reference."""
    for case, lines in series.timings.items():
        for line in lines:
            newest, before = line.outputs[last], [each for each in line.outputs[:last] if each]
            if newest and before and _is_other(newest, before):
                words = newest if newest in BAD_OUTPUTS else "different"
                yield OtherOutputs(case_id=case, gpu=line.gpu, outputs=words)


def _is_other(newest: str, before: Sequence[str]) -> bool:
    """If the reference is the newest version, it is an older one that differs; where a still older one
    agrees, that was the wrong one.
    """
    if newest in BAD_OUTPUTS:
        return before[-1] not in BAD_OUTPUTS
    return before[-1] == OutputStatus.DIFFERENT and BAD_OUTPUTS.issuperset(before)


def _moved_times(series: SeriesLines, last: int, edits: Mapping[str, str]) -> Iterator[Slowdown]:
    for case, lines in series.timings.items():
        for line in lines:
            newest, point = _newest(line, last), line.points[last]
            if newest and point:
                yield Slowdown(
                    case_id=case,
                    gpu=line.gpu,
                    share=newest[0],
                    allowed=newest[1],
                    after_us=point.median_us,
                    edit=edits.get(case, ""),
                )


def _newest(line: TimingLine, last: int) -> tuple[float, float] | None:
    """Returns the share by which the newest time left its line, and the share that noise explains; None
    within noise. A line of a few versions has no history of noise, so the intervals of its sessions are used.
    """
    point = line.points[last]
    before = [timing for timing in line.points[:last] if timing is not None]
    if point is None or not before:
        return None
    share, allowed = change_points.beyond_noise([timing.ratio for timing in before], point.ratio)
    if len(before) < steps.LONG:
        if not steps.differ(before[-1], point):
            return None
        share = point.ratio / before[-1].ratio - 1
        allowed = max(before[-1].noise_floor, point.noise_floor, change_points.LEAST_SHARE)
    return (share, allowed) if abs(math.log1p(share)) > math.log1p(allowed) else None


def is_undone(series: SeriesLines, alert: Alert) -> bool:
    """Requires that everything compiles again, is as fast and has its former code. Whether outputs are right
    again, a person decides.
    """
    place = next(n for n, version in enumerate(series.versions) if version.label == alert.version)
    return (
        not alert.wrong
        and all(_compiles_again(series, case, place) for case in alert.broken)
        and all(step.undone_at is not None for step in alert.grave)
        and all(_is_fast_again(series, slowdown, place) for slowdown in alert.slower)
    )


def _compiles_again(series: SeriesLines, case: str, place: int) -> bool:
    """A case that is gone, or that no toolchain supports any more, does not compile again."""
    later = [pair for pair in series.pairs if pair.head > place and case in pair.verdicts]
    return bool(later) and later[-1].verdicts[case].verdict in _HAS_CODE


def _is_fast_again(series: SeriesLines, slowdown: Slowdown, place: int) -> bool:
    """Requires that the last time after the alert is within noise of the level before it."""
    for line in series.timings.get(slowdown.case_id, ()):
        after = [point for point in line.points[place + 1 :] if point is not None]
        at = line.points[place]
        if line.gpu == slowdown.gpu and after and at is not None:
            before = at.ratio / (1 + slowdown.share)
            return after[-1].ratio <= before * (1 + slowdown.allowed)
    return False


def markdown(alert: Alert) -> str:
    """Writes the body of an issue; a line or two without news."""
    text = templates.markdown().get_template("history-alert.md.j2").render(alert=alert)
    return text.rstrip("\n") + "\n"


def as_json(alert: Alert) -> Mapping[str, object]:
    grave = [{"id": step.id, "title": step.title, "cases": step.cases} for step in alert.grave]
    wrong = [vars(each) for each in alert.wrong]
    slower, faster = (
        [vars(slowdown) for slowdown in slowdowns] for slowdowns in (alert.slower, alert.faster)
    )
    lists = {"wrong": wrong, "grave": grave, "slower": slower, "faster": faster}
    return {**vars(alert), "news": alert.is_news, **lists}
