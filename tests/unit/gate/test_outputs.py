from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irdiff import gate
from irdiff.cli.gate_commands import gate_command
from irdiff.errors import UsageError
from irdiff.gate import junit, outputs, policy, sarif, timings
from irdiff.gate.outcome import Outcome
from irdiff.model import Run, Verdict
from irdiff.run import run_folder
from irdiff.timing.results import CaseTiming, Measurement, OutputStatus, Speed, Unclear
from tests.unit.gate import policies
from tests.unit.gate.policies import REASON, TODAY
from tests.unit.runs import check, gpu

HOSTILE = "a/x<script>\x1b[2J`|@octocat</details>:1@sm_90"
RULES = policies.of(
    {"id": "broken", "kind": "verdict", "verdicts": ["broken"]},
    {"id": "timed", "kind": "slower", "percent": 3},
    {"id": "wide", "kind": "radius", "percent": 1, "action": "review"},
    {"id": "warned", "kind": "radius", "percent": 1, "action": "warn"},
    {"id": "held", "kind": "nondeterministic"},
    waivers=[policies.waiver(rule="broken", cases=["a/waived:*"])],
)


@pytest.fixture
def run(build: Any) -> Run:
    changed = "a/x:2@sm_90"
    made: Run = build.run(
        build.case(HOSTILE, Verdict.BROKEN),
        build.case("a/waived:1@sm_90", Verdict.BROKEN),
        build.case(changed, Verdict.CHANGED),
        groups=(build.group("ab" * 32, changed),),
    )
    return made


@pytest.fixture
def outcome(run: Run) -> Outcome:
    return gate.evaluate(run, RULES, today=TODAY)


