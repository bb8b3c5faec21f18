"""Spellings that are the same operation, and neighbours that are not."""

from __future__ import annotations

import pytest

from irdiff.attribute.syntax_drift import translated, undone

CONVERT = "%1 = ttg.convert_layout %0 {allocation.offset = 0 : i32"


def policy(modifier: str, eviction: str, more: str = "") -> str:
    words = f"cache_modifier = {modifier}, eviction_policy = {eviction}"
    return f"{{cachePolicy = #tt.cache_policy<{words}>{more}}}"


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (CONVERT + ", allocation.size = 8 : i32} : T", CONVERT + "} : T"),
        (f"%1 = tt.load %0 {policy('none', 'evict_last')} : T", "%1 = tt.load %0 evictionPolicy = evict_last : T"),
        (f"%1 = tt.load %0, %2 {policy('cg', 'evict_first', ', isVolatile = true')} : T",
         "%1 = tt.load %0, %2 cacheModifier = cg evictionPolicy = evict_first {isVolatile = true} : T"),
        (f"tt.store %0, %1 {policy('wt', 'normal')} : T", "tt.store %0, %1 cacheModifier = wt : T"),
        ("rocdl.sched.barrier none", "rocdl.sched.barrier 0"),
        ("rocdl.sched.group.barrier mfma_wmma, 1, 0", "rocdl.sched.group.barrier 8, 1, 0"),
        ("rocdl.sched.group.barrier salu, 3, 0", "rocdl.sched.group.barrier 4, 3, 0"),
        ("%1 = nvg.cluster_id", "%1 = nvgpu.cluster_id"),
        ("%1 = tt.histogram %0 {allocation.size = 8 : i32} : T", "%1 = tt.histogram %0 : T"),
    ],
)  # fmt: skip
def test_the_newer_spelling_is_the_older_one(new: str, old: str) -> None:
    assert undone(new) == undone(old) == old


@pytest.mark.parametrize(
    "line",
    [
        "%1 = tt.bitcast %0 : !tt.ptr<f16> -> !tt.ptr<i16>",
        "%1 = ttg.local_alloc {allocation.offset = 8 : i32}",
        "rocdl.sched.group.barrier ds_read, 1, 0",
        "%1 = amdg.buffer_load %0[%2] : tensor<8xf16>",
        f"%1 = amdg.buffer_load %0[%2] {policy('none', 'evict_last')}",
    ],
)
def test_everything_else_stays(line: str) -> None:
    assert undone(line) == line


FUNCTION = "llvm.func @k(%0: i32) {"
CONSTANT = "%1 = llvm.mlir.constant(0 : i32) : i32"
LOAD_OF = "%{} = rocdl.raw.ptr.buffer.load %0, %0, {} : f32"
CAST = "%1 = builtin.unrealized_conversion_cast %0 : !llvm.ptr<1> to !tt.ptr<bf16>"
MFMA = "%1 = rocdl.mfma.f32.32x32x8f16 %0, %0, %0, {} : (vector<4xf16>, vector<4xf16>, vector<16xf32>)"
OLD_LOAD = [FUNCTION, CONSTANT, LOAD_OF.format(2, "%1")]
USE = "llvm.return %1"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # 3.8 and 3.9 of the same buffer load: the first names a constant, the second has an attribute
        ([*OLD_LOAD, "llvm.return %2"], [FUNCTION, LOAD_OF.format(1, "0"), USE], True),
        (OLD_LOAD, [FUNCTION, CONSTANT.replace("(0", "(1"), OLD_LOAD[2]], False),
        (OLD_LOAD, [FUNCTION, CONSTANT, "%2 = rocdl.raw.ptr.buffer.load %1, %0, %1 : f32"], False),
        (OLD_LOAD, [FUNCTION, "%1 = llvm.mlir.constant(0 : i64) : i64", OLD_LOAD[2]], False),
        (OLD_LOAD, [FUNCTION, "%1 = llvm.mlir.undef : i32", OLD_LOAD[2]], False),
        ([CONSTANT, USE], [CONSTANT.replace("0 : i32)", "0 : index)"), USE], True),
        # an immediate argument that became an enumeration
        ([MFMA.format("0, 0, none")], [MFMA.format("0, 0, 0")], True),
        ([MFMA.format("0, 1, none")], [MFMA.format("0, 0, 0")], False),
        ([MFMA.format("0, 0, rotate_16_right")], [MFMA.format("0, 0, 0")], False),
        # a cast of types is the value itself
        (["%0 = llvm.load %7", CAST, "%2 = llvm.add %1, %0"], ["%0 = llvm.load %7", "%2 = llvm.add %0, %0"], True),
    ],
)  # fmt: skip
def test_what_is_the_same_in_llvms_dialects(one: list[str], other: list[str], same: bool) -> None:
    assert (list(translated(one)) == list(translated(other))) is same


def test_what_stays_of_llvms_dialects() -> None:
    pair = ["%1 = builtin.unrealized_conversion_cast %0, %2 : i32, i32 to vector<2xi32>"]
    assert len(list(translated(pair))) == 1
    kernel = "llvm.func @k(%0: i32 {tt.divisibility = 16 : i32}) {"
    module = ["module {", "module attribute ttg.shared = 0 : i32", kernel]
    assert list(translated(module)) == ["llvm.func @k(%0: i32 {}) {"], "LLVM IR has no place for the others"
    assert list(translated(["%0 = llvm.load %1 {tt.x = 1}"])) == ["%0 = llvm.load %1 {tt.x = 1}"]
    two = ["llvm.func @a() {", CONSTANT, USE, "llvm.func @b(%1: i32) {", USE]
    assert list(translated(two))[-2:] == ["llvm.func @b(%0: i32) {", "llvm.return %0"]
