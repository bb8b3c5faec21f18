"""Cases whose code was not compared, why a side failed, and the blast radius."""

from dataclasses import replace
from operator import itemgetter

import pytest

from irdiff.capture import pairing
from irdiff.compare import cases, radius
from irdiff.compare.cases import MAX_REASON, reason
from irdiff.model import Artifact, FailureKind, Sides, StageStatus, Verdict
from tests.unit import runs
from tests.unit.findings import told
from tests.unit.golden import golden

TARGET = runs.target()
PAIR = runs.pair("a/b:c@sm_90")
COMPILES = Sides(base=None, head=None)


def failure(kind=FailureKind.ERROR, **of_failure):
    return runs.failed(kind, **of_failure).failure


@pytest.fixture
def pair(launch):
    return replace(PAIR, base=launch, head=launch)


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
def test_failures(pair, base, head, verdict):
    kinds = Sides(base=base, head=head)
    case = cases.failed(pair, kinds.map(lambda kind: failure(kind) if kind else None))
    assert case.verdict is verdict
    assert (case.origin is not None) == (verdict in (Verdict.BROKEN, Verdict.FIXED))
    assert (case.error or "").count("it failed") == sum(kind is not None for kind in kinds)


def test_what_a_side_does_not_support(launch):
    new = replace(PAIR, head=launch, supported=Sides(base=False, head=True))
    case = cases.one_sided(new, COMPILES)
    assert (case.verdict, case.error) == (Verdict.FIXED, "base: the toolchain has no backend 'cuda'")
    assert cases.one_sided(new, replace(COMPILES, head=failure())).verdict is Verdict.FAILING
    case = cases.one_sided(pairing.unsupported("a/b", TARGET), COMPILES)
    assert (case.id, case.verdict, case.kernel) == ("a/b:*@sm_90", Verdict.UNSUPPORTED, "")


@pytest.mark.parametrize("differs", ["", "grid", "order"])
def test_equal_inputs_are_compared_by_their_launch_alone(pair, launch, differs):
    other = replace(launch, launched=Artifact(stage="launch", digest="2" * 64, size_bytes=9))
    pair = replace(pair, head=other if differs == "grid" else launch, moved=differs == "order")
    case = cases.same_input(pair)
    assert case.verdict is (Verdict.CHANGED if differs else Verdict.UNCHANGED)
    assert case.stages.pop("launch") is (StageStatus.CHANGED if differs else StageStatus.IDENTICAL)
    assert {*case.stages.values()} == {StageStatus.ABSENT}
    assert (case.origin and case.origin.stage) == ("launch" if differs else None)
    assert told(case.findings) == ("not-compiled:same-input",)
    assert case.artifacts.head["launch"] == pair.head.launched


def test_radius_counts_only_what_was_compared(pair):
    changed = replace(cases.blank(pair, Verdict.CHANGED), stages={"ttir": StageStatus.CHANGED})
    same = replace(cases.blank(pair, Verdict.UNCHANGED), stages={"ttir": StageStatus.ABSENT})
    summary = radius.summarize([changed, same, cases.blank(pair, Verdict.BROKEN)], [TARGET])
    assert (summary.cases, summary.compared) == (3, 2)
    row = summary.radius["sm_90"]
    assert (row.changed, row.compared, row.fraction) == (1, 2, 0.5)
    assert (row.stages["ttir"].changed, row.stages["ttir"].compared) == (1, 1)


@pytest.mark.parametrize("row", golden("reasons")["reason"], ids=itemgetter("expected"))
def test_the_reason_is_without_the_source_that_the_message_quotes(row):
    said = {"message": row["message"], "stderr": row["stderr"]}
    assert reason(failure(**said)) == row["expected"]
    assert reason(failure(FailureKind.CRASH, **said)) == row["message"][:MAX_REASON]
