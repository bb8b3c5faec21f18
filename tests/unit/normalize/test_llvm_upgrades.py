"""Which texts are worth reading: those where one side alone has an intrinsic that is out of date."""

from __future__ import annotations

import time

import pytest

from irdiff.normalize import Printed
from irdiff.normalize.llvm_reader import reprint
from irdiff.normalize.llvm_upgrades import may_be_made_equal
from tests.programs.mutation.artifacts import of_stage

_CURRENT = (
    "declare noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1",
    "declare !dbg !4 float @llvm.exp2.f32(float) #0",
    "declare <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) readonly captures(none), i32, i32, i32 immarg) #4",
    "declare { i32, i32 } @llvm.amdgcn.permlane32.swap(i32, i32, i1 immarg, i1 immarg)",
    "declare void @llvm.of.a.later.llvm(i32, ptr)",
)
_OUTDATED = (
    "declare i32 @llvm.ctlz.i32(i32)",
    "declare float @llvm.nvvm.ex2.approx.f(float)",
    "declare void @llvm.nvvm.barrier0()",
    "declare i16 @llvm.nvvm.fma.rn.bf16(i16, i16, i16)",
)
"""Another arity, another name, nothing at all, other types."""


def _with(declaration: str) -> str:
    return f"define void @f() {{\n  ret void\n}}\n\n{declaration}\n"


@pytest.mark.parametrize("declaration", _CURRENT)
def test_current_intrinsics_stay_what_they_are(declaration: str) -> None:
    assert not may_be_made_equal(_with(""), _with(declaration), reprint)


@pytest.mark.parametrize("declaration", _OUTDATED)
def test_outdated_ones_may_become_what_the_other_side_has(declaration: str) -> None:
    assert may_be_made_equal(_with(""), _with(declaration), reprint)
    assert may_be_made_equal(_with(declaration), _with(_CURRENT[0]), reprint)


def test_what_cannot_be_told_is_read() -> None:
    undeclared = "define void @f() {\n  call void @llvm.nvvm.barrier0()\n  ret void\n}\n"
    unreadable = _with("declare %struct @llvm.of.another()")
    for text in (undeclared, unreadable):
        assert may_be_made_equal(_with(""), text, reprint)


def test_the_same_intrinsics_need_no_reading() -> None:
    def refuse(text: str) -> Printed:
        raise AssertionError(text)

    assert not may_be_made_equal(_with(_OUTDATED[0]), _with(_OUTDATED[0] + "\n"), refuse)


@pytest.mark.parametrize("part", ["a", " a", " <", " [1 x ", ", i32"])
def test_long_declarations_are_read_in_a_bound(part: str) -> None:
    def echo(text: str) -> Printed:
        return Printed(text=text)

    start = time.process_time()
    for hostile in (f"declare {part * 200_000} @llvm.x()", f"declare i32 @llvm.x(i32{part * 200_000})"):
        may_be_made_equal(_with(""), _with(hostile), echo)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("kind", ["[2 x [2 x i32]]", 'target("t", 0)'])
def test_a_declaration_that_is_not_understood_may_matter(kind: str) -> None:
    def drop(text: str) -> Printed:
        return Printed(text="")

    assert may_be_made_equal(_with(""), _with(f"declare {kind} @llvm.x.y(i32)"), drop)


def test_no_intrinsic_of_the_newest_release_is_out_of_date() -> None:
    for artifact in of_stage("llir", release="3.9.0"):
        assert not may_be_made_equal(_with(""), artifact.text, reprint), artifact.name
