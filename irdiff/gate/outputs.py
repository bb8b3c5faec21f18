"""The gate's answer as text, JSON and Markdown. Pass or fail first, then each rule with what decided it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from irdiff.gate import wording
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import GateFinding, Outcome, RuleOutcome
from irdiff.gate.policy import Waiver
from irdiff.gate.wording import Again
from irdiff.report import escape

SCHEMA = "irdiff-gate/1"
_SHOWN = 12
_MARKDOWN_LIMIT = 60_000


def text(outcome: Outcome, again: Again = wording.UNNAMED) -> str:
    """The outcome as text, for a terminal or a job's log."""
    return "\n".join(_text_lines(outcome, again)) + "\n"


def _text_lines(outcome: Outcome, again: Again) -> Iterator[str]:
    yield escape.terminal(wording.headline(outcome))
    yield escape.terminal(f"  {outcome.base} → {outcome.head}")
    for rule in sorted(outcome.rules, key=lambda rule: rule.holds):
        yield f"{rule.word:8} {rule.rule.id}: {wording.summary(rule)}"
        if rule.findings:
            yield f"{'':8}   {escape.terminal(rule.rule.reason)}"
        told = wording.together(outcome, rule.findings)
        for row in told[:_SHOWN]:
            groups = f" [{row.groups}]" if row.groups else ""
            yield f"{'':8} - {escape.terminal(f'{row.name}{row.more}{groups}: {row.words}')}"
        if len(told) > _SHOWN:
            yield f"{'':8}   … {len(told) - _SHOWN} more: see --json"
    for note in wording.notes(outcome):
        yield f"note     {escape.terminal(note)}"
    if step := wording.next_step(outcome, again):
        yield f"next     {escape.terminal(step)}"


def as_json(outcome: Outcome) -> str:
    """The whole outcome as JSON. The same outcome gives the same bytes."""
    rows = {
        "schema": SCHEMA,
        "passed": outcome.passed,
        "headline": wording.headline(outcome),
        "base": outcome.base,
        "head": outcome.head,
        "timed_on": list(outcome.timed_on),
        "rules": [_rule_rows(rule) for rule in outcome.rules],
        "notes": wording.notes(outcome),
    }
    return json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _rule_rows(outcome: RuleOutcome) -> dict[str, Any]:
    return {
        "id": outcome.rule.id,
        "kind": outcome.rule.kind,
        "action": outcome.rule.action.value,
        "reason": outcome.rule.reason,
        "result": outcome.word,
        "examined": outcome.examined,
        "findings": [_finding_rows(finding) for finding in outcome.findings],
    }


def _finding_rows(finding: GateFinding) -> dict[str, Any]:
    return {
        "subject": finding.subject.value,
        "name": finding.name,
        "certainty": finding.certainty.value,
        "action": finding.action.value,
        "blocks": finding.blocks,
        "detail": finding.detail,
        "groups": list(finding.groups),
        "edits": dict(finding.edits),
        "not_accepted": finding.not_accepted,
        "settled_by": _settled_rows(finding.settled_by),
    }


def _settled_rows(settled: Waiver | tuple[Accepted, ...] | None) -> dict[str, Any] | None:
    match settled:
        case None:
            return None
        case Waiver():
            return {
                "waiver": settled.rule,
                "owner": settled.owner,
                "reason": settled.reason,
                "issue": settled.issue,
                "expires": settled.expires.isoformat(),
            }
        case entries:
            return {"accepted": [_accepted_rows(entry) for entry in entries]}


def _accepted_rows(entry: Accepted) -> dict[str, str]:
    return {
        "group": entry.group,
        "owner": entry.owner,
        "reason": entry.reason,
        "on": entry.on.isoformat(),
        "expires": entry.expires.isoformat(),
    }


def markdown(outcome: Outcome, limit: int = _MARKDOWN_LIMIT) -> str:
    """For a job summary or a release document, in at most `limit` characters: fewer findings if need be."""
    for shown in (_SHOWN, 5, 1, 0):
        content = "\n".join(_markdown_lines(outcome, shown)) + "\n"
        if len(content) <= limit:
            return content
    return f"### {escape.markdown(wording.headline(outcome))}\n"[:limit]


def _markdown_lines(outcome: Outcome, shown: int) -> Iterator[str]:
    yield f"### {escape.markdown(wording.headline(outcome))}"
    yield ""
    yield f"{escape.code(outcome.base)} → {escape.code(outcome.head)}"
    yield ""
    yield "| result | rule | |"
    yield "|---|---|---|"
    for rule in sorted(outcome.rules, key=lambda rule: rule.holds):
        yield f"| {rule.word} | {escape.code(rule.rule.id)} | {escape.markdown(wording.summary(rule))} |"
    for rule in outcome.rules:
        if rule.findings:
            yield from _markdown_rule(outcome, rule, shown)
    found = wording.notes(outcome)
    if found:
        yield ""
        yield from (f"- {escape.markdown(note)}" for note in found[:20])


def _markdown_rule(whole: Outcome, outcome: RuleOutcome, shown: int) -> Iterator[str]:
    opened = "" if outcome.holds else " open"
    title = f"{outcome.word}: {outcome.rule.id}, {wording.summary(outcome)}"
    yield f"\n<details{opened}><summary>{escape.github_html(title)}</summary>\n"
    yield escape.markdown(outcome.rule.reason, limit=1000) + "\n"
    told = wording.together(whole, outcome.findings)
    for row in told[:shown]:
        groups = f" ({escape.code(row.groups)})" if row.groups else ""
        yield f"- {escape.code(row.name)}{row.more}{groups}: {escape.markdown(row.words)}"
    if len(told) > shown:
        yield f"- … {len(told) - shown} more"
    yield "\n</details>"
