"""From the lines that cases ran to what a report says of an edit."""

from __future__ import annotations

from irdiff.attribute import line_counter

PATH, BARE = "lib/Fence.cpp", "lib/Bare.cpp"


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
