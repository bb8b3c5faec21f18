"""How often lines ran, as llvm-cov exports it."""

from __future__ import annotations

from irdiff.attribute import line_counter
from tests.unit.golden import GOLDEN

PATH, BARE = "lib/Fence.cpp", "lib/Bare.cpp"


def test_lines_have_how_often_they_ran() -> None:
    """A file that is listed twice is one."""
    found = {"/source/lib/a.cpp": {3: 1, 9: 0}, "/source/lib/a.h": {2: 2, 7: 0}}
    recorded = (GOLDEN / "locations/llvm-cov.lcov").read_text()  # by LLVM 22, of a small library
    assert line_counter.line_counts(recorded) == found
    assert line_counter.line_counts(recorded + recorded)["/source/lib/a.h"] == {2: 4, 7: 0}
