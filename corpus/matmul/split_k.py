"""Split-K and stream-K matrix products: few output tiles, a long K, partial sums joined by atomics."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def split_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    pid_k = tl.program_id(2)
    offs_k = pid_k * BLOCK_K + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(pid_k * BLOCK_K, K, BLOCK_K * SPLIT_K):
        rest = K - k
        here = tl.arange(0, BLOCK_K)
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (here[None, :] < rest), other=0.0)
        b = tl.load(b_ptrs, mask=(here[:, None] < rest) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * SPLIT_K * stride_ak
        b_ptrs += BLOCK_K * SPLIT_K * stride_bk
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    if SPLIT_K == 1:
        tl.store(c_ptrs, acc, mask=inside)
    else:
        tl.atomic_add(c_ptrs, acc, mask=inside, sem="relaxed")


@triton.jit
def stream_k_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    total_steps, steps_each,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Every program takes the same number of K steps, across tile borders."""
    num_n = tl.cdiv(N, BLOCK_N)
    steps_a_tile = tl.cdiv(K, BLOCK_K)
    step = tl.program_id(0) * steps_each
    last = min(step + steps_each, total_steps)
    while step < last:
        tile = step // steps_a_tile
        first_k = step % steps_a_tile
        stop_k = min(steps_a_tile, first_k + last - step)
        offs_m = (tile // num_n) * BLOCK_M + tl.arange(0, BLOCK_M)
        offs_n = (tile % num_n) * BLOCK_N + tl.arange(0, BLOCK_N)
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(first_k, stop_k):
            offs_k = k * BLOCK_K + tl.arange(0, BLOCK_K)
            a = tl.load(a_ptr + (offs_m % M)[:, None] * stride_am + offs_k[None, :] * stride_ak)
            b = tl.load(b_ptr + offs_k[:, None] * stride_bk + (offs_n % N)[None, :] * stride_bn)
            acc = tl.dot(a, b, acc)
        c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
        inside = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        if stop_k - first_k == steps_a_tile:
            tl.store(c_ptrs, acc, mask=inside)
        else:
            tl.atomic_add(c_ptrs, acc, mask=inside)
        step += stop_k - first_k


def split_k(a, b, block=(64, 64, 64), split=8, warps=4, stages=3):
    (m, k), n = a.shape, b.shape[1]
    c = zeros((m, n), "fp32")
    split_k_kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]), split)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], SPLIT_K=split, num_warps=warps, num_stages=stages,
    )
    return c


def stream_k(a, b, block=(128, 128, 32), programs=108, warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]
    c = zeros((m, n), "fp32")
    steps = triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]) * triton.cdiv(k, block[2])
    stream_k_kernel[(programs,)](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), steps, triton.cdiv(steps, programs),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps, num_stages=stages,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float()


def row(function, dtype, m, n, k, size, **facts):
    return launch(
        function, tensor((m, k), dtype), tensor((k, n), dtype), flops=2 * m * n * k,
        min_bytes=(m + n) * k * size + 4 * m * n, reference=reference, atol=0.1, **facts,
    )


LAUNCHES = {
    "split8-fp16-64x4096x16384": row(split_k, "fp16", 64, 4096, 16384, 2),
    "split4-bf16-16x4096x4096": row(split_k, "bf16", 16, 4096, 4096, 2, block=(16, 64, 128), split=4),
    "split1-fp16-512": row(split_k, "fp16", 512, 512, 512, 2, split=1),
    "stream-fp16-1920x1664x4096": row(stream_k, "fp16", 1920, 1664, 4096, 2),
    "stream-bf16-1024x1024x8192": row(stream_k, "bf16", 1024, 1024, 8192, 2, warps=4, block=(128, 64, 64)),
}
