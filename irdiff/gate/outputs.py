"""Prints the gate's answer as text, JSON, Markdown, JUnit XML, and as the document of a release."""

from __future__ import annotations

import dataclasses
import datetime
import json
import shlex
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff.gate import decision
from irdiff.gate.objections import Certainty
from irdiff.gate.outcome import EqualOutputs, GateFinding, Outcome, RuleOutcome, SubjectKind
from irdiff.gate.policy import Action, CoverageRule
from irdiff.model import Run, Verdict
from irdiff.report import commands, escape, phrases, templates, timing_summary
from irdiff.report import markdown as reports
from irdiff.report.escape import clean
from irdiff.timing.results import TimingResults
from irdiff.words import counted

SCHEMA = "irdiff-gate/3"
_SHOWN = 12
_MOST_NAMED = 5
"""Change groups in one command; more are accepted with `--accept review`."""
_MARKDOWN_LIMIT = 60_000
MAX_CASES = 2_000
"""The most test cases of one suite. One more counts the rest."""
_MOST_CHARACTERS = 20_000
"""For the report of one run in the document of a release."""


@dataclass(frozen=True, kw_only=True)
class Again:
    call: str
    policy: str
    """If empty, that of the current folder."""
    until: datetime.date | None
    shipped_policy: str = ""
    """The default policy if the run was checked against it. Acceptances need a policy of the user's own."""


UNNAMED = Again(call=commands.UNNAMED, policy="POLICY", until=None)


def text(outcome: Outcome, again: Again = UNNAMED) -> str:
    return "\n".join(_text_lines(outcome, again)) + "\n"


def _text_lines(outcome: Outcome, again: Again) -> Iterator[str]:
    yield escape.terminal(outcome.headline)
    yield escape.terminal(f"  {outcome.base} → {outcome.head}")
    yield escape.terminal(f"  {outcome.counts.words}")
    for rule in outcome.worst_first:
        yield f"{rule.word:8} {rule.rule.id}: {rule.summary}"
        if rule.findings:
            yield f"{'':8}   {escape.terminal(rule.rule.reason)}"
        lines = outcome.lines(rule)
        for line in lines[:_SHOWN]:
            more = f" and {line.more} more" if line.more else ""
            groups = f" [{line.groups}]" if line.groups else ""
            yield f"{'':8} - {escape.terminal(f'{line.name}{more}{groups}: {line.words}')}"
        if len(lines) > _SHOWN:
            yield f"{'':8}   … {len(lines) - _SHOWN} more: see --json"
        if rule.word == Action.DENY:
            yield f"{'':8}   next: {escape.terminal(_cure(rule, again))}"
    for note in outcome.notes:
        yield f"note     {escape.terminal(note)}"
    if outcome.waiting:
        yield f"next     {escape.terminal(_next_step(outcome, again))}"


def _cure(rule: RuleOutcome, again: Again) -> str:
    blocking = [finding for finding in rule.findings if finding.blocks]
    if all(finding.needs_gpu for finding in blocking):
        return f"on a machine with the GPU: {commands.command('time', again.call)}"
    if all(finding.subject is SubjectKind.RUN for finding in blocking):
        return "compare what the rule selects, or let it be empty (may_be_empty)"
    cure = "repair it"
    if all(finding.subject is SubjectKind.TARGET for finding in blocking) and _is_about_coverage(rule):
        cure = f"compare more cases of {' and '.join(finding.name for finding in blocking)}"
    return f"{cure}, or accept it: {_accepting(again, [rule.rule.id], '--issue', 'URL')}"


def _is_about_coverage(rule: RuleOutcome) -> bool:
    return isinstance(rule.rule, CoverageRule)


def _next_step(outcome: Outcome, again: Again) -> str:
    """Returns the command that accepts what waits for a person, without owner and reason."""
    names = outcome.waiting
    groups = counted(len(names), "change group")
    if len(names) <= _MOST_NAMED:
        return f"look at {groups}, then accept: {_accepting(again, names)}"
    listed = ", ".join(names[:_MOST_NAMED])
    return f"look at {groups} ({listed}, …), then accept: {_accepting(again, ['review'])}"


