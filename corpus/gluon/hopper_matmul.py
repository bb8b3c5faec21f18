"""Gluon matrix product for Hopper: tiles by TMA behind barriers, multiplied by warpgroup instructions."""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SINCE = "3.5.0"

# Renamed in 3.9.0.
load_tile = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
store_tile = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@gluon.jit
def hopper_matmul_kernel(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, STAGES: gl.constexpr, num_warps: gl.constexpr,
):
    first_m = gl.program_id(0) * BLOCK_M
    first_n = gl.program_id(1) * BLOCK_N
    a_tiles = gl.allocate_shared_memory(a_desc.dtype, [STAGES, BLOCK_M, BLOCK_K], a_desc.layout)
    b_tiles = gl.allocate_shared_memory(b_desc.dtype, [STAGES, BLOCK_N, BLOCK_K], b_desc.layout)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(ready.index(stage), count=1)
    for stage in gl.static_range(STAGES - 1):
        mbarrier.expect(ready.index(stage), a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        load_tile(a_desc, [first_m, stage * BLOCK_K], ready.index(stage), a_tiles.index(stage))
        load_tile(b_desc, [first_n, stage * BLOCK_K], ready.index(stage), b_tiles.index(stage))
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[num_warps, 1], instr_shape=[16, BLOCK_N, 16]
    )
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=layout)
    steps = gl.cdiv(K, BLOCK_K)
    for step in range(steps):
        ahead = step + STAGES - 1
        into = ahead % STAGES
        inside = ahead < steps
        mbarrier.expect(ready.index(into), a_desc.block_type.nbytes + b_desc.block_type.nbytes, pred=inside)
        load_tile(a_desc, [first_m, ahead * BLOCK_K], ready.index(into), a_tiles.index(into), pred=inside)
        load_tile(b_desc, [first_n, ahead * BLOCK_K], ready.index(into), b_tiles.index(into), pred=inside)
        at = step % STAGES
        mbarrier.wait(ready.index(at), (step // STAGES) & 1)
        acc = warpgroup_mma(a_tiles.index(at), b_tiles.index(at).permute((1, 0)), acc, is_async=True)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
    for stage in gl.static_range(STAGES):
        mbarrier.invalidate(ready.index(stage))
    c_tile = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    c_tile.store(acc.to(c_desc.dtype))
    fence_async_shared()
    store_tile(c_desc, [first_m, first_n], c_tile)
    tma.store_wait(pendings=0)


def matmul(a, b, block=(128, 128, 64), stages=3, warps=4):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)
    dtype = gl.bfloat16 if "bfloat16" in str(a.dtype) else gl.float16

    def describe(x, shape):
        layout = gl.NVMMASharedLayout.get_default_for(list(shape), dtype)
        return TensorDescriptor(x, list(x.shape), list(x.stride()), list(shape), layout)

    hopper_matmul_kernel[(m // block[0], n // block[1])](
        describe(a, (block[0], block[2])), describe(b, (block[1], block[2])), describe(c, (block[0], block[1])), k,
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], STAGES=stages, num_warps=warps,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float().T


def row(dtype, m, n, k, **facts):
    return launch(
        matmul, tensor((m, k), dtype), tensor((n, k), dtype), flops=2 * m * n * k, min_bytes=2 * (m * k + n * k + m * n),
        reference=reference, rtol=2e-2, atol=0.5, targets="sm_90", **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096, tier="gate"),
    "bf16-256x128": row("bf16", 4096, 4096, 2048, block=(256, 128, 64), warps=8),
}
