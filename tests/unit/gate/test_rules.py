"""Every kind of rule at its bounds, with the words that a reviewer acts on, and what settles a finding."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff import gate
from irdiff.errors import UsageError
from irdiff.gate import acceptance, policy
from irdiff.gate.acceptance import Acceptance, Accepted
from irdiff.gate.junit import junit
from irdiff.gate.outcome import Certainty, GateFinding, Outcome, SubjectKind
from irdiff.gate.policy import Action
from irdiff.gate.timings import TimedCase
from irdiff.model import DEFAULT_OPTIONS, Case, Edited, Run, Sides, StageStatus, Verdict
from irdiff.store import sha256
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, REASON, TODAY, timed, waiver

VIOLATED, UNKNOWN = Certainty.VIOLATED, Certainty.UNKNOWN
SLOWER = {"kind": "slower", "percent": 3}
RESULT = {"kind": "wrong-result"}
FACT = {"kind": "fact", "facts": ["spill_store_bytes", "scratch"]}
COVERAGE = {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 1}
BROKEN = {"kind": "verdict", "verdicts": ["broken"]}
CHANGED = {"kind": "verdict", "verdicts": ["changed"]}
REVIEW = {**CHANGED, "action": "review"}
RISKY = {"kind": "severity", "severities": ["*risk*"]}
Objection = tuple[Certainty, str]


def gated(run: Run, *rules: dict[str, Any], **more: Any) -> Outcome:
    waivers = more.pop("waivers", ())
    return gate.evaluate(run, policies.of(*rules, waivers=waivers), **{"today": TODAY, **more})


def evaluated(run: Run, *timings: TimedCase, **rule: Any) -> tuple[int, list[GateFinding]]:
    (outcome,) = gated(run, {"if_unknown": "warn", **rule}, timings=timings).rules
    for row in outcome.findings:
        assert row.action is (Action.DENY if row.certainty is VIOLATED else Action.WARN)
    return outcome.examined, list(outcome.findings)


def found(run: Run, *timings: TimedCase, **rule: Any) -> list[tuple[str, Certainty, str]]:
    """Where a rule does not hold: `@sm_90` is a target."""
    mark = {SubjectKind.CASE: "", SubjectKind.TARGET: "@", SubjectKind.RUN: "run"}
    rows = evaluated(run, *timings, **rule)[1]
    return [(f"{mark[row.subject]}{row.name}", row.certainty, row.detail) for row in rows]


def objection(run: Run, *timings: TimedCase, **rule: Any) -> Objection | None:
    """To the only case."""
    rows = found(run, *timings, **rule)
    assert [name for name, _, _ in rows] in ([], [CASE])
    return rows[0][1:] if rows else None


def only(outcome: Outcome) -> GateFinding:
    (finding,) = (finding for rule in outcome.rules for finding in rule.findings)
    return finding


@pytest.fixture
def changed(build: Any) -> Run:
    return build.run(build.case(CASE, Verdict.CHANGED))


# which cases a rule is about


def test_a_rule_counts_the_cases_that_it_selects(build: Any) -> None:
    run = build.run(build.case(CASE), build.case("a/x:2@sm_90"), build.case("a/x:1@gfx942"))
    for rule in (
        BROKEN,
        {"kind": "radius", "percent": 100},
        {"kind": "compile-time", "percent": 100},
        COVERAGE,
    ):
        assert evaluated(run, **rule) == (3, [])
        assert evaluated(run, targets=["sm_90"], **rule) == (2, [])
    same = replace(build.run(), edited=Edited(files=(), of_kernels=False, identical=True))
    assert evaluated(same, **COVERAGE) == evaluated(same, **SLOWER) == (0, [])


def test_a_rule_that_selects_nothing_is_not_known_to_hold(build: Any) -> None:
    run = build.run(build.case(CASE))
    nothing = [("run", UNKNOWN, "it selects no case of this run: nothing was checked")]
    assert found(run, targets=["gfx942"], **BROKEN) == nothing
    assert evaluated(run, may_be_empty=True, targets=["gfx942"], **BROKEN) == (0, [])


def test_a_finding_names_the_group_and_edit_that_would_settle_it(build: Any, changed: Run) -> None:
    case = changed.cases[0]
    (row,) = evaluated(build.run(case, groups=(build.group("g", CASE),)), **CHANGED)[1]
    assert (row.groups, row.edits) == (("g",), {CASE: case.edit})
    (row,) = evaluated(changed, **CHANGED)[1]
    assert (row.groups, row.edits) == ((), {})


def test_code_that_did_not_change_needs_neither_facts_nor_timings(build: Any) -> None:
    run = build.run(build.case(CASE), build.case("a/y:1@sm_90", Verdict.ABSORBED))
    for rule in (FACT, SLOWER, {"kind": "timed"}, RESULT, RISKY):
        assert found(run, **rule) == []


# one case at a time


@pytest.mark.parametrize(
    ("verdict", "expected"),
    [
        (Verdict.CHANGED, "changed, first in ttgir"),
        (Verdict.REMOVED, "removed"),
        (Verdict.BROKEN, "broken: head: PassManager::run failed"),
    ],
)
def test_a_verdict_says_where_it_begins_and_why(build: Any, verdict: Verdict, expected: str) -> None:
    rule = {"kind": "verdict", "verdicts": ["changed", "broken", "removed"]}
    assert objection(build.run(build.case(CASE, verdict)), **rule) == (VIOLATED, expected)


def test_a_launch_that_is_not_meant_for_the_target_may_fail(build: Any) -> None:
    rule = {"kind": "verdict", "verdicts": ["failing", "broken"]}
    for verdict, holds in ((Verdict.FAILING, True), (Verdict.BROKEN, False)):
        run = build.run(build.case(CASE, verdict))
        assert objection(run, **rule)
        unexpected = {key: replace(launch, expected=False) for key, launch in run.launches.items()}
        assert (objection(replace(run, launches=unexpected), **rule) is None) is holds


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        ({"spill_store_bytes": 8}, {"spill_store_bytes": 8}, None),
        ({"spill_store_bytes": 0}, {"spill_store_bytes": 1}, (VIOLATED, "spill_store_bytes 0 → 1")),
        ({"spill_store_bytes": 0, "scratch": 2}, {"spill_store_bytes": 1, "scratch": 4},
         (VIOLATED, "spill_store_bytes 0 → 1, scratch 2 → 4")),
        ({"scratch": 0}, {"scratch": 0, "spill_store_bytes": 4}, (UNKNOWN, "spill_store_bytes is known at head only")),
        ({"spill_store_bytes": 4}, {"scratch": 0}, (UNKNOWN, "spill_store_bytes is known at base only")),
        ({"spill_store_bytes": "no"}, {"spill_store_bytes": 4}, (UNKNOWN, "spill_store_bytes is known at head only")),
        ({}, {}, (UNKNOWN, "neither side has spill_store_bytes or scratch")),
    ],
)  # fmt: skip
def test_facts(build: Any, base: dict[str, Any], head: dict[str, Any], expected: Objection | None) -> None:
    assert objection(build.run(build.case(CASE, Verdict.CHANGED, base=base, head=head)), **FACT) == expected


@pytest.mark.parametrize(("more_than", "percent", "holds"), [(99, 9, False), (100, 9, True), (99, 10, True)])
def test_an_increase_must_be_beyond_both_bounds(
    build: Any, more_than: int, percent: int, holds: bool
) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED, base={"shared": 1000}, head={"shared": 1100}))
    rule = {"kind": "fact", "facts": ["shared"], "more_than": more_than, "more_than_percent": percent}
    assert (objection(run, **rule) is None) is holds


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
    found_one = objection(build.run(build.case(CASE, Verdict.CHANGED, stages=stages)), **FACT)
    assert (found_one is None) is holds


NOT_MEASURED = timed(None, None, None)
UNCLEAR = Speed.UNCLEAR


@pytest.mark.parametrize(
    ("rows", "certainty"),
    [
        ([], UNKNOWN),
        # beyond the rule's bound and beyond the noise, at the lower end
        ([timed(3.0, 3.0, Speed.SLOWER)], None),
        ([timed(3.25, 4.25, Speed.SLOWER)], VIOLATED),
        ([timed(4.0, 4.0, Speed.SLOWER, noise_percent=4.0)], None),
        # an upper end that is not known is not needed where the lower one decides
        ([timed(4.0, None, Speed.SLOWER)], VIOLATED),
        ([timed(1.0, None, Speed.SLOWER, note="cut")], UNKNOWN),
        ([NOT_MEASURED], UNKNOWN),
        # the upper end is the most that it may be
        ([timed(-1.0, 3.0)], None),
        ([timed(-1.0, 3.5)], UNKNOWN),
        ([timed(-20.0, 1.0, UNCLEAR)], None),
        ([timed(3.5, 4.5, UNCLEAR)], VIOLATED),
        # within noise, or within the threshold of a coarser protocol: that is no word on this rule
        ([timed(3.1, 5.0, UNCLEAR, enough=False, noise_percent=4.0)], UNKNOWN),
        # too few processes, or two humps: the interval is not to be relied on, wherever it lies
        ([timed(-0.5, 0.5, UNCLEAR, enough=False)], UNKNOWN),
        ([timed(3.5, 4.5, UNCLEAR, enough=False)], UNKNOWN),
        ([timed(3.5, 4.5, Speed.SLOWER, enough=False)], VIOLATED),
        # one GPU is as good as any other, whatever was seen on the first
        ([timed(-9.0, -5.0, Speed.FASTER), NOT_MEASURED], UNKNOWN),
    ],
)
def test_slower(changed: Run, rows: list[TimedCase], certainty: Certainty | None) -> None:
    found = objection(changed, *rows, **SLOWER)
    assert (found[0] if found else None) is certainty


def test_a_timing_is_named_with_its_figures_its_gpu_and_its_reason(changed: Run) -> None:
    slower = timed(3.25, 4.25, Speed.SLOWER)
    assert objection(changed, slower, **SLOWER) == (VIOLATED, "+3.75 % [+3.25, +4.25] on H200")
    humps = timed(-1.0, 3.5, UNCLEAR, note="two humps")
    rough = "measured too roughly to say: +1.25 % [-1.00, +3.50] on H200: two humps"
    assert objection(changed, humps, **SLOWER) == (UNKNOWN, rough)
    assert objection(changed, NOT_MEASURED, **SLOWER) == (UNKNOWN, "not measured on H200: no reason given")


@pytest.mark.parametrize(
    ("rule", "rows", "certainty"),
    [
        ({"kind": "timed"}, [], VIOLATED),
        ({"kind": "timed"}, [NOT_MEASURED], VIOLATED),
        ({"kind": "timed"}, [NOT_MEASURED, timed(0.0, 1.0, device="B200")], None),
        (RESULT, [], UNKNOWN),
        (RESULT, [timed(0.0, 1.0)], None),
        (RESULT, [timed(0.0, 1.0, same_result=False)], VIOLATED),
        (RESULT, [timed(0.0, 1.0, same_result=None)], UNKNOWN),
    ],
)
def test_timed_and_results(
    changed: Run, rule: dict[str, Any], rows: list[TimedCase], certainty: Certainty | None
) -> None:
    found = objection(changed, *rows, **rule)
    assert (found[0] if found else None) is certainty


@pytest.mark.parametrize(("same", "of_result"), [(False, VIOLATED), (None, UNKNOWN)])
def test_a_fault_on_one_gpu_of_two_is_the_result(
    changed: Run, same: bool | None, of_result: Certainty
) -> None:
    faulted = replace(NOT_MEASURED, enough=False, device="GB200", faulted=True, same_result=same, note="gone")
    for timings in ([timed(0.0, 0.1), faulted], [faulted, timed(0.0, 0.1)]):
        for rule, certainty in ((SLOWER, UNKNOWN), ({"kind": "timed"}, VIOLATED), (RESULT, of_result)):
            assert objection(changed, *timings, **rule) == (certainty, "faulted on GB200: gone")


def test_a_side_that_disagrees_with_itself(build: Any, changed: Run) -> None:
    rule = {"kind": "nondeterministic"}
    both = build.run(build.case(CASE, Verdict.CHANGED, nondeterministic=("base", "head")))
    assert objection(both, **rule) == (VIOLATED, "disagrees with itself when compiled again: base, head")
    unchecked = replace(changed, options=replace(DEFAULT_OPTIONS, recheck=False))
    assert objection(unchecked, **rule) == (UNKNOWN, "was not compiled again: --no-recheck")
    assert objection(replace(build.run(build.case(CASE)), options=unchecked.options), **rule) is None


def test_severity(build: Any, changed: Run) -> None:
    group = build.group("g", CASE, severity="wrong-result risk", title="+1 `fence`")
    grouped = build.run(build.case(CASE, Verdict.CHANGED), groups=(group,))
    assert objection(grouped, **RISKY) == (VIOLATED, "wrong-result risk: +1 `fence`")
    for run in (changed, replace(grouped, groups=())):
        assert objection(run, **RISKY) == (
            UNKNOWN,
            "changed and in no change group: its severity is not known",
        )


# one target at a time


def test_the_radius_of_each_target(build: Any) -> None:
    cases = [
        build.case(CASE, Verdict.CHANGED),
        build.case("a/x:2@sm_90", Verdict.CHANGED),
        build.case("a/x:3@sm_90"),
    ]
    run = build.run(*cases, build.case("a/x:1@gfx942", Verdict.BROKEN))
    assert found(run, kind="radius", percent=60) == [
        ("@sm_90", VIOLATED, "2 of 3 compared cases changed (66.7 %)"),
        ("@gfx942", UNKNOWN, "no case was compared"),
    ]


def test_compile_times_are_of_the_stages_and_cases_that_both_sides_compiled(build: Any) -> None:
    def run(*rows: tuple[str, dict[str, float], dict[str, float]]) -> Run:
        return build.run(
            *(build.case(name, compile_s=Sides(base=base, head=head)) for name, base, head in rows)
        )

    rule = {"kind": "compile-time", "percent": 20, "more_than_s": 2}
    slow = run(
        (CASE, {"ttir": 10.0, "ptx": 5.0}, {"ttir": 13.0}),
        ("a/x:2@sm_90", {"ttir": 1.0}, {}),
        ("a/x:3@sm_90", {}, {"ttir": 1.0}),
        ("a/x:1@gfx942", {"ttir": 1.0}, {}),
    )
    unknown = ("@gfx942", UNKNOWN, "no compile times on both sides")
    assert found(slow, **rule) == [("@sm_90", VIOLATED, "compiling 1 cases takes 10.0 s → 13.0 s"), unknown]
    for bound in ({"percent": 30}, {"more_than_s": 3}):
        assert found(slow, **{**rule, **bound}) == [unknown]
    skipped = build.case(
        CASE, compile_s=Sides(base={}, head={}), findings=build.findings("not-compiled:same-input")
    )
    assert found(build.run(skipped), **rule) == []


def test_a_case_whose_code_was_not_compared_covers_nothing(build: Any) -> None:
    blind = build.case(CASE, Verdict.CHANGED, findings=build.findings("not-compared:ttir,asm"))
    seen = [build.case(f"a/y:{n}@sm_90") for n in range(3)]
    failing = build.case("a/z:1@sm_90", Verdict.FAILING)

    def coverage(*cases: Case, least: int, percent: float) -> list[tuple[str, Certainty, str]]:
        return found(build.run(*cases), **{**COVERAGE, "min_compared": least}, max_uncompared_percent=percent)

    short = "3 cases compared, at least 4 are required"
    assert coverage(blind, *seen, least=4, percent=100) == [("@sm_90", VIOLATED, short)]
    assert coverage(blind, *seen, least=3, percent=25) == []
    many = "1 of 4 cases could not be compared"
    assert coverage(blind, *seen, least=3, percent=24.9) == [("@sm_90", VIOLATED, many)]
    both = "2 of 5 cases could not be compared"
    assert coverage(blind, failing, *seen, least=3, percent=39.9) == [("@sm_90", VIOLATED, both)]


def test_a_required_target_is_looked_for(build: Any) -> None:
    run = build.run(build.case(CASE), build.case("a/x:1@gfx942", Verdict.BROKEN))
    none = "0 cases compared, at least 1 are required"
    required = {**COVERAGE, "required_targets": ["gfx950", "gfx942"]}
    assert found(run, **required) == [("@gfx950", VIOLATED, none), ("@gfx942", VIOLATED, none)]
    assert found(run, **COVERAGE, max_uncompared_percent=100) == []


# few cases: what a repository of a handful of kernels has


def _blocking(run: Run) -> list[str]:
    outcome = gate.evaluate(run, policy.load(Path("reports/irdiff-policy.toml")), today=TODAY)
    return [row.rule.id for row in outcome.rules if not row.holds]


def _few(build: Any, changed: int, total: int, verdict: Verdict = Verdict.CHANGED) -> list[Any]:
    verdicts = [verdict] * changed + [Verdict.UNCHANGED] * (total - changed)
    return [build.case(f"a/x:{n}@sm_90", found, tier="core") for n, found in enumerate(verdicts)]


@pytest.mark.parametrize(
    ("changed", "total", "holds"),
    [(0, 6, True), (2, 6, True), (5, 6, True), (6, 6, False), (5, 20, True), (6, 20, False), (6, 21, False),
     (6, 24, True), (7, 24, False), (50, 200, True), (51, 200, False)],
)  # fmt: skip
def test_a_few_changes_of_few_cases_are_no_large_radius(
    build: Any, changed: int, total: int, holds: bool
) -> None:
    assert ("radius" not in _blocking(build.run(*_few(build, changed, total)))) is holds


@pytest.mark.parametrize("chosen", [{"cases": ("a/x",)}, {"tiers": ("core",)}, {"shard": (1, 2)}], ids=str)
def test_few_cases_of_a_larger_corpus_are_not_enough(build: Any, chosen: dict[str, Any]) -> None:
    run = build.run(*_few(build, 0, 6), options=replace(DEFAULT_OPTIONS, **chosen))
    assert _blocking(run) == ["coverage", "gate-kernel-gone"]


def test_few_cases_are_not_enough_where_a_workload_hides_its_own(build: Any) -> None:
    cases = _few(build, 1, 6, Verdict.FAILING)
    assert _blocking(build.run(*cases)) == []
    hidden = replace(cases[0], launches=Sides(base=None, head=None))
    assert _blocking(build.run(hidden, *cases[1:])) == ["coverage"]


def test_a_rule_without_the_key_asks_for_its_number(build: Any) -> None:
    rule = {**COVERAGE, "min_compared": 7}
    run = build.run(*_few(build, 0, 6))
    assert only(gated(run, rule)).detail == "6 cases compared, at least 7 are required"
    assert gated(run, {**rule, "or_whole": True}).passed
    nothing = build.run(*_few(build, 1, 1, Verdict.UNSUPPORTED))
    assert (
        only(gated(nothing, {**rule, "or_whole": True})).detail == "0 cases compared, at least 1 are required"
    )


# nothing passes because nothing was looked at


@pytest.mark.parametrize("verdicts", [[], [Verdict.FAILING], [Verdict.UNSUPPORTED, Verdict.ADDED]], ids=str)
def test_a_run_that_compared_nothing_does_not_pass(build: Any, verdicts: list[Verdict]) -> None:
    run = build.run(*(build.case(f"a/x:{n}@sm_90", verdict) for n, verdict in enumerate(verdicts)))
    outcome = gated(run, {**BROKEN, "may_be_empty": True})
    assert not outcome.passed
    assert outcome.headline == "gate fails: nothing was compared"
    assert 'errors="1"' in junit(outcome)


def test_timings_of_other_runs_are_noted(changed: Run) -> None:
    elsewhere = gated(changed, {"kind": "timed"}, timings=[timed(0.0, 0.1, case="other:1@sm_90")])
    assert not elsewhere.passed
    assert "1 timings are of cases that this run does not have" in elsewhere.notes


def test_unknown_may_have_an_action_of_its_own(changed: Run) -> None:
    outcome = gated(changed, {**SLOWER, "if_unknown": "warn"})
    assert (outcome.passed, outcome.rules[0].word) == (True, "warn")


# waivers


@pytest.mark.parametrize(
    ("rules", "change", "passes"),
    [
        ([BROKEN], {}, True),
        ([BROKEN], {"expires": TODAY - datetime.timedelta(days=1)}, False),
        ([BROKEN], {"cases": ["b/*"]}, False),
        ([BROKEN], {"targets": ["gfx*"]}, False),
        ([BROKEN, BROKEN], {}, False),
        ([{"kind": "radius", "percent": 1}], {"cases": ["*"]}, False),
        ([{"kind": "radius", "percent": 1}], {"cases": [], "targets": ["sm_90"]}, True),
    ],
)
def test_a_waiver_covers_what_it_names_until_its_last_day(
    build: Any, rules: list[dict[str, Any]], change: dict[str, Any], passes: bool
) -> None:
    verdict = Verdict.BROKEN if BROKEN in rules else Verdict.CHANGED
    outcome = gated(
        build.run(build.case(CASE, verdict), build.case("b:1@gfx942")), *rules, waivers=[waiver(**change)]
    )
    assert outcome.passed is passes
    assert outcome.rules[0].word == ("settled" if passes or len(rules) == 2 else "deny")
    ended = "expires" in change
    assert any("by jane ended on 2026-01-01" in note for note in outcome.notes) is ended
    unused = "the waiver of rule-0 by jane settles nothing in this run" in outcome.notes
    assert unused is (outcome.rules[0].word == "deny" and not ended)


def test_a_waiver_of_edits_does_not_cover_another_edit(build: Any) -> None:
    run = _changed(build, 1)
    own = waiver(cases=["a/*"], edits=[run.cases[0].edit])
    assert gated(run, CHANGED, waivers=(own,)).passed
    assert not gated(_changed(build, 1, e1="another"), CHANGED, waivers=(own,)).passed
    assert not gated(run, CHANGED, waivers=({**own, "cases": ["b/*"]},)).passed


# acceptances, and what they do not carry over to


def _accept(run: Run, *names: str) -> tuple[Accepted, ...]:
    return acceptance.accept(run, names, Acceptance(owner="jane", reason=REASON, on=TODAY, expires=TODAY))


def _changed(build: Any, *numbers: int, **edits: str) -> Run:
    """A run of one group, with the cases of these numbers; `e2=x` gives case 2 another edit."""
    names = [f"a/x:{number}@sm_90" for number in numbers]
    cases = [
        replace(case, edit=sha256(edits[key].encode())) if (key := f"e{number}") in edits else case
        for number, case in (
            (number, build.case(f"a/x:{number}@sm_90", Verdict.CHANGED)) for number in numbers
        )
    ]
    return build.run(*cases, groups=(build.group("g1", *names),))


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        ({**RISKY, "action": "review"}, True),
        ({**RISKY, "action": "review", "acceptable": False}, False),
        (RISKY, False),
        ({**RISKY, "acceptable": True}, True),
        ({**SLOWER, "action": "review"}, False),  # what is not known cannot be accepted
    ],
)
def test_an_accepted_group_settles_a_review_and_no_denial(
    build: Any, rule: dict[str, Any], passes: bool
) -> None:
    run = _changed(build, 1)
    assert not gated(run, rule).passed
    assert gated(run, rule, accepted=_accept(run, "g1")).passed is passes


def test_a_radius_is_accepted_with_every_case_behind_it(build: Any) -> None:
    other = "a/x:2@sm_90"
    cases = build.case(CASE, Verdict.CHANGED), build.case(other, Verdict.CHANGED)
    run = build.run(*cases, groups=(build.group("g1", CASE), build.group("g2", other)))
    rule = {"kind": "radius", "percent": 1, "action": "review"}
    assert only(gated(run, rule, accepted=_accept(run, "g1"))).not_accepted == "accepted for 1 of 2 cases"
    assert gated(run, rule, accepted=_accept(run, "g1", "g2")).passed
    assert gated(run, rule, accepted=_accept(run, CASE, other)).passed
    one_group = build.run(*cases, groups=(build.group("g1", CASE),))
    assert not gated(one_group, rule, accepted=_accept(run, "g1", "g2")).passed


def refused(later: Run, accepted: tuple[Accepted, ...], **more: Any) -> dict[str, str]:
    """Why the findings of a later run are not settled, by case."""
    outcome = gated(later, REVIEW, accepted=accepted, **more)
    return {row.name: row.not_accepted for row in outcome.rules[0].findings if row.blocks}


def test_another_edit_of_the_same_case_is_not_accepted(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2), "g1")
    ((name, why),) = refused(_changed(build, 1, 2, e2="100 -> 120"), accepted).items()
    assert name == "a/x:2@sm_90"
    assert why.startswith("the edit is another: jane accepted ")
    assert sha256(b"100 -> 120")[:12] in why
    later = replace(_changed(build, 1, 2, e1="the same, read differently"), normalizer_version="2")
    assert "(read by other rules, 1 → 2)" in refused(later, accepted)[CASE]


def test_a_case_that_is_new_in_the_group_is_not_accepted(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2, 3), "g1")
    why = "accepted for 3 cases; 2 more changed the same way since"
    assert refused(_changed(build, 1, 2, 3, 4, 5), accepted) == dict.fromkeys(
        ["a/x:4@sm_90", "a/x:5@sm_90"], why
    )


@pytest.mark.parametrize("side", ["base", "head"])
def test_another_toolchain_is_not_accepted(build: Any, side: str) -> None:
    run = _changed(build, 1)
    why = refused(replace(run, **{side: build.revision("3.9.9")}), _accept(run, "g1"))[CASE]
    assert why.startswith("jane accepted the same edit")
    assert "--renew" in why


def test_an_acceptance_ends_and_says_nothing_of_what_was_never_accepted(build: Any) -> None:
    run = _changed(build, 1)
    assert refused(run, _accept(run, "g1")) == {}
    tomorrow = TODAY + datetime.timedelta(days=1)
    ended = refused(run, _accept(run, "g1"), today=tomorrow)
    assert ended == {CASE: "the acceptance of a/x:1@sm_90 by jane ended on 2026-01-02"}
    assert refused(run, ()) == {CASE: ""}


def test_a_run_that_does_not_know_its_edits_is_settled_by_nothing(build: Any) -> None:
    run = _changed(build, 1)
    older = replace(run, cases=tuple(replace(case, edit=None) for case in run.cases))
    assert refused(older, _accept(run, "g1"))
    with pytest.raises(UsageError, match="an older irdiff made it"):
        _accept(older, "g1")


def test_renewing_takes_the_same_edits_and_no_others(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2), "g1")
    later = replace(_changed(build, 1, 2, 3, e2="another"), head=build.revision("3.9.9"))
    decision = Acceptance(owner="joe", reason="", on=TODAY, expires=TODAY + datetime.timedelta(days=9))
    renewed = acceptance.renew(later, accepted, decision)
    assert [list(entry.edits) for entry in renewed] == [["a/x:1@sm_90"]]
    assert (renewed[0].owner, renewed[0].reason, renewed[0].expires) == ("joe", REASON, decision.expires)
    assert set(refused(later, accepted + renewed)) == {"a/x:2@sm_90", "a/x:3@sm_90"}
    assert acceptance.renew(later, accepted + renewed, decision) == ()