def _accepting(again: Again, names: Sequence[str], *more: str) -> str:
    words = ["gate", again.call, *(["--policy", again.policy] if again.policy else [])]
    for name in names:
        words += ["--accept", name]
    until = str(again.until or "YYYY-MM-DD")
    accepting = commands.command(*words, *more, "--until", until, "--owner", "YOU", "--reason", "WHY")
    if again.shipped_policy:
        return f"cp {shlex.quote(escape.clean(again.shipped_policy))} . && {accepting}"
    return accepting


def as_json(outcome: Outcome) -> str:
    fields = {
        "schema": SCHEMA,
        "passed": outcome.passed,
        "headline": outcome.headline,
        "base": outcome.base,
        "head": outcome.head,
        "cases": dataclasses.asdict(outcome.counts),
        "timed_on": outcome.timed_on,
        "rules": [_rule_fields(rule) for rule in outcome.rules],
        "notes": outcome.notes,
    }
    return json.dumps(fields, indent=1, sort_keys=True, ensure_ascii=True, default=str) + "\n"


def _rule_fields(outcome: RuleOutcome) -> dict[str, Any]:
    return {
        "id": outcome.rule.id,
        "kind": outcome.rule.kind,
        "action": outcome.rule.action,
        "reason": outcome.rule.reason,
        "result": outcome.word,
        "examined": outcome.examined,
        "findings": [_finding_fields(finding) for finding in outcome.findings],
    }


def _finding_fields(finding: GateFinding) -> dict[str, Any]:
    settled: dict[str, Any] | None
    match finding.settled_by:
        case None:
            settled = None
        case EqualOutputs(devices=devices):
            settled = {"equal_outputs_on": devices}
        case entries:
            settled = {"accepted": [entry.decision for entry in entries]}
    return {**vars(finding), "blocks": finding.blocks, "settled_by": settled}


def markdown(outcome: Outcome, limit: int = _MARKDOWN_LIMIT) -> str:
    """Shows fewer findings if necessary to stay within `limit` characters."""
    template = templates.markdown().get_template("gate.md.j2")
    for shown in (_SHOWN, 5, 1, 0):
        content = template.render(outcome=outcome, shown=shown)
        if len(content) <= limit:
            return content
    return f"### {escape.markdown(outcome.headline)}\n"[:limit]


def junit(outcome: Outcome) -> str:
    """Writes one suite for each rule, one test case for each finding.

    A rule that does not hold is a failure, an undecided rule is an error, and a settled finding is skipped.
    The format has no standard; names follow the schema of Jenkins' xUnit plugin (junit-10.xsd), which GitLab,
    Azure and GitHub's reporters read.
    """
    root = ET.Element("testsuites", name=f"irdiff gate: {'pass' if outcome.passed else 'fail'}")
    suites = [_compared(outcome), *(_suite(outcome, rule) for rule in outcome.rules)]
    root.extend(suites)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _compared(outcome: Outcome) -> ET.Element:
    """Makes a test of its own: that anything was compared."""
    suite = ET.Element("testsuite", name="compared")
    test = ET.SubElement(suite, "testcase", classname="compared", name=clean(outcome.counts.words))
    if not outcome.passed and all(rule.holds for rule in outcome.rules):
        ET.SubElement(test, "error", message=outcome.headline)
    return _counted(suite)


def _suite(whole: Outcome, outcome: RuleOutcome) -> ET.Element:
    suite = ET.Element("testsuite", name=outcome.rule.id)
    shown = outcome.ordered
    for finding in shown[:MAX_CASES]:
        suite.append(_test(whole, outcome, finding))
    if left_out := shown[MAX_CASES:]:
        rest = ET.SubElement(suite, "testcase", classname=outcome.rule.id, name=f"{len(left_out)} more")
        if any(finding.blocks for finding in left_out):
            ET.SubElement(rest, "failure", message=f"{len(left_out)} more findings")
    if not shown:
        name = clean(outcome.summary)
        ET.SubElement(suite, "testcase", classname=outcome.rule.id, name=name)
    return _counted(suite)


