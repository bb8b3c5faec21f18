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
from irdiff.gate.outcome import Certainty, GateFinding, Outcome
from irdiff.gate.timings import TimedCase
from irdiff.model import DEFAULT_OPTIONS, Run, Sides, StageStatus, Verdict
from irdiff.store import sha256
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.policies import REASON, TODAY, waiver
from tests.unit.gate.timed import CASE, timed


def _gate(run: Any, *rules: dict[str, Any], **more: Any) -> Outcome:
    waivers = more.pop("waivers", ())
    return gate.evaluate(run, policies.of(*rules, waivers=waivers), **{"today": TODAY, **more})


def _only(outcome: Outcome) -> GateFinding:
    findings = [finding for rule in outcome.rules for finding in rule.findings]
    assert len(findings) == 1, findings
    return findings[0]


def _unmeasured(**changes: Any) -> TimedCase:
    return timed(None, None, None, enough=False, **changes)


# what every kind of rule says of: held, violated, not known


def test_a_launch_that_is_not_meant_for_the_target_may_fail(build: Any) -> None:
    rule = {"kind": "verdict", "verdicts": ["failing", "broken"]}
    run = build.run(build.case(CASE, Verdict.FAILING))
    assert not _gate(run, rule).passed
    launches = {key: replace(launch, expected=False) for key, launch in run.launches.items()}
    assert _gate(replace(run, launches=launches), rule).passed
    broken = replace(build.run(build.case(CASE, Verdict.BROKEN)), launches=launches)
    assert not _gate(broken, rule).passed


def test_an_increase_must_be_beyond_both_bounds(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED, base={"shared": 1000}, head={"shared": 1100}))
    rule = {"kind": "fact", "facts": ["shared"]}
    assert not _gate(run, {**rule, "more_than": 99, "more_than_percent": 9}).passed
    assert _gate(run, {**rule, "more_than": 100, "more_than_percent": 9}).passed
    assert _gate(run, {**rule, "more_than": 99, "more_than_percent": 10}).passed


def test_a_launch_that_changed_alone_needs_no_facts_of_the_code(build: Any) -> None:
    case = build.case(CASE, Verdict.CHANGED)
    case = replace(case, stages={**case.stages, "ptx": StageStatus.IDENTICAL, "sass": StageStatus.EQUIVALENT})
    assert _gate(build.run(case), {"kind": "fact", "facts": ["spill_store_bytes"]}).passed


def test_unchanged_code_needs_neither_facts_nor_timings(build: Any) -> None:
    run = build.run(build.case(CASE), build.case("a/y:1@sm_90", Verdict.ABSORBED))
    kinds = [
        {"kind": "fact", "facts": ["spill_store_bytes"]},
        {"kind": "slower", "percent": 3},
        {"kind": "timed"},
        {"kind": "wrong-result"},
        {"kind": "severity", "severities": ["*"]},
    ]
    assert _gate(run, *kinds).passed


@pytest.mark.parametrize(
    ("timed", "certainty"),
    [
        (timed(3.1, 5.0, Speed.UNCLEAR), Certainty.VIOLATED),
        # within noise, or within the threshold of a coarser protocol: that is no word on this rule
        (timed(3.1, 5.0, Speed.UNCLEAR, enough=False, noise_percent=4.0), Certainty.UNKNOWN),
        (timed(-20.0, 1.0, Speed.UNCLEAR), None),
        # too few processes, or two humps: the interval is not to be relied on, wherever it lies
        (timed(-0.1, 0.1, Speed.UNCLEAR, enough=False), Certainty.UNKNOWN),
        (timed(3.1, 5.0, Speed.UNCLEAR, enough=False), Certainty.UNKNOWN),
        (timed(3.1, 5.0, Speed.SLOWER, enough=False), Certainty.VIOLATED),
    ],
)
def test_an_interval_that_cannot_be_relied_on(
    build: Any, timed: TimedCase, certainty: Certainty | None
) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED))
    outcome = _gate(run, {"kind": "slower", "percent": 3}, timings=[timed])
    assert outcome.passed == (certainty is None)
    if certainty:
        assert _only(outcome).certainty is certainty


