"""Gluon matrix product for Blackwell: tiles by TMA, multiplied into tensor memory."""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    allocate_tensor_memory,
    fence_async_shared,
    mbarrier,
    tcgen05_commit,
    tcgen05_mma,
    tma,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

SINCE = "3.6.0"

# Renamed in 3.9.0.
load_tile = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
store_tile = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


@gluon.jit
def blackwell_matmul_kernel(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, num_warps: gl.constexpr,
):
    first_m = gl.program_id(0) * BLOCK_M
    first_n = gl.program_id(1) * BLOCK_N
    a_tile = gl.allocate_shared_memory(a_desc.dtype, [BLOCK_M, BLOCK_K], a_desc.layout)
    b_tile = gl.allocate_shared_memory(b_desc.dtype, [BLOCK_N, BLOCK_K], b_desc.layout)
    loaded = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    multiplied = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(loaded, count=1)
    mbarrier.init(multiplied, count=1)
    memory: gl.constexpr = TensorMemoryLayout([BLOCK_M, BLOCK_N], col_stride=1)
    acc = allocate_tensor_memory(gl.float32, [BLOCK_M, BLOCK_N], memory)
    phase = 0
    use_acc = False
    for k in range(0, K, BLOCK_K):
        mbarrier.expect(loaded, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        load_tile(a_desc, [first_m, k], loaded, a_tile)
        load_tile(b_desc, [first_n, k], loaded, b_tile)
        mbarrier.wait(loaded, phase)
        tcgen05_mma(a_tile, b_tile.permute((1, 0)), acc, use_acc=use_acc)
        tcgen05_commit(multiplied)
        mbarrier.wait(multiplied, phase)
        use_acc = True
        phase ^= 1
    mbarrier.invalidate(loaded)
    mbarrier.invalidate(multiplied)
    registers: gl.constexpr = gl.BlockedLayout([1, BLOCK_N], [32, 1], [num_warps, 1], [0, 1])
    c = acc.load(registers)
    c_tile = gl.allocate_shared_memory(c_desc.dtype, [BLOCK_M, BLOCK_N], c_desc.layout)
    c_tile.store(c.to(c_desc.dtype))
    fence_async_shared()
    store_tile(c_desc, [first_m, first_n], c_tile)
    tma.store_wait(pendings=0)


def matmul(a, b, block=(128, 128, 64), warps=4):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)
    dtype = gl.bfloat16 if "bfloat16" in str(a.dtype) else gl.float16

    def describe(x, shape):
        layout = gl.NVMMASharedLayout.get_default_for(list(shape), dtype)
        return TensorDescriptor(x, list(x.shape), list(x.stride()), list(shape), layout)

    blackwell_matmul_kernel[(m // block[0], n // block[1])](
        describe(a, (block[0], block[2])), describe(b, (block[1], block[2])), describe(c, (block[0], block[1])), k,
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float().T


def row(dtype, m, n, k, **facts):
    return launch(
        matmul, tensor((m, k), dtype), tensor((n, k), dtype), flops=2 * m * n * k, min_bytes=2 * (m * k + n * k + m * n),
        reference=reference, rtol=2e-2, atol=0.5, targets="sm_100", **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096, tier="gate"),
    "bf16-64x128": row("bf16", 4096, 4096, 2048, block=(128, 64, 128)),
}
