"""The gate's answer in every format, the release document, and the command."""

import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.cli.gate_commands import gate_command, release_report_command
from irdiff.errors import UsageError
from irdiff.gate import decision, outputs, policy
from irdiff.gate.outputs import ReleaseRun, junit
from irdiff.model import StageStatus, Verdict
from irdiff.run import run_archive, run_folder
from irdiff.timing import timing_file
from irdiff.timing.results import Unclear
from tests.unit import runs
from tests.unit.gate import policies
from tests.unit.gate.policies import REASON, TODAY
from tests.unit.golden import recorded
from tests.unit.typed import typed

HOSTILE = "a/x<script>\x1b[2J`|@octocat</details>:1@sm_90"
WIDE = {"kind": "verdict", "verdicts": ["changed"], "more_than_percent": 1}
RULES = policies.of(
    {"id": "broken", "kind": "verdict", "verdicts": ["broken"]},
    {"id": "timed", "kind": "cost", "percent": 3, "measured_only": True},
    {"id": "wide", **WIDE, "action": "review"},
    {"id": "warned", **WIDE, "action": "warn"},
    {"id": "held", "kind": "fact", "facts": ["deterministic"]},
)
ACCEPTED = policies.accepted(rule="broken", cases=["a/taken:*"])
RECORDED = Path(__file__).parents[2] / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"
WHO = ("--owner", "jane", "--reason", "looked at every one", "--until", "2999-12-31")


@pytest.fixture
def run():
    """Cases that rest on each kind of evidence, and on none."""
    changed, text = "a/x:2@sm_90", {"ttir": StageStatus.IDENTICAL}
    base, head = (runs.revision(f"3.{n}.0", revision=f"HEAD~{9 - n} 1a2b3c4") for n in (8, 9))
    cases = [
        runs.case(HOSTILE, Verdict.BROKEN),
        runs.case("a/taken:1@sm_90", Verdict.BROKEN),
        runs.case(changed, Verdict.CHANGED),
        runs.case("a/x:3@sm_90", findings=runs.findings("not-compiled:same-input"), stages={}),
        runs.case("a/x:4@sm_90", findings=runs.findings("machine-code-as-text:no-binary"), stages=text),
        runs.case("a/x:5@sm_90", Verdict.ADDED),
        runs.case("a/x:6@sm_90", findings=runs.findings("not-compared:ttir,asm")),
        runs.case("a/x:7@sm_90", stages=text),  # nothing shows that code was compared
    ]
    return runs.run(*cases, groups=(runs.group("ab" * 32, changed),), base=base, head=head)


@pytest.fixture
def outcome(run):
    return gate.evaluate(run, RULES, accepted=ACCEPTED, today=TODAY)


@pytest.mark.parametrize("form", ["txt", "json", "md", "xml"])
def test_each_form_says_what_blocks_and_what_settles_it_and_does_no_harm(form, outcome):
    forms = {"txt": outputs.text, "json": outputs.as_json, "md": outputs.markdown, "xml": junit}
    said = forms[form](outcome)
    recorded(f"gate/hostile.{form}", said)
    assert "\x1b" not in said
    for limit in (50, 900, 3000):
        assert 0 < len(outputs.markdown(outcome, limit)) <= limit


def _part(run, rules=RULES):
    outcome = gate.evaluate(run, rules, accepted=ACCEPTED, today=TODAY) if rules else None
    return ReleaseRun(run=run, folder=Path("nowhere"), timing=None, outcome=outcome)


def test_the_document_has_the_gate_and_the_report_of_each_run(run):
    run = replace(run, notes=("one note",))
    recorded("gate/release.md", outputs.render([_part(run), _part(run)]))


def test_what_a_release_manager_decides_on_comes_first_with_measurements():
    with run_archive.opened(RECORDED) as folder:
        run, timing = run_folder.load(folder), timing_file.load(folder)
    answers = dict(decision.of(run, timing))
    assert (
        answers["slower"]
        == "8 of 18 timed cases, the most `normalization/softmax:bf16-64k-online@sm_90` +9.4 %"
    )
    assert answers["faster"].startswith(
        "10 of 18 timed cases, the most `reduction/scan:cumsum-bf16-reverse-3k@sm_90` -"
    )
    assert answers["outputs"] == "of 86 cases: 80 bitwise equal, 6 different within the workload's tolerance"
    assert answers["not timed"] == "68 changed cases (68 on sm_90)"
    quick = [
        replace(each, measurement=replace(each.measurement, unclear=Unclear.FEW_PROCESSES))
        for each in timing.cases
    ]
    busy = [replace(gpu, trustworthy=False) for gpu in timing.gpus]
    for unfit in (replace(timing, cases=tuple(quick)), replace(timing, gpus=tuple(busy))):
        answers = dict(decision.of(run, unfit))
        assert (answers["slower"], answers["faster"]) == ("nothing was timed", "nothing was timed")
        assert answers["not timed"] == "86 changed cases (86 on sm_90)"
    untimed = dict(decision.of(run, None))
    assert (untimed["slower"], untimed["outputs"]) == ("nothing was timed", "nothing was run")
    assert untimed["not timed"] == "86 changed cases (86 on sm_90)"


