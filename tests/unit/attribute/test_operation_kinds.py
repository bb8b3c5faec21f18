"""Kinds of operations as 3.9.0 prints them, and the table and sentences that are made of them."""

import pytest

from irdiff.attribute import exercise, kind_table
from irdiff.attribute.exercise import CaseExercise
from irdiff.attribute.operation_kinds import OperationKind, kinds
from irdiff.resolve.tree_edits import EditedCode

SHARED = "!ttg.memdesc<128x64xf16, #shared, #smem>"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("%q = tt.load %p : tensor<64x128x!tt.ptr<bf16>, #b> loc(#l)", ("tt.load", "bf16", False)),
        ("%a = tt.load %p, %m, %o : tensor<64x!tt.ptr<f32>>", ("tt.load", "f32", True)),
        ("tt.store %p, %v, %true : !tt.ptr<f32> loc(#l)", ("tt.store", "f32", False)),
        (
            "%5 = tt.atomic_rmw fadd, acq_rel, gpu, %3, %4, %m : (tensor<8x!tt.ptr<f16>>, tensor<8xf16>, "
            "tensor<8xi1>) -> tensor<8xf16>",
            ("tt.atomic_rmw", "fadd f16", True),
        ),
        (
            "%1 = amdg.buffer_load %p[%o], %m stride = %s {contiguity = 8 : i32} : !tt.ptr<bf16> -> tensor<8xbf16>",
            ("amdg.buffer_load", "bf16", True),
        ),
        (
            "%1 = amdg.buffer_load %p[%o] stride = %s : !tt.ptr<bf16> -> tensor<8xbf16>",
            ("amdg.buffer_load", "bf16", False),
        ),
        (
            "%63 = ttg.async_copy_global_to_local %41, %60 mask %62 other %c : tensor<8x!tt.ptr<i8>> -> <8xi8>",
            ("ttg.async_copy_global_to_local", "i8", True),
        ),
        (
            "%1 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<4x4xf32> * tensor<4x4xf32> -> tensor<4x4xf32>",
            ("tt.dot", "f32 as tf32", False),
        ),
        (
            f"%1 = ttng.warp_group_dot %a, %b, %c {{inputPrecision = 0 : i32}} : {SHARED} * {SHARED} -> tensor<4xf32>",
            ("ttng.warp_group_dot", "f16", False),
        ),
        (
            f"%1 = ttng.warp_group_dot %a, %b, %c {{isAsync = true}} : tensor<4x4xf16, #d> * {SHARED} -> tensor<4xf32>",
            ("ttng.warp_group_dot", "f16 in registers", False),
        ),
        ("%1 = tt.fp_to_fp %0 : tensor<8xf8E5M2> -> tensor<8xf32>", ("tt.fp_to_fp", "f8E5M2 to f32", False)),
        (
            '%1 = "tt.reduce"(%0) <{axis = 0 : i32}> ({\n}) : (tensor<8xi64>) -> i64',
            ("tt.reduce", "i64", False),
        ),
    ],
)
def test_an_operation_its_element_type_and_its_mask(line, expected):
    operation, element, masked = expected
    found = kinds(f"    %true = arith.constant true\n    {line}\n")
    assert OperationKind(operation=operation, element=element, masked=masked) in found


MASKED = OperationKind(operation="tt.atomic_rmw", element="add i32", masked=True)
PLAIN = OperationKind(operation="tt.atomic_rmw", element="fadd f16", masked=False)


def test_the_table_says_which_tier_has_a_kind_or_that_none_has():
    rows = kind_table.table([("gate", {PLAIN}), ("core", {MASKED, PLAIN})], ["tt.print"])
    plain, masked, printing = rows
    assert (plain.operation, plain.gate, plain.later) == ("tt.atomic_rmw", ["fadd f16"], [])
    assert (masked.operation, masked.gate, masked.later) == ("tt.atomic_rmw, masked", [], ["add i32"])
    assert "fadd bf16" in plain.none and "fadd f16" in masked.none
    assert (printing.operation, printing.none) == ("tt.print", [""])


def test_an_edited_source_says_how_many_cases_have_what_it_matches():
    edited = {"lib/Atomics.cpp": EditedCode(passes=[], operations=["AtomicRMWOp", "JoinOp"])}
    became = OperationKind(operation="llvm.atomicrmw", element="f16", masked=False)
    cases = [
        CaseExercise(
            case_id=str(number),
            ran=frozenset(),
            acted=frozenset(),
            entering={"lib/Atomics.cpp": had},
            is_whole=True,
        )
        for number, had in enumerate([{PLAIN}, {became}])
    ]
    assert exercise.sentences(edited, cases) == [
        "lib/Atomics.cpp: AtomicRMWOp: 1 of 2 cases (fadd f16), with a mask: 0 of 2 cases; JoinOp: 0 of 2 cases"
    ]
