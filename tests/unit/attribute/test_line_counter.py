"""From the lines that cases ran to what a report says of an edit."""

from __future__ import annotations

from pathlib import Path

from irdiff.attribute import line_counter
from irdiff.attribute.line_counter import CaseLines
from irdiff.model import EditedLine, EditedLines, EditedSource
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
from irdiff.resolve.toolchains.counting import CountingToolchain, NativeEdit
from tests.unit.conftest import Build

PATH = "lib/Fence.cpp"


def counting(build: type[Build], lines: dict[str, dict[int, str]], *without: str) -> CountingToolchain:
    edit = NativeEdit(counted=CountedUnits(units=tuple(lines)), lines=lines, without_lines=without)
    return CountingToolchain(
        toolchain=build.side("head").toolchain, library=Path("libtriton.so"), tools=Path("bin"), edit=edit
    )


def case(name: str, code: list[int], ran: list[int]) -> CaseLines:
    return CaseLines(case_id=name, code={PATH: code}, ran={PATH: ran})


def test_lines_are_counted_by_case(build) -> None:
    counts = counting(build, {PATH: {4: "  // why", 5: "  if (reads)", 6: "    fence();"}}, "Passes.td")
    rows = [case("b@sm_90", [5, 6], [5]), case("a@sm_90", [5, 6], [5, 6]), case("c@gfx950", [5, 6], [])]
    assert line_counter.summarize(counts, 4, rows) == EditedLines(
        sources=(
            EditedSource(
                path=PATH,
                hunks=((4, 6),),
                lines=(
                    EditedLine(number=5, text="if (reads)", cases=2),
                    EditedLine(number=6, text="fence();", cases=1),
                ),
            ),
        ),
        cases=3,
        unmeasured=1,
        executed_by=2,
        examples=("a@sm_90", "b@sm_90"),
        without_lines=("Passes.td",),
    )


def test_a_file_without_code_is_still_named(build) -> None:
    counts = counting(build, {PATH: {4: "// why", 8: "//", 9: "//"}})
    found = line_counter.summarize(counts, 1, [case("a@sm_90", [], [])])
    assert found.sources == (EditedSource(path=PATH, hunks=((4, 4), (8, 9)), lines=()),)
    assert found.executed_by == 0


RECORDED = """\
SF:/source/lib/a.cpp
FN:3,f
FNDA:1,f
FNF:1
FNH:1
DA:3,1
DA:5,1
DA:9,0
BRDA:6,0,0,1
LF:7
LH:5
end_of_record
SF:/source/lib/a.h
FNDA:0,_Z1gIiET_S0_
DA:2,2
DA:7,0
end_of_record
"""
"""What `llvm-cov export -format=lcov` of LLVM 22 writes, recorded from a small library."""


def test_lines_have_how_often_they_ran() -> None:
    found = line_counter.line_counts(RECORDED)
    assert found == {"/source/lib/a.cpp": {3: 1, 5: 1, 9: 0}, "/source/lib/a.h": {2: 2, 7: 0}}


def test_a_file_that_is_listed_twice_is_one() -> None:
    assert line_counter.line_counts(RECORDED + RECORDED)["/source/lib/a.h"] == {2: 4, 7: 0}
