"""The command that compares a case again compares what the run compared, or there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irdiff.model import Verdict
from irdiff.report import commands
from tests.unit.conftest import Build

OLD, NEW = "triton==3.8.0", "triton==3.9.0"


@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        ((OLD, ""), (NEW, ""), f"{OLD} {NEW}"),
        ((NEW, "HEAD~3 1a2b3c4"), (NEW, "5d6e7f8"), f"1a2b3c4 5d6e7f8 --triton {NEW}"),
        ((OLD, "HEAD~3 1a2b3c4"), (NEW, "HEAD 5d6e7f8"), "1a2b3c4 5d6e7f8"),
        ((OLD, "HEAD 1a2b3c4"), (NEW, "HEAD 1a2b3c4"), f"{OLD} 1a2b3c4 --triton {NEW}"),
        ((NEW, "me/kernels@main 1a2b3c4"), (NEW, "5d6e7f8"), f"me/kernels@main 5d6e7f8 --triton {NEW}"),
        # both compilers take the kernels of the working tree, then as now
        ((OLD, "working tree 1a2b3c4"), (NEW, "working tree 1a2b3c4"), f"{OLD} {NEW}"),
        ((NEW, "main 1a2b3c4"), (NEW, "working tree 5d6e7f8"), None),
    ],
)
def test_it_names_the_kernels_of_each_side(base, head, wanted: str | None) -> None:
    case = Build.case("matmul/tma:fp16@sm_90")
    sides = [replace(Build.revision(), spec=spec, revision=revision) for spec, revision in (base, head)]
    run = replace(Build.run(case), base=sides[0], head=sides[1])
    told = commands.again(run, case)
    assert told == (wanted and f"irdiff compare {wanted} --case {case.id} --target sm_90")


@pytest.mark.parametrize(
    ("verdict", "words"),
    [(Verdict.CHANGED, ["explain", "diff"]), (Verdict.BROKEN, ["explain"]), (Verdict.ADDED, ["explain"])],
)
def test_a_diff_is_offered_where_both_sides_gave_code(verdict: Verdict, words: list[str]) -> None:
    case = Build.case("matmul/tma:fp16@sm_90", verdict)
    assert commands.story("last", "g:b140", case) == [f"irdiff {word} last g:b140" for word in words]