def test_nothing_is_called_a_pass_that_was_not_asked():
    quiet = runs.run(runs.case("a/x:1@sm_90"))
    asked, unasked = _part(quiet), _part(quiet, None)
    for parts, words in (
        ([unasked], "no policy was given: nothing here is a pass"),
        ([asked, unasked], "the gate was asked for 1 of 2 runs only"),
        ([asked], "the gate passes for the run"),
        ([asked, asked], "the gate passes for all 2 runs"),
    ):
        assert outputs.verdict(parts) == words


@pytest.fixture
def folder(tmp_path, run):
    return runs.saved(tmp_path / "run", run)


@pytest.fixture
def rules(tmp_path):
    """A policy whose radius rule waits for a review."""
    rule = f'[[rule]]\nid="r"\naction="review"\nreason="{REASON}"\nkind="verdict"\n'
    rule += 'verdicts=["changed"]\nmore_than_percent=1\n'
    (tmp_path / "policy.toml").write_text(f'schema = "{policy.SCHEMA}"\n{rule}')
    return tmp_path / "policy.toml"


_invoke = functools.partial(typed, gate_command)


def test_without_a_policy_the_rules_are_those_of_the_folder_or_of_irdiff(
    tmp_path, folder, rules, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    code, output = _invoke(folder)
    assert code == 1
    assert "there is no irdiff-policy.toml here; the rules are irdiff's own" in output
    assert "gate-kernel-gone" in output
    with pytest.raises(UsageError, match="kept next to your own policy"):
        _invoke(folder, "--accept", "abababab", *WHO)
    rules.rename(tmp_path / "irdiff-policy.toml")
    assert "--policy" not in _invoke(folder)[1]
    assert _invoke(folder, "--accept", "abababab", *WHO)[0] == 0
    assert (tmp_path / "irdiff-accepted.toml").is_file()


def test_accepting_writes_once_and_a_rebase_is_renewed_in_one_command(tmp_path, folder, rules, run):
    names = ("json", "markdown", "junit")
    written = [item for name in names for item in (f"--{name}", tmp_path / f"out.{name}")]
    code, output = _invoke(folder, "--policy", rules)
    assert (code, output.startswith("gate fails")) == (1, True)
    assert f"--policy {rules} --accept g:abab" in output
    assert _invoke(folder, "--policy", rules, "--accept", "abababab", *WHO, *written)[0] == 0
    assert all((tmp_path / f"out.{name}").stat().st_size > 100 for name in names)
    (settled,) = json.loads((tmp_path / "out.json").read_text())["rules"][0]["findings"]
    assert settled["settled_by"]["accepted"][0]["owner"] == "jane"
    assert _invoke(folder, "--policy", rules)[0] == 0
    assert (tmp_path / "irdiff-accepted.toml").read_text().count("[[accepted]]") == 1
    runs.saved(folder, replace(run, base=runs.revision("3.8.1"), head=runs.revision("3.9.1")))
    code, output = _invoke(folder, "--policy", rules)
    assert (code, "--renew takes it again" in output) == (1, True)
    assert _invoke(folder, "--policy", rules, "--renew", "--owner", "joe", "--until", "2999-12-31")[0] == 0
    assert _invoke(folder, "--policy", rules)[0] == 0


def test_accepting_takes_a_name_a_reason_and_an_end_and_no_old_file(tmp_path, folder, rules):
    for words, pattern in (
        ("", "needs --owner, --reason and --until"),
        ("--reason looked-at-every-one --until 2999-12-31", "needs --owner"),
        ("--owner jane --reason fine --until 2999-12-31", "10 to 1000"),
        ("--owner jane --reason looked-at-it --until 2020-01-01", "is past"),
    ):
        with pytest.raises(UsageError, match=pattern):
            _invoke(folder, "--policy", rules, "--accept", "abababab", *words.split())
    old = tmp_path / "irdiff-accepted.toml"
    assert not old.exists()
    old.write_text('schema = "irdiff-accepted/2"\n')
    with pytest.raises(UsageError, match="irdiff-accepted/4") as caught:
        _invoke(folder, "--policy", rules)
    assert "its entries still hold" in caught.value.hint
    assert old.read_text() == 'schema = "irdiff-accepted/2"\n'


def test_a_release_report_ends_with_1_where_the_gate_fails(tmp_path, folder, rules):
    for more, code in (((), 0), (("--policy", rules), 1)):
        assert typed(release_report_command, folder, "--out", tmp_path / "release.md", *more)[0] == code


def test_a_command_that_accepts_first_copies_the_default_policy(outcome):
    shipped = outputs.Again(call="last", policy="", until=None, shipped_policy="/a b/irdiff-policy.toml")
    lines = outputs.text(outcome, shipped).splitlines()
    steps = [line for line in lines if "--accept" in line]
    assert steps
    assert all("cp '/a b/irdiff-policy.toml' . && irdiff gate last --accept" in line for line in steps)


def test_a_target_with_too_few_cases_needs_more_of_it():
    rules = policies.of({"kind": "coverage", "required_targets": ["sm_90"], "min_compared": 20})
    few = gate.evaluate(runs.run(runs.case("a/x:1@sm_90")), rules, today=TODAY)
    assert "next: compare more cases of sm_90, or accept it: irdiff gate" in outputs.text(few)
