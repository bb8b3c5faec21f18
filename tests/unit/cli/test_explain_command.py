"""What `irdiff explain` shows of a case from its run folder alone, where the pass is not looked for."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from irdiff import config as configuration
from irdiff.cli.explain_command import CaseStory
from irdiff.cli.run_argument import OpenedRun
from irdiff.diffs import disassembly
from irdiff.model import Component, Sides, StageStatus, Verdict
from irdiff.run import run_folder
from tests.unit import runs
from tests.unit.runs import stored


@pytest.fixture
def run(tmp_path):
    folder = tmp_path / "run"
    base, head = ({"ttgir": stored(folder, "ttgir", text)} for text in (runs.TTGIR, runs.TTGIR_AT_HEAD))
    changed = runs.numbered(0, Verdict.CHANGED, artifacts=Sides(base=base, head=head))
    return run_folder.load(runs.saved(folder, runs.run(changed, runs.numbered(8, Verdict.BROKEN))))


def story(run, case, folder):
    out = io.StringIO()
    console = Console(file=out, width=160)
    opened = OpenedRun(folder=folder / "run", call="last", is_archive=False)
    opened.__dict__["run"] = run
    story = CaseStory(console=console, opened=opened, case=case, context=1)
    story.show(None, None, configuration.load(cache=folder / "cache"), Sides(base=folder, head=folder))
    return out.getvalue()


def test_a_changed_case_has_its_edit_and_commands_for_files_that_are_there(run, tmp_path, snapshot):
    case = next(case for case in run.cases if case.artifacts.head.keys() == {"ttgir"})
    entering = {"ttir": stored(tmp_path / "run", "ttir", "module {}")}
    of_base = replace(case, artifacts=Sides(base=entering, head={}))
    of_both = replace(case, artifacts=case.artifacts.map(lambda side: {**side, **entering}))
    told = [story(run, shown, tmp_path) for shown in (case, of_base, of_both)]
    assert "\n".join(told).replace(str(tmp_path), "FOLDER") == snapshot


def test_equal_ptx_with_other_machine_code_is_said_to_come_from_ptxas(run, tmp_path):
    changed, same = StageStatus.CHANGED, StageStatus.EQUIVALENT
    case = replace(
        run.cases[0],
        origin=runs.origin("llir", None, Component.LLVM_CODEGEN, Component.PTXAS),
        stages={"llir": changed, "ptx": same, "sass": changed},
    )
    words = "the PTX of both sides is the same, but ptxas makes other machine code from it"
    assert words in story(run, case, tmp_path)
    assert words not in story(run, replace(case, stages={**case.stages, "ptx": changed}), tmp_path)


def test_machine_code_that_cannot_be_disassembled_says_why(run, tmp_path):
    case = replace(run.cases[0], origin=runs.origin("sass"), stages={"sass": StageStatus.CHANGED})
    assert "what differs in sass is not shown: the run folder holds no machine code" in story(
        run, case, tmp_path
    )


def test_machine_code_with_other_control_bits_says_so_where_its_lines_would_stand(run, tmp_path, monkeypatch):
    case = replace(run.cases[0], origin=runs.origin("sass"), stages={"sass": StageStatus.CHANGED})
    text = "\t.text.k\n/*0000*/ EXIT ;\n"
    monkeypatch.setattr(disassembly, "disassembled", lambda *_: Sides(base=text, head=text))
    monkeypatch.setattr(disassembly, "has_same_instructions", lambda *_: True)
    told = story(run, case, tmp_path)
    assert f"what differs in sass\n{disassembly.CONTROL_BITS}" in told
    assert told.count(disassembly.CONTROL_BITS) == 1
