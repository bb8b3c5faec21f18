"""Where lines of IR come from, and CHECK lines for FileCheck."""

from irdiff.coverage import line_counter
from irdiff.explain import lit_text
from irdiff.explain.kernel_lines import Locations
from tests.unit.golden import GOLDEN


def located(name):
    return Locations((GOLDEN / "locations" / name).read_text())


def test_lines_of_mlir_are_those_of_the_kernel_and_its_helpers_first():
    locations = located("nested.mlir")
    assert (locations.of_line(4), locations.of_line(5)) == ((("k.py", 5),), (("lib.py", 9), ("k.py", 5)))
    assert locations.of_line(2) == locations.of_line(99) == ()
    assert Locations("#loc1 = loc(#loc1)\nx loc(#loc1)").of_line(2) == ()
    helper, kernel = ("helper.py", 7), ("kernel.py", 20)
    found = [located("called.mlir").of_line(number) for number in range(1, 5)]
    assert found == [(helper, kernel), (helper, ("mid.py", 5), kernel), (kernel,), (kernel,)]


def test_llvm_says_the_same_by_its_scopes():
    assert located("scopes.ll").of_line(1) == (("helper.py", 7), ("ops/kernel.py", 20))
    assert located("scopes.ll").of_line(2) == (), "a scope that is not there"


def test_locations_that_double_end_soon():
    rows = [f"#loc{n} = loc(callsite(#loc{n + 1} at #loc{n + 1}))" for n in range(1, 60)]
    raw = "\n".join(["x loc(#loc1)", *rows, '#loc60 = loc("k.py":1:1)'])
    assert len(Locations(raw).of_line(1)) <= 12


def test_brackets_that_filecheck_would_read_are_escaped():
    assert lit_text.pattern("a [[1, 2], [3]] b") == r"a {{\[\[}}1, 2], [3]] b"


def test_lines_have_how_often_they_ran():
    """A file that is listed twice is one."""
    found = {"/source/lib/a.cpp": {3: 1, 9: 0}, "/source/lib/a.h": {2: 2, 7: 0}}
    recorded = (GOLDEN / "locations/llvm-cov.lcov").read_text()  # by LLVM 22, of a small library
    assert line_counter.line_counts(recorded) == found
    assert line_counter.line_counts(recorded + recorded)["/source/lib/a.h"] == {2: 4, 7: 0}
