"""Spellings that are the same operation, and neighbours that are not."""

from __future__ import annotations

import pytest

from irdiff.attribute import syntax_drift
from irdiff.attribute.syntax_drift import undone

CONVERT = "%1 = ttg.convert_layout %0 {allocation.offset = 0 : i32"


def translated(lines: list[str]) -> list[str]:
    return list(syntax_drift.translated(lines))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (CONVERT + ", allocation.size = 8 : i32} : T", CONVERT + "} : T"),
        (
            "%1 = tt.load %0 {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : T",
            "%1 = tt.load %0 evictionPolicy = evict_last : T",
        ),
        (
            "%1 = tt.load %0, %2 {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>,"
            " isVolatile = true} : T",
            "%1 = tt.load %0, %2 cacheModifier = cg evictionPolicy = evict_first {isVolatile = true} : T",
        ),
        (
            "tt.store %0, %1 {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = normal>} : T",
            "tt.store %0, %1 cacheModifier = wt : T",
        ),
        ("rocdl.sched.barrier none", "rocdl.sched.barrier 0"),
        ("rocdl.sched.group.barrier mfma_wmma, 1, 0", "rocdl.sched.group.barrier 8, 1, 0"),
        ("rocdl.sched.group.barrier salu, 3, 0", "rocdl.sched.group.barrier 4, 3, 0"),
        ("%1 = nvg.cluster_id", "%1 = nvgpu.cluster_id"),
        ("nvg.warp_id", "nvgpu.warp_id"),
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
        "rocdl.sched.group.barrier ds_read, 1, 0",
        "%1 = amdg.buffer_load %0[%2] : tensor<8xf16>",
        "%1 = amdg.buffer_load %0[%2] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>}",
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert undone(line) == line


def test_a_cast_of_types_is_the_value_itself() -> None:
    cast = "%1 = builtin.unrealized_conversion_cast %0 : !llvm.ptr<1> to !tt.ptr<bf16>"
    used = ["%0 = llvm.load %7", cast, "%2 = llvm.add %1, %0"]
    assert translated(used) == translated([used[0], "%2 = llvm.add %0, %0"])
    pair = "%1 = builtin.unrealized_conversion_cast %0, %2 : i32, i32 to vector<2xi32>"
    assert len(translated([pair])) == 1


def test_what_llvm_ir_has_no_place_for() -> None:
    lines = [
        "module {",
        "module attribute ttg.shared = 0 : i32",
        "llvm.func @k(%0: i32 {tt.divisibility = 16 : i32}) {",
    ]
    assert translated(lines) == ["llvm.func @k(%0: i32 {}) {"]
    assert translated(["%0 = llvm.load %1 {tt.x = 1}"]) == ["%0 = llvm.load %1 {tt.x = 1}"]


CONSTANT = "%1 = llvm.mlir.constant(0 : i32) : i32"
LOAD_OF = "%{} = rocdl.raw.ptr.buffer.load %0, %0, {} : f32"


def test_constants_stand_where_they_are_used() -> None:
    """3.8 and 3.9 of the same buffer load: the first names a constant, the second has an attribute."""
    old = ["llvm.func @k(%0: i32) {", CONSTANT, LOAD_OF.format(2, "%1"), "llvm.return %2"]
    new = ["llvm.func @k(%0: i32) {", LOAD_OF.format(1, "0"), "llvm.return %1"]
    assert translated(old) == translated(new) == [new[0], LOAD_OF.format(1, "0"), new[2]]


MFMA = "%1 = rocdl.mfma.f32.32x32x8f16 %0, %0, %0, {} : (vector<4xf16>, vector<4xf16>, vector<16xf32>)"


def test_an_immediate_argument_that_became_an_enumeration() -> None:
    assert translated([MFMA.format("0, 0, none")]) == translated([MFMA.format("0, 0, 0")])
    assert translated([MFMA.format("0, 1, none")]) != translated([MFMA.format("0, 0, 0")])
    assert translated([MFMA.format("0, 0, rotate_16_right")]) != translated([MFMA.format("0, 0, 0")])


def test_a_constant_of_type_index_is_the_same_number() -> None:
    use = "llvm.return %1"
    assert translated([CONSTANT.replace("0 : i32)", "0 : index)"), use]) == translated([CONSTANT, use])


@pytest.mark.parametrize(
    "other",
    [
        ["llvm.func @k(%0: i32) {", CONSTANT.replace("(0", "(1"), LOAD_OF.format(2, "%1")],
        ["llvm.func @k(%0: i32) {", CONSTANT, "%2 = rocdl.raw.ptr.buffer.load %1, %0, %1 : f32"],
        ["llvm.func @k(%0: i32) {", "%1 = llvm.mlir.constant(0 : i64) : i64", LOAD_OF.format(2, "%1")],
        ["llvm.func @k(%0: i32) {", "%1 = llvm.mlir.undef : i32", LOAD_OF.format(2, "%1")],
    ],
)
def test_other_constants_and_other_places_stay_different(other: list[str]) -> None:
    assert translated(other) != translated(["llvm.func @k(%0: i32) {", CONSTANT, LOAD_OF.format(2, "%1")])


def test_values_of_two_functions_are_not_mixed_up() -> None:
    first = ["llvm.func @a() {", CONSTANT, "llvm.return %1", "llvm.func @b(%1: i32) {", "llvm.return %1"]
    assert translated(first)[-2:] == ["llvm.func @b(%0: i32) {", "llvm.return %0"]
