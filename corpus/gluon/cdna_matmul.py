"""Gluon matrix product for AMD's CDNA: buffer loads into registers, matrix-core instructions, buffer stores."""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.amd import AMDMFMALayout, cdna3

SINCE = "3.6.0"


@gluon.jit
def cdna_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
    VERSION: gl.constexpr, INSTRUCTION_K: gl.constexpr, K_WIDTH: gl.constexpr,
):
    accumulator: gl.constexpr = AMDMFMALayout(
        version=VERSION, instr_shape=[16, 16, INSTRUCTION_K], transposed=True, warps_per_cta=[2, 2]
    )
    a_operand: gl.constexpr = gl.DotOperandLayout(0, accumulator, K_WIDTH)
    b_operand: gl.constexpr = gl.DotOperandLayout(1, accumulator, K_WIDTH)
    a_read: gl.constexpr = gl.BlockedLayout([1, 8], [8, 8], [4, 1], [1, 0])
    b_read: gl.constexpr = gl.BlockedLayout([8, 1], [8, 8], [1, 4], [0, 1])
    a_m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, a_read))
    a_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, a_read))
    b_k = gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, b_read))
    b_n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, b_read))
    a_where = a_m[:, None] * K + a_k[None, :]
    b_where = b_n[None, :] * K + b_k[:, None]
    acc = gl.zeros((BLOCK_M, BLOCK_N), gl.float32, layout=accumulator)
    for _ in range(0, K, BLOCK_K):
        a = cdna3.buffer_load(a_ptr, a_where)
        b = cdna3.buffer_load(b_ptr, b_where)
        acc = cdna3.mfma(gl.convert_layout(a, a_operand), gl.convert_layout(b, b_operand), acc)
        a_where += BLOCK_K
        b_where += BLOCK_K
    c_m = gl.program_id(0) * BLOCK_M + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, accumulator))
    c_n = gl.program_id(1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, accumulator))
    cdna3.buffer_store(acc.to(c_ptr.dtype.element_ty), c_ptr, c_m[:, None] * N + c_n[None, :])


def matmul(a, b, block=(128, 128, 64)):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)
    newer = triton.runtime.driver.active.get_current_target().arch == "gfx950"
    cdna_matmul_kernel[(m // block[0], n // block[1])](
        a, b, c, m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        VERSION=4 if newer else 3, INSTRUCTION_K=32 if newer else 16, K_WIDTH=8 if newer else 4, num_warps=4,
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
    "fp16-4096": row("fp16", 4096, 4096, 4096, tier="gate"),
    "bf16-2048": row("bf16", 2048, 2048, 2048, block=(64, 64, 64)),
}