@pytest.mark.parametrize(("side", "same"), [("head", False), (None, False), ("base", None)])
def test_a_fault_on_one_gpu_of_two_is_the_result(build: Any, side: str | None, same: bool | None) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED))
    words = f"fault{f' at {side}' if side else ''}: while timing, in process 3 of 18: gone"
    faulted = _unmeasured(device="GB200", faulted=True, same_result=same, note=words)
    for timings in ([timed(0.0, 0.1), faulted], [faulted, timed(0.0, 0.1)]):
        for kind in ({"kind": "slower", "percent": 3}, {"kind": "timed"}, {"kind": "wrong-result"}):
            finding = _only(_gate(run, kind, timings=timings))
            assert finding.detail == f"faulted on GB200: {words}"
            unknown = kind["kind"] == "slower" or (kind["kind"] == "wrong-result" and same is None)
            assert finding.certainty is (Certainty.UNKNOWN if unknown else Certainty.VIOLATED)


def test_timings_of_other_runs_are_noted(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED))
    elsewhere = _gate(run, {"kind": "timed"}, timings=[timed(0.0, 0.1, case="other:1@sm_90")])
    assert not elsewhere.passed
    assert "1 timings are of cases that this run does not have" in elsewhere.notes


def test_compile_time(build: Any) -> None:
    slow = build.case(CASE, compile_s=Sides(base={"ttir": 10.0, "ptx": 5.0}, head={"ttir": 13.0}))
    rule = {"kind": "compile-time", "percent": 20, "more_than_s": 2}
    assert "10.0 s → 13.0 s" in _only(_gate(build.run(slow), rule)).detail
    assert _gate(build.run(slow), {**rule, "percent": 30}).passed
    assert _gate(build.run(slow), {**rule, "more_than_s": 3}).passed
    unknown = build.run(build.case(CASE, compile_s=Sides(base={}, head={})))
    assert _only(_gate(unknown, rule)).certainty is Certainty.UNKNOWN
    skipped = build.case(
        CASE, compile_s=Sides(base={}, head={}), findings=build.findings("not-compiled:same-input")
    )
    assert _gate(build.run(skipped), rule).passed


# nothing passes because nothing was looked at


def test_a_run_without_cases_does_not_pass(build: Any) -> None:
    rule = {"kind": "verdict", "verdicts": ["broken"], "may_be_empty": True}
    assert not _gate(build.run(), rule).passed


def test_unknown_may_be_told_apart_from_violated(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED))
    outcome = _gate(run, {"kind": "slower", "percent": 3, "if_unknown": "warn"})
    assert outcome.passed
    assert outcome.rules[0].word == "warn"


# waivers and acceptances


def test_a_waiver_holds_until_its_last_day(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.BROKEN))
    rule = {"kind": "verdict", "verdicts": ["broken"]}
    outcome = _gate(run, rule, waivers=(waiver(),))
    assert outcome.passed
    assert outcome.rules[0].word == "settled"
    ended = _gate(run, rule, waivers=(waiver(),), today=TODAY + datetime.timedelta(days=1))
    assert not ended.passed
    assert [waiver.owner for waiver in ended.expired] == ["jane"]


def test_a_waiver_covers_only_what_it_names(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.BROKEN))
    rule = {"kind": "verdict", "verdicts": ["broken"]}
    outcome = _gate(run, rule, waivers=(waiver(cases=["b/*"]),))
    assert not outcome.passed
    assert "the waiver of rule-0 by jane settles nothing in this run" in outcome.notes
    assert not _gate(run, rule, waivers=(waiver(targets=["gfx*"]),)).passed
    assert not _gate(run, rule, rule, waivers=(waiver(),)).passed


def test_a_target_is_waived_by_target_only(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED))
    rule = {"kind": "radius", "percent": 1}
    assert not _gate(run, rule, waivers=(waiver(cases=["*"]),)).passed
    assert _gate(run, rule, waivers=(waiver(cases=[], targets=["sm_90"]),)).passed


def _accept(run: Run, *names: str, **changes: Any) -> tuple[Accepted, ...]:
    decision = Acceptance(owner="jane", reason=REASON, on=TODAY, expires=TODAY)
    return acceptance.accept(run, names, replace(decision, **changes))


def test_an_accepted_group_settles_a_review_and_no_denial(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED), groups=(build.group("g1", CASE),))
    rule = {"kind": "severity", "severities": ["*risk*"]}
    review = {**rule, "action": "review"}
    accepted = _accept(run, "g1")
    assert not _gate(run, review).passed
    assert _gate(run, review, accepted=accepted).passed
    assert not _gate(run, {**review, "acceptable": False}, accepted=accepted).passed
    assert not _gate(run, rule, accepted=accepted).passed
    assert _gate(run, {**rule, "acceptable": True}, accepted=accepted).passed


