"""From the lines that cases ran to what a report says of an edit."""

from __future__ import annotations

from pathlib import Path

from irdiff.attribute import line_counter
from irdiff.attribute.line_counter import CaseLines
from irdiff.model import EditedLine, EditedLines, EditedSource
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
from irdiff.resolve.toolchains.counting import CountingToolchain, NativeEdit
from tests.unit import runs

PATH, BARE = "lib/Fence.cpp", "lib/Bare.cpp"


def case(name: str, ran: list[int]) -> CaseLines:
    return CaseLines(case_id=name, code={PATH: [5, 6]}, ran={PATH: ran})


def test_lines_are_counted_by_case() -> None:
    lines = {PATH: {4: "  // why", 5: "  if (reads)", 6: "    fence();"}, BARE: {4: "//", 8: "//", 9: "//"}}
    edit = NativeEdit(counted=CountedUnits(units=tuple(lines)), lines=lines, without_lines=("Passes.td",))
    places = {"library": Path("libtriton.so"), "tools": Path("bin")}
    counts = CountingToolchain(toolchain=runs.side("head").toolchain, edit=edit, **places)
    rows = [case("b@sm_90", [5]), case("a@sm_90", [5, 6]), case("c@gfx950", [])]
    found = (EditedLine(number=5, text="if (reads)", cases=2), EditedLine(number=6, text="fence();", cases=1))
    assert line_counter.summarize(counts, 4, rows) == EditedLines(
        sources=(
            EditedSource(path=BARE, hunks=((4, 4), (8, 9)), lines=()),
            EditedSource(path=PATH, hunks=((4, 6),), lines=found),
        ),
        cases=3,
        unmeasured=1,
        executed_by=2,
        examples=("a@sm_90", "b@sm_90"),
        without_lines=("Passes.td",),
    )


RECORDED = """\
SF:/source/lib/a.cpp
FN:3,f
FNDA:1,f
FNF:1
DA:3,1
DA:9,0
BRDA:6,0,0,1
LF:7
end_of_record
SF:/source/lib/a.h
FNDA:0,_Z1gIiET_S0_
DA:2,2
DA:7,0
end_of_record
"""
"""What `llvm-cov export -format=lcov` of LLVM 22 writes, recorded from a small library."""


def test_lines_have_how_often_they_ran() -> None:
    """A file that is listed twice is one."""
    found = {"/source/lib/a.cpp": {3: 1, 9: 0}, "/source/lib/a.h": {2: 2, 7: 0}}
    assert line_counter.line_counts(RECORDED) == found
    assert line_counter.line_counts(RECORDED + RECORDED)["/source/lib/a.h"] == {2: 4, 7: 0}
