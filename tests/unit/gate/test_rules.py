"""Every kind of rule at its bounds, with the words that a reviewer acts on, and what settles a finding."""

import dataclasses
import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.errors import UsageError
from irdiff.gate import acceptance, policy
from irdiff.gate.acceptance import Acceptance
from irdiff.gate.outcome import Certainty, SubjectKind
from irdiff.gate.outputs import junit
from irdiff.gate.policy import Action
from irdiff.model import DEFAULT_OPTIONS, Edited, Sides, StageStatus, Verdict
from irdiff.store import sha256
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, REASON, TODAY, timed, waiver
from tests.unit.golden import golden
from tests.unit.runs import case, findings, group, revision, run

VIOLATED, UNKNOWN = Certainty.VIOLATED, Certainty.UNKNOWN
SLOWER = {"kind": "slower", "percent": 3}
TIMED = {"kind": "timed"}
RESULT = {"kind": "wrong-result"}
FACT = {"kind": "fact", "facts": ["spill_store_bytes", "scratch"]}
COVERAGE = {"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 1}
BROKEN = {"kind": "verdict", "verdicts": ["broken"]}
CHANGED = {"kind": "verdict", "verdicts": ["changed"]}
REVIEW = {**CHANGED, "action": "review"}
RISKY = {"kind": "severity", "severities": ["*risk*"]}
RADIUS = {"kind": "radius", "percent": 1}
TWO = "a/x:2@sm_90"
GOLDEN = golden("gate-rules")
ONE_CHANGED = run(case(CASE, Verdict.CHANGED))


def gated(of, *rules, **more):
    waivers = more.pop("waivers", ())
    return gate.evaluate(of, policies.of(*rules, waivers=waivers), **{"today": TODAY, **more})


def evaluated(of, *timings, **rule):
    """How many cases a rule selects, and where it does not hold: `@sm_90` is a target."""
    (outcome,) = gated(of, {"if_unknown": "warn", **rule}, timings=timings).rules
    assert all((row.action is Action.DENY) == (row.certainty is VIOLATED) for row in outcome.findings)
    mark = {SubjectKind.CASE: "", SubjectKind.TARGET: "@", SubjectKind.RUN: "run"}
    rows = [(f"{mark[row.subject]}{row.name}", row.certainty, row.detail) for row in outcome.findings]
    return outcome.examined, rows


def found(of, *timings, **rule):
    return evaluated(of, *timings, **rule)[1]


def objection(of, *timings, **rule):
    """To the only case."""
    rows = found(of, *timings, **rule)
    assert [name for name, _, _ in rows] in ([], [CASE])
    return rows[0][1:] if rows else None


def certainty(of, *timings, **rule):
    row = objection(of, *timings, **rule)
    return row[0] if row else None


def only(outcome):
    (finding,) = (finding for rule in outcome.rules for finding in rule.findings)
    return finding


def test_a_rule_is_about_the_cases_that_it_selects_and_does_not_hold_of_none():
    three = run(case(CASE), case(TWO), case("a/x:1@gfx942"))
    for rule in (BROKEN, RADIUS, {"kind": "compile-time", "percent": 100}, COVERAGE):
        assert evaluated(three, **rule) == (3, [])
        assert evaluated(three, targets=["sm_90"], **rule) == (2, [])
    nothing = [("run", UNKNOWN, "it selects no case of this run: nothing was checked")]
    assert found(three, targets=["gfx950"], **BROKEN) == nothing
    assert evaluated(three, may_be_empty=True, targets=["gfx950"], **BROKEN) == (0, [])
    same = replace(run(), edited=Edited(files=(), of_kernels=False, identical=True))
    assert evaluated(same, **COVERAGE) == evaluated(same, **SLOWER) == (0, [])
    unchanged = run(case(CASE), case("a/y:1@sm_90", Verdict.ABSORBED))
    for rule in (FACT, SLOWER, TIMED, RESULT, RISKY):
        assert found(unchanged, **rule) == [], "code that did not change needs neither facts nor timings"


def test_a_run_that_compared_nothing_does_not_pass():
    for verdicts in ([], [Verdict.FAILING], [Verdict.UNSUPPORTED, Verdict.ADDED]):
        cases = (case(f"a/x:{n}@sm_90", verdict) for n, verdict in enumerate(verdicts))
        outcome = gated(run(*cases), {**BROKEN, "may_be_empty": True})
        assert (outcome.passed, outcome.headline) == (False, "gate fails: nothing was compared")
        assert 'errors="1"' in junit(outcome)


def test_a_verdict_says_where_it_begins_and_why():
    rule = {"kind": "verdict", "verdicts": ["changed", "broken", "removed", "failing"]}
    for verdict, words in (
        (Verdict.CHANGED, "changed, first in ttgir"),
        (Verdict.REMOVED, "removed"),
        (Verdict.BROKEN, "broken: head: PassManager::run failed"),
    ):
        assert objection(run(case(CASE, verdict)), **rule) == (VIOLATED, words)
    for verdict, holds in ((Verdict.FAILING, True), (Verdict.BROKEN, False)):
        of = run(case(CASE, verdict))
        assert objection(of, **rule)
        unexpected = {key: replace(launch, expected=False) for key, launch in of.launches.items()}
        assert (objection(replace(of, launches=unexpected), **rule) is None) is holds, "not for the target"


@pytest.mark.parametrize("row", GOLDEN["fact"], ids=lambda row: row.get("detail", "no more"))
def test_facts(row):
    of = run(case(CASE, Verdict.CHANGED, base=row["base"], head=row["head"]))
    expected = (Certainty(row["certainty"]), row["detail"]) if "detail" in row else None
    assert objection(of, **FACT) == expected


def test_only_the_same_machine_code_needs_no_facts():
    for stages, holds in (
        ({"sass": "identical"}, True),
        ({"amdgcn": "equivalent"}, True),
        ({"sass": "absent"}, False),
        ({"sass": "identical", "amdgcn": "changed"}, False),
        ({"ptx": "identical"}, False),
    ):
        statuses = {name: StageStatus(status) for name, status in stages.items()}
        of = run(case(CASE, Verdict.CHANGED, stages=statuses))
        assert (objection(of, **FACT) is None) is holds, stages


NOT_MEASURED = timed(None, None, None)


def measured(low=None, high=None, **row):
    speed = Speed(row.pop("speed", Speed.SAME)) if low is not None else None
    if row.get("same_result") == "unknown":
        row["same_result"] = None
    return timed(low, high, speed, **row)


@pytest.mark.parametrize("row", GOLDEN["timing"], ids=lambda row: f"{row['rule']}: {row['why']}")
def test_timings(row):
    rules = {rule["kind"]: rule for rule in (SLOWER, TIMED, RESULT)}
    found = certainty(ONE_CHANGED, *(measured(**one) for one in row["timings"]), **rules[row["rule"]])
    assert (found and found.value) == row.get("certainty")


@pytest.mark.parametrize(("same", "of_result"), [(False, VIOLATED), (None, UNKNOWN)])
def test_a_fault_on_one_gpu_of_two_is_the_result(same, of_result):
    faulted = replace(NOT_MEASURED, enough=False, device="GB200", faulted=True, same_result=same, note="gone")
    for timings in ([timed(0.0, 0.1), faulted], [faulted, timed(0.0, 0.1)]):
        for rule, expected in ((SLOWER, UNKNOWN), (TIMED, VIOLATED), (RESULT, of_result)):
            assert objection(ONE_CHANGED, *timings, **rule) == (expected, "faulted on GB200: gone")


def test_nondeterministic_and_severity():
    rule = {"kind": "nondeterministic"}
    both = run(case(CASE, Verdict.CHANGED, nondeterministic=("base", "head")))
    assert objection(both, **rule) == (VIOLATED, "disagrees with itself when compiled again: base, head")
    unchecked = replace(ONE_CHANGED, options=replace(DEFAULT_OPTIONS, recheck=False))
    assert objection(unchecked, **rule) == (UNKNOWN, "was not compiled again: --no-recheck")
    assert objection(replace(run(case(CASE)), options=unchecked.options), **rule) is None
    risk = group("g", CASE, severity="wrong-result risk", title="+1 `fence`")
    grouped = run(case(CASE, Verdict.CHANGED), groups=(risk,))
    assert objection(grouped, **RISKY) == (VIOLATED, "wrong-result risk: +1 `fence`")
    added = replace(grouped, groups=(replace(risk, reasons=("synchronization added: 2 `fence` are new",)),))
    named = {**RISKY, "severities": ["synchronization added"]}
    assert objection(added, **named) == (VIOLATED, "synchronization added: +1 `fence`")
    assert objection(grouped, **named) is None
    for of in (ONE_CHANGED, replace(grouped, groups=())):
        assert certainty(of, **RISKY) is UNKNOWN


def test_the_radius_of_each_target():
    cases = [case(CASE, Verdict.CHANGED), case(TWO, Verdict.CHANGED), case("a/x:3@sm_90")]
    assert found(run(*cases, case("a/x:1@gfx942", Verdict.BROKEN)), **{**RADIUS, "percent": 60}) == [
        ("@sm_90", VIOLATED, "2 of 3 compared cases changed (66.7 %)"),
        ("@gfx942", UNKNOWN, "no case was compared"),
    ]


def test_compile_times_are_of_the_stages_and_cases_that_both_sides_compiled():
    def compiled(name, base, head):
        return case(name, compile_s=Sides(base=base, head=head))

    rule = {"kind": "compile-time", "percent": 20, "more_than_s": 2}
    slow = run(
        compiled(CASE, {"ttir": 10.0, "ptx": 5.0}, {"ttir": 13.0}),
        compiled(TWO, {"ttir": 1.0}, {}),
        compiled("a/x:3@sm_90", {}, {"ttir": 1.0}),
        compiled("a/x:1@gfx942", {"ttir": 1.0}, {}),
    )
    unknown = ("@gfx942", UNKNOWN, "no compile times on both sides")
    assert found(slow, **rule) == [("@sm_90", VIOLATED, "compiling 1 cases takes 10.0 s → 13.0 s"), unknown]
    for bound in ({"percent": 30}, {"more_than_s": 3}):
        assert found(slow, **{**rule, **bound}) == [unknown]
    skipped = replace(compiled(CASE, {}, {}), findings=findings("not-compiled:same-input"))
    assert found(run(skipped), **rule) == []


def test_a_case_whose_code_was_not_compared_covers_nothing():
    blind = case(CASE, Verdict.CHANGED, findings=findings("not-compared:ttir,asm"))
    seen = [case(f"a/y:{n}@sm_90") for n in range(3)]
    failing = case("a/z:1@sm_90", Verdict.FAILING)
    for cases, least, percent, words in (
        ([blind, *seen], 4, 100, "3 cases compared, at least 4 are required"),
        ([blind, *seen], 3, 25, ""),
        ([blind, *seen], 3, 24.9, "1 of 4 cases could not be compared"),
        ([blind, failing, *seen], 3, 39.9, "2 of 5 cases could not be compared"),
    ):
        rule = {**COVERAGE, "min_compared": least, "max_uncompared_percent": percent}
        assert found(run(*cases), **rule) == ([("@sm_90", VIOLATED, words)] if words else [])
    none = "0 cases compared, at least 1 are required"
    of = run(case(CASE), case("a/x:1@gfx942", Verdict.BROKEN))
    required = {**COVERAGE, "required_targets": ["gfx950", "gfx942"]}
    assert found(of, **required) == [("@gfx950", VIOLATED, none), ("@gfx942", VIOLATED, none)]


def blocking(of):
    outcome = gate.evaluate(of, policy.load(Path("reports/irdiff-policy.toml")), today=TODAY)
    return [row.rule.id for row in outcome.rules if not row.holds]


def few(changed, total, verdict=Verdict.CHANGED):
    verdicts = [verdict] * changed + [Verdict.UNCHANGED] * (total - changed)
    return [case(f"a/x:{n}@sm_90", each, tier="core") for n, each in enumerate(verdicts)]


def test_a_few_changes_of_few_cases_are_no_large_radius():
    for changed, total in ((0, 6), (2, 6), (5, 6), (5, 20), (6, 24), (50, 200)):
        assert "radius" not in blocking(run(*few(changed, total))), (changed, total)
    for changed, total in ((6, 6), (6, 20), (6, 21), (7, 24), (51, 200)):
        assert "radius" in blocking(run(*few(changed, total))), (changed, total)


def test_few_cases_are_enough_only_where_they_are_all():
    for chosen in ({"cases": ("a/x",)}, {"tiers": ("core",)}, {"shard": (1, 2)}):
        part = run(*few(0, 6), options=replace(DEFAULT_OPTIONS, **chosen))
        assert blocking(part) == ["coverage", "gate-kernel-gone"]
    cases = few(1, 6, Verdict.FAILING)
    assert blocking(run(*cases)) == []
    hidden = replace(cases[0], launches=Sides(base=None, head=None))
    assert blocking(run(hidden, *cases[1:])) == ["coverage"]
    rule = {**COVERAGE, "min_compared": 7}
    assert only(gated(run(*few(0, 6)), rule)).detail == "6 cases compared, at least 7 are required"
    assert gated(run(*few(0, 6)), {**rule, "or_whole": True}).passed
    nothing = gated(run(*few(1, 1, Verdict.UNSUPPORTED)), {**rule, "or_whole": True})
    assert only(nothing).detail == "0 cases compared, at least 1 are required"


def test_a_waiver_covers_what_it_names_until_its_last_day():
    for rules, change, passes in (
        ([BROKEN], {}, True),
        ([BROKEN], {"expires": TODAY - datetime.timedelta(days=1)}, False),
        ([BROKEN], {"cases": ["b/*"]}, False),
        ([BROKEN], {"targets": ["gfx*"]}, False),
        ([BROKEN, BROKEN], {}, False),
        ([RADIUS], {"cases": ["*"]}, False),
        ([RADIUS], {"cases": [], "targets": ["sm_90"]}, True),
    ):
        cases = case(CASE, Verdict.BROKEN if BROKEN in rules else Verdict.CHANGED), case("b:1@gfx942")
        outcome = gated(run(*cases), *rules, waivers=[waiver(**change)])
        assert outcome.passed is passes
        assert outcome.rules[0].word == ("settled" if passes or len(rules) == 2 else "deny")
        ended = "expires" in change
        assert any("by jane ended on 2026-01-01" in note for note in outcome.notes) is ended
        unused = "the waiver of rule-0 by jane settles nothing in this run" in outcome.notes
        assert unused is (outcome.rules[0].word == "deny" and not ended)


def test_a_waiver_of_edits_does_not_cover_another_edit():
    of = changed_cases(1)
    own = waiver(cases=["a/*"], edits=[of.cases[0].edit])
    assert gated(of, CHANGED, waivers=(own,)).passed
    assert not gated(changed_cases(1, e1="another"), CHANGED, waivers=(own,)).passed
    assert not gated(of, CHANGED, waivers=({**own, "cases": ["b/*"]},)).passed


DECISION = Acceptance(owner="jane", reason=REASON, on=TODAY, expires=TODAY)


def accept(of, *names):
    return acceptance.accept(of, names, DECISION)


def changed_cases(*numbers, **edits):
    """A run of one group, with the cases of these numbers; `e2=x` gives case 2 another edit."""
    cases = []
    for number in numbers:
        made = case(f"a/x:{number}@sm_90", Verdict.CHANGED)
        edit = edits.get(f"e{number}")
        cases.append(replace(made, edit=sha256(edit.encode())) if edit else made)
    return run(*cases, groups=(group("g1", *(row.id for row in cases)),))


def test_an_accepted_group_settles_a_review_and_no_denial():
    of = changed_cases(1)
    for rule, passes in (
        ({**RISKY, "action": "review"}, True),
        ({**RISKY, "action": "review", "acceptable": False}, False),
        (RISKY, False),
        ({**RISKY, "acceptable": True}, True),
        ({**SLOWER, "action": "review"}, False),  # what is not known cannot be accepted
    ):
        assert not gated(of, rule).passed
        assert gated(of, rule, accepted=accept(of, "g1")).passed is passes, rule


def test_a_radius_is_accepted_with_every_case_behind_it():
    cases = case(CASE, Verdict.CHANGED), case(TWO, Verdict.CHANGED)
    of = run(*cases, groups=(group("g1", CASE), group("g2", TWO)))
    rule = {**RADIUS, "action": "review"}
    assert only(gated(of, rule, accepted=accept(of, "g1"))).not_accepted == "accepted for 1 of 2 cases"
    assert gated(of, rule, accepted=accept(of, "g1", "g2")).passed
    assert gated(of, rule, accepted=accept(of, CASE, TWO)).passed
    one_group = run(*cases, groups=(group("g1", CASE),))
    assert not gated(one_group, rule, accepted=accept(of, "g1", "g2")).passed


def refused(later, accepted, **more):
    """Why the findings of a later run are not settled, by case."""
    outcome = gated(later, REVIEW, accepted=accepted, **more)
    return {row.name: row.not_accepted for row in outcome.rules[0].findings if row.blocks}


def test_neither_another_edit_nor_another_case_nor_another_toolchain_nor_another_day_is_accepted():
    of, two = changed_cases(1), accept(changed_cases(1, 2), "g1")
    assert refused(of, accept(of, "g1")) == {}
    assert refused(of, ()) == {CASE: ""}, "nothing is said of what was never accepted"
    ((name, why),) = refused(changed_cases(1, 2, e2="100 -> 120"), two).items()
    assert name == TWO
    assert why.startswith("the edit is another: jane accepted ")
    assert sha256(b"100 -> 120")[:12] in why
    later = replace(changed_cases(1, 2, e1="the same, read differently"), normalizer_version="2")
    assert "(read by other rules, 1 → 2)" in refused(later, two)[CASE]
    new = "accepted for 2 cases; 3 more changed the same way since"
    assert refused(changed_cases(1, 2, 3, 4, 5), two) == {f"a/x:{number}@sm_90": new for number in (3, 4, 5)}
    for side in ("base", "head"):
        why = refused(replace(of, **{side: revision("3.9.9")}), accept(of, "g1"))[CASE]
        assert why.startswith("jane accepted the same edit")
        assert "--renew" in why
    ended = refused(of, accept(of, "g1"), today=TODAY + datetime.timedelta(days=1))
    assert ended == {CASE: "the acceptance of a/x:1@sm_90 by jane ended on 2026-01-02"}
    older = replace(of, cases=tuple(replace(row, edit=None) for row in of.cases))
    assert refused(older, accept(of, "g1"))
    with pytest.raises(UsageError, match="has no edit"):
        accept(older, "g1")


def test_renewing_takes_the_same_edits_and_no_others():
    accepted = accept(changed_cases(1, 2), "g1")
    later = replace(changed_cases(1, 2, 3, e2="another"), head=revision("3.9.9"))
    decision = Acceptance(owner="joe", reason="", on=TODAY, expires=TODAY + datetime.timedelta(days=9))
    renewed = acceptance.renew(later, accepted, decision)
    assert [list(entry.edits) for entry in renewed] == [[CASE]]
    assert (renewed[0].owner, renewed[0].reason, renewed[0].expires) == ("joe", REASON, decision.expires)
    assert set(refused(later, accepted + renewed)) == {TWO, "a/x:3@sm_90"}
    assert acceptance.renew(later, accepted + renewed, decision) == ()


def test_accepted_edits_are_kept_and_read_again(tmp_path):
    hostile = 'a "quote"\n[[accepted]]\x7f\x00\u202e\\'
    made = case(f"a/{hostile}:1@sm_90", Verdict.CHANGED)
    entries = accept(run(made, groups=(group("ab" * 32, made.id, title=hostile),)), "abababab")
    path = tmp_path / "folder" / "accepted.toml"
    acceptance.append(path, entries, ())
    known = acceptance.load(path)
    assert known == entries
    assert (known[0].title, known[0].edits) == (hostile, {made.id: made.edit})
    acceptance.append(path, entries, known)
    assert acceptance.load(path) == entries


def test_only_what_the_run_has_is_accepted_and_a_damaged_file_is_an_error():
    of = run(case(CASE, Verdict.CHANGED), groups=(group("ab" * 32, CASE),))
    for wanted in ("ababab", "f" * 64, "", "\x1b[2J", TWO):
        with pytest.raises(UsageError, match="no change group"):
            accept(of, wanted)
    row = dataclasses.asdict(accept(of, CASE)[0])

    def parsed(**changes):
        return acceptance.parse({"schema": acceptance.SCHEMA, "accepted": [{**row, **changes}]}, "file")

    assert parsed()
    edits = [("edits", {}), ("edits", {CASE: "100 -> 96"}), ("base_toolchain", "3.8.0"), ("everything", True)]
    for key, value in (("expires", None), ("owner", ""), *edits):
        with pytest.raises(UsageError, match=rf"accepted\.0\.{key}"):
            parsed(**{key: value})
