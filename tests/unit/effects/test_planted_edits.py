"""Edits that break kernels, planted in real texts: none is code motion, each is named by its class and a sentence.

A row replaces the first matches of a pattern in the canonical text of an artifact of 3.9.0; 0: all.
"""

import re
from collections import Counter

import pytest

from irdiff import effects
from irdiff.model import Bits, EffectClass
from tests.programs.effect_rewrites import texts

SYNC, MEMORY, FLOAT = EffectClass.SYNCHRONIZATION, EffectClass.MEMORY, EffectClass.FLOAT
CONTROL = EffectClass.CONTROL
Planted = tuple[EffectClass, str, str, str, str, int, str]
# fmt: off
PLANTED = [
    (MEMORY, "neighbouring loads share one predicate", "ptx softmax sm_90", r"@%p1 (ld\.global)", r"@%p0 \1", 1,
     "global load has the predicate of another access"),
    (MEMORY, "one iteration too far", "ptx matmul sm_90", r"setp\.lt\.s32 (%p4)", r"setp.le.s32 \1", 1,
     "`cp.async.cg.shared.global` has another operand: `setp.lt.s32` → `setp.le.s32` (2×)"),
    (MEMORY, "icmp slt becomes sle", "llir softmax sm_90", r"icmp slt", r"icmp sle", 0,
     "global load has another predicate: `icmp slt` → `icmp sle` (8×)"),
    (MEMORY, "stores lose their predicate", "ptx softmax sm_90", r"@%p\d+ (st\.global)", r"\1", 4,
     "the predicate of a global store is gone (4×)"),
    (MEMORY, "a store's predicate is true", "llir softmax sm_90", r"(@\$2 st\.global.*i1 )%\d+\)", r"\1true)", 1,
     "the predicate of a global store is gone"),
    (SYNC, "a barrier behind the wgmma it guards", "ptx matmul sm_90", r"(bar\.sync 0;\n)((?:.*\n)*?)(wgmma\.fence.*\n(?:.*\n)*?wgmma\.mma_async.*\n)", r"\2\3\1", 1,
     "`bar.sync` now stands behind the `wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16` that followed"),
    (MEMORY, "a buffer lies where another does", "ptx attention sm_90", r"(add\.s32 %r\d+, %r33, )8192;", r"\g<1>0;", 1,
     "`cp.async.cg.shared.global` uses another address: constant 8192 → 0, so two places in shared memory overlap"),
    (MEMORY, "a buffer's limit is smaller", "amdgcn softmax gfx942", r"0x7ffffffe", r"0x7fffffd0", 0,
     "global load uses another address: constant 2147483646 → 2147483600 (4×)"),
    (MEMORY, "the select of a mask is gone", "amdgcn softmax gfx942", r"v_cndmask_b32_e32 (v\d+), v\d+, (v\d+), vcc", r"v_mov_b32_e32 \1, \2", 1,
     "global load uses another address: a select is gone"),
    (FLOAT, "conversions round to zero", "ptx matmul sm_90", r"cvt\.rn\.f16x2", r"cvt.rz.f16x2", 0,
     "floating-point operation differs: `cvt.rn.f16x2.f32` → `cvt.rz.f16x2.f32` (16×)"),
    (FLOAT, "another precision of a dot", "ptx attention sm_90", r"m64n32k16\.f32\.f16\.f16", r"m64n32k16.f16.f16.f16", 0,
     "`wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16` → `wgmma.mma_async.sync.aligned.m64n32k16.f16.f16.f16` (4×)"),
    (MEMORY, "a mask one further", "ptx vector_add sm_90", r"setp\.lt\.s32 (%p0,)", r"setp.le.s32 \1", 1,
     "global load has another predicate: `setp.lt.s32` → `setp.le.s32` (2×)"),
    (MEMORY, "another offset", "ptx softmax sm_90", r"(st\.global\.b32 \[ %rd8 \+ )4", r"\g<1>8", 1,
     "global store uses another address: constant 4 → 8"),
    (MEMORY, "a load is gone", "ptx softmax sm_90", r"^ld\.shared\.b32 (%r\d+), .*$", r"mov.b32 \1, 0;", 1,
     "shared load is gone"),
    (MEMORY, "another stride", "ptx attention sm_90", r"mad\.wide\.s32 (%rd5, %r7), 2", r"mad.wide.s32 \1, 4", 1,
     "global load uses another address: constant 2 → 4 (3×)"),
    (MEMORY, "a store is gone", "llir vector_add sm_90", r"^.*@\$2 st\.global.*$", r"", 1,
     "global store is gone"),
    (MEMORY, "another offset in LLVM IR", "llir attention sm_90", r"(getelementptr inbounds nuw i8, ptr addrspace\(3\) %\d+, i32 )4096", r"\g<1>2048", 1,
     "shared store uses another address: constant 4096 → 2048, so two places in shared memory overlap"),
    (CONTROL, "a mask of LLVM IR for AMD", "llir vector_add gfx942", r"icmp slt", r"icmp sle", 1,
     "branch or loop ends by another condition: `icmp slt` → `icmp sle` (3×)"),
    (MEMORY, "another offset of a store to LDS", "amdgcn attention gfx942", r"(ds_write_b16 \S+ \S+ offset:)8320", r"\g<1>8322", 1,
     "shared store uses another address: constant 8320 → 8322"),
    (MEMORY, "a narrower store", "amdgcn matmul gfx942", r"global_store_short ", r"global_store_byte ", 1,
     "global store differs: `global_store_short` → `global_store_byte`"),
    (MEMORY, "another cache policy", "amdgcn vector_add gfx942", r"(global_store_dword\S* .*)$", r"\1 nt", 1,
     "global store differs: `global_store_dword` → `global_store_dword nt`"),
    (SYNC, "a barrier is gone", "ptx softmax sm_90", r"^bar\.sync 0;\n", r"", 1,
     "`bar.sync` between a shared store and a shared load is gone"),
    (SYNC, "another count of a wait", "ptx matmul sm_90", r"cp\.async\.wait_group 1", r"cp.async.wait_group 2", 1,
     "`cp.async.wait_group` has another operand: constant 1 → 2"),
    (SYNC, "wgmma waits for less", "ptx attention sm_90", r"wgmma\.wait_group\.sync\.aligned 0", r"wgmma.wait_group.sync.aligned 1", 1,
     "`wgmma.wait_group.sync.aligned` has another operand: constant 0 → 1"),
    (SYNC, "a fence is gone", "ptx matmul sm_90", r"^fence\.proxy.*\n", r"", 1,
     "`fence.proxy.async.shared::cta` between a shared store and a `wgmma.mma_async` is gone"),
    (SYNC, "another number of bytes", "ptx warp_specialized sm_90", r"(expect_tx.*), 8192", r"\1, 4096", 1,
     "`mbarrier.arrive.expect_tx.shared::cta.b64` has another operand: constant 8192 → 4096"),
    (SYNC, "a narrower scope", "ptx atomics sm_90", r"atom\.global\.gpu\.acq_rel", r"atom.global.cta.acq_rel", 1,
     "global atomic operation differs: `atom.global.gpu.acq_rel.exch.b32` → `atom.global.cta.acq_rel.exch.b32`"),
    (SYNC, "a barrier of LLVM IR is gone", "llir softmax sm_90", r"^.*barrier\.cta\.sync.*\n", r"", 1,
     "`nvvm.barrier.cta.sync.aligned.all` between a shared store and a shared load is gone"),
    (SYNC, "a barrier of LLVM IR for AMD is gone", "llir attention gfx942", r"^.*@llvm\.amdgcn\.s\.barrier\(\).*\n", r"", 1,
     "`amdgcn.s.barrier` between a shared store and a shared load is gone"),
    (SYNC, "s_barrier is gone", "amdgcn attention gfx942", r"^s_barrier\n", r"", 1,
     "`s_barrier` between a shared store and a shared load is gone"),
    (SYNC, "s_waitcnt is gone", "amdgcn attention gfx942", r"^s_waitcnt vmcnt\(0\)\n", r"", 1,
     "`v_xad_u32` comes too early: 1 register not loaded yet (3×)"),
    (SYNC, "s_waitcnt waits for less", "amdgcn attention gfx942", r"^s_waitcnt lgkmcnt\(0\)\n(v_mfma)", r"s_waitcnt lgkmcnt(9)\n\1", 1,
     "`ds_read_u16` comes too early: 1 register not loaded yet (4×)"),
    (SYNC, "too few wait states", "amdgcn attention gfx942", r"^s_nop 10\n", r"", 1,
     "`s_nop 10` is gone: fewer wait states before what reads a result"),
    (FLOAT, "another rounding", "ptx special_functions sm_90", r"fma\.rn\.f32", r"fma.rz.f32", 1,
     "floating-point operation differs: `fma.rn.f32` → `fma.rz.f32`"),
    (FLOAT, "a sum for a product", "ptx attention sm_90", r"mul\.f32 (%r129)", r"add.f32 \1", 1,
     "floating-point operation differs: `mul.f32` → `add.f32`"),
    (FLOAT, "operands of a difference change places", "ptx attention sm_90", r"sub\.f32 (%r189), (%r\d+), (%r\d+)", r"sub.f32 \1, \3, \2", 1,
     "floating-point operation differs: `sub.f32` has other operands"),
    (FLOAT, "another approximation", "ptx attention sm_90", r"ex2\.approx\.ftz\.f32", r"ex2.approx.f32", 1,
     "floating-point operation differs: `ex2.approx.ftz.f32` → `ex2.approx.f32`"),
    (FLOAT, "another shape", "ptx matmul sm_90", r"m64n64k16", r"m64n64k8", 1,
     "`wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16` → `wgmma.mma_async.sync.aligned.m64n64k8.f32.f16.f16`"),
    (FLOAT, "contraction is allowed", "llir attention sm_90", r"(?<== )fsub float", r"fsub contract float", 1,
     "floating-point operation differs: `fsub float` → `fsub float contract`"),
    (FLOAT, "another operation in LLVM IR", "llir attention gfx942", r"= fmul float", r"= fdiv float", 1,
     "floating-point operation differs: `fmul float` → `fdiv float`"),
    (FLOAT, "minimum for maximum", "llir softmax gfx942", r"@llvm\.maxnum\.f32", r"@llvm.minnum.f32", 1,
     "floating-point operation differs: `maxnum.f32` → `minnum.f32`"),
    (FLOAT, "operands of a difference change places on AMD", "amdgcn attention gfx942", r"v_sub_f32_e32 (v\d+), (v\d+), (v\d+)", r"v_sub_f32_e32 \1, \3, \2", 1,
     "floating-point operation differs: `v_sub_f32` has other operands"),
    (FLOAT, "another conversion", "amdgcn attention gfx942", r"v_cvt_f16_f32_e32", r"v_cvt_pkrtz_f16_f32_e32", 1,
     "floating-point operation differs: `v_cvt_f16_f32` → `v_cvt_pkrtz_f16_f32`"),
]
# fmt: on


@pytest.mark.parametrize("row", PLANTED, ids=[f"{row[2]}: {row[1]}" for row in PLANTED])
def test_an_edit_is_named(row):
    kind, _, artifact, pattern, replacement, count, wanted = row
    stage, kernel, target = artifact.split()
    base = "\n".join(dict(texts(stage))[f"3.9.0/{kernel}/{target}/{stage}"])
    head, made = re.subn(pattern, replacement, base, count=count, flags=re.M)
    assert made == count or not count
    assert head != base
    found = effects.compare(stage, base.split("\n"), head.split("\n"))
    _, words, times = found.said[0]
    assert (found.kind, f"{words} ({times}×)" if times > 1 else words) == (kind, wanted)
    assert found.bits is not Bits.SAME


def test_there_are_ten_of_each_kind_at_three_stages_in_five_kernels():
    kinds = Counter(row[0] for row in PLANTED)
    assert min(kinds[MEMORY], kinds[SYNC], kinds[FLOAT]) >= 10
    assert {row[2].split()[0] for row in PLANTED} == {"ptx", "llir", "amdgcn"}
    assert len({row[2].split()[1] for row in PLANTED}) >= 5