def test_a_radius_is_accepted_with_every_case_behind_it(build: Any) -> None:
    other = "a/x:2@sm_90"
    cases = build.case(CASE, Verdict.CHANGED), build.case(other, Verdict.CHANGED)
    run = build.run(*cases, groups=(build.group("g1", CASE), build.group("g2", other)))
    rule = {"kind": "radius", "percent": 1, "action": "review"}
    half = _gate(run, rule, accepted=_accept(run, "g1"))
    assert not half.passed
    assert _only(half).not_accepted == "accepted for 1 of 2 cases"
    assert _gate(run, rule, accepted=_accept(run, "g1", "g2")).passed
    assert _gate(run, rule, accepted=_accept(run, CASE, other)).passed
    one_group = build.run(*cases, groups=(build.group("g1", CASE),))
    assert not _gate(one_group, rule, accepted=_accept(run, "g1", "g2")).passed


def test_what_is_not_known_cannot_be_accepted(build: Any) -> None:
    run = build.run(build.case(CASE, Verdict.CHANGED), groups=(build.group("g1", CASE),))
    rule = {"kind": "slower", "percent": 3, "action": "review"}
    assert not _gate(run, rule, accepted=_accept(run, "g1")).passed


# what an acceptance does not carry over to

REVIEW = {"kind": "verdict", "verdicts": ["changed"], "action": "review"}


def _changed(build: Any, *numbers: int, **edits: str) -> Run:
    """A run of one group, with the cases of these numbers; `e2=x` gives case 2 another edit."""
    names = [f"a/x:{number}@sm_90" for number in numbers]
    cases = [build.case(name, Verdict.CHANGED) for name in names]
    cases = [
        replace(case, edit=sha256(edits[key].encode())) if (key := f"e{number}") in edits else case
        for number, case in zip(numbers, cases, strict=True)
    ]
    run: Run = build.run(*cases, groups=(build.group("g1", *names),))
    return run


def test_another_edit_of_the_same_case_is_not_accepted(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2), "g1")
    outcome = _gate(_changed(build, 1, 2, e2="100 -> 120"), REVIEW, accepted=accepted)
    assert not outcome.passed
    (refused,) = (finding for finding in outcome.rules[0].findings if finding.blocks)
    assert refused.name == "a/x:2@sm_90"
    assert refused.not_accepted.startswith("the edit is another: jane accepted ")
    assert sha256(b"100 -> 120")[:12] in refused.not_accepted


def test_an_edit_that_is_read_by_other_rules_is_said_to_be(build: Any) -> None:
    run = _changed(build, 1)
    later = replace(_changed(build, 1, e1="the same edit, read otherwise"), normalizer_version="2")
    refused = _only(_gate(later, REVIEW, accepted=_accept(run, "g1"))).not_accepted
    assert "(read by other rules, 1 → 2)" in refused


def test_a_case_that_is_new_in_the_group_is_not_accepted(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2, 3), "g1")
    outcome = _gate(_changed(build, 1, 2, 3, 4, 5), REVIEW, accepted=accepted)
    blocking = [finding for finding in outcome.rules[0].findings if finding.blocks]
    assert [finding.name for finding in blocking] == ["a/x:4@sm_90", "a/x:5@sm_90"]
    expected = "accepted for 3 cases; 2 more changed the same way since"
    assert {finding.not_accepted for finding in blocking} == {expected}


@pytest.mark.parametrize("side", ["base", "head"])
def test_another_toolchain_is_not_accepted(build: Any, side: str) -> None:
    run = _changed(build, 1)
    later = replace(run, **{side: build.revision("3.9.9")})
    outcome = _gate(later, REVIEW, accepted=_accept(run, "g1"))
    assert not outcome.passed
    assert "jane accepted the same edit" in _only(outcome).not_accepted
    assert "--renew" in _only(outcome).not_accepted


def test_an_acceptance_ends(build: Any) -> None:
    run = _changed(build, 1)
    accepted = _accept(run, "g1")
    assert _gate(run, REVIEW, accepted=accepted).passed
    outcome = _gate(run, REVIEW, accepted=accepted, today=TODAY + datetime.timedelta(days=1))
    assert not outcome.passed
    assert _only(outcome).not_accepted == "the acceptance of a/x:1@sm_90 by jane ended on 2026-01-02"


def test_an_edit_that_was_never_accepted_says_nothing_of_it(build: Any) -> None:
    assert _only(_gate(_changed(build, 1), REVIEW)).not_accepted == ""


def test_a_run_that_does_not_know_its_edits_is_settled_by_nothing(build: Any) -> None:
    run = _changed(build, 1)
    older = replace(run, cases=tuple(replace(case, edit=None) for case in run.cases))
    assert not _gate(older, REVIEW, accepted=_accept(run, "g1")).passed
    with pytest.raises(UsageError, match="an older irdiff made it"):
        _accept(older, "g1")


