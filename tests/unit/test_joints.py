"""Every place where "not looked at" could become green, with every way in which a case is not looked at.

| place | what must not happen |
|---|---|
| terminal, Markdown, page, check run's title | the text says nothing of what was not compared |
| check run | success |
| gate: text, Markdown, JSON, JUnit | a pass that does not count what was not compared |
| merge | shards are missing, and the run counts as whole |
| `compare --exit-code` | 0 where nothing was compared, or a new kernel does not compile |
| `history check`, an issue that it closes | "nothing moved", or undone, where it was not compared |
"""

import functools
import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.cli import compare_command
from irdiff.cli.run_argument import OpenedRun
from irdiff.compare import radius
from irdiff.errors import ExitCode, NothingComparedError, UsageError
from irdiff.gate import outputs, policy
from irdiff.gate.outputs import junit
from irdiff.group import grouping
from irdiff.history import alerts
from irdiff.model import (
    DEFAULT_OPTIONS,
    ChangedFile,
    EditedLine,
    EditedLines,
    EditedSource,
    FailureKind,
    FileChange,
    Reach,
    RuntimeEdit,
    Sides,
    Verdict,
)  # fmt: skip
from irdiff.report import conclusion, edit_coverage, headline, html, markdown, shown
from irdiff.report.conclusion import Conclusion
from irdiff.run import merge
from tests.unit import runs as build
from tests.unit.gate import policies
from tests.unit.history import histories
from tests.unit.report.test_reports import printed

NAME = "a/x:1@sm_90"
SHARD = replace(DEFAULT_OPTIONS, shard=(1, 2))
FAILING = build.case(NAME, Verdict.FAILING)


LATE = build.failed(FailureKind.TIMEOUT, message="took more than 300 s").failure
NEW = replace(
    FAILING, launches=replace(FAILING.launches, base=None), failures=replace(FAILING.failures, base=None)
)
CASES = {
    "failing": FAILING,
    "nondeterministic": build.case(NAME, nondeterministic=("head",)),
    "timed out": replace(FAILING, failures=Sides(base=LATE, head=LATE)),
    "stage left out": build.case(NAME, Verdict.CHANGED, findings=build.findings("not-compared:ttir,asm")),
    "new and failing": NEW,
    "unsupported": build.case(NAME, Verdict.UNSUPPORTED),
}
"""A case that was not compared, or not made twice the same."""
_UNCOMPARED = CASES["stage left out"]
GROUPS = build.change_groups([(_UNCOMPARED, grouping.describe(_UNCOMPARED, None))])
QUIET = build.case("a/y:1@sm_90")
RUNS = {
    **{name: build.run(QUIET, case) for name, case in CASES.items()},
    "shard missing": build.run(build.case(NAME), options=SHARD),
    "stage left out": build.run(QUIET, CASES["stage left out"], groups=GROUPS),
    "everything failing": build.run(FAILING, build.case("a/y:1@sm_90", Verdict.FAILING)),
}
every_run = pytest.mark.parametrize("name", RUNS)


TEXTS = {
    "terminal": functools.partial(printed, width=200),
    "Markdown comment": lambda run: markdown.render(run, Path("nowhere"), limit=2_000),
    "page": lambda run: html.render(run, Path("nowhere")),
    "check run's title": headline.of,
}


@every_run
@pytest.mark.parametrize("place", TEXTS)
def test_a_report_says_it(place, name):
    said = headline.of(RUNS[name])
    assert said != headline.of(build.run(QUIET, build.case(NAME)))
    assert said in " ".join(TEXTS[place](RUNS[name]).replace("\\_", "_").split())


@every_run
def test_what_is_said(name, snapshot):
    outcome = _gated(RUNS[name], LENIENT)
    assert [headline.of(RUNS[name]), outcome.headline, outcome.counts.words] == snapshot


LENIENT = policies.of({"id": "broken", "kind": "verdict", "verdicts": ["broken"]})
"""It asks for next to nothing."""
SHIPPED = policy.load(Path("reports/irdiff-policy.toml"))


def _gated(run, rules):
    return gate.evaluate(run, rules, today=policies.TODAY)


@every_run
def test_the_gate_fails_or_counts_it(name):
    outcome = _gated(RUNS[name], LENIENT)
    assert outcome.passed is (name != "everything failing")
    for form in (outputs.text, outputs.markdown, junit):
        assert (outcome.counts.words if outcome.passed else outcome.headline) in form(outcome)
    cases = json.loads(outputs.as_json(outcome))["cases"]
    assert cases["not_compared"] or cases["nondeterministic"] or cases["is_part"]
    assert ('errors="1"' in junit(outcome)) is not outcome.passed


IDLE = ChangedFile(path="k.py", change=FileChange.CHANGED, compiled_by=1, read_by=1, not_run=("rope",))
LINE = EditedSource(path="lib/a.cpp", hunks=((1, 1),), lines=(EditedLine(number=1, text="x();", cases=0),))
COUNTED = EditedLines(cases=1, unmeasured=0, executed_by=0, examples=(), sources=(LINE,), without_lines=())
NOT_LOOKED_AT = {
    "function": build.run(QUIET, reach=Reach(files=(IDLE,), read_by=1)),
    "line": build.run(QUIET, edited_lines=COUNTED),
    "runtime": build.run(QUIET, runtime=(RuntimeEdit(path="triton/runtime/jit.py", diff=()),)),
    "process": build.run(QUIET, unexamined=("bench/run.py:3 starts another Python process",)),
}


