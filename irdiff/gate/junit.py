"""The gate's answer as JUnit XML: one suite a rule, one test case a finding, as CI systems show them.

The format has no standard; element and attribute names follow the schema of Jenkins' xUnit plugin
(junit-10.xsd), which GitLab, Azure and GitHub's reporters read. A rule that does not hold is a failure,
one that could not be decided is an error, and a waived or accepted finding is skipped.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome
from irdiff.report.escape import clean

MAX_CASES = 2_000
"""The most test cases of one suite. One more test case counts the rest, and says so."""


def junit(outcome: Outcome) -> str:
    root = ET.Element("testsuites", name=f"irdiff gate: {'pass' if outcome.passed else 'fail'}")
    suites = [_compared(outcome), *(_suite(outcome, rule) for rule in outcome.rules)]
    root.extend(suites)
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _compared(outcome: Outcome) -> ET.Element:
    """A test of its own: that anything was compared."""
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
