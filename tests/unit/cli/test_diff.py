from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.console import Console

from irdiff.cli.diff_command import diff_command
from irdiff.cli.report_command import report_command
from irdiff.cli.run_argument import find_case
from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.model import Run, Sides, Verdict
from irdiff.report import group_names
from tests.unit.report.folders import three_cases
from tests.unit.report.runs import large_run, make_case, make_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return three_cases(tmp_path)


def call(folder: Path, *words: str) -> str:
    found = CliRunner().invoke(
        diff_command, [str(folder), *words], standalone_mode=False, catch_exceptions=False
    )
    return found.output


def test_shows_the_first_changed_stage(folder: Path) -> None:
    text = call(folder, "matmul fp16-256@")
    assert "matmul/workload_00:fp16-256@sm_90  ttgir" in text
    assert "+ ttng.fence_async_shared {bCluster = false}" in text
    assert "#blocked.1 = #ttg.blocked" in text
    assert "1 line removed, 2 added" in text
    assert "\x1b" not in text


def test_raw_lines_and_two_sides(folder: Path) -> None:
    assert "arith.mulf %c, %c" in call(folder, "matmul fp16-256@", "--raw")
    assert "│" in call(folder, "matmul fp16-256@", "--side-by-side")


def test_a_stage_that_the_run_does_not_hold(folder: Path) -> None:
    with pytest.raises(RunFolderError, match="holds no ptx text"):
        call(folder, "matmul fp16-256@", "--stage", "ptx")


def test_a_case_without_a_change_names_its_verdict(folder: Path) -> None:
    with pytest.raises(UsageError, match="is broken"):
        call(folder, "normalization")


def test_machine_code_needs_both_binaries(folder: Path) -> None:
    with pytest.raises(IrdiffError, match="holds no cubin of base"):
        call(folder, "matmul fp16-256@", "--stage", "sass")


def test_the_same_up_to_registers_is_said_beside_the_diff(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = Path(__file__).parents[2] / "golden" / "registers" / "sass" / "scalars"
    base = (golden / "base.sass").read_text()
    for name, wanted in (("same-moved", True), ("differ-use", False)):
        texts = Sides(base=base, head=(golden / f"{name}.sass").read_text())
        monkeypatch.setattr("irdiff.cli.diff_command.disassembled", lambda *_, texts=texts: texts)
        text = call(folder, "matmul fp16-256@", "--stage", "sass")
        assert ("the same instructions up to register assignment" in text) == wanted
        assert "in other registers" in text


def a_run() -> Run:
    return large_run(60, 6)


def test_a_part_of_an_id_must_be_of_one_case() -> None:
    run = a_run()
    with pytest.raises(UsageError, match=r"'matmul' means \d+ cases:\n    matmul/"):
        find_case(run, "matmul")
    with pytest.raises(UsageError, match="means no case of the run"):
        find_case(run, "nothing")
    assert find_case(run, run.cases[3].id) is run.cases[3]


def test_a_whole_id_wins_over_ids_that_contain_it() -> None:
    case = make_case(0, Verdict.CHANGED)
    run = make_run((case, replace(case, id=case.id + "0")))
    assert find_case(run, case.id).id == case.id


def test_a_group_stands_for_its_smallest_example() -> None:
    run = a_run()
    assert find_case(run, run.groups[2].id).id == run.groups[2].representative


def test_report_writes_every_format(folder: Path, tmp_path: Path) -> None:
    words = [str(folder)]
    for kind in ("markdown", "html", "svg", "json"):
        words += [f"--{kind}", str(tmp_path / f"out.{kind}")]
    CliRunner().invoke(report_command, words, standalone_mode=False, catch_exceptions=False)
    assert (
        (tmp_path / "out.markdown")
        .read_text("utf-8")
        .startswith("### irdiff: 1 of 3 kernels no longer compiles")
    )
    assert (tmp_path / "out.html").read_text("utf-8").startswith("<!doctype html>")
    assert (tmp_path / "out.json").read_bytes() == (folder / "run.json").read_bytes()
    plain = CliRunner().invoke(report_command, [str(folder)], standalone_mode=False, catch_exceptions=False)
    assert plain.output.startswith("1 of 3 kernels no longer compiles")


def test_a_terminal_that_is_too_low_gets_a_pager_and_a_file_everything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paged: list[str] = []
    monkeypatch.setattr(click, "echo_via_pager", lambda text, color: paged.append("".join(text)))
    whole = call(folder, "matmul fp16-256@")
    assert not paged
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setattr(Console, "height", 5)
    assert call(folder, "matmul fp16-256@") == ""
    assert "1 line removed, 2 added" in paged[0]
    assert "1 line removed" in call(folder, "matmul fp16-256@", "--no-pager")
    monkeypatch.setattr(Console, "height", 200)
    assert "1 line removed" in call(folder, "matmul fp16-256@")
    assert len(paged) == 1
    assert "\x1b" not in whole


def test_a_group_is_named_by_its_number_or_its_short_id() -> None:
    run = a_run()
    for row in group_names.named(run):
        for text in (str(row.number), row.short, row.group.id):
            assert find_case(run, text).id == row.group.representative
    for text in ("7", "0", "g:ffff", "g:"):
        with pytest.raises(UsageError, match="no change group"):
            find_case(run, text)


def test_a_misspelt_case_is_answered_with_those_that_come_near() -> None:
    run = a_run()
    with pytest.raises(UsageError) as raised:
        find_case(run, run.cases[0].id.replace("sm_90", "sm90").replace("attention", "atention"))
    assert run.cases[0].id in raised.value.hint
