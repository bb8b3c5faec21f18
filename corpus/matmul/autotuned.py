"""An autotuned matrix product: every config that is pinned here is a launch of its own."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor

SINCE = "3.4.0"  # before, an autotuner wants a GPU as soon as it is made


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}, num_warps=4, num_stages=2),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 64}, num_warps=8, num_stages=2),
    ],
    key=["M", "N", "K"],
)
@triton.heuristics({"EVEN_K": lambda args: args["K"] % args["BLOCK_K"] == 0})
@triton.jit
def autotuned_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, EVEN_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
        b_ptrs = b_ptr + offs_k[:, None] * N + (offs_n % N)[None, :]
        if EVEN_K:
            a = tl.load(a_ptrs)
            b = tl.load(b_ptrs)
        else:
            a = tl.load(a_ptrs, mask=(offs_k < K)[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=(offs_k < K)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
    inside = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), a.dtype)

    def grid(options):
        return triton.cdiv(m, options["BLOCK_M"]), triton.cdiv(n, options["BLOCK_N"])

    autotuned_matmul_kernel[grid](a, b, c, m, n, k)
    return c


def reference(a, b):
    return a.float() @ b.float()


def row(dtype, m, n, k, **facts):
    return launch(
        matmul, tensor((m, k), dtype), tensor((k, n), dtype), flops=2 * m * n * k, min_bytes=2 * (m * k + k * n + m * n),
        reference=reference, rtol=2e-2, atol=0.5, **facts,
    )


LAUNCHES = {
    "fp16-2048": row("fp16", 2048, 2048, 2048),
    "bf16-odd-k": row("bf16", 1024, 1024, 1000, tier="extended"),
}
