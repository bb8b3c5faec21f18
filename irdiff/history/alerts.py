"""What the newest version of a series moved beyond noise, as an answer and as text for an issue."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from irdiff.compare import statistics
from irdiff.group.severity import Severity
from irdiff.history import change_points, steps
from irdiff.history.lines import SeriesLines, TimingLine
from irdiff.history.steps import Step
from irdiff.model import Verdict
from irdiff.report import escape
from irdiff.report.templates import markdown_prose
from irdiff.words import counted, first_few

_SHOWN_CASES = 10
_SHOWN_STEPS = 20
_GRAVE = {fact: row for row in statistics.GRAVE for fact in row.facts}


@dataclass(frozen=True, kw_only=True)
class Slowdown:
    """A case whose newest time has left its line."""

    case_id: str
    gpu: str
    share: float
    """How much slower than its level before; negative where it is faster."""
    allowed: float
    """What its own noise allows."""
    after_us: float
    edit: str
    """The title of its change group in this version, with its pass; empty where it is in none."""

    @property
    def before_us(self) -> float:
        return self.after_us / (1 + self.share)


@dataclass(frozen=True, kw_only=True)
class Alert:
    """What is to be said of the newest version of a series."""

    series: str
    version: str
    before: str
    """The version that it was compared with; empty where it was compared with none."""
    broken: tuple[str, ...]
    grave: tuple[Step, ...]
    """Steps whose edits may be wrong, or that cost spills or occupancy."""
    slower: tuple[Slowdown, ...]
    faster: tuple[Slowdown, ...]
    bisect: tuple[str, ...]

    @property
    def is_news(self) -> bool:
        return bool(self.broken or self.grave or self.slower)


def check(series: SeriesLines, place: int | None = None) -> Alert:
    """Of one version, by default the newest, whatever it was compared with."""
    last = len(series.versions) - 1 if place is None else place
    pair = next((pair for pair in reversed(series.pairs) if pair.head == last), None)
    found = [step for step in steps.find(series) if step.head == last]
    grave = tuple(step for step in found if _is_grave(step))
    verdicts = pair.verdicts if pair else {}
    broken = tuple(sorted(case for case, told in verdicts.items() if told.verdict == Verdict.BROKEN))
    moved = list(_moved_times(series, last, _edits(found)))
    worst = sorted((row for row in moved if row.share > 0), key=lambda row: -row.share)
    commands = [
        *(steps.bisect_command(series, pair.base, last, case) for case in broken[:1] if pair),
        *(
            steps.bisect_command(series, pair.base, last, row.case_id, measure_time=True)
            for row in worst[:1]
            if pair
        ),
        *(step.bisect for step in grave),
    ]
    return Alert(
        series=series.name,
        version=series.versions[last].label,
        before=series.versions[pair.base].label if pair else "",
        broken=broken,
        grave=grave,
        slower=tuple(worst),
        faster=tuple(sorted((row for row in moved if row.share < 0), key=lambda row: row.share)),
        bisect=tuple(dict.fromkeys(filter(None, commands)))[:3],
    )


def _is_grave(step: Step) -> bool:
    if step.group and step.group.severity == Severity.WRONG_RESULT:
        return True
    return any(
        move.fact in _GRAVE and _GRAVE[move.fact].worsened(move.before, move.after) for move in step.moves
    )


def _edits(found: Iterable[Step]) -> dict[str, str]:
    """By case: the change group that holds it."""
    return {
        case: f"{step.title} (pass {step.group.pass_name})" if step.group.pass_name else step.title
        for step in found
        if step.group
        for case in step.cases
    }


def _moved_times(series: SeriesLines, last: int, edits: Mapping[str, str]) -> Iterable[Slowdown]:
    for case, lines in series.timings.items():
        for line in lines:
            found, point = newest(line, last), line.points[last]
            if found and point:
                yield Slowdown(
                    case_id=case,
                    gpu=line.gpu,
                    share=found[0],
                    allowed=found[1],
                    after_us=point.median_us,
                    edit=edits.get(case, ""),
                )


def newest(line: TimingLine, last: int) -> tuple[float, float] | None:
    """How far the newest time lies from its line, and what is allowed; None where it is within, or not known.

    A line of a few versions has no history of noise: the intervals of its sessions stand for it.
    """
    point = line.points[last]
    before = [row for row in line.points[:last] if row is not None]
    if point is None or not before:
        return None
    share, allowed = change_points.beyond_noise([row.ratio for row in before], point.ratio)
    if len(before) < steps.LONG:
        if not steps.differ(before[-1], point):
            return None
        share = point.ratio / before[-1].ratio - 1
        allowed = max(before[-1].noise_floor, point.noise_floor, change_points.LEAST_SHARE)
    return (share, allowed) if abs(math.log1p(share)) > math.log1p(allowed) else None


def is_undone(series: SeriesLines, alert: Alert) -> bool:
    """Whether nothing is left of an earlier alert: all compiles, is as fast and is written as before."""
    place = next(n for n, version in enumerate(series.versions) if version.label == alert.version)
    return (
        all(_compiles_again(series, case, place) for case in alert.broken)
        and all(step.undone_at is not None for step in alert.grave)
        and all(_is_fast_again(series, row, place) for row in alert.slower)
    )


def _compiles_again(series: SeriesLines, case: str, place: int) -> bool:
    told = [
        pair.verdicts[case].verdict for pair in series.pairs if pair.head > place and case in pair.verdicts
    ]
    return bool(told) and told[-1] not in (Verdict.BROKEN, Verdict.FAILING)


def _is_fast_again(series: SeriesLines, row: Slowdown, place: int) -> bool:
    """Whether the last time after the alert is no further from the level before it than noise allows."""
    for line in series.timings.get(row.case_id, ()):
        after = [point for point in line.points[place + 1 :] if point is not None]
        at = line.points[place]
        if line.gpu == row.gpu and after and at is not None:
            before = at.ratio / (1 + row.share)
            return after[-1].ratio <= before * (1 + row.allowed)
    return False


# text


def markdown(alert: Alert) -> str:
    """The alert as the body of an issue; one line where there is no news."""
    name = escape.markdown(alert.version)
    if not alert.is_news:
        return f"{name} moved nothing beyond the noise of its lines ({escape.markdown(alert.series)}).\n"
    between = f" after {escape.markdown(alert.before)}" if alert.before else ""
    parts = [f"### {name}{between}: {headline(alert)}", ""]
    parts += _section("No longer compile", [escape.code(case) for case in alert.broken])
    parts += _section("Slower than their own noise allows", [_time_row(row) for row in alert.slower])
    parts += _section(
        "Edits to review: they may be wrong, or cost spills or occupancy",
        [_step_row(step) for step in alert.grave],
    )
    parts += _section("Faster", [_time_row(row) for row in alert.faster])
    if alert.bisect:
        parts += [
            "To find the commit, in a checkout (times: on that GPU):",
            "",
            "```",
            *alert.bisect,
            "```",
            "",
        ]
    return "\n".join(parts).rstrip() + "\n"


def headline(alert: Alert) -> str:
    """What the news is, counted."""
    counts = [
        (len(alert.broken), "no longer compiles" if len(alert.broken) == 1 else "no longer compile"),
        (len(alert.slower), "slower"),
        (len(alert.grave), "edit to review" if len(alert.grave) == 1 else "edits to review"),
    ]
    return ", ".join(f"{count} {word}" for count, word in counts if count)


def _section(title: str, rows: Sequence[str]) -> list[str]:
    if not rows:
        return []
    left = len(rows) - _SHOWN_STEPS
    more = [f"- and {left} more"] if left > 0 else []
    return [f"**{title}** ({len(rows)})", "", *(f"- {row}" for row in rows[:_SHOWN_STEPS]), *more, ""]


def _time_row(row: Slowdown) -> str:
    times = f"{row.before_us:.1f} → {row.after_us:.1f} µs"
    told = f"{100 * row.share:+.1f} % ({times}) on {escape.markdown(row.gpu)}"
    edit = f". Its change: {markdown_prose(row.edit)}" if row.edit else ""
    return f"{escape.code(row.case_id)}: {told}, where ±{100 * row.allowed:.1f} % is noise{edit}"


def _step_row(step: Step) -> str:
    cases = first_few([escape.code(case) for case in step.cases], _SHOWN_CASES)
    return f"{markdown_prose(step.title)}: {counted(len(step.cases), 'case')}: {cases}"


def as_json(alert: Alert) -> Mapping[str, object]:
    return {
        "series": alert.series,
        "version": alert.version,
        "before": alert.before,
        "news": alert.is_news,
        "broken": alert.broken,
        "slower": [vars(row) for row in alert.slower],
        "faster": [vars(row) for row in alert.faster],
        "grave": [{"id": step.id, "title": step.title, "cases": step.cases} for step in alert.grave],
        "bisect": alert.bisect,
    }
