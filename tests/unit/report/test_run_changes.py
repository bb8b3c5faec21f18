from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from irdiff.cli.runs_commands import diff_runs_command
from irdiff.errors import ExitCode
from irdiff.model import Case, Run, Sides, Verdict
from irdiff.report import run_changes
from irdiff.run import run_folder


def case_of(build: Any, name: str, edit: str = "a", group: str | None = "g1", registers: int = 32) -> Case:
    facts = Sides(base={"registers": 30}, head={"registers": registers})
    case: Case = build.case(f"a/b:{name}@sm_90", Verdict.CHANGED, edit=edit * 64, group=group)
    return replace(case, facts=facts)


def run_of(build: Any, *cases: Case) -> Run:
    names = sorted({case.group for case in cases if case.group})
    groups = [build.group(name, *(case.id for case in cases if case.group == name)) for name in names]
    run: Run = build.run(*cases, groups=tuple(groups))
    return run


@pytest.fixture
def old(build: Any) -> Run:
    return run_of(
        build, case_of(build, "x"), case_of(build, "y", group="g2"), case_of(build, "w", group="g9")
    )


@pytest.fixture
def new(build: Any) -> Run:
    return run_of(
        build,
        case_of(build, "x", edit="b", registers=40),
        case_of(build, "y", group="g3"),
        case_of(build, "w", group="g9"),
        case_of(build, "z", group="g4"),
    )


def test_a_run_and_itself(old: Run) -> None:
    found = run_changes.between(old, old)
    assert found.is_empty
    assert found.counts.sentence("5d6e7f8") == "the same groups as at 5d6e7f8"


def test_new_gone_and_changed_groups(old: Run, new: Run) -> None:
    found = run_changes.between(old, new)
    assert [group.id for group in found.new] == ["g3", "g4"]
    assert [group.id for group in found.gone] == ["g2"]
    assert [(row.new.id, row.edited) for row in found.changed] == [("g1", ("a/b:x@sm_90",))]
    assert found.only_new == ("a/b:z@sm_90",)
    assert found.counts.sentence("5d6e7f8") == "2 new groups, 1 gone, 1 changed since 5d6e7f8"


def test_what_a_comment_keeps_counts_the_same(old: Run, new: Run) -> None:
    counts = run_changes.counts(run_changes.prints(old), run_changes.prints(new))
    assert counts == run_changes.between(old, new).counts
    short = [run_changes.short_prints(run, 12) for run in (old, new)]
    assert run_changes.counts(*short) == counts


def test_facts_are_told_with_their_side(old: Run, new: Run) -> None:
    (row,) = run_changes.between(old, new).cases
    assert str(row) == "a/b:x@sm_90: another edit, head.registers: 32 → 40"


@pytest.mark.parametrize(
    ("counts", "words"),
    [((1, 0, 0), "1 new group since X"), ((0, 1, 2), "1 group gone, 2 changed since X")],
)
def test_the_sentence(counts: tuple[int, int, int], words: str) -> None:
    found = run_changes.GroupCounts(new=counts[0], gone=counts[1], changed=counts[2])
    assert found.sentence("X") == words


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
