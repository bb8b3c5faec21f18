"""Figures of machine code that moved, over the cases of a group: `registers +2 … +6`.

A figure is shown if it moved in at least half of the cases whose machine code changed. If all cases have the
same values, both are shown; else by how much they moved, as a range that holds for every case, including
those in which the figure did not move.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends.stages import ASSEMBLIES
from irdiff.backends.statistic import OF_TEXT, Resource, Statistic, value_of
from irdiff.compare.statistics import STATISTICS
from irdiff.model import ComparedCase, Fact, Sides, Verdict
from irdiff.texts import ir_of

Facts = Sides[Mapping[str, Fact]]


def _count(fact: str, words: str) -> Statistic:
    return Statistic(Resource.INSTRUCTIONS, words, "", (fact,), OF_TEXT)


_LAYOUTS = _count("ttgir.convert_layout", "`ttg.convert_layout` in TTGIR")
_TOLD_OTHERWISE = {Resource.BLOCKS, Resource.BARRIERS, Resource.INSTRUCTIONS, Resource.CODE}
# a title has room for the registers of which a wave can run short
_MINOR = {"AGPRs", "SGPRs", "SGPRs in lanes of VGPRs"}
_BEFORE_ACCESS = (
    _LAYOUTS,
    *(
        statistic
        for statistic in STATISTICS
        if statistic.resource not in _TOLD_OTHERWISE and statistic.name not in _MINOR
    ),
)
_AFTER_ACCESS = (
    *(
        _count(f"{stage}.{each.counted}", each.name)
        for stage in ASSEMBLIES
        for each in ir_of(stage).SYNCHRONIZATION
    ),
    *(statistic for statistic in STATISTICS if statistic.resource is Resource.INSTRUCTIONS),
)
_ACCESS = re.compile(rf"({'|'.join(ASSEMBLIES)})\.(load|store)_(global|shared)_(\d+)")
_SYNCHRONIZATION = {
    "barrier": re.compile(r"(?<!sched\.)(?<!sched\.group\.)barrier"),
    "fence": re.compile(r"fence"),
}
_KEPT = tuple(
    (pattern, f"{stage}.{counted}", each.kept)
    for counted, pattern in _SYNCHRONIZATION.items()
    for stage in ASSEMBLIES
    for each in ir_of(stage).SYNCHRONIZATION
    if each.counted == counted
)


def moved(cases: Sequence[ComparedCase], title: str) -> Iterator[str]:
    """Keeps the order of the table. Leaves out figures that the `title` already tells."""
    having = [case for case in cases if case.facts.base or case.facts.head]
    counted = [case.facts for case in having if case.verdict is not Verdict.IR_ONLY]
    counted = counted or [case.facts for case in having]
    yield from _all(_BEFORE_ACCESS, having, counted, title)
    yield from _widths(counted)
    yield from _all(_AFTER_ACCESS, having, counted, title)


def kept(cases: Sequence[ComparedCase], subjects: Sequence[str]) -> Iterator[str]:
    """Lists synchronization that assembly has as often as before: another pass may have generated it."""
    facts = [case.facts for case in cases]
    for pattern, name, words in _KEPT:
        values = [(base.get(name), head.get(name)) for base, head in facts]
        same = all(before is not None and before == after for before, after in values)
        if facts and same and any(pattern.search(subject) for subject in subjects):
            yield words


def _all(
    table: Sequence[Statistic], cases: Sequence[ComparedCase], counted: Sequence[Facts], title: str
) -> Iterator[str]:
    words: dict[str, None] = {}  # two backends have the same statistic of one fact
    for statistic in table:
        moving = sum(base != head for base, head in _values(statistic, counted))
        if (
            moving
            and 2 * moving >= len(counted)
            and not (statistic is _LAYOUTS and "convert_layout" in title)
        ):
            words[f"{statistic.name} {_by_target(statistic, cases)}"] = None
    yield from words


def _by_target(statistic: Statistic, cases: Sequence[ComparedCase]) -> str:
    """Formats one range if all targets share it, else one for each: figures of two GPUs are not
    comparable.
    """
    unit = f" {statistic.unit}" if statistic.unit else ""
    by_range: dict[str, list[str]] = {}
    for target in sorted({case.target for case in cases}):
        values = _values(statistic, [case.facts for case in cases if case.target == target])
        if values:
            moves = any(base != head for base, head in values)
            by_range.setdefault(_range(values) + unit if moves else "", []).append(target)
    if len(by_range) == 1:
        return next(iter(by_range))
    return ", ".join(f"{words} on {' and '.join(targets)}" for words, targets in by_range.items() if words)


def _values(statistic: Statistic, facts: Sequence[Facts]) -> list[tuple[float, float]]:
    """Returns pairs of values that are known on both sides."""
    values = [
        (statistic.of(base), statistic.of(head))
        for base, head in facts
        if any(name in {**base, **head} for name in statistic.facts)
    ]
    return [(before, after) for before, after in values if before is not None and after is not None]


def _range(values: Sequence[tuple[float, float]]) -> str:
    """Formats `26 → 20` if all cases have the same values, `+2` if all moved equally, else `+2 … +6`."""
    if len(set(values)) == 1:
        return f"{_grouped(values[0][0])} → {_grouped(values[0][1])}"
    steps = [after - before for before, after in values]
    least, most = min(steps), max(steps)
    return _signed(least) if least == most else f"{_signed(least)} … {_signed(most)}"


def _signed(step: float) -> str:
    return f"{'+' if step > 0 else ''}{_grouped(step)}" if step else "0"


def _grouped(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.9g}"


def _number(value: Fact | None) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


# the width of accesses to memory


def _widths(facts: Sequence[Facts]) -> Iterator[str]:
    """Yields `global loads 128 → 64 bit`, if accesses of one width became fewer, and of another more."""
    movements: dict[str, Counter[str]] = {}
    for case_facts in facts:
        for access, words in _movements(case_facts):
            movements.setdefault(access, Counter())[words] += 1
    for access, counts in sorted(movements.items()):
        if 2 * sum(counts.values()) >= len(facts):
            yield f"{access} {next(iter(counts)) if len(counts) == 1 else 'of other widths'}"


def _movements(case_facts: Facts) -> Iterator[tuple[str, str]]:
    base, head = case_facts
    steps: dict[str, dict[int, float]] = {}
    for name in {*base, *head}:
        access = _ACCESS.fullmatch(name)
        step = _number(value_of(name, head)) - _number(value_of(name, base)) if access else 0
        if access and step:
            width = int(access.group(4))
            steps.setdefault(f"{access.group(3)} {access.group(2)}s", {})[width] = step * width
    for accesses, by_width in steps.items():
        least = min(by_width, key=lambda width: (by_width[width], width))
        most = max(by_width, key=lambda width: (by_width[width], -width))
        if by_width[least] < 0 < by_width[most]:
            yield accesses, f"{least} → {most} bit"
