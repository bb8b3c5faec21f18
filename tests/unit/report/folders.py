"""Run folders for tests of what reads them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irdiff.findings import Finding
from irdiff.model import Verdict
from irdiff.run import run_folder
from tests.unit.report.runs import make_case, make_run, with_artifacts
from tests.unit.report.test_html_page import store
from tests.unit.report.test_stage_diff import BASE, HEAD


def three_cases(folder: Path, findings: tuple[Finding, ...] = ()) -> Path:
    """Two changed cases, of which the first has the texts of `test_stage_diff` and the findings; a broken one."""
    changed, other, broken = (
        make_case(0, Verdict.CHANGED),
        make_case(4, Verdict.CHANGED),
        make_case(8, Verdict.BROKEN),
    )
    sides = [{"ttgir": store(folder, "ttgir", text)} for text in (BASE, HEAD)]
    changed = replace(with_artifacts(changed, *sides), findings=(*changed.findings, *findings))
    (folder / "run.json").write_bytes(run_folder.dump(make_run((changed, other, broken))))
    return folder
