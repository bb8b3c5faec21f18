from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from irdiff.cli.runs_commands import diff_runs_command
from irdiff.errors import ExitCode
from irdiff.model import Run, Verdict
from irdiff.report import run_changes
from irdiff.run import run_folder
from tests.unit import runs


def run_of(groups: dict[str, str], edit: str = "a", registers: int = 32) -> Run:
    """Cases by name with their groups; the edit and the registers are those of the case `x`."""
    cases = [
        runs.case(
            f"a/b:{name}@sm_90",
            Verdict.CHANGED,
            base={"registers": 30},
            head={"registers": registers if name == "x" else 32},
            edit=(edit if name == "x" else "a") * 64,
        )
        for name in groups
    ]
    made = [runs.group(group, f"a/b:{name}@sm_90") for name, group in groups.items()]
    return runs.run(*cases, groups=tuple(made))


@pytest.fixture
def old() -> Run:
    return run_of({"x": "g1", "y": "g2", "w": "g9"})


@pytest.fixture
def new() -> Run:
    return run_of({"x": "g1", "y": "g3", "w": "g9", "z": "g4"}, edit="b", registers=40)


def test_a_run_and_itself(old: Run) -> None:
    found = run_changes.between(old, old)
    assert found.is_empty


def test_new_gone_and_changed_groups(old: Run, new: Run) -> None:
    found = run_changes.between(old, new)
    assert [group.id for group in found.new] == ["g3", "g4"]
    assert [group.id for group in found.gone] == ["g2"]
    assert [(row.new.id, row.edited) for row in found.changed] == [("g1", ("a/b:x@sm_90",))]
    assert found.only_new == ("a/b:z@sm_90",)
    counts = found.counts
    assert (counts.new, counts.gone, counts.changed) == (2, 1, 1)


def test_what_a_comment_keeps_counts_the_same(old: Run, new: Run) -> None:
    counts = run_changes.counts(run_changes.prints(old), run_changes.prints(new))
    assert counts == run_changes.between(old, new).counts
    short = [run_changes.short_prints(run, 12) for run in (old, new)]
    assert run_changes.counts(*short) == counts


def test_facts_are_told_with_their_side(old: Run, new: Run) -> None:
    (row,) = run_changes.between(old, new).cases
    assert str(row) == "a/b:x@sm_90: another edit, head.registers: 32 → 40"


def test_another_toolchain_is_noted(old: Run) -> None:
    other = replace(old, base=replace(old.base, digest="e" * 64))
    (note,) = run_changes.between(old, other).notes
    assert note.startswith("base is another toolchain")


def test_the_command(old: Run, new: Run, tmp_path: Path) -> None:
    for name, run in (("old", old), ("new", new)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_bytes(run_folder.dump(run))
    words = [str(tmp_path / "old"), str(tmp_path / "new")]
    shown = CliRunner().invoke(diff_runs_command, words, standalone_mode=False, catch_exceptions=False)
    assert shown.output.startswith("2 new groups, 1 gone, 1 changed since ")
    assert "new groups: 2" in shown.output
    made = tmp_path / "changes.json"
    words += ["--json", str(made), "--exit-code"]
    asked = CliRunner().invoke(diff_runs_command, words, standalone_mode=False, catch_exceptions=False)
    assert asked.return_value == ExitCode.ANSWER_IS_NO
    assert json.loads(made.read_text())["gone"] == ["g2"]
    same = [str(tmp_path / "old")] * 2 + ["--exit-code"]
    assert CliRunner().invoke(diff_runs_command, same, standalone_mode=False).return_value == ExitCode.DONE
