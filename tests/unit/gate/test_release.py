from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irdiff import gate
from irdiff.cli.gate_commands import release_report_command
from irdiff.gate import policy, release
from irdiff.gate.release import ReleaseRun
from irdiff.model import Run, Verdict
from irdiff.run import run_folder
from tests.unit.gate import policies
from tests.unit.gate.policies import TODAY

RULES = policies.of(
    {"id": "broken", "kind": "verdict", "verdicts": ["broken"]},
    {"id": "spills", "kind": "fact", "facts": ["spill_store_bytes"]},
    {"id": "slow", "kind": "slower", "percent": 3, "action": "warn"},
    waivers=[policies.waiver(rule="broken", cases=["a/waived:*"])],
)


@pytest.fixture
def run(build: Any) -> Run:
    changed = "a/x:2@sm_90"
    made: Run = build.run(
        build.case("a/<b>@octocat:1@sm_90", Verdict.BROKEN, error="head: <script>"),
        build.case("a/waived:1@sm_90", Verdict.BROKEN),
        build.case(changed, Verdict.CHANGED, base={"spill_store_bytes": 0}, head={"spill_store_bytes": 8}),
        build.case("a/x:3@gfx942", Verdict.FAILING),
        groups=(build.group("ab" * 32, changed),),
        notes=("one note",),
    )
    return made


def _part(run: Run, rules: policy.Policy | None = RULES) -> ReleaseRun:
    outcome = gate.evaluate(run, rules, today=TODAY) if rules else None
    return ReleaseRun(run=run, timing=None, outcome=outcome)


def _section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_everything_has_its_place(run: Run) -> None:
    text = release.render([_part(run), _part(run)])
    assert text.startswith("# Release report: 3.8.0 → 3.9.0\n\n**the gate fails for 2 of 2 runs**\n")
    assert re.search(r"run 1: sm\\_90 .1; run 2: sm\\_90 .1;", _section(text, "What changed, and for whom"))
    regressions = _section(text, "Regressions")
    assert "broken: `a/<b>@octocat:1@sm_90`: head: &lt;script&gt;" in regressions
    assert r"spill\_store\_bytes 0 → 8" in regressions
    assert "waived by jane until 2026-01-02" in _section(text, "Waived and accepted")
    unchecked = _section(text, "What could not be checked")
    assert "`gfx942`: 1 case failing on both sides" in unchecked
    assert "one note" in unchecked
    assert "1 changed case not timed" in unchecked
    assert "slow: could not be decided 1 times" in unchecked
    assert "run 2: not timed" in _section(text, "Timings")


def test_the_same_parts_give_the_same_bytes(run: Run) -> None:
    assert release.render([_part(run)]) == release.render([_part(run)])


@pytest.mark.parametrize(
    ("policies", "expected"),
    [
        ([None], "no policy was given: nothing here is a pass"),
        ([True, None], "the gate was asked for 1 of 2 runs only"),
        ([True], "the gate passes for the run"),
        ([True, True], "the gate passes for all 2 runs"),
    ],
)
def test_nothing_is_called_a_pass_that_was_not_asked(
    build: Any, policies: list[bool | None], expected: str
) -> None:
    quiet = build.run(build.case("a/x:1@sm_90"))
    assert release.verdict([_part(quiet, RULES if asked else None) for asked in policies]) == expected


def test_the_command_reads_runs_and_writes_the_document(tmp_path: Path, run: Run) -> None:
    (tmp_path / "run.json").write_bytes(run_folder.dump(run))
    out = tmp_path / "release.md"
    arguments = [str(tmp_path), str(tmp_path / "run.json"), "--out", str(out)]
    result = CliRunner().invoke(release_report_command, arguments, standalone_mode=False)
    assert result.exception is None
    assert "no policy was given" in out.read_text()
