"""Cases that were not compared in code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irdiff.capture import pairing
from irdiff.compare import cases, radius
from irdiff.model import (
    CaptureFailure,
    Failure,
    FailureKind,
    Launch,
    Pair,
    Sides,
    StageStatus,
    Target,
    Verdict,
)
from tests.unit.findings import findings, told

TARGET = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
PAIR = Pair(
    id="a/b:c@sm_90",
    launch_id="a/b:c",
    target=TARGET,
    base=None,
    head=None,
    supported=Sides(base=True, head=True),
    moved=False,
)


def failure(kind: FailureKind) -> Failure:
    return Failure(kind=kind, stage="ttgir", message="it failed", signal=None, stderr="")


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        (None, FailureKind.CRASH, Verdict.BROKEN),
        (None, FailureKind.UNSUPPORTED, Verdict.BROKEN),
        (FailureKind.TIMEOUT, None, Verdict.FIXED),
        (FailureKind.ERROR, FailureKind.ERROR, Verdict.FAILING),
        (FailureKind.UNSUPPORTED, FailureKind.ERROR, Verdict.FAILING),
        (FailureKind.UNSUPPORTED, FailureKind.UNSUPPORTED, Verdict.UNSUPPORTED),
    ],
)
def test_failures(launch: Launch, base, head, verdict: Verdict) -> None:
    pair = replace(PAIR, base=launch, head=launch)
    failures = Sides(base=failure(base) if base else None, head=failure(head) if head else None)
    case = cases.failed(pair, failures)
    assert case.verdict is verdict
    assert (case.origin is not None) == (verdict in (Verdict.BROKEN, Verdict.FIXED))
    assert (case.error or "").count("it failed") == sum(kind is not None for kind in (base, head))


def test_one_sided(launch: Launch) -> None:
    assert cases.one_sided(replace(PAIR, head=launch)).verdict is Verdict.ADDED
    assert cases.one_sided(replace(PAIR, base=launch)).verdict is Verdict.REMOVED
    missing = replace(PAIR, head=launch, supported=Sides(base=False, head=True))
    case = cases.one_sided(missing)
    assert case.verdict is Verdict.FIXED
    assert case.error == "base: the toolchain has no backend 'cuda'"


@pytest.mark.parametrize(
    ("base", "head", "verdict"),
    [
        ("launch", "fails", Verdict.BROKEN),
        ("fails", "launch", Verdict.FIXED),
        ("fails", "fails", Verdict.FAILING),
        (None, "fails", Verdict.FAILING),
        ("fails", None, Verdict.REMOVED),
    ],
)
def test_launches_that_one_side_did_not_take(launch: Launch, base, head, verdict: Verdict) -> None:
    failed = CaptureFailure(id="a/b:c", expected=True, failure=failure(FailureKind.ERROR))
    rows = {"launch": launch, "fails": failed, None: None}
    case = cases.one_sided(replace(PAIR, base=rows[base], head=rows[head]))
    assert case.verdict is verdict
    assert "it failed" in (case.error or "")
    assert case.launches.base == (launch.key if base == "launch" else None)


def test_the_same_input_is_said_and_no_stage_is_called_compared(launch: Launch) -> None:
    case = cases.unchanged_by_input(replace(PAIR, base=launch, head=launch))
    assert case.verdict is Verdict.UNCHANGED
    assert set(case.stages.values()) == {StageStatus.ABSENT}
    assert told(case.findings) == ("not-compiled:same-input",)


def test_a_workload_that_no_side_supports() -> None:
    case = cases.one_sided(pairing.unsupported("a/b", TARGET))
    assert (case.id, case.verdict, case.kernel) == ("a/b:*@sm_90", Verdict.UNSUPPORTED, "")


def test_a_renamed_launch_keeps_its_old_id(launch: Launch) -> None:
    pair = replace(PAIR, base=replace(launch, id="a/old:c"), head=launch)
    assert cases.blank(pair, Verdict.CHANGED).renamed_from == "a/old:c@sm_90"
    assert cases.blank(replace(PAIR, base=launch, head=launch), Verdict.CHANGED).renamed_from is None


def test_only_a_finding_says_that_code_was_not_compared(launch: Launch) -> None:
    case = cases.blank(replace(PAIR, base=launch, head=launch), Verdict.CHANGED)
    assert not cases.not_compared(case)
    assert not cases.not_compared(
        replace(
            case,
            findings=findings(
                "not-compiled:same-input",
            ),
        )
    )
    assert cases.not_compared(replace(case, findings=findings("reordered-only", "not-compared:asm,npuasm")))


def test_radius_counts_only_what_was_compared(launch: Launch) -> None:
    pair = replace(PAIR, base=launch, head=launch)
    changed = replace(cases.blank(pair, Verdict.CHANGED), stages={"ttir": StageStatus.CHANGED})
    same = replace(cases.blank(pair, Verdict.UNCHANGED), stages={"ttir": StageStatus.ABSENT})
    summary = radius.summarize([changed, same, cases.blank(pair, Verdict.BROKEN)], [TARGET])
    assert (summary.cases, summary.compared) == (3, 2)
    row = summary.radius["sm_90"]
    assert (row.changed, row.compared, row.fraction) == (1, 2, 0.5)
    assert (row.stages["ttir"].changed, row.stages["ttir"].compared) == (1, 1)
