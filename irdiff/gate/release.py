"""The document for a release manager over several runs: what changed for whom, what regressed, what is
waived, what could not be checked. Markdown; every string of a run is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome
from irdiff.gate.policy import Action
from irdiff.gate.wording import headline as gate_headline
from irdiff.gate.wording import state, subject
from irdiff.model import ChangeGroup, Run, Verdict
from irdiff.report import error_clusters, headline, moved, phrases
from irdiff.report.escape import code, markdown
from irdiff.report.templates import markdown_prose
from irdiff.timing.results import BAD_OUTPUTS, FAULTS, CaseTiming, Speed, TimingResults
from irdiff.words import counted

_MAX_ROWS = 60
_MAX_GROUPS = 25


@dataclass(frozen=True, kw_only=True)
class ReleaseRun:
    """One run, what was timed of it, and what the gate says of it."""

    run: Run
    timing: TimingResults | None
    outcome: Outcome | None


def render(parts: Sequence[ReleaseRun]) -> str:
    """Renders the document. The same parts in the same order give the same bytes."""
    return "\n".join(_lines(parts)).rstrip("\n") + "\n"


def _lines(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    yield f"# {markdown(_title(parts))}"
    yield ""
    yield f"**{markdown(verdict(parts))}**"
    yield ""
    for number, part in enumerate(parts, 1):
        yield f"- run {number}: {markdown(headline.of(part.run))}"
    yield from _overview(parts)
    yield from _section("Better and worse", list(_statistics(parts)))
    yield from _section("What changed, and for whom", list(_changes(parts)))
    yield from _section("Regressions", [*_regressions(parts), *_not_known(parts)])
    yield from _section("Timings", list(_timings(parts)))
    yield from _section("Waived and accepted", list(_settled(parts)))
    yield from _section("What could not be checked", list(_unchecked(parts)))
    yield from _section("What was compared", list(_provenance(parts)))


def _title(parts: Sequence[ReleaseRun]) -> str:
    pairs = dict.fromkeys((part.run.base.version, part.run.head.version) for part in parts)
    return "Release report: " + ", ".join(f"{base} → {head}" for base, head in pairs)


def verdict(parts: Sequence[ReleaseRun]) -> str:
    """The first line: the gate's answer where there was one, and never a pass for what was not asked."""
    outcomes = [part.outcome for part in parts if part.outcome]
    if not outcomes:
        return "no policy was given: nothing here is a pass"
    failing = sum(not outcome.passed for outcome in outcomes)
    if failing:
        return f"the gate fails for {failing} of {len(parts)} runs"
    if len(outcomes) < len(parts):
        return f"the gate was asked for {len(outcomes)} of {len(parts)} runs only"
    return f"the gate passes for {'the run' if len(parts) == 1 else f'all {len(parts)} runs'}"


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield from lines or ["Nothing."]


