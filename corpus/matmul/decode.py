"""One token against a weight: tall-skinny products where there is nothing for the matrix units to do."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def vector_matrix_kernel(x_ptr, w_ptr, y_ptr, N, K, stride_wn, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """M = 1 as a multiplication and a reduction."""
    rows = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, BLOCK_K), tl.float32)
    for start in range(0, K, BLOCK_K):
        cols = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + cols, mask=cols < K, other=0.0).to(tl.float32)
        inside = (rows[:, None] < N) & (cols[None, :] < K)
        w = tl.load(w_ptr + rows[:, None] * stride_wn + cols[None, :], mask=inside, other=0.0)
        acc += w.to(tl.float32) * x[None, :]
    tl.store(y_ptr + rows, tl.sum(acc, axis=1).to(y_ptr.dtype.element_ty), mask=rows < N)


@triton.jit
def skinny_matmul_kernel(
    x_ptr, w_ptr, y_ptr, M, N, K, stride_xm, stride_wn, stride_ym,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """A handful of tokens, padded to the least rows that tl.dot takes."""
    offs_m = tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :], mask=offs_m[:, None] < M, other=0.0)
        w = tl.load(w_ptr + offs_n[None, :] * stride_wn + offs_k[:, None], mask=offs_n[None, :] < N, other=0.0)
        acc = tl.dot(x, w, acc)
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=inside)


def vector_matrix(x, w, block=(8, 512), warps=4):
    n, k = w.shape
    y = empty((1, n), x.dtype)
    vector_matrix_kernel[(triton.cdiv(n, block[0]),)](
        x, w, y, n, k, w.stride(0), BLOCK_N=block[0], BLOCK_K=block[1], num_warps=warps
    )
    return y


def skinny_matmul(x, w, block=(16, 64, 128), warps=4, stages=4):
    (m, k), n = x.shape, w.shape[0]
    y = empty((m, n), x.dtype)
    skinny_matmul_kernel[(triton.cdiv(n, block[1]),)](
        x, w, y, m, n, k, x.stride(0), w.stride(0), y.stride(0),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps, num_stages=stages,
    )
    return y


def reference(x, w, **_):
    return x.float() @ w.float().T


def row(function, dtype, m, n, k, **facts):
    return launch(
        function, tensor((m, k), dtype), tensor((n, k), dtype), flops=2 * m * n * k, min_bytes=2 * (n * k + m * (n + k)),
        reference=reference, atol=0.5, rtol=2e-2, **facts,
    )


LAUNCHES = {
    "vector-bf16-4096x14336": row(vector_matrix, "bf16", 1, 4096, 14336),
    "vector-fp16-odd": row(vector_matrix, "fp16", 1, 4099, 1001),
    "m1-bf16-4096": row(skinny_matmul, "bf16", 1, 4096, 4096),
    "m8-fp16-14336x4096": row(skinny_matmul, "fp16", 8, 14336, 4096, stages=3),
    "m32-bf16-4096": row(skinny_matmul, "bf16", 32, 4096, 4096, block=(32, 32, 128), stages=2),
}
