"""Persistent matrix product with plain pointers: as many programs as multiprocessors, each walks through its tiles."""

import functools

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, PROGRAMS: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    steps = tl.cdiv(K, BLOCK_K)
    offs_k = tl.arange(0, BLOCK_K)
    for tile in tl.range(tl.program_id(0), num_m * num_n, PROGRAMS, flatten=FLATTEN):
        group = tile // (GROUP_M * num_n)
        rows = min(num_m - group * GROUP_M, GROUP_M)
        first_m = (group * GROUP_M + tile % rows) * BLOCK_M
        first_n = tile % (GROUP_M * num_n) // rows * BLOCK_N
        offs_m = first_m + tl.arange(0, BLOCK_M)
        offs_n = first_n + tl.arange(0, BLOCK_N)
        read_m = tl.max_contiguous(tl.multiple_of(tl.where(offs_m < M, offs_m, 0), BLOCK_M), BLOCK_M)
        read_n = tl.max_contiguous(tl.multiple_of(tl.where(offs_n < N, offs_n, 0), BLOCK_N), BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(steps):
            here = step * BLOCK_K + offs_k
            rest = K - step * BLOCK_K
            a = tl.load(a_ptr + read_m[:, None] * stride_am + here[None, :] * stride_ak, mask=offs_k[None, :] < rest, other=0.0)
            b = tl.load(b_ptr + here[:, None] * stride_bk + read_n[None, :] * stride_bn, mask=offs_k[:, None] < rest, other=0.0)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@functools.lru_cache  # asking the driver takes longer than the product
def _programs():
    return triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"]


def persistent_matmul(a, b, block=(128, 128, 64), warps=8, stages=3, flatten=False):
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), a.dtype)
    programs = min(_programs(), triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]))
    persistent_matmul_kernel[(programs,)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        GROUP_M=8, PROGRAMS=programs, FLATTEN=flatten, num_warps=warps, num_stages=stages,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float()


def row(dtype, m, n, k, **facts):
    return launch(
        persistent_matmul, tensor((m, k), dtype), tensor((k, n), dtype), flops=2 * m * n * k,
        min_bytes=2 * (m * k + k * n + m * n), reference=reference, rtol=2e-2, atol=facts.pop("atol", 0.1), **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096),
    "bf16-flat-1000x1208x520": row("bf16", 1000, 1208, 520, block=(128, 64, 64), warps=4, flatten=True, atol=0.5),
}
