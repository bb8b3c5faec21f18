"""One table says what an opcode is counted as and what an edit calls it."""

from __future__ import annotations

import pytest

from irdiff.normalize.opcode_classes import BY_NAME, counted, klass


@pytest.mark.parametrize(
    ("stage", "opcode", "counts", "tells"),
    [
        ("ptx", "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", "wgmma", None),
        ("ptx", "cp.async.wait_group", "async_copy_sync", None),
        ("ptx", "cvt.rn.f16.f32", "convert", "conversions"),
        ("ptx", "cvta.to.global.u64", "convert", "moves"),
        ("ptx", "bra.uni", "branch", "control flow"),
        ("ptx", "mul.f32", "", "float"),
        ("ptx", "mul.lo.s32", "", "integer arithmetic"),
        ("ptx", "shfl.sync.bfly.b32", "warp_exchange", None),
        ("amdgcn", "v_mfma_f32_32x32x8_f16", "mfma", "integer arithmetic"),
        ("amdgcn", "v_readlane_b32", "warp_exchange", "moves"),
        ("amdgcn", "ds_bpermute_b32", "warp_exchange", "lane exchange"),
        ("amdgcn", "v_add_f32_dpp", "", "float"),
        ("amdgcn", "s_nop", "", "control flow"),
        ("llir", "fptrunc", "", "float conversions"),
        ("llir", "getelementptr", "", "addresses and casts"),
        ("ttgir", "tt.dot", "", None),
    ],
)
def test_both_columns(stage: str, opcode: str, counts: str, tells: str | None) -> None:
    assert (counted(stage, opcode), klass(stage, opcode)) == (counts, tells)


@pytest.mark.parametrize(
    "opcode", ["v_mfma_f32_32x32x8_f16", "s_waitcnt", "mbarrier.arrive", "ld.shared::cluster.b32"]
)
def test_what_a_reader_must_see_keeps_its_name_whatever_its_class(opcode: str) -> None:
    assert BY_NAME.search(opcode)
