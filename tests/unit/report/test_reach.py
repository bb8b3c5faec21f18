from __future__ import annotations

from dataclasses import replace
from typing import Any

from irdiff.model import ChangedFile, FileChange, Reach, Run
from irdiff.report import reach


def told(build: Any, *files: ChangedFile) -> str:
    run: Run = build.run(build.case("run/rope:1@sm_90"))
    return reach.sentence(replace(run, reach=Reach(files=files, read_by=3)))


def a_file(path: str, *, compiled_by: int = 0) -> ChangedFile:
    return ChangedFile(path=path, change=FileChange.CHANGED, compiled_by=compiled_by, read_by=3, not_run=())


def test_a_file_of_which_nothing_is_compiled_is_told(build: Any) -> None:
    assert told(build, a_file("src/rope.py"), a_file("src/norm.py", compiled_by=1)) == (
        "changed files: 2; 2 are read by 3 cases; of src/rope.py no launch compiles a function"
    )


def test_a_workload_calls_kernels_and_need_not_hold_one(build: Any) -> None:
    assert told(build, a_file("bench/run/rope.py")) == "changed files: 1; 1 is read by 3 cases"
    assert "no launch compiles" in told(build, a_file("bench/run/other.py"))
