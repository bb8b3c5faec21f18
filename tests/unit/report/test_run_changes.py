"""What is new, gone or changed between two runs, as the command and a comment say it."""

import json
from dataclasses import replace

import pytest

from irdiff.cli.runs_commands import diff_runs_command
from irdiff.errors import ExitCode
from irdiff.model import Verdict
from irdiff.report import run_changes
from tests.unit import runs
from tests.unit.typed import typed


def run_of(groups, edit="a", registers=32):
    """Cases by name with their groups; the edit and the registers are those of the case `x`."""
    cases = []
    for name in groups:
        letter, count = (edit, registers) if name == "x" else ("a", 32)
        facts = {"base": {"registers": 30}, "head": {"registers": count}}
        cases.append(runs.case(f"a/b:{name}@sm_90", Verdict.CHANGED, edit=letter * 64, **facts))
    made = [runs.group(group, f"a/b:{name}@sm_90") for name, group in groups.items()]
    return runs.run(*cases, groups=tuple(made))


OLD = run_of({"x": "g1", "y": "g2", "w": "g9"})
NEW = run_of({"x": "g1", "y": "g3", "w": "g9", "z": "g4"}, edit="b", registers=40)


def test_what_a_comment_keeps_counts_the_same():
    short = [run_changes.short_prints(run, 12) for run in (OLD, NEW)]
    counts = run_changes.counts(*short)
    assert counts == run_changes.between(OLD, NEW).counts


OTHER = replace(NEW, base=replace(NEW.base, digest="e" * 64))


@pytest.mark.parametrize(("new", "ends"), [(OTHER, ExitCode.ANSWER_IS_NO), (OLD, ExitCode.DONE)])
def test_the_command(new, ends, tmp_path, snapshot):
    old, made = runs.saved(tmp_path / "old", OLD), tmp_path / "changes.json"
    words = (old, runs.saved(tmp_path / "new", new), "--json", made, "--exit-code")
    code, shown = typed(diff_runs_command, *words)
    assert code == ends
    assert shown.replace(str(tmp_path), "FOLDER") == snapshot
    assert json.loads(made.read_text())["gone"] == (["g2"] if new is OTHER else [])