def test_text_says_pass_or_fail_first(outcome: Outcome) -> None:
    lines = outputs.text(outcome).splitlines()
    assert lines[0] == "gate fails: 3 of 5 rules do not hold: broken (1), timed (1, 1 unknown), wide (1)"
    assert "deny     broken: 2 findings in 3 cases, 1 settled" in lines
    assert "pass     held: holds for 3 cases" in lines
    assert any("waived by jane until 2026-01-02" in line for line in lines)
    assert any("--accept g:abab --until" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_a_pass_says_so(run: Run) -> None:
    passed = gate.evaluate(run, policies.of({"kind": "nondeterministic"}), today=TODAY)
    assert outputs.text(passed).startswith("gate passes: 1 rules hold\n")


def test_json_holds_everything(outcome: Outcome) -> None:
    rows = json.loads(outputs.as_json(outcome))
    assert rows["passed"] is False
    assert [rule["result"] for rule in rows["rules"]] == ["deny", "deny", "review", "warn", "pass"]
    assert outputs.as_json(outcome) == outputs.as_json(outcome)


def test_markdown_is_harmless_and_bounded(outcome: Outcome) -> None:
    content = outputs.markdown(outcome)
    assert content.startswith("### gate fails")
    assert "<script>" not in content
    assert content.count("<details") == content.count("</details>") == 4
    assert "\x1b" not in content
    for limit in (50, 900, 3000):
        assert len(outputs.markdown(outcome, limit)) <= limit


def test_junit_is_xml_with_counts(outcome: Outcome) -> None:
    root = ET.fromstring(junit.junit(outcome))
    counts = {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "2", "errors": "1", "skipped": "1"}
    assert root.find("testsuite[@name='broken']/testcase/failure") is not None
    wide = root.find("testsuite[@name='wide']/testcase/failure")
    assert wide is not None and str(wide.get("message")).endswith(" [g:abab]")


def test_junit_stays_small(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(junit, "MAX_CASES", 0)
    root = ET.fromstring(junit.junit(outcome))
    failure = root.find("testsuite[@name='broken']/testcase/failure")
    assert failure is not None
    assert failure.get("message") == "2 more findings"


def test_sarif(outcome: Outcome, run: Run) -> None:
    rows = json.loads(sarif.sarif(outcome, run))
    results = rows["runs"][0]["results"]
    assert {result["ruleId"] for result in results} == {"broken", "timed", "wide", "warned"}
    assert all("\x1b" not in result["message"]["text"] for result in results)
    uris = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results}
    assert "corpus/a/x.py" in uris
    assert "irdiff-policy.toml" in uris
    assert len({result["partialFingerprints"]["irdiff/v1"] for result in results}) == len(results)
    assert sum("suppressions" in result for result in results) == 1
    (wide,) = (result for result in results if result["ruleId"] == "wide")
    assert wide["message"]["text"].startswith("sm_90 [g:abab]: ")


@pytest.mark.parametrize("source", ["/etc/passwd", "../x.py", "C:\\x.py", "https://evil.example/x.py", ""])
def test_sarif_points_into_the_repository_only(source: str) -> None:
    location = sarif._location(source, "corpus")
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "irdiff-policy.toml"


def test_sarif_stays_within_github_limits(
    outcome: Outcome, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sarif, "MAX_RESULTS", 2)
    rows = json.loads(sarif.sarif(outcome, run))["runs"][0]
    assert [result["level"] for result in rows["results"]] == ["error", "error"]
    text = rows["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    assert text.endswith("; 3 findings left out")


# the command


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    (path / "run.json").write_bytes(run_folder.dump(run))
    return path


def _policy_file(tmp_path: Path, *kinds: str) -> Path:
    path = tmp_path / "policy.toml"
    rules = "".join(
        f'[[rule]]\nid="r-{n}"\naction="review"\nreason="{REASON}"\n{k}\n' for n, k in enumerate(kinds)
    )
    path.write_text(f'schema = "{policy.SCHEMA}"\n{rules}')
    return path


def _invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(gate_command, [str(a) for a in arguments], standalone_mode=False)
    if result.exception:
        raise result.exception
    return int(result.return_value), result.output


def test_the_command_answers_with_its_exit_code(tmp_path: Path, folder: Path) -> None:
    wide, narrow = 'kind="radius"\npercent=100', 'kind="radius"\npercent=1'
    assert _invoke(folder, "--policy", _policy_file(tmp_path, wide))[0] == 0
    code, output = _invoke(folder, "--policy", _policy_file(tmp_path, narrow))
    assert code == 1
    assert output.startswith("gate fails")


def test_without_a_policy_the_rules_are_those_of_the_folder_or_of_irdiff(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, output = _invoke(folder)
    assert code == 1 and "the rules are irdiff's own" in output and "review   risky-edits: " in output
    who = ("--owner", "jane", "--until", "2999-12-31", "--reason", "looked at every one")
    with pytest.raises(UsageError, match="kept next to your own policy"):
        _invoke(folder, "--accept", "abababab", *who)
    _policy_file(tmp_path, 'kind="radius"\npercent=1').rename(tmp_path / "irdiff-policy.toml")
    assert _invoke(folder, "--accept", "abababab", *who)[0] == 0
    assert (tmp_path / "irdiff-accepted.toml").is_file()


def test_the_command_accepts_and_writes(tmp_path: Path, folder: Path) -> None:
    rules = _policy_file(tmp_path, 'kind="radius"\npercent=1')
    names = ("json", "markdown", "junit", "sarif")
    written = [item for name in names for item in (f"--{name}", tmp_path / f"out.{name}")]
    words = ("--owner", "jane", "--reason", "looked at every one", "--until", "2999-12-31")
    accept = ("--accept", "abababab", *words)
    assert _invoke(folder, "--policy", rules, *accept, *written)[0] == 0
    assert all((tmp_path / f"out.{name}").stat().st_size > 100 for name in names)
    assert _invoke(folder, "--policy", rules)[0] == 0
    assert (tmp_path / "irdiff-accepted.toml").read_text().count("[[accepted]]") == 1


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ((), "needs --owner, --reason and --until"),
        (("--owner", "jane", "--reason", "looked at every one"), "needs --owner, --reason and --until"),
        (("--reason", "looked at every one", "--until", "2999-12-31"), "needs --owner"),
        (("--owner", "jane", "--until", "2999-12-31"), "needs --owner"),
        (("--owner", "jane", "--reason", "fine", "--until", "2999-12-31"), "10 to 1000"),
        (("--owner", "jane", "--reason", "looked at it", "--until", "2020-01-01"), "is past"),
    ],
)
def test_accepting_takes_a_name_a_reason_and_an_end(
    tmp_path: Path, folder: Path, words: tuple[str, ...], pattern: str
) -> None:
    rules = _policy_file(tmp_path, 'kind="radius"\npercent=1')
    with pytest.raises(UsageError, match=pattern):
        _invoke(folder, "--policy", rules, "--accept", "abababab", *words)
    assert not (tmp_path / "irdiff-accepted.toml").exists()


def test_a_rebase_is_renewed_in_one_command(tmp_path: Path, folder: Path, run: Run, build: Any) -> None:
    rules = _policy_file(tmp_path, 'kind="radius"\npercent=1')
    who = ("--owner", "jane", "--until", "2999-12-31")
    accept = ("--accept", "abababab", *who, "--reason", "looked at every one")
    assert _invoke(folder, "--policy", rules, *accept)[0] == 0
    rebased = replace(run, base=build.revision("3.8.1"), head=build.revision("3.9.1"))
    (folder / "run.json").write_bytes(run_folder.dump(rebased))
    code, output = _invoke(folder, "--policy", rules)
    assert code == 1
    assert "--renew takes it again" in output
    assert _invoke(folder, "--policy", rules, "--renew", *who)[0] == 0
    assert _invoke(folder, "--policy", rules)[0] == 0


def test_the_sides_are_named_as_in_every_report(run: Run) -> None:
    sides = [replace(run.head, revision=f"HEAD~{n} 1a2b3c4") for n in (1, 0)]
    outcome = gate.evaluate(replace(run, base=sides[0], head=sides[1]), RULES, today=TODAY)
    version = run.head.version
    told = f"HEAD~1 1a2b3c4, triton {version} → HEAD~0 1a2b3c4, triton {version}"
    assert told in outputs.text(outcome)


def test_an_old_acceptance_file_is_a_clear_error(tmp_path: Path, folder: Path) -> None:
    rules = _policy_file(tmp_path, 'kind="radius"\npercent=1')
    old = tmp_path / "irdiff-accepted.toml"
    old.write_text('schema = "irdiff-accepted/1"\n')
    with pytest.raises(UsageError, match="it is not honoured"):
        _invoke(folder, "--policy", rules)
    assert old.read_text() == 'schema = "irdiff-accepted/1"\n'


# timings as they are on disk


def _row(status: OutputStatus, side: str | None = None, message: str = "") -> CaseTiming:
    return CaseTiming(
        case="a/x:1@sm_90",
        gpu="GPU-1",
        outputs=check(status, side, message),
        measurement=None,
        processes=(),
        note="",
    )


@pytest.mark.parametrize(
    ("status", "side", "same"),
    [
        (OutputStatus.EQUAL, None, True),
        (OutputStatus.CLOSE, None, True),
        (OutputStatus.DIFFERENT, None, False),
        (OutputStatus.FAULT, "head", False),
        (OutputStatus.FAULT, None, False),
        (OutputStatus.FAULT, "base", None),
        (OutputStatus.HANG, "control", None),
        (OutputStatus.NOT_LAUNCHED, "head", None),
        (OutputStatus.NOT_CHECKED, None, None),
    ],
)
def test_outputs_as_the_gate_sees_them(status: OutputStatus, side: str | None, same: bool | None) -> None:
    assert timings._same_result(_row(status, side).outputs) is same


def test_a_gpu_that_nothing_is_known_of_measures_nothing() -> None:
    assert timings._unfit(_row(OutputStatus.EQUAL), None)


def _measured(**changes: Any) -> CaseTiming:
    fields: dict[str, Any] = dict.fromkeys(Measurement.__dataclass_fields__)
    ratios = {
        "ratio": 1.05,
        "ratio_low": 1.04,
        "ratio_high": 1.06,
        "noise_floor": 0.002,
        "speed": Speed.SLOWER,
        "unclear": None,
        "why": "",
    }
    return replace(_row(OutputStatus.EQUAL), measurement=Measurement(**{**fields, **ratios, **changes}))


def test_a_measurement_as_the_gate_sees_it() -> None:
    timed = timings._timed(_measured(), gpu())
    assert (timed.slower_percent, timed.low_percent) == (pytest.approx(5.0), pytest.approx(4.0))
    assert (timed.noise_percent, timed.device) == (pytest.approx(0.2), "card")
    assert (timed.speed, timed.enough, timed.faulted) == (Speed.SLOWER, True, False)


@pytest.mark.parametrize(
    ("unclear", "enough"),
    [
        (Unclear.FEW_PROCESSES, False),
        (Unclear.CONTROL, False),
        (Unclear.TWO_HUMPS, False),
        (Unclear.MANY_CASES, True),
        (Unclear.WIDE, True),
        (Unclear.THRESHOLD, True),
    ],
)
def test_an_unclear_measurement_as_the_gate_sees_it(unclear: Unclear, enough: bool) -> None:
    timed = timings._timed(_measured(speed=Speed.UNCLEAR, unclear=unclear, why="because"), gpu())
    assert (timed.speed, timed.enough, timed.note) == (Speed.UNCLEAR, enough, "because")


def test_a_fault_as_the_gate_sees_it() -> None:
    row = _row(OutputStatus.HANG, "head", "while timing: gone")
    for card in (gpu(), gpu(trustworthy=False, throttled=("thermal",))):
        timed = timings._timed(row, card)
        assert (timed.faulted, timed.note) == (True, "hang at head: while timing: gone")
        assert (timed.speed, timed.low_percent, timed.same_result) == (None, None, False)


@pytest.mark.parametrize(
    ("row", "card"),
    [
        ({}, {"trustworthy": False, "throttled": ("thermal",)}),
        ({"ratio": float("nan")}, {}),
        ({"ratio_low": float("-inf")}, {}),
        ({"ratio_low": 0.0}, {}),
        ({"ratio_low": 1.055}, {}),
        ({"noise_floor": float("inf")}, {}),
    ],
)
def test_figures_that_cannot_be_relied_on_are_none(row: dict[str, Any], card: dict[str, Any]) -> None:
    timed = timings._timed(_measured(**row), gpu(**card))
    assert timed.low_percent is None
    assert timed.note
