"""That Triton's runtime differs, and was not compared, is said by every report, however short; findings have words."""

import datetime
from dataclasses import replace

import pytest

from irdiff import gate
from irdiff.compare import runtime
from irdiff.gate import outputs, policy
from irdiff.github import comment
from irdiff.model import RuntimeEdit
from irdiff.report import html, markdown
from irdiff.run import run_folder
from tests.unit import runs
from tests.unit.findings import findings
from tests.unit.report.test_reports import NOWHERE, printed

(NOTE,) = runtime.notes([RuntimeEdit(path="triton/runtime/jit.py", diff=())])
RULE = {"id": "r", "action": "deny", "reason": "x" * 20, "kind": "verdict", "verdicts": ["broken"]}
POLICY = policy.parse({"schema": policy.SCHEMA, "rule": [RULE], "waiver": []}, "test")


def as_gate(form):
    return lambda run: form(gate.evaluate(run, POLICY, today=datetime.date(2026, 1, 2)))


REPORTS = {
    "terminal": printed,
    "html": lambda run: html.render(run, NOWHERE),
    "json": lambda run: run_folder.dump(run).decode(),
    "gate": as_gate(outputs.text),
    "gate as markdown": as_gate(outputs.markdown),
    "gate as json": as_gate(outputs.as_json),
    **{
        f"markdown of {limit}": (lambda run, limit=limit: markdown.render(run, NOWHERE, limit=limit))
        for limit in (1_000, *comment._LIMITS, markdown.LIMIT)
    },
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("run", [runs.run(), runs.large_run(200, 40)], ids=["empty", "large"])
def test_no_report_hides_that_the_runtime_differs(report, run):
    run = replace(run, notes=(NOTE, *(f"note {number} of many" for number in range(30))))
    assert NOTE.partition(" (")[0] in REPORTS[report](run)


@pytest.mark.parametrize(
    "name",
    [
        *("machine-code-as-text:no-linker", "machine-code-as-text:no-binary", "not-compared:asm,npuasm"),
        *("assembler-sets-intersect", "assembler-allocated-otherwise", "launch-differs:shared,num_warps"),
    ],
)
def test_every_finding_of_evidence_has_words(name):
    assert [row.words for row in findings(name)] != [name]
