"""What `irdiff explain` tells of a case from its run folder alone, where the pass is not looked for."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from rich.console import Console

from irdiff import config as configuration
from irdiff.cli.explain_command import CaseStory
from irdiff.diffs import stage_diff
from irdiff.model import Case, Run, Sides, Verdict
from irdiff.run import run_folder
from tests.unit.report.folders import three_cases
from tests.unit.report.runs import with_artifacts
from tests.unit.report.test_html_page import store


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return run_folder.load(three_cases(tmp_path / "run"))


def told(run: Run, case: Case, folder: Path) -> str:
    out = io.StringIO()
    story = CaseStory(
        console=Console(file=out, width=160),
        run=run,
        case=case,
        folder=folder / "run",
        call="last",
        context=1,
    )
    config = configuration.load(cache=folder / "cache")
    story.tell(None, None, config, Sides(base=folder, head=folder))
    return out.getvalue()


def test_a_changed_case_is_told_with_its_edit_and_how_to_make_each_side_again(
    run: Run, tmp_path: Path
) -> None:
    case = next(case for case in run.cases if case.artifacts.head.keys() == {"ttgir"})
    rows = [{**side, "ttir": store(tmp_path / "run", "ttir", "module {}")} for side in case.artifacts]
    case = with_artifacts(case, *rows)
    text = told(run, case, tmp_path)
    assert text.startswith(f"{case.id}: changed\n")
    assert "stages:  " in text
    assert "edit in ttgir" in text
    assert "+ ttng.fence_async_shared {bCluster = false}" in text
    assert f"irdiff explain last {case.id} --save DIR" in text
    assert text.count("triton.compile(") == 2


def test_commands_on_files_that_are_not_there_are_not_told(run: Run, tmp_path: Path) -> None:
    case = next(case for case in run.cases if case.artifacts.head.keys() == {"ttgir"})
    text = told(run, case, tmp_path)
    assert "--save" not in text
    assert "triton.compile(" not in text
    entering = {"ttir": store(tmp_path / "run", "ttir", "module {}")}
    text = told(run, with_artifacts(case, entering, {}), tmp_path)
    assert text.count("triton.compile(") == 1
    assert "--exec base" in text


def test_a_case_without_texts_says_so_and_why_it_broke(run: Run, tmp_path: Path) -> None:
    broken = next(case for case in run.cases if case.verdict is Verdict.BROKEN)
    text = told(run, broken, tmp_path)
    assert broken.error is not None
    assert broken.error in text
    assert "no text of " in text


def test_of_a_workload_that_does_not_run_it_says_what_to_do_about_a_recorded_one(
    run: Run, tmp_path: Path
) -> None:
    broken = next(case for case in run.cases if case.verdict is Verdict.BROKEN)
    assert broken.failures.head is not None
    failure = replace(broken.failures.head, stage="capture")
    broken = replace(broken, failures=replace(broken.failures, head=failure))
    kernels = replace(run, head=replace(run.head, revision="HEAD 1a2b3c4"))
    assert "record it again with irdiff capture" in told(kernels, broken, tmp_path)
    assert "record it again" not in told(run, broken, tmp_path)


def test_a_damaged_text_is_told_without_a_place(run: Run, tmp_path: Path) -> None:
    case = next(case for case in run.cases if case.artifacts.head.keys() == {"ttgir"})
    digest = case.artifacts.head["ttgir"].digest
    (tmp_path / "run" / "artifacts" / digest[:2] / digest[2:]).write_bytes(zstandard.compress(b"other"))
    told = stage_diff.read(tmp_path / "run", case, "ttgir")
    assert told == f"artifact {digest} of the run does not have the content of its name"
