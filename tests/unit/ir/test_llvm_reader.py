"""Texts of other LLVMs than the one that reads: what becomes equal, what stays different, and what is read."""

import time

import pytest

from irdiff.ir.canonical import Printed
from irdiff.ir.llir.llvm_reader import reprint
from irdiff.ir.llir.llvm_upgrades import may_be_made_equal
from irdiff.texts import equivalent
from tests.programs.mutation.artifacts import of_stage
from tests.unit.golden import GOLDEN, golden
from tests.unit.runs import told

_BASE, _HEAD = ((GOLDEN / "llvm-reader" / f"{name}.ll").read_text() for name in ("old", "new"))
"""As Triton 3.9 prints it, with the LLVM 24 signature of an intrinsic; and as an older LLVM spells the same."""
_INTRINSICS = golden("llvm-reader/intrinsics")
_NAME = "llvm.amdgcn.raw.ptr.buffer.load.async.lds"


def test_an_intrinsic_of_another_signature_is_read_as_a_function_and_spelling_is_no_difference():
    reading = reprint(_HEAD)
    assert reading.text is not None
    assert reading.opaque == (_NAME,)
    ours, theirs = (
        [line for line in text.split("\n") if "call" in line and _NAME in line]
        for text in (_HEAD, reading.text)
    )
    assert ours == theirs
    assert "irdiff" not in reading.text
    assert not equivalent("llir", _BASE, _HEAD).equal
    found = equivalent("llir", _BASE, _HEAD, reprint=reprint)
    assert found.equal
    assert told(found.findings) == ("equal-as-llvm-prints", f"opaque-intrinsic:{_NAME}")


def test_what_differs_still_differs():
    for old, new in _INTRINSICS["differs"]:
        assert old in _HEAD
        changed = _HEAD.replace(old, new)
        assert reprint(changed).text
        assert not equivalent("llir", _BASE, changed, reprint=reprint).equal


def test_what_is_broken_otherwise_is_not_read():
    for old, new in _INTRINSICS["broken"]:
        assert reprint(_HEAD.replace(old, new)).text is None


def _with(declaration):
    return f"define void @f() {{\n  ret void\n}}\n\n{declaration}\n"


def test_only_an_intrinsic_of_one_side_that_is_out_of_date_is_worth_reading():
    for declaration in _INTRINSICS["current"]:
        assert not may_be_made_equal(_with(""), _with(declaration), reprint), declaration
    for declaration in _INTRINSICS["outdated"]:
        assert may_be_made_equal(_with(""), _with(declaration), reprint), declaration
        assert may_be_made_equal(_with(declaration), _with(_INTRINSICS["current"][0]), reprint), declaration
    for kind in ("[2 x [2 x i32]]", 'target("t", 0)'):  # not printed again
        odd = _with(f"declare {kind} @llvm.x.y(i32)")
        assert may_be_made_equal(_with(""), odd, lambda _: Printed(text=""))
    for artifact in of_stage("llir", release="3.9.0"):
        assert not may_be_made_equal(_with(""), artifact.text, reprint), artifact.name


@pytest.mark.parametrize("part", ["a", " a", " <", " [1 x ", ", i32"])
def test_long_declarations_are_read_in_a_bound(part):
    start = time.process_time()
    for hostile in (f"declare {part * 200_000} @llvm.x()", f"declare i32 @llvm.x(i32{part * 200_000})"):
        may_be_made_equal(_with(""), _with(hostile), lambda text: Printed(text=text))
    assert time.process_time() - start < 5
