"""Matrix products and sums by clusters of two and four blocks, which share their work."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def cluster_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def cluster_sum_kernel(x_ptr, out_ptr, COLUMNS: tl.constexpr, ROWS: tl.constexpr):
    """A block of rows, summed along each row."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    x = tl.load(x_ptr + rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    tl.store(out_ptr + rows, tl.sum(x.to(tl.float32), axis=1))


def matmul(a, b, block=(128, 256, 64), ctas=2, warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), a.dtype)
    cluster_matmul_kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_ctas=ctas, num_warps=warps, num_stages=stages,
    )
    return c


def sums(x, rows=64, ctas=2, warps=4):
    out = empty((x.shape[0],), "fp32")
    cluster_sum_kernel[(x.shape[0] // rows,)](x, out, COLUMNS=x.shape[1], ROWS=rows, num_ctas=ctas, num_warps=warps)
    return out


def matmul_reference(a, b, **_):
    return a.float() @ b.float()


def sums_reference(x, **_):
    return x.double().sum(1)


def product(dtype, size, **facts):
    return launch(
        matmul, tensor((size, size), dtype), tensor((size, size), dtype), targets="sm_*", flops=2 * size**3,
        min_bytes=6 * size * size, reference=matmul_reference, rtol=2e-2, atol=0.5, **facts,
    )


def total(dtype, lines, columns, **facts):
    return launch(
        sums, tensor((lines, columns), dtype), targets="sm_*", flops=lines * columns, min_bytes=2 * lines * columns,
        reference=sums_reference, rtol=1e-2, atol=1e-1, **facts,
    )


LAUNCHES = {
    "fp16-2ctas-2048": product("fp16", 2048),
    "bf16-2ctas-tall": product("bf16", 2048, block=(256, 128, 64)),
    "fp16-4ctas-2048": product("fp16", 2048, block=(256, 256, 64), ctas=4),
    "sum-fp16-2ctas": total("fp16", 4096, 256),
    "sum-bf16-4ctas": total("bf16", 4096, 512, ctas=4),
    "sum-fp32-2ctas": total("fp32", 4096, 128, rows=128),
}
