"""The gate's answer as SARIF 2.1.0 (OASIS), as GitHub code scanning takes it.

GitHub refuses files of more than 25,000 results a run and keeps the first 5,000 by severity, and files above
10 MB compressed ("SARIF support for code scanning", docs.github.com): at most 5,000 results are written here,
what blocks first, and messages are cut.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from irdiff import __version__
from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome
from irdiff.gate.policy import Action
from irdiff.model import Run
from irdiff.report.escape import clean

MAX_RESULTS = 5_000
_LEVELS = {Action.DENY: "error", Action.REVIEW: "warning", Action.WARN: "note"}
_CORPUS = PurePosixPath("corpus")
"""Where the corpus lies in the repository that the results are shown in."""
_FALLBACK = "irdiff-policy.toml"
"""Code scanning wants a file for each result; one that concerns no kernel points at the policy."""


def sarif(outcome: Outcome, run: Run) -> str:
    sources = {
        case.id: run.launches[digest].source_path
        for case in run.cases
        if (digest := case.launches.head or case.launches.base) in run.launches and digest
    }
    found = [(rule, finding) for rule in outcome.rules for finding in rule.findings]
    found.sort(key=lambda row: (row[1].settled_by is not None, list(_LEVELS).index(row[1].action)))
    results = [
        _result(outcome, rule, finding, _location(sources.get(finding.name, "")))
        for rule, finding in found[:MAX_RESULTS]
    ]
    left_out = len(found) - len(results)
    driver = {"name": "irdiff", "version": __version__, "rules": [_rule(rule) for rule in outcome.rules]}
    message = clean(f"{outcome.headline}; {outcome.counts.words}")
    message += f"; {left_out} findings left out" if left_out else ""
    notification = {"level": "note" if outcome.passed else "error", "message": {"text": message}}
    rows = {
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": [notification]}],
                "results": results,
            }
        ],
    }
    return json.dumps(rows, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def _rule(outcome: RuleOutcome) -> dict[str, Any]:
    rule = outcome.rule
    return {
        "id": rule.id,
        "shortDescription": {"text": f"{rule.kind}: {rule.action.value}"},
        "fullDescription": {"text": clean(rule.reason, limit=1000)},
        "defaultConfiguration": {"level": _LEVELS[rule.action]},
    }


def _result(
    whole: Outcome, outcome: RuleOutcome, finding: GateFinding, location: Mapping[str, Any]
) -> dict[str, Any]:
    name = finding.subject_name
    fingerprint = hashlib.sha256(f"{outcome.rule.id}\0{name}".encode(errors="replace")).hexdigest()[:32]
    named = whole.with_groups(finding, name)
    unknown = "not known: " if finding.certainty is Certainty.UNKNOWN else ""
    result: dict[str, Any] = {
        "ruleId": outcome.rule.id,
        "level": _LEVELS[finding.action],
        "message": {"text": clean(f"{named}: {unknown}{finding.whole_detail}", limit=900)},
        "locations": [location],
        # The same finding of two runs is one alert: named by rule and subject, not by its figures.
        "partialFingerprints": {"irdiff/v1": fingerprint},
    }
    if finding.settled_by is not None:
        why = clean(finding.state, limit=900)
        result["suppressions"] = [{"kind": "external", "justification": why}]
    return result


def _location(source: str) -> dict[str, Any]:
    path = PurePosixPath(source)
    outside = not source or path.is_absolute() or ".." in path.parts or ":" in source or "\\" in source
    uri = _FALLBACK if outside else quote(str(_CORPUS / path))[:1000]
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
