"""The gate's answer as text, JSON and Markdown. Pass or fail first, then each rule with what decided it."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterator
from typing import Any

from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome, SubjectKind
from irdiff.gate.policy import Action, Waiver
from irdiff.report import commands, escape, templates

SCHEMA = "irdiff-gate/1"
_SHOWN = 12
_MARKDOWN_LIMIT = 60_000
_MEASURED = frozenset({"slower", "timed", "wrong-result"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Again:
    """The words of the command that asks the gate again."""

    call: str
    policy: str
    """Empty: that of the current folder."""
    until: datetime.date | None


UNNAMED = Again(call=commands.UNNAMED, policy="POLICY", until=None)


def text(outcome: Outcome, again: Again = UNNAMED) -> str:
    """The outcome as text, for a terminal or a job's log."""
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
        for row in lines[:_SHOWN]:
            more = f" and {row.more} more" if row.more else ""
            groups = f" [{row.groups}]" if row.groups else ""
            yield f"{'':8} - {escape.terminal(f'{row.name}{more}{groups}: {row.words}')}"
        if len(lines) > _SHOWN:
            yield f"{'':8}   … {len(lines) - _SHOWN} more: see --json"
        if rule.word == Action.DENY:
            yield f"{'':8}   next: {escape.terminal(_cure(rule, again))}"
    for note in outcome.notes:
        yield f"note     {escape.terminal(note)}"
    if outcome.waiting:
        yield f"next     {escape.terminal(_next_step(outcome, again))}"


def _cure(rule: RuleOutcome, again: Again) -> str:
    """What a person can do about a rule that denies."""
    blocking = [finding for finding in rule.findings if finding.blocks]
    if rule.rule.kind in _MEASURED and all(row.certainty is Certainty.UNKNOWN for row in blocking):
        return f"on a machine with the GPU: {commands.command('time', again.call)}"
    names = [finding.name for finding in blocking if finding.name]
    key = "files" if any(finding.subject is SubjectKind.FILE for finding in blocking) else "cases"
    what = f"{key} = {json.dumps(names[:1] or ['*'])}"
    return f"mend it, or add to the policy: [[waiver]] rule = {json.dumps(rule.rule.id)}, {what}, owner, …"


def _next_step(outcome: Outcome, again: Again) -> str:
    """The command that accepts what only waits for a person: it lacks an owner and a reason."""
    words = ["gate", again.call, *(["--policy", again.policy] if again.policy else [])]
    for name in outcome.waiting:
        words += ["--accept", name]
    words += ["--until", str(again.until or "YYYY-MM-DD"), "--owner", "YOU", "--reason", "WHY"]
    return f"after a look at each group: {commands.command(*words)}"


def as_json(outcome: Outcome) -> str:
    """The whole outcome as JSON. The same outcome gives the same bytes."""
    rows = {
        "schema": SCHEMA,
        "passed": outcome.passed,
        "headline": outcome.headline,
        "base": outcome.base,
        "head": outcome.head,
        "cases": dataclasses.asdict(outcome.counts),
        "timed_on": outcome.timed_on,
        "rules": [_rule_rows(rule) for rule in outcome.rules],
        "notes": outcome.notes,
    }
    return json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True, default=str) + "\n"


def _rule_rows(outcome: RuleOutcome) -> dict[str, Any]:
    return {
        "id": outcome.rule.id,
        "kind": outcome.rule.kind,
        "action": outcome.rule.action,
        "reason": outcome.rule.reason,
        "result": outcome.word,
        "examined": outcome.examined,
        "findings": [_finding_rows(finding) for finding in outcome.findings],
    }


def _finding_rows(finding: GateFinding) -> dict[str, Any]:
    settled: dict[str, Any] | None
    match finding.settled_by:
        case None:
            settled = None
        case Waiver() as waiver:
            settled = {"waiver": waiver.rule, "issue": waiver.issue, **_decision(waiver)}
        case entries:
            settled = {"accepted": [{"group": row.group, "on": row.on, **_decision(row)} for row in entries]}
    return {**vars(finding), "blocks": finding.blocks, "settled_by": settled}


def _decision(settled: Waiver | Accepted) -> dict[str, Any]:
    return {"owner": settled.owner, "reason": settled.reason, "expires": settled.expires}


def markdown(outcome: Outcome, limit: int = _MARKDOWN_LIMIT) -> str:
    """For a job summary or a release document, in at most `limit` characters: fewer findings if need be."""
    template = templates.markdown().get_template("gate.md.j2")
    for shown in (_SHOWN, 5, 1, 0):
        content = template.render(outcome=outcome, shown=shown)
        if len(content) <= limit:
            return content
    return f"### {escape.markdown(outcome.headline)}\n"[:limit]
