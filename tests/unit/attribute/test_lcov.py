"""Line counts as `llvm-cov export -format=lcov` of LLVM 22 writes them, recorded from a small library."""

from __future__ import annotations

import pytest

from irdiff.attribute import lcov

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


def test_lines_have_how_often_they_ran() -> None:
    found = lcov.counts(RECORDED.split("\n"))
    assert found == {"/source/lib/a.cpp": {3: 1, 5: 1, 9: 0}, "/source/lib/a.h": {2: 2, 7: 0}}


def test_a_file_that_is_there_twice_is_one() -> None:
    found = lcov.counts((RECORDED + RECORDED).split("\n"))
    assert found["/source/lib/a.h"] == {2: 4, 7: 0}


def test_what_is_no_such_text_is_refused() -> None:
    with pytest.raises(ValueError, match="no line count"):
        lcov.counts(["DA:3,1"])
    with pytest.raises(ValueError, match="no line count"):
        lcov.counts(["SF:a", "DA:x,1"])
    assert lcov.counts([]) == {}
