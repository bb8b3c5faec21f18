"""Gluon matrix product for AMD's CDNA whose loop is cut into stages: half of the warps are one stage behind the others.

A tile is written a stage before its neighbours are done with the other one, and read two stages later: so there are
two of them, and the product stands between writing and reading.
"""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import AMDMFMALayout, cdna3, warp_pipeline_stage

SINCE = "3.7.0"


@gluon.jit
def warp_pipeline_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
    VERSION: gl.constexpr, INSTRUCTION_K: gl.constexpr, K_WIDTH: gl.constexpr, PRIORITY: gl.constexpr,
):
    accumulator: gl.constexpr = AMDMFMALayout(
        version=VERSION, instr_shape=[16, 16, INSTRUCTION_K], transposed=True, warps_per_cta=[4, 2]
    )
    a_operand: gl.constexpr = gl.DotOperandLayout(0, accumulator, K_WIDTH)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, accumulator, K_WIDTH)
    a_read: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [8, 1], [1, 0])
    b_read: gl.constexpr = gl.BlockedLayout([8, 1], [8, 8], [1, 8], [0, 1])
    a_m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_read))
    a_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_read))
    b_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_read))
    b_n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_read))
    a_where = a_m[:, None] * K + a_k[None, :]
    b_where = b_n[None, :] * K + b_k[:, None]
    a_tiles = gl.allocate_shared_memory(
        a_ptr.dtype.element_ty, [2, BLOCK_M, BLOCK_K], gl.SwizzledSharedLayout(8, 1, 4, order=[1, 0])
    )
    b_tiles = gl.allocate_shared_memory(
        b_ptr.dtype.element_ty, [2, BLOCK_K, BLOCK_N], gl.SwizzledSharedLayout(8, 1, 4, order=[0, 1])
    )
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=accumulator)
    a_tiles.index(0).store(cdna3.buffer_load(a_ptr, a_where))
    b_tiles.index(0).store(cdna3.buffer_load(b_ptr, b_where))
    steps = K // BLOCK_K
    for step in range(1, steps):
        with warp_pipeline_stage("read"):
            a_next = cdna3.buffer_load(a_ptr, a_where + step * BLOCK_K)
            b_next = cdna3.buffer_load(b_ptr, b_where + step * BLOCK_K)
            a = a_tiles.index((step - 1) % 2).load(a_operand)
            b = b_tiles.index((step - 1) % 2).load(b_operand)
        with warp_pipeline_stage("write"):
            a_tiles.index(step % 2).store(a_next)
            b_tiles.index(step % 2).store(b_next)
        with warp_pipeline_stage("multiply", priority=PRIORITY):
            acc = cdna3.mfma(a, b, acc)
    a = a_tiles.index((steps - 1) % 2).load(a_operand)
    b = b_tiles.index((steps - 1) % 2).load(b_operand)
    acc = cdna3.mfma(a, b, acc)
    c_m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, accumulator))
    c_n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, accumulator))
    cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, c_m[:, None] * N + c_n[None, :])


def matmul(a, b, block=(128, 128, 32), priority=1):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)
    newer = triton.runtime.driver.active.get_current_target().arch == "gfx950"
    warp_pipeline_kernel[(m // block[0], n // block[1])](
        a, b, c, m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], VERSION=4 if newer else 3,
        INSTRUCTION_K=32 if newer else 16, K_WIDTH=8 if newer else 4, PRIORITY=priority, num_warps=8,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float().T


def row(dtype, m, n, k, **facts):
    return launch(
        matmul, tensor((m, k), dtype), tensor((n, k), dtype), flops=2 * m * n * k, min_bytes=2 * (m * k + n * k + m * n),
        reference=reference, rtol=2e-2, atol=0.5, targets="gfx9*", **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096),
    "bf16-2048-priority3": row("bf16", 2048, 2048, 2048, priority=3),
    "fp16-wide": row("fp16", 2048, 4096, 1024, block=(128, 256, 32)),
}
