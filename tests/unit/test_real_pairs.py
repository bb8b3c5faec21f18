"""`python -m tests.programs.real_pairs`: what it says of a run can be read off the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.run import run_folder
from tests.programs import real_pairs
from tests.unit.findings import findings
from tests.unit.runs import three_cases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return three_cases(tmp_path, findings=findings("launch-differs:shared"))


def show(folder: Path, *words: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["real_pairs", str(folder), *words])
        real_pairs.main()
    return capsys.readouterr().out.splitlines()


def test_the_table_counts_each_stage_of_the_compared_cases(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = show(folder, capsys=capsys)
    rows = {words[0]: words[1:] for words in map(str.split, lines[1:]) if words}
    cases = [case for case in run_folder.load(folder).cases if case.stages]
    names = rows["stage"]
    for stage in ("ttir", "ttgir", "llir"):
        counts = [sum(case.stages.get(stage) == name for case in cases) for name in names[:-1]]
        assert rows[stage] == [*map(str, counts), str(sum(counts))]
    assert "2 changed" in lines[0]
    assert "1 launch-differs" in lines[-1]


def test_a_sentence_names_the_edit_and_is_drawn_by_its_seed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = show(folder, "--explain", "5", "--seed", "3", capsys=capsys)
    assert "2 of 2 changed cases, drawn with seed 3:" in lines
    said = next(line for line in lines if line.startswith("- matmul/workload_00:fp16-256@sm_90"))
    assert "first changed in ttgir" in said
    assert "1 lines removed, 2 added, first `-" in said
    assert show(folder, "--explain", "1", "--seed", "3", capsys=capsys) != show(
        folder, "--explain", "0", "--seed", "3", capsys=capsys
    )