def _overview(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    yield ""
    yield "| run | target | compared | changed | broken | other failures | timed | gate |"
    yield "|---|---|--:|--:|--:|--:|--:|---|"
    for number, part in enumerate(parts, 1):
        timed = {row.case for row in part.timing.cases if row.measurement} if part.timing else set()
        for target, radius in part.run.summary.radius.items():
            cases = [case for case in part.run.cases if case.target == target]
            counts = Counter(case.verdict for case in cases)
            others = counts[Verdict.FAILING] + counts[Verdict.UNSUPPORTED]
            passed = "not asked" if part.outcome is None else "pass" if part.outcome.passed else "fail"
            yield (
                f"| {number} | {code(target)} | {radius.compared} | {radius.changed} "
                f"| {counts[Verdict.BROKEN]} | {others} | {sum(c.id in timed for c in cases)} | {passed} |"
            )


def _statistics(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        for row in moved.by_target(part.run):
            worst = (
                f"; worst {code(row.worse[0].case_id)}: {markdown(row.worse[0].words)}" if row.worse else ""
            )
            words = f"{row.statistic.name} on {row.part}: {row.summary}"
            yield f"- run {number}: {markdown(words)}{worst}"


# changes


def _changes(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    seen: dict[str, list[tuple[int, ChangeGroup]]] = {}
    for number, part in enumerate(parts, 1):
        for group in phrases.changed_groups(part.run):
            seen.setdefault(group.id, []).append((number, group))
    ordered = sorted(seen.values(), key=_gravest_first)
    for rows in ordered[:_MAX_GROUPS]:
        yield _change(rows, parts)
    if len(ordered) > _MAX_GROUPS:
        yield f"- … {len(ordered) - _MAX_GROUPS} more distinct changes: see the HTML report of each run"
    loose = sum(
        1
        for part in parts
        for case in phrases.ungrouped(part.run, part.run.cases)
        if _is_changed(case.verdict)
    )
    if loose:
        yield f"- {counted(loose, 'changed case')} in no group"


def _is_changed(verdict: Verdict) -> bool:
    return verdict is Verdict.CHANGED


def _gravest_first(rows: list[tuple[int, ChangeGroup]]) -> tuple[bool, float, str]:
    best = max((group for _, group in rows), key=lambda group: group.score)
    return (not any(phrases.is_loud(group) for _, group in rows), -best.score, best.id)


def _change(rows: list[tuple[int, ChangeGroup]], parts: Sequence[ReleaseRun]) -> str:
    _, first = rows[0]
    where = []
    for number, group in rows:
        cases = {case.id: case for case in parts[number - 1].run.cases}
        where.append(f"run {number}: {phrases.members_by_target(group, cases)}")
    kind = f"{markdown(first.severity)}; from {code(phrases.group_origin(first))}"
    cases_by_run = markdown("; ".join(where))
    example = code(first.representative)
    return f"- {markdown_prose(first.title)} ({kind}): {cases_by_run}; for example {example}"


# regressions


def _regressions(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    rows = [*_broken(parts), *_bad_timings(parts), *_denied(parts)]
    yield from rows[:_MAX_ROWS]
    if len(rows) > _MAX_ROWS:
        yield f"- … {len(rows) - _MAX_ROWS} more: see `irdiff gate --json`"


def _not_known(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    """Code that changed and was not timed may be slower: silence about it is no absence of regressions."""
    for number, part in enumerate(parts, 1):
        untimed = sum(_untimed_by_target(part).values())
        if untimed:
            words = f"{counted(untimed, 'changed case')}, which may be slower"
            yield f"- run {number}: not timed: {words}"


def _broken(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        broken = (case for case in part.run.cases if case.verdict is Verdict.BROKEN)
        for shared in error_clusters.errors(broken):
            more = f" and {len(shared.cases) - 1} more" if len(shared.cases) > 1 else ""
            yield f"- run {number}: broken: {code(shared.cases[0].id)}{more}: {markdown(shared.words)}"


def _bad_timings(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        for row in part.timing.cases if part.timing else ():
            if row.outputs.status in BAD_OUTPUTS:
                words = f"{row.outputs.status}: {row.outputs.message}"
                yield f"- run {number}: {code(row.case)}: {markdown(words)}"
            elif row.measurement and row.measurement.speed is Speed.SLOWER:
                yield f"- run {number}: slower: {code(row.case)}: {markdown(_interval(row))}"


def _denied(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    """What the gate found beside broken, slow and wrong cases, which have lists of their own."""
    said = {"verdict", "slower", "wrong-result", "timed"}
    for number, rule, finding in _findings(parts):
        violated = finding.blocks and finding.certainty is Certainty.VIOLATED
        if violated and finding.action is Action.DENY and rule.rule.kind not in said:
            words = markdown(f"{rule.rule.id}: {finding.detail}")
            yield f"- run {number}: {code(subject(finding))}: {words}"


def _findings(parts: Sequence[ReleaseRun]) -> Iterator[tuple[int, RuleOutcome, GateFinding]]:
    for number, part in enumerate(parts, 1):
        for rule in part.outcome.rules if part.outcome else ():
            for finding in rule.findings:
                yield number, rule, finding


# timings


def _timings(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        if part.timing is None:
            yield f"- run {number}: not timed"
            continue
        speeds = Counter(row.measurement.speed for row in part.timing.cases if row.measurement)
        counts = ", ".join(f"{speeds[speed]} {speed.value}" for speed in Speed if speeds[speed])
        faulted = sum(row.outputs.status in FAULTS for row in part.timing.cases)
        counts = ", ".join(filter(None, (f"{faulted} faulted" if faulted else "", counts)))
        for gpu in part.timing.gpus:
            fit = "" if gpu.trustworthy else "; busy or throttled: its figures are no pass"
            words = f"{gpu.name} ({gpu.target}), driver {gpu.driver}{fit}"
            yield f"- run {number}: {markdown(words)}"
        yield f"- run {number}: {markdown(counts or 'nothing was measured')}"
        measured = [row for row in part.timing.cases if row.measurement]
        measured.sort(key=lambda row: (-row.measurement.ratio if row.measurement else 0.0, row.case))
        for row in [*measured[:5], *measured[5:][-3:]]:
            yield f"  - {code(row.case)}: {markdown(_interval(row))}"


def _interval(row: CaseTiming) -> str:
    found = row.measurement
    if found is None:
        return "not measured"
    low, middle, high = (100 * (ratio - 1) for ratio in (found.ratio_low, found.ratio, found.ratio_high))
    times = f"{found.base_us:.2f} µs → {found.head_us:.2f} µs"
    why = f"; unclear: {found.why}" if found.why else ""
    return f"{times}, {middle:+.1f} % [{low:+.1f}, {high:+.1f}], noise {100 * found.noise_floor:.1f} %{why}"


# settled, unchecked, compared


def _settled(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    rows = dict.fromkeys(
        f"- {markdown(f'{rule.rule.id}: {state(finding)}')}: {code(subject(finding))}"
        for _, rule, finding in _findings(parts)
        if finding.settled_by is not None
    )
    yield from list(rows)[:_MAX_ROWS]
    if len(rows) > _MAX_ROWS:
        yield f"- … {len(rows) - _MAX_ROWS} more"
    for part in parts:
        for waiver in part.outcome.expired if part.outcome else ():
            yield f"- ended on {waiver.expires}: {markdown(f'{waiver.rule}, {waiver.owner}: {waiver.issue}')}"


def _unchecked(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        counts = Counter(
            (case.target, case.verdict)
            for case in part.run.cases
            if case.verdict in {Verdict.FAILING, Verdict.UNSUPPORTED}
        )
        for (target, verdict), count in sorted(counts.items()):
            cases = counted(count, "case")
            yield f"- run {number}: {code(target)}: {cases} {verdict.value} on both sides"
        unstable = [case for case in part.run.cases if case.nondeterministic]
        for case in unstable[:10]:
            yield f"- run {number}: {error_clusters.unstable_words(case)}: {code(case.id)}"
        for note in part.run.notes[:10]:
            yield f"- run {number}: {markdown(note)}"
        yield from _untimed(number, part)
        yield from _unknown(number, part)


def _untimed(number: int, part: ReleaseRun) -> Iterator[str]:
    for target, count in sorted(_untimed_by_target(part).items()):
        yield f"- run {number}: {code(target)}: {counted(count, 'changed case')} not timed"


def _untimed_by_target(part: ReleaseRun) -> Counter[str]:
    changed = {case.id: case.target for case in part.run.cases if case.verdict is Verdict.CHANGED}
    timed = {row.case for row in part.timing.cases if row.measurement} if part.timing else set()
    return Counter(target for case_id, target in changed.items() if case_id not in timed)


def _unknown(number: int, part: ReleaseRun) -> Iterator[str]:
    for rule in part.outcome.rules if part.outcome else ():
        found = [finding for finding in rule.findings if finding.certainty is Certainty.UNKNOWN]
        if found:
            words = f"{rule.rule.id}: could not be decided {len(found)} times, first for"
            yield f"- run {number}: {markdown(words)} {code(subject(found[0]))}"


def _provenance(parts: Sequence[ReleaseRun]) -> Iterator[str]:
    for number, part in enumerate(parts, 1):
        run = part.run
        yield f"- run {number}: {markdown(phrases.sides(run))}"
        for name, side in (("base", run.base), ("head", run.head)):
            digests = f"toolchain {code(side.digest[:16])}, corpus {code(side.corpus[:16])}"
            yield f"  - {name}: {code(phrases.side(side))}, {digests}"
        yield f"  - {code(' '.join(('irdiff', *run.command)))}, {markdown(run.created)}"
        if part.outcome:
            yield f"  - {markdown(gate_headline(part.outcome))}"
