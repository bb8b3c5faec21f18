"""What `--baseline` leaves out: each thing that could hide a change has a test that it does not."""

from dataclasses import replace

import pytest

from irdiff.findings import Finding, FindingKind
from irdiff.model import Sides, StageStatus, Verdict
from irdiff.run import baseline
from tests.unit import runs

DIGEST = "a" * 64


def changed(name, **more):
    return runs.case(f"a/b:{name}@sm_90", Verdict.CHANGED, **{"edit": DIGEST, "group": "g1", **more})


def run_of(*cases):
    members = [case.id for case in cases if case.group]
    groups = (runs.group("g1", *members),) if members else ()
    return runs.run(*cases, groups=groups)


def test_the_same_edit_of_the_same_case_is_known_and_a_group_keeps_its_new_cases():
    x, y = changed("x"), changed("y")
    run = run_of(x, y, runs.case("a/b:z@sm_90"))
    found = baseline.news(run, run)
    assert (found.left_out, found.groups, found.run.groups) == ((x, y), 1, ())
    assert [case.id for case in found.run.cases] == ["a/b:z@sm_90"]
    assert found.run.summary.verdicts[Verdict.CHANGED] == 0
    found = baseline.news(run_of(x, y), run_of(x))
    (group,) = found.run.groups
    assert (group.members, group.representative) == (("a/b:y@sm_90",), "a/b:y@sm_90")
    assert (found.left_out, found.groups) == ((x,), 0)


@pytest.mark.parametrize(
    "change",
    [
        {"edit": "b" * 64},
        {"edit": None},
        {"verdict": Verdict.IR_ONLY},
        {"nondeterministic": ("head",)},
        {"facts": Sides(base={"registers": 1}, head={"registers": 2})},
        {"findings": (Finding(FindingKind.NOT_COMPARED, "ptx,sass"),)},
        {"stages": {"ttir": StageStatus.CHANGED}},
        {"id": "a/b:other@sm_90"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_else_differs_is_new(change):
    old = run_of(changed("x"))
    case = replace(old.cases[0], **change)
    for run, earlier in ((run_of(case), old), (old, run_of(case))):
        assert not baseline.news(run, earlier).left_out
        assert baseline.news(run, earlier).run == run


def test_nothing_is_known_by_other_normalizers_or_without_an_edit():
    run = run_of(changed("x"))
    assert baseline.news(run, replace(run, normalizer_version="another")).left_out == ()
    run = runs.run(runs.case("a/b:x@sm_90", Verdict.ADDED), runs.case("a/b:y@sm_90", Verdict.FAILING))
    assert baseline.news(run, run).run == run
