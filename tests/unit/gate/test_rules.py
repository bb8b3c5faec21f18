"""Every kind of rule at its bounds, with the words that a reviewer acts on, and what settles a finding."""

import dataclasses
import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.errors import UsageError
from irdiff.gate import acceptance, accepting, outputs, policy
from irdiff.gate.accepting import Decision
from irdiff.gate.objections import Certainty
from irdiff.gate.outputs import junit
from irdiff.gate.policy import Action
from irdiff.model import (
    DEFAULT_OPTIONS,
    Bits,
    CaseSummary,
    ChangedFile,
    Edited,
    Effects,
    FileChange,
    Meaning,
    Reach,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.store import sha256
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, REASON, TODAY, accepted, timed
from tests.unit.golden import golden, recorded
from tests.unit.runs import case, findings, group, revision, run

GOLDEN = golden("gate-rules")
SLOWER, COVERAGE, RISKY, RADIUS = (
    GOLDEN["rules"][name] for name in ("slower", "coverage", "risky", "radius")
)
BROKEN = {"kind": "verdict", "verdicts": ["broken"]}
CHANGED = {"kind": "verdict", "verdicts": ["changed"]}
REVIEW = {**CHANGED, "action": "review"}
TWO = "a/x:2@sm_90"


def gated(of, *rules, **more):
    return gate.evaluate(of, policies.of(*rules), **{"today": TODAY, **more})


def measured(low=None, high=None, **row):
    speed = Speed(row.pop("speed", Speed.SAME)) if low is not None else None
    if row.get("same_result") == "unknown":
        row["same_result"] = None
    return timed(low, high, speed, **row)


MEANINGS = ("hazard", "rounding", "same", "unread")


def summary(name):
    effects = None if name == "unread" else Effects(kind=Meaning(name), stage="ptx", bits=Bits.UNKNOWN)
    return CaseSummary(title="", severity="", reasons=("one fence fewer",), causes=(), effects=effects)


def written(row):
    """The run of a row."""
    times, first, cases = row.get("compile_s", ()), {**row.get("case", {})}, []
    if "stages" in first:
        first["stages"] = {name: StageStatus(status) for name, status in first["stages"].items()}
    for number, text in enumerate(row.get("cases", [f"{CASE} changed"])):
        name, verdict, *said = text.split()
        means = next((each for each in said if each in MEANINGS), None)
        made = case(
            name,
            Verdict(verdict),
            findings=findings(*(each for each in said if each != means)),
            **({} if number else first),
        )
        made = replace(made, summary=summary(means)) if means else made
        base, head = times[number] if times else made.compile_s
        cases.append(replace(made, compile_s=Sides(base=base, head=head)))
    of = run(*cases, groups=[group("g", CASE, **{"reasons": (), **row["group"]})] if "group" in row else ())
    launches = {
        key: replace(launch, expected=row.get("expected", True)) for key, launch in of.launches.items()
    }
    targets = tuple(replace(target, facts={"shared_memory_bytes": 232448}) for target in of.targets)
    same = Edited(files=(), of_kernels=False, identical=True) if "identical" in row else None
    options = replace(DEFAULT_OPTIONS, recheck=row.get("recheck", True))
    return replace(of, launches=launches, edited=same, options=options, targets=targets)


def test_what_rules_object_to():
    """How many cases each selects, and where it does not hold: of a case, a target, or the run."""
    said = []
    for row in GOLDEN["row"]:
        timings = [measured(**one) for one in row.get("timings", ())]
        for name in row["rules"]:
            rule = {"if_unknown": "warn", **GOLDEN["rules"][name], **row.get("with", {})}
            (outcome,) = gated(written(row), rule, timings=timings).rules
            said.append(f"{name}, {row['why']}: {outcome.examined} cases")
            for found in outcome.findings:
                assert (found.action is Action.DENY) == (found.certainty is Certainty.VIOLATED)
                state = found.state if found.settled_by else found.certainty
                said.append(f"    {found.subject} {found.name}, {state}: {found.detail}")
    recorded("gate-rules.txt", "\n".join([*said, ""]))


def only(outcome):
    (finding,) = (finding for rule in outcome.rules for finding in rule.findings)
    return finding


def test_a_run_that_compared_nothing_does_not_pass():
    for verdicts in ([], [Verdict.FAILING], [Verdict.UNSUPPORTED, Verdict.ADDED]):
        cases = (case(f"a/x:{n}@sm_90", verdict) for n, verdict in enumerate(verdicts))
        outcome = gated(run(*cases), {**BROKEN, "may_be_empty": True})
        assert (outcome.passed, outcome.headline) == (False, "gate fails: nothing was compared")
        assert 'errors="1"' in junit(outcome)


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
    assert "--accept rule-0 --issue URL" in outputs.text(gated(run(*few(0, 6)), rule))
    for new in ((), few(40, 40, Verdict.ADDED)):
        assert gated(run(*few(0, 6), *new), {**rule, "or_whole": True}).passed
    nothing = gated(run(*few(1, 1, Verdict.UNSUPPORTED)), {**rule, "or_whole": True})
    assert only(nothing).detail == "0 cases compared, at least 1 are required"


def test_an_acceptance_of_a_rule_covers_what_it_names_until_its_last_day():
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
        outcome = gated(run(*cases), *rules, accepted=accepted(**change))
        assert outcome.passed is passes
        assert outcome.rules[0].word == ("settled" if passes or len(rules) == 2 else "deny")
        ended = "expires" in change
        assert any("by jane ended on 2026-01-01" in note for note in outcome.notes) is ended
        unused = "the acceptance of rule-0 by jane settles nothing in this run" in outcome.notes
        assert unused is (outcome.rules[0].word == "deny" and not ended)


def test_an_acceptance_of_a_case_s_own_name_covers_no_other_case():
    """`n[1]` is a glob that means `n1` only where no case is called so."""
    bracket = accepted(cases=["a:n[1]@sm_90"])
    for broken, other, passes in (
        ("a:n[1]@sm_90", "a:n1@sm_90", True),
        ("a:n1@sm_90", "a:n[1]@sm_90", False),
        ("a:n1@sm_90", "a:n2@sm_90", True),
    ):
        assert (
            gated(run(case(broken, Verdict.BROKEN), case(other)), BROKEN, accepted=bracket).passed is passes
        )


def test_what_changed_and_no_launch_reaches_is_denied_until_the_file_is_accepted():
    def reached(**change):
        known = {"path": "csrc/k.cu", "compiled_by": 0, "read_by": 0, "not_run": (), **change}
        file = ChangedFile(change=FileChange.CHANGED, **known)
        return run(case(CASE), reach=Reach(files=(file,), read_by=file.read_by))

    reach = {"kind": "coverage", "requires": "launched"}
    for of, certainty in (
        (reached(), Certainty.UNKNOWN),
        (reached(read_by=1, not_run=("rope",)), Certainty.VIOLATED),
    ):
        assert only(gated(of, reach)).certainty is certainty
        assert not gated(of, reach).passed
        assert gated(of, reach, accepted=accepted(cases=[], files=["csrc/*"])).passed
    assert gated(reached(read_by=1), reach).passed
    for path in ("README.md", "tests/test_rope.py"):
        assert gated(reached(path=path), reach).passed, "no kernels"


def test_what_was_not_compared_is_unknown_to_the_rule_of_launches():
    clause = "bench/run.py:3 starts another Python process: what that launches was not compared"
    of, reach = run(case(CASE), unexamined=(clause,)), {"kind": "coverage", "requires": "launched"}
    finding = only(gated(of, reach))
    assert (finding.certainty, finding.name) == (Certainty.UNKNOWN, clause)
    assert not gated(of, reach).passed
    for notes in ([clause], ["bench/run.py:* starts another Python process: *"]):
        assert gated(of, reach, accepted=accepted(cases=[], notes=notes)).passed
    assert not gated(of, reach, accepted=accepted(cases=[], notes=["bench/other.py:*"])).passed
    assert gated(run(case(CASE)), reach).passed


DECISION = Decision(owner="jane", reason=REASON, issue="", on=TODAY, expires=TODAY)


def accept(of, *names):
    return accepting.accept_groups(of, gated(of, REVIEW), names, DECISION)


def changed_cases(*numbers, **edits):
    """A run of one group, with the cases of these numbers; `e2=x` gives case 2 another edit."""
    cases = []
    for number in numbers:
        made = replace(case(f"a/x:{number}@sm_90", Verdict.CHANGED), summary=summary("hazard"))
        edit = edits.get(f"e{number}")
        cases.append(replace(made, edit=sha256(edit.encode())) if edit else made)
    return run(*cases, groups=(group("g1", *(row.id for row in cases)),))


def test_an_accepted_group_settles_a_review_and_no_denial():
    of = changed_cases(1)
    for rule, passes in (
        ({**RISKY, "action": "review"}, True),
        (RISKY, False),
        ({**SLOWER, "action": "review"}, False),  # what is not known cannot be accepted
    ):
        assert not gated(of, rule).passed
        assert gated(of, rule, accepted=accept(of, "g1")).passed is passes, rule


def test_what_is_measured_after_a_change_was_accepted_is_new():
    of, rules = changed_cases(1), ({**SLOWER, "action": "review"}, {**RISKY, "action": "review"})
    slower = [timed(29.5, 30.5, Speed.SLOWER)]
    of_code = accept(of, "g1")
    assert gated(of, rules[1], accepted=of_code).passed
    outcome = gated(of, *rules, timings=slower, accepted=of_code)
    assert not outcome.passed
    assert outcome.rules[0].findings[0].not_accepted == "the change was accepted before this was measured"
    both = accepting.accept(of, outcome, ["g1"], DECISION)
    assert gated(of, *rules, timings=slower, accepted=both).passed
    wrong = [replace(slower[0], same_result=False)]
    results = {**GOLDEN["rules"]["wrong-outputs"], "action": "review"}
    assert not gated(of, *rules, results, timings=wrong, accepted=both).passed, "another rule found it"


def test_accepting_a_rule_settles_its_findings_and_no_others():
    """By their edits where they have any, and else by their names; of a run as a whole it settles nothing."""
    issue = "https://github.com/o/n/issues/1"
    decision = replace(DECISION, issue=issue)
    of, broken = changed_cases(1, 2), run(case(CASE, Verdict.BROKEN), case(TWO))
    for found, rule, fields in (
        (of, CHANGED, {"changes": {row.id: row.edit for row in of.cases}}),
        (of, SLOWER, {"changes": {row.id: row.edit for row in of.cases}}),  # what is not known, too
        (broken, BROKEN, {"cases": (CASE,)}),
        (of, {**COVERAGE, "min_compared": 9}, {"targets": ("sm_90",)}),
    ):
        (entry,) = accepting.accept(found, gated(found, rule), ["rule-0"], decision)
        assert {name: getattr(entry, name) for name in fields} == fields
        assert gated(found, rule, accepted=(entry,)).passed
        assert not gated(found, rule, rule, accepted=(entry,)).passed, "another rule is not settled"
        with pytest.raises(UsageError, match="add --issue URL"):
            accepting.accept(found, gated(found, rule), ["rule-0"], DECISION)
    (entry,) = accepting.accept(of, gated(of, CHANGED), ["rule-0"], decision)
    assert not gated(changed_cases(1, 2, e2="another"), CHANGED, accepted=(entry,)).passed
    empty = {**CHANGED, "targets": ["gfx950"]}
    for rule, words in ((empty, "selects no case"), (BROKEN, "nothing to accept")):
        with pytest.raises(UsageError, match=words):
            accepting.accept(of, gated(of, rule), ["rule-0"], decision)


def test_all_groups_that_wait_for_a_review_are_accepted_at_once():
    cases = [replace(case(f"a/x:{n}@sm_90", Verdict.CHANGED), group=f"g{n}") for n in range(9)]
    of = run(*cases, groups=[group(f"g{n}", row.id) for n, row in enumerate(cases)])
    outcome = gated(of, REVIEW)
    assert "--accept review" in outputs.text(outcome)
    entries = accepting.accept(of, outcome, ["review"], DECISION)
    assert len(entries) == 9
    assert gated(of, REVIEW, accepted=entries).passed
    assert not gated(of, CHANGED, accepted=entries).passed, "a rule that denies was not named"


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
    assert why.startswith(f"{TWO} changes in another way than jane accepted on ")
    assert sha256(b"100 -> 120")[:12] in why
    later = replace(changed_cases(1, 2, e1="the same, read differently"), normalizer_version="2")
    assert "(read by other rules, 1 → 2)" in refused(later, two)[CASE]
    new = "accepted for 2 cases; 3 more changed the same way since"
    assert refused(changed_cases(1, 2, 3, 4, 5), two) == {f"a/x:{number}@sm_90": new for number in (3, 4, 5)}
    for side in ("base", "head"):
        why = refused(replace(of, **{side: revision("3.9.9")}), accept(of, "g1"))[CASE]
        assert why.startswith("jane accepted the same change")
        assert "--renew" in why
    ended = refused(of, accept(of, "g1"), today=TODAY + datetime.timedelta(days=1))
    assert ended == {CASE: "the acceptance of a/x:1@sm_90 by jane ended on 2026-01-02"}
    older = replace(of, cases=tuple(replace(row, edit=None) for row in of.cases))
    assert refused(older, accept(of, "g1"))
    with pytest.raises(UsageError, match="no digest of the change"):
        accept(older, "g1")


def test_renewing_takes_the_same_edits_and_no_others():
    accepted = accept(changed_cases(1, 2), "g1")
    later = replace(changed_cases(1, 2, 3, e2="another"), head=revision("3.9.9"))
    decision = Decision(
        owner="joe", reason="", issue="", on=TODAY, expires=TODAY + datetime.timedelta(days=9)
    )
    renewed = accepting.renew(later, accepted, decision)
    assert [list(entry.changes) for entry in renewed] == [[CASE]]
    assert (renewed[0].owner, renewed[0].reason, renewed[0].expires) == ("joe", REASON, decision.expires)
    assert set(refused(later, accepted + renewed)) == {TWO, "a/x:3@sm_90"}
    assert accepting.renew(later, accepted + renewed, decision) == ()


def test_accepted_edits_are_kept_and_read_again(tmp_path):
    hostile = 'a "quote"\n[[accepted]]\x7f\x00\u202e\\'
    made = case(f"a/{hostile}:1@sm_90", Verdict.CHANGED)
    entries = accept(run(made, groups=(group("ab" * 32, made.id, title=hostile),)), "abababab")
    path = tmp_path / "folder" / "accepted.toml"
    acceptance.append(path, entries, ())
    known = acceptance.load(path)
    assert known == entries
    assert (known[0].title, known[0].changes) == (hostile, {made.id: made.edit})
    acceptance.append(path, entries, known)
    assert acceptance.load(path) == entries


def test_a_file_that_cannot_take_more_entries_stays_as_it_is(tmp_path):
    path = tmp_path / "accepted.toml"
    text = f'schema = "{acceptance.SCHEMA}"\naccepted = []\n'
    path.write_text(text)
    with pytest.raises(UsageError, match="was not changed: with the new entries it would not be valid TOML"):
        acceptance.append(
            path, accept(run(case(CASE, Verdict.CHANGED), groups=(group("ab" * 32, CASE),)), CASE), ()
        )
    assert path.read_text() == text


def test_only_what_the_run_has_is_accepted_and_a_damaged_file_is_an_error():
    of = run(case(CASE, Verdict.CHANGED), groups=(group("ab" * 32, CASE),))
    for wanted in ("ababab", "f" * 64, "", "\x1b[2J", TWO):
        with pytest.raises(UsageError, match="no change group"):
            accept(of, wanted)
    row = dataclasses.asdict(accept(of, CASE)[0])

    def parsed(**changes):
        return acceptance.parse({"schema": acceptance.SCHEMA, "accepted": [{**row, **changes}]}, "file")

    assert parsed()
    with pytest.raises(UsageError, match="neither changes nor a rule"):
        parsed(changes={})
    edits = [("changes", {CASE: "100 -> 96"}), ("base_toolchain", "3.8.0"), ("everything", True)]
    for key, value in (("expires", None), ("owner", ""), *edits):
        with pytest.raises(UsageError, match=rf"accepted\.0\.{key}"):
            parsed(**{key: value})


def test_a_mistake_is_told_once():
    rule = {"id": "No Name", "kind": "verdict", "verdicts": ["changed"], "action": "deny", "reason": REASON}
    with pytest.raises(UsageError) as error:
        policy.parse({"schema": "irdiff-policy/2", "rule": [rule]}, "p.toml")
    first, *mistakes = error.value.what.splitlines()
    assert first == "p.toml is not a policy:"
    assert [words.partition(": ")[0] for words in mistakes] == ["  rule.0.verdict.id"]
