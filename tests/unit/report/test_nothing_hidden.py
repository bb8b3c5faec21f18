"""What was not compared is said by every report, and the gate takes it for no sameness."""

from __future__ import annotations

import datetime
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from irdiff import gate
from irdiff.capture import pairing
from irdiff.capture.catalogs import NOTHING, Catalog
from irdiff.capture.pairing import CapturedWorkload
from irdiff.compare import cases, radius, runtime
from irdiff.gate import outputs, policy
from irdiff.github import comment
from irdiff.group import grouping
from irdiff.model import (
    DEFAULT_OPTIONS,
    CaptureFailure,
    Case,
    Failure,
    Launch,
    Run,
    RuntimeEdit,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.report import headline, html, markdown, phrases, terminal
from irdiff.run import run_folder
from tests.unit import runs
from tests.unit.findings import findings

(NOTE,) = runtime.notes([RuntimeEdit(path="triton/runtime/jit.py", diff=())])
OTHER_NOTES = tuple(f"note {number} of many" for number in range(30))
TODAY = datetime.date(2026, 1, 2)


def evaluated(run: Run, *rules: dict[str, Any]) -> gate.Outcome:
    rows = [{"id": f"r{n}", "action": "deny", "reason": "x" * 20, **rule} for n, rule in enumerate(rules)]
    rules_of = policy.parse({"schema": policy.SCHEMA, "rule": rows, "waiver": []}, "test")
    return gate.evaluate(run, rules_of, today=TODAY)


def in_terminal(run: Run) -> str:
    file = io.StringIO()
    terminal.show(run, Path("run"), Console(file=file, width=80))
    return file.getvalue()


def as_gate(form: Callable[[gate.Outcome], str]) -> Callable[[Run], str]:
    return lambda run: form(evaluated(run, {"kind": "verdict", "verdicts": ["broken"]}))


REPORTS: dict[str, Callable[[Run], str]] = {
    "terminal": in_terminal,
    "html": lambda run: html.render(run, Path("nowhere")),
    "json": lambda run: run_folder.dump(run).decode(),
    "gate": as_gate(outputs.text),
    "gate as markdown": as_gate(outputs.markdown),
    "gate as json": as_gate(outputs.as_json),
    **{
        f"markdown of {limit}": (lambda run, limit=limit: markdown.render(run, Path("nowhere"), limit=limit))
        for limit in (1_000, *comment._LIMITS, markdown.LIMIT)
    },
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("run", [runs.run(), runs.large_run(200, 40)], ids=["empty", "large"])
def test_no_report_hides_that_the_runtime_differs(report: str, run: Run) -> None:
    run = replace(run, notes=(NOTE, *OTHER_NOTES))
    text = REPORTS[report](run)
    start = "the runtime differs between base and head"
    assert start in text.replace("&#40;", "(").replace("\\", "")


# a workload that loads at base and not at head


def failing(name: str) -> CaptureFailure:
    failure = replace(runs.FAILURE, stage="capture", message="No module named 'torch'")
    return CaptureFailure(id=name, expected=True, failure=failure)


def compared(base: Catalog, head: Catalog) -> Run:
    """The run of one workload of which every case is one-sided, and compiles where it is launched."""
    target = runs.target()
    row = CapturedWorkload(workload="a/b", target=target, catalogs=Sides(base=base, head=head))
    options = DEFAULT_OPTIONS
    alone: Sides[Failure | None] = Sides(base=None, head=None)
    found: list[Case] = [cases.one_sided(pair, alone) for pair in pairing.pairs([row], options)]
    groups, group_of = grouping.group(found, lambda case: grouping.describe(case, None))
    found = [replace(case, group=group_of.get(case.id)) for case in found]
    run = runs.run(*found, groups=groups)
    return replace(run, targets=(target,), summary=radius.summarize(found, (target,)))


@pytest.fixture
def launched(launch: Launch) -> Iterator[Catalog]:
    rows = tuple(replace(launch, id=f"a/b:{name}") for name in ("one", "two/k1", "two/k2"))
    yield replace(NOTHING, launches=rows)


@pytest.mark.parametrize(
    ("failures", "broken"), [(("a/b:*",), 3), (("a/b:one", "a/b:two"), 3), (("a/b:two",), 2)]
)
def test_what_loads_at_base_only_is_broken(launched: Catalog, failures: tuple[str, ...], broken: int) -> None:
    kept = launched.launches[:1] if broken == 2 else ()
    rows = tuple(failing(name) for name in failures)
    run = compared(
        replace(launched, launches=launched.launches[len(kept) :]),
        replace(NOTHING, failures=rows),
    )
    assert [case.verdict for case in run.cases] == [Verdict.BROKEN] * broken
    assert {case.error for case in run.cases} == {"head: No module named 'torch'"}
    assert headline.of(run).startswith(f"{broken} of {broken} kernels no longer compile")
    assert len(run.groups) == 1
    assert "No module named 'torch'" in in_terminal(run)
    assert not evaluated(run, {"kind": "verdict", "verdicts": ["broken"]}).passed


def test_what_loads_at_head_only_is_fixed(launched: Catalog) -> None:
    run = compared(replace(NOTHING, failures=(failing("a/b:*"),)), launched)
    assert {case.verdict for case in run.cases} == {Verdict.FIXED}


def test_a_pattern_selects_by_what_the_other_side_launches(launched: Catalog) -> None:
    row = CapturedWorkload(
        workload="a/b",
        target=runs.target(),
        catalogs=Sides(base=launched, head=replace(NOTHING, failures=(failing("a/b:*"),))),
    )
    options = replace(DEFAULT_OPTIONS, cases=("a/b:two",), tiers=("core",))
    assert [pair.launch_id for pair in pairing.pairs([row], options)] == ["a/b:two/k1", "a/b:two/k2"]


# a case whose code was not compared


def blind(build: Any) -> Run:
    case = build.case(
        "a/x:1@sm_90",
        Verdict.CHANGED,
        findings=findings("not-compared:asm,npuasm"),
        stages={"ttir": StageStatus.IDENTICAL, "asm": StageStatus.ABSENT, "npuasm": StageStatus.ABSENT},
        origin=cases.origin("asm"),
    )
    groups, group_of = grouping.group([case], lambda row: grouping.describe(row, None))
    return build.run(replace(case, group=group_of[case.id]), groups=groups)


def test_the_headline_and_the_group_say_that_code_was_not_compared(build: Any) -> None:
    run = blind(build)
    (group,) = run.groups
    assert group.severity == "wrong-result risk"
    assert group.title == "the code was not compared: the sides end in different stages"
    for report in ("terminal", "html", "markdown of 60000"):
        assert "the code of 1 could not be compared" in REPORTS[report](run).lower()
    assert "base ends in asm, head in npuasm" in phrases.finding(*findings("not-compared:asm,npuasm"))


def test_the_gate_takes_it_for_no_sameness(build: Any) -> None:
    run = blind(build)
    for rule in (
        {"kind": "verdict", "verdicts": ["changed"]},
        {"kind": "radius", "percent": 0},
        {"kind": "severity", "severities": ["wrong-result risk"]},
        {"kind": "fact", "facts": ["registers"], "more_than": 0},
        {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 1},
        {"kind": "coverage", "required_targets": [], "min_compared": 1, "max_uncompared_percent": 50},
    ):
        assert not evaluated(run, rule).passed, rule


@pytest.mark.parametrize(
    "name",
    [
        *("machine-code-as-text:no-linker", "machine-code-as-text:no-binary"),
        *("assembler-sets-intersect", "assembler-allocated-otherwise", "launch-differs:shared,num_warps"),
    ],
)
def test_every_finding_of_evidence_has_words(name: str) -> None:
    assert phrases.finding(*findings(name)) != name