@pytest.mark.parametrize("what", NOT_LOOKED_AT)
def test_a_gate_that_passes_says_what_was_not_looked_at(what):
    run = NOT_LOOKED_AT[what]
    outcome, (words,) = _gated(run, LENIENT), edit_coverage.not_looked_at(run)
    assert outcome.passed and conclusion.of(run) is Conclusion.NEUTRAL
    for form in (outputs.text, outputs.markdown, outputs.as_json, junit):
        assert words in form(outcome)


def _with(name, verdict, **changes):
    case = build.case(f"a/{name}:1@sm_90", verdict, **changes)

    def added(run):
        cases = (*run.cases, case)
        return replace(run, cases=cases, summary=radius.summarize(cases, run.targets))

    return added


ENDED = replace(build.FAILURE, stage="capture")
UNREAD = replace(IDLE, read_by=0, not_run=())
UNKNOWN = {
    "broken": _with("b", Verdict.BROKEN),
    "failing": _with("f", Verdict.FAILING),
    "new and failing": _with("n", Verdict.FAILING, launches=NEW.launches, failures=NEW.failures),
    "unsupported": _with("u", Verdict.UNSUPPORTED),
    "removed": _with("r", Verdict.REMOVED),
    "program": _with("p", Verdict.FAILING, workload="program/p", failures=Sides(base=ENDED, head=ENDED)),
    "not compared": _with("c", Verdict.CHANGED, findings=build.findings("not-compared:ttir,asm")),
    "unchanged, unstable": _with("s", Verdict.UNCHANGED, nondeterministic=("head",)),
    "failing, unstable": _with("t", Verdict.FAILING, nondeterministic=("base",)),
    "shard missing": lambda run: replace(run, options=SHARD),
    "runtime": lambda run: replace(run, runtime=(RuntimeEdit(path="triton/runtime/jit.py", diff=()),)),
    "idle function": lambda run: replace(run, reach=Reach(files=(IDLE,), read_by=1)),
    "unread file": lambda run: replace(run, reach=Reach(files=(IDLE, UNREAD), read_by=1)),
    "idle line": lambda run: replace(run, edited_lines=COUNTED),
}


@pytest.mark.parametrize("what", UNKNOWN)
@pytest.mark.parametrize("verdict", [None, Verdict.UNCHANGED, Verdict.IR_ONLY, Verdict.CHANGED])
def test_a_first_line_has_what_is_not_known_whatever_else_it_has(what, verdict):
    start = build.run(*([build.case("a/q:1@sm_90", verdict)] if verdict else []))
    others = [name for name in UNKNOWN if name != what and {name, what} != {"idle function", "unread file"}]
    for chosen in (some for count in range(3) for some in itertools.combinations(others, count)):
        run = functools.reduce(lambda found, name: UNKNOWN[name](found), chosen, start)
        worse = UNKNOWN[what](run)
        assert headline.of(worse) != headline.of(run), chosen
        assert conclusion.of(worse) is not Conclusion.SUCCESS, chosen


def test_a_first_line_has_the_configs_that_were_left_out_and_what_is_known():
    few = build.run(QUIET, options=replace(DEFAULT_OPTIONS, configs=1))
    lines = {headline.of(few), headline.of(build.run(QUIET))}
    for case in (QUIET, FAILING, CASES["stage left out"], build.case(NAME, Verdict.BROKEN)):
        lines.add(shown.news(few, [case], 0, call="NEW", since="OLD").headline(few))
    assert len(lines) == 6


@every_run
def test_the_shipped_policy_fails_and_a_check_run_is_no_success(name):
    run = RUNS[name]
    assert not _gated(run, SHIPPED).passed
    assert conclusion.of(run) is not Conclusion.SUCCESS


def test_a_merge_without_a_shard_is_refused_or_is_no_whole_run():
    run = RUNS["shard missing"]
    with pytest.raises(UsageError):
        merge.merge([run])
    whole = replace(build.run(build.case("a/x:1@gfx942")), base=run.base, head=run.head)
    for runs in ([run], [run, whole]):
        merged = merge.merge(runs, partial=True)
        assert len(merged.notes) == len(run.notes) + 1
        assert not _gated(merged, SHIPPED).passed
        assert conclusion.of(merged) is not Conclusion.SUCCESS


@every_run
def test_an_exit_code_is_not_0_for_what_a_user_would_want_to_know(name):
    run = RUNS[name]
    given = OpenedRun(folder=Path("run"), call="run", is_archive=False)
    if name in ("timed out", "everything failing"):
        with pytest.raises(NothingComparedError):
            compare_command._require_whole(run, given)
        return
    compare_command._require_whole(run, given)
    allowed = name in ("unsupported", "nondeterministic", "shard missing")  # as before, or as asked for
    assert compare_command._code(run) is (ExitCode.DONE if allowed else ExitCode.ANSWER_IS_NO)


@every_run
def test_history_check_does_not_say_that_nothing_moved_alone(name, tmp_path, snapshot):
    run = RUNS[name]
    before = histories.run("3.7.0", "3.8.0", build.case("a/y:1@sm_90"), build.case(NAME))
    newest = histories.run("3.8.0", "3.9.0", *run.cases, groups=run.groups, options=run.options)
    alert = alerts.check(histories.kept(tmp_path / "h", before, newest))
    assert alert.not_compared
    assert alerts.markdown(alert) == snapshot


@pytest.mark.parametrize("verdict", [Verdict.FAILING, Verdict.REMOVED, Verdict.UNSUPPORTED])
def test_an_alert_is_not_undone_by_what_is_not_compared_any_more(verdict, tmp_path):
    series = histories.kept(
        tmp_path / "h",
        histories.run("3.7.0", "3.8.0", build.case(NAME, Verdict.BROKEN)),
        histories.run("3.8.0", "3.9.0", build.case(NAME, verdict)),
    )
    assert not alerts.is_undone(series, alerts.check(series, 1))
