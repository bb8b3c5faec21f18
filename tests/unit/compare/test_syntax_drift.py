"""Spellings that are the same operation, and neighbours that are not."""

from __future__ import annotations

import pytest

from irdiff.compare.syntax_drift import translated, undone

LOAD = "%1 = amdg.buffer_load %0[%2] : "
STORE = "amdg.buffer_store %1, %0[%2] : "
INTO = "%1 = amdg.buffer_load_to_local %0[%5] into %7 : "
CONVERT = "%1 = ttg.convert_layout %0 {allocation.offset = 0 : i32"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (LOAD + "!tt.ptr<f16> -> tensor<4xf16>", LOAD + "tensor<4xf16>"),
        (STORE + "!tt.ptr<i1> -> tensor<4xi1>", STORE + "tensor<4xi1>"),
        (INTO + "!tt.ptr<f32>[tensor<4xi32>] -> <4xf32>", INTO + "<f32>[tensor<4xi32>] -> <4xf32>"),
        (CONVERT + ", allocation.size = 8 : i32} : T", CONVERT + "} : T"),
        ("%1 = tt.histogram %0 {allocation.size = 8 : i32} : T", "%1 = tt.histogram %0 : T"),
    ],
)
def test_the_newer_spelling_is_the_older_one(new: str, old: str) -> None:
    assert undone(new) == old
    assert undone(old) == old


@pytest.mark.parametrize(
    "line",
    [
        "%1 = tt.bitcast %0 : !tt.ptr<f16> -> !tt.ptr<i16>",
        "%1 = ttg.local_alloc {allocation.offset = 8 : i32}",
        "%1 = amdg.buffer_load %0[%2] : tensor<8xf16>",
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert undone(line) == line


def test_what_llvm_ir_has_no_place_for() -> None:
    lines = [
        "module {",
        "module attribute ttg.shared = 0 : i32",
        "llvm.func @k(%0: i32 {tt.divisibility = 16 : i32}) {",
    ]
    assert translated(lines) == ["llvm.func @k(%0: i32 {}) {"]
    assert translated(["%1 = llvm.load %0 {tt.x = 1}"]) == ["%1 = llvm.load %0 {tt.x = 1}"]