def test_renewing_takes_the_same_edits_and_no_others(build: Any) -> None:
    accepted = _accept(_changed(build, 1, 2), "g1")
    later = replace(_changed(build, 1, 2, 3, e2="another"), head=build.revision("3.9.9"))
    decision = Acceptance(owner="joe", reason="", on=TODAY, expires=TODAY + datetime.timedelta(days=9))
    renewed = acceptance.renew(later, accepted, decision)
    assert [list(entry.edits) for entry in renewed] == [["a/x:1@sm_90"]]
    assert (renewed[0].owner, renewed[0].reason, renewed[0].expires) == ("joe", REASON, decision.expires)
    outcome = _gate(later, REVIEW, accepted=accepted + renewed)
    states = {finding.name: finding.settled_by is not None for finding in outcome.rules[0].findings}
    assert states == {"a/x:1@sm_90": True, "a/x:2@sm_90": False, "a/x:3@sm_90": False}
    assert acceptance.renew(later, accepted + renewed, decision) == ()


def test_a_waiver_of_edits_does_not_cover_another_edit(build: Any) -> None:
    run = _changed(build, 1)
    rule = {"kind": "verdict", "verdicts": ["changed"]}
    own = waiver(cases=["a/*"], edits=[run.cases[0].edit])
    assert _gate(run, rule, waivers=(own,)).passed
    assert not _gate(_changed(build, 1, e1="another"), rule, waivers=(own,)).passed
    assert not _gate(run, rule, waivers=({**own, "cases": ["b/*"]},)).passed


def test_a_waiver_cannot_name_a_group(build: Any) -> None:
    with pytest.raises(UsageError, match=r"waiver\.0\.groups.*constants, types and positions"):
        _gate(_changed(build, 1), REVIEW, waivers=(waiver(groups=["g1"]),))


# few cases: what a repository of a handful of kernels has

_DEFAULT = policy.load(Path("reports/irdiff-policy.toml"))


def _blocking(run: Run) -> list[str]:
    outcome = gate.evaluate(run, _DEFAULT, today=TODAY)
    return [row.rule.id for row in outcome.rules if not row.holds]


def _few(build: Any, changed: int, total: int, verdict: Verdict = Verdict.CHANGED) -> list[Any]:
    verdicts = [verdict] * changed + [Verdict.UNCHANGED] * (total - changed)
    return [build.case(f"a/x:{n}@sm_90", found, tier="core") for n, found in enumerate(verdicts)]


@pytest.mark.parametrize(("changed", "holds"), [(0, True), (2, True), (5, True), (6, False)])
def test_a_few_changes_of_few_cases_are_no_large_radius(build: Any, changed: int, holds: bool) -> None:
    assert ("radius" not in _blocking(build.run(*_few(build, changed, 6)))) is holds


@pytest.mark.parametrize("total", [20, 21, 24, 40, 200])
def test_of_many_cases_a_quarter_is_the_bound_as_before(build: Any, total: int) -> None:
    for changed in (total // 4, total // 4 + 1):
        blocks = "radius" in _blocking(build.run(*_few(build, changed, total)))
        assert blocks is (4 * changed > total)


@pytest.mark.parametrize(
    "chosen", [{"cases": ("a/x",)}, {"tiers": ("core",)}, {"shard": (1, 2)}], ids=["case", "tier", "shard"]
)
def test_few_cases_of_a_larger_corpus_are_not_enough(build: Any, chosen: dict[str, Any]) -> None:
    run = build.run(*_few(build, 0, 6), options=replace(DEFAULT_OPTIONS, **chosen))
    assert _blocking(run) == ["coverage", "gate-kernel-gone"]


def test_few_cases_are_not_enough_where_a_workload_hides_its_own(build: Any) -> None:
    cases = _few(build, 1, 6, Verdict.FAILING)
    assert _blocking(build.run(*cases)) == []
    hidden = replace(cases[0], launches=Sides(base=None, head=None))
    assert _blocking(build.run(hidden, *cases[1:])) == ["coverage"]


def test_a_rule_without_the_key_asks_for_its_number(build: Any) -> None:
    rule = {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 7}
    run = build.run(*_few(build, 0, 6))
    assert _only(_gate(run, rule)).detail == "6 cases compared, at least 7 are required"
    assert _gate(run, {**rule, "or_whole": True}).passed
    nothing = build.run(*_few(build, 1, 1, Verdict.UNSUPPORTED))
    assert (
        _only(_gate(nothing, {**rule, "or_whole": True})).detail
        == "0 cases compared, at least 1 are required"
    )