def _counted(suite: ET.Element) -> ET.Element:
    suite.set("tests", str(len(suite)))
    for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{element}"))))
    return suite


def _test(whole: Outcome, outcome: RuleOutcome, finding: GateFinding) -> ET.Element:
    test = ET.Element("testcase", classname=outcome.rule.id, name=clean(finding.subject_name))
    detail = clean(whole.with_groups(finding, finding.whole_detail), limit=1000)
    if finding.settled_by is not None:
        ET.SubElement(test, "skipped", message=clean(finding.state))
    elif not finding.blocks:
        ET.SubElement(test, "system-out").text = f"warning: {detail}"
    else:
        kind = "error" if finding.certainty is Certainty.UNKNOWN else "failure"
        element = ET.SubElement(test, kind, message=detail, type=finding.action.value)
        element.text = clean(outcome.rule.reason, limit=1000)
    return test


@dataclass(frozen=True, kw_only=True)
class ReleaseRun:
    run: Run
    folder: Path
    timing: TimingResults | None
    outcome: Outcome | None
    """None without a policy."""

    @property
    def sides(self) -> str:
        return phrases.sides(self.run)

    def gate_of(self, target: str) -> str:
        """`pass`, `not asked`, or the rules that block this target or the whole run."""
        if self.outcome is None:
            return "not asked"
        others = {case.target for case in self.run.cases} - {target}
        blocking = {
            rule.rule.id: None
            for rule in self.outcome.rules
            for finding in rule.findings
            if finding.blocks and finding.name.rpartition("@")[2] not in others
        }
        return f"fail: {', '.join(blocking)}" if blocking else "pass"

    @property
    def decision(self) -> list[tuple[str, str]]:
        return list(decision.of(self.run, self.timing))

    @property
    def gate(self) -> str:
        return markdown(self.outcome) if self.outcome else ""

    @property
    def report(self) -> str:
        timing = timing_summary.of_results(self.timing) if self.timing else None
        return reports.render(self.run, self.folder, timing, _MOST_CHARACTERS)

    @property
    def targets(self) -> dict[str, dict[str, int]]:
        timed_cases = (
            {timing.case for timing in self.timing.cases if timing.measurement} if self.timing else set()
        )
        by_target = {}
        for target, radius in phrases.in_target_order(self.run):
            cases = [case for case in self.run.cases if case.target == target]
            counts = Counter(case.verdict for case in cases)
            changed = {case.id for case in cases if case.verdict is Verdict.CHANGED}
            by_target[target] = {
                "compared": radius.compared,
                "changed": len(changed),
                "broken": counts[Verdict.BROKEN],
                "failing": counts[Verdict.FAILING] + counts[Verdict.UNSUPPORTED],
                "untimed": len(changed - timed_cases),
            }
        return by_target


def render(parts: Sequence[ReleaseRun]) -> str:
    pairs = dict.fromkeys((part.run.base.version, part.run.head.version) for part in parts)
    title = ", ".join(f"{base} → {head}" for base, head in pairs)
    template = templates.markdown().get_template("release.md.j2")
    return template.render(parts=parts, title=title, verdict=verdict(parts))


def verdict(parts: Sequence[ReleaseRun]) -> str:
    outcomes = [part.outcome for part in parts if part.outcome]
    if not outcomes:
        return "no policy was given: nothing here is a pass"
    failing = sum(not outcome.passed for outcome in outcomes)
    if failing:
        return f"the gate fails for {failing} of {len(parts)} runs"
    if len(outcomes) < len(parts):
        return f"the gate was asked for {len(outcomes)} of {len(parts)} runs only"
    return f"the gate passes for {'the run' if len(parts) == 1 else f'all {len(parts)} runs'}"
