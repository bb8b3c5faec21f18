"""Every rule over one run at its bounds, and the words of what it finds: a reviewer acts on those alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from irdiff.gate import rules
from irdiff.gate.outcome import Certainty, GateFinding, SubjectKind
from irdiff.gate.policy import Action
from irdiff.gate.timings import TimedCase
from irdiff.model import DEFAULT_OPTIONS, Edited, Run, Sides, StageStatus, Verdict
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.timed import CASE, timed

VIOLATED, UNKNOWN = Certainty.VIOLATED, Certainty.UNKNOWN
SLOWER = {"kind": "slower", "percent": 3}
COVERAGE = {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 1}
FACT = {"kind": "fact", "facts": ["spill_store_bytes", "scratch"]}


def evaluated(run: Run, *timings: TimedCase, **rule: Any) -> tuple[int, list[GateFinding]]:
    (parsed,) = policies.of({"if_unknown": "warn", **rule}).rule
    of_case: dict[str, list[TimedCase]] = {}
    for row in timings:
        of_case.setdefault(row.case, []).append(row)
    groups = {group.id: group for group in run.groups}
    return rules.findings(parsed, rules.Evidence(run=run, groups=groups, timings=of_case))


def found(run: Run, *timings: TimedCase, **rule: Any) -> list[tuple[SubjectKind, str, Certainty, str]]:
    """Where a rule does not hold; what is found is denied, and what is not known is warned of."""
    _, rows = evaluated(run, *timings, **rule)
    for row in rows:
        assert row.action is (Action.DENY if row.certainty is VIOLATED else Action.WARN)
        assert (row.not_accepted, row.settled_by) == ("", None)
    return [(row.subject, row.name, row.certainty, row.detail) for row in rows]


def said(run: Run, *timings: TimedCase, **rule: Any) -> tuple[Certainty, str] | None:
    """Of the only case."""
    rows = found(run, *timings, **rule)
    if not rows:
        return None
    ((subject, name, certainty, detail),) = rows
    assert (subject, name) == (SubjectKind.CASE, CASE)
    return certainty, detail


@pytest.fixture
def changed(build: Any) -> Run:
    return build.run(build.case(CASE, Verdict.CHANGED))


# what a rule is asked of


def test_a_rule_counts_the_cases_that_it_selects(build: Any) -> None:
    run = build.run(build.case("a/x:1@sm_90"), build.case("a/x:2@sm_90"), build.case("a/x:1@gfx942"))
    for kind in (
        {"kind": "verdict", "verdicts": ["broken"]},
        {"kind": "radius", "percent": 100},
        {"kind": "compile-time", "percent": 100},
        {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 1},
    ):
        assert evaluated(run, **kind) == (3, [])
        assert evaluated(run, targets=["sm_90"], **kind) == (2, [])


def test_a_rule_that_selects_nothing_is_not_known_to_hold(build: Any) -> None:
    run = build.run(build.case(CASE))
    rule = {"kind": "verdict", "verdicts": ["broken"], "targets": ["gfx942"]}
    count, rows = evaluated(run, **rule)
    assert count == 0
    assert [(row.subject, row.name, row.certainty, row.detail, row.groups, row.edits) for row in rows] == [
        (SubjectKind.RUN, "", UNKNOWN, "it selects no case of this run: nothing was checked", (), {})
    ]
    assert evaluated(run, may_be_empty=True, **rule) == (0, [])


def test_a_finding_names_the_group_and_edit_that_would_settle_it(build: Any) -> None:
    rule = {"kind": "verdict", "verdicts": ["changed"]}
    case = build.case(CASE, Verdict.CHANGED)
    (row,) = evaluated(build.run(case, groups=(build.group("g", CASE),)), **rule)[1]
    assert (row.groups, row.edits) == (("g",), {CASE: case.edit})
    (row,) = evaluated(build.run(case), **rule)[1]
    assert (row.groups, row.edits) == ((), {})


# verdicts


def test_a_verdict_is_told_with_where_it_begins_and_why(build: Any) -> None:
    rule = {"kind": "verdict", "verdicts": ["changed", "broken", "removed"]}
    assert said(build.run(build.case(CASE, Verdict.CHANGED)), **rule) == (VIOLATED, "changed, first in ttgir")
    assert said(build.run(build.case(CASE, Verdict.REMOVED)), **rule) == (VIOLATED, "removed")
    assert said(build.run(build.case(CASE, Verdict.BROKEN)), **rule) == (
        VIOLATED,
        "broken: head: PassManager::run failed",
    )


# facts


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        ({"spill_store_bytes": 8}, {"spill_store_bytes": 8}, None),
        ({"spill_store_bytes": 0}, {"spill_store_bytes": 1}, (VIOLATED, "spill_store_bytes 0 → 1")),
        (
            {"spill_store_bytes": 0, "scratch": 2},
            {"spill_store_bytes": 1, "scratch": 4},
            (VIOLATED, "spill_store_bytes 0 → 1, scratch 2 → 4"),
        ),
        (
            {"scratch": 0},
            {"scratch": 0, "spill_store_bytes": 4},
            (UNKNOWN, "spill_store_bytes is known at head only"),
        ),
        ({"spill_store_bytes": 4}, {"scratch": 0}, (UNKNOWN, "spill_store_bytes is known at base only")),
        (
            {"spill_store_bytes": "no"},
            {"spill_store_bytes": 4},
            (UNKNOWN, "spill_store_bytes is known at head only"),
        ),
        ({}, {}, (UNKNOWN, "neither side has spill_store_bytes or scratch")),
    ],
)
def test_facts(
    build: Any, base: dict[str, Any], head: dict[str, Any], told: tuple[Certainty, str] | None
) -> None:
    assert said(build.run(build.case(CASE, Verdict.CHANGED, base=base, head=head)), **FACT) == told


@pytest.mark.parametrize(
    ("stages", "holds"),
    [
        ({"sass": StageStatus.IDENTICAL}, True),
        ({"amdgcn": StageStatus.EQUIVALENT}, True),
        ({"sass": StageStatus.CHANGED}, False),
        ({"sass": StageStatus.ABSENT}, False),
        ({"sass": StageStatus.IDENTICAL, "amdgcn": StageStatus.CHANGED}, False),
        ({"ptx": StageStatus.IDENTICAL}, False),
    ],
)
def test_only_the_same_machine_code_needs_no_facts(
    build: Any, stages: dict[str, StageStatus], holds: bool
) -> None:
    told = said(build.run(build.case(CASE, Verdict.CHANGED, stages=stages)), **FACT)
    assert (told is None) is holds


# timings


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((), (UNKNOWN, "changed and not timed")),
        # beyond the rule's bound and beyond the noise, at the lower end
        ((timed(3.0, 3.0, Speed.SLOWER),), None),
        ((timed(3.25, 4.25, Speed.SLOWER),), (VIOLATED, "+3.75 % [+3.25, +4.25] on H200")),
        ((timed(4.0, 4.0, Speed.SLOWER, noise_percent=4.0),), None),
        # an upper end that is not known is not needed where the lower one decides
        ((timed(4.0, None, Speed.SLOWER),), (VIOLATED, "[+4.00, ?] on H200")),
        ((timed(1.0, None, Speed.SLOWER, note="cut"),), (UNKNOWN, "not measured on H200: cut")),
        ((timed(None, None, None),), (UNKNOWN, "not measured on H200: no reason given")),
        ((timed(None, 1.0, None, note="busy"),), (UNKNOWN, "not measured on H200: busy")),
        # the upper end is the most that it may be
        ((timed(-1.0, 3.0, Speed.SAME),), None),
        ((timed(-1.0, 3.5, Speed.SAME),), (UNKNOWN, "measured too roughly to say: +1.25 % [-1.00, +3.50] on H200")),
        (
            (timed(-1.0, 3.5, Speed.SAME, note="not said"),),
            (UNKNOWN, "measured too roughly to say: +1.25 % [-1.00, +3.50] on H200"),
        ),
        (
            (timed(-1.0, 3.5, Speed.UNCLEAR, note="two humps"),),
            (UNKNOWN, "measured too roughly to say: +1.25 % [-1.00, +3.50] on H200: two humps"),
        ),
        # one GPU is as good as any other, whatever was seen on the first
        (
            (timed(-9.0, -5.0, Speed.FASTER), timed(None, None, None, device="B200")),
            (UNKNOWN, "not measured on B200: no reason given"),
        ),
    ],
)  # fmt: skip
def test_slower(changed: Run, rows: tuple[TimedCase, ...], told: tuple[Certainty, str] | None) -> None:
    assert said(changed, *rows, **SLOWER) == told


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((), (VIOLATED, "changed and not timed")),
        ((timed(None, None, None, note="busy"),), (VIOLATED, "could not be timed on H200: busy")),
        ((timed(None, None, None),), (VIOLATED, "could not be timed on H200: no reason given")),
        ((timed(None, None, None), timed(0.0, 1.0, device="B200")), None),
    ],
)
def test_timed(changed: Run, rows: tuple[TimedCase, ...], told: tuple[Certainty, str] | None) -> None:
    assert said(changed, *rows, kind="timed") == told


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ((), (UNKNOWN, "changed and not run")),
        ((timed(0.0, 1.0),), None),
        (
            (timed(0.0, 1.0, same_result=False, note="3 of 9"),),
            (VIOLATED, "base and head compute different results on H200: 3 of 9"),
        ),
        (
            (timed(0.0, 1.0, same_result=None, note="no inputs"),),
            (UNKNOWN, "outputs were not compared on H200: no inputs"),
        ),
        (
            (timed(0.0, 1.0, same_result=None),),
            (UNKNOWN, "outputs were not compared on H200: no reason given"),
        ),
    ],
)
def test_results(changed: Run, rows: tuple[TimedCase, ...], told: tuple[Certainty, str] | None) -> None:
    assert said(changed, *rows, kind="wrong-result") == told


# nondeterminism and severity


def test_a_side_that_disagrees_with_itself(build: Any, changed: Run) -> None:
    both = build.run(build.case(CASE, Verdict.CHANGED, nondeterministic=("base", "head")))
    rule = {"kind": "nondeterministic"}
    assert said(both, **rule) == (VIOLATED, "disagrees with itself when compiled again: base, head")
    unchecked = replace(changed, options=replace(DEFAULT_OPTIONS, recheck=False))
    assert said(unchecked, **rule) == (UNKNOWN, "was not compiled again: --no-recheck")
    assert said(replace(build.run(build.case(CASE)), options=unchecked.options), **rule) is None


def test_severity(build: Any, changed: Run) -> None:
    rule = {"kind": "severity", "severities": ["*risk*"]}
    group = build.group("g", CASE, severity="wrong-result risk", title="+1 `fence`")
    grouped = build.run(build.case(CASE, Verdict.CHANGED), groups=(group,))
    assert said(grouped, **rule) == (VIOLATED, "wrong-result risk: +1 `fence`")
    unknown = (UNKNOWN, "changed and in no change group: its severity is not known")
    assert said(changed, **rule) == unknown
    lost = replace(grouped, groups=())
    assert said(lost, **rule) == unknown


# targets


def test_the_radius_of_each_target(build: Any) -> None:
    run = build.run(
        build.case("a/x:1@sm_90", Verdict.CHANGED),
        build.case("a/x:2@sm_90", Verdict.CHANGED),
        build.case("a/x:3@sm_90"),
        build.case("a/x:1@gfx942", Verdict.BROKEN),
    )
    assert found(run, kind="radius", percent=60) == [
        (SubjectKind.TARGET, "sm_90", VIOLATED, "2 of 3 compared cases changed (66.7 %)"),
        (SubjectKind.TARGET, "gfx942", UNKNOWN, "no case was compared"),
    ]


def test_compile_times_are_of_the_cases_that_both_sides_compiled(build: Any) -> None:
    def case(name: str, base: dict[str, float], head: dict[str, float]) -> Any:
        return build.case(name, compile_s=Sides(base=base, head=head))

    rule = {"kind": "compile-time", "percent": 10, "more_than_s": 0.5}
    run = build.run(
        case("a/x:1@sm_90", {"ttir": 1.0}, {"ttir": 2.0}),
        case("a/x:2@sm_90", {"ttir": 1.0}, {}),
        case("a/x:3@sm_90", {}, {"ttir": 1.0}),
        case("a/x:1@gfx942", {"ttir": 1.0}, {}),
    )
    assert found(run, **rule) == [
        (SubjectKind.TARGET, "sm_90", VIOLATED, "compiling 1 cases takes 1.0 s → 2.0 s"),
        (SubjectKind.TARGET, "gfx942", UNKNOWN, "no compile times on both sides"),
    ]
    unlike = build.run(case("a/x:1@sm_90", {}, {"ttir": 1.0}), case("a/x:1@gfx942", {}, {}))
    assert [(name, certainty) for _, name, certainty, _ in found(unlike, **rule)] == [
        ("sm_90", UNKNOWN),
        ("gfx942", UNKNOWN),
    ]


def test_a_case_whose_code_was_not_compared_covers_nothing(build: Any) -> None:
    """It counts as changed, so that every verdict rule sees it, and covers as little as one that failed."""
    blind = build.case(CASE, Verdict.CHANGED, findings=build.findings("not-compared:ttir,asm"))
    seen = [build.case(f"a/y:{n}@sm_90") for n in range(3)]
    rule = {"kind": "coverage", "required_targets": ["sm_90"]}
    short = (SubjectKind.TARGET, "sm_90", VIOLATED, "3 cases compared, at least 4 are required")
    assert found(build.run(blind, *seen), **rule, min_compared=4, max_uncompared_percent=100) == [short]
    assert found(build.run(blind, *seen), **rule, min_compared=3, max_uncompared_percent=25) == []
    many = (SubjectKind.TARGET, "sm_90", VIOLATED, "1 of 4 cases could not be compared")
    assert found(build.run(blind, *seen), **rule, min_compared=3, max_uncompared_percent=24.9) == [many]
    failing = build.case("a/z:1@sm_90", Verdict.FAILING)
    two = (SubjectKind.TARGET, "sm_90", VIOLATED, "2 of 5 cases could not be compared")
    assert found(build.run(blind, failing, *seen), **rule, min_compared=3, max_uncompared_percent=39.9) == [
        two
    ]


def test_a_target_of_which_few_cases_compile_may_be_required_or_not(build: Any) -> None:
    run = build.run(build.case("a/x:1@sm_90"), build.case("a/x:1@gfx942", Verdict.BROKEN))
    assert found(run, kind="coverage", required_targets=["gfx950", "gfx942"], min_compared=1) == [
        (SubjectKind.TARGET, "gfx950", VIOLATED, "0 cases compared, at least 1 are required"),
        (SubjectKind.TARGET, "gfx942", VIOLATED, "0 cases compared, at least 1 are required"),
    ]
    lenient = {"required_targets": ["sm_90"], "min_compared": 1, "max_uncompared_percent": 100}
    assert found(run, kind="coverage", **lenient) == []


def test_of_the_same_compiler_nothing_is_examined(build: Any) -> None:
    same = replace(build.run(), edited=Edited(files=(), of_kernels=False, identical=True))
    assert evaluated(same, **COVERAGE) == evaluated(same, **SLOWER) == (0, [])
