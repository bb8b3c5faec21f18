"""Quantized linear layers: 8-bit floats with scales of rows or blocks, and 4-bit integer weights."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def row_scaled_kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """One scale a row of a and a row of b, applied once at the end."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + (offs_n % N)[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    a_scale = tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + offs_n, mask=offs_n < N, other=0.0)
    acc = acc * a_scale[:, None] * b_scale[None, :]
    inside = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def block_scaled_kernel(
    a_ptr, b_ptr, c_ptr, a_scale_ptr, b_scale_ptr, M, N, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Scales of 1×128 pieces of a and of 128×128 blocks of b: every step of the loop is scaled on its own."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (offs_m % M)[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + (offs_n % N)[None, :] * K + offs_k[:, None]
    a_scale_ptrs = a_scale_ptr + (offs_m % M) * (K // BLOCK_K)
    b_scale_ptrs = b_scale_ptr + (offs_n % N) // 128 * (K // BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K // BLOCK_K):
        a_scale = tl.load(a_scale_ptrs + k)
        b_scale = tl.load(b_scale_ptrs + k)
        acc += tl.dot(tl.load(a_ptrs), tl.load(b_ptrs)) * a_scale[:, None] * b_scale[None, :]
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    inside = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


@triton.jit
def int4_weight_kernel(
    x_ptr, packed_ptr, scale_ptr, zero_ptr, y_ptr, M, N, K, group,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Eight 4-bit weights along K in an int32, a scale and a zero point for each `group` of K."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    shift = (offs_k % 8 * 4)[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + offs_m[:, None] * K + start + offs_k[None, :], mask=(offs_m < M)[:, None], other=0.0)
        packed = tl.load(packed_ptr + ((start + offs_k) // 8)[:, None] * N + offs_n[None, :])
        scale = tl.load(scale_ptr + start // group * N + offs_n)
        zero = tl.load(zero_ptr + start // group * N + offs_n)
        weight = (((packed >> shift) & 15).to(tl.float32) - zero[None, :]) * scale[None, :]
        acc = tl.dot(x, weight.to(x.dtype), acc)
    tl.store(
        y_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(y_ptr.dtype.element_ty), mask=(offs_m < M)[:, None]
    )


def scaled(a, b, a_scale, b_scale, kernel, block=(128, 128, 128), warps=8, stages=3):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), "bf16")
    kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))](
        a, b, c, a_scale, b_scale, m, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages,
    )
    return c


def int4_weight(x, packed, scale, zero, group, block=(16, 64, 64), warps=4, stages=3):
    (m, k), n = x.shape, packed.shape[1]
    y = empty((m, n), x.dtype)
    int4_weight_kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))](
        x, packed, scale, zero, y, m, n, k, group, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages,
    )
    return y


def scaled_reference(a, b, a_scale, b_scale, kernel, **_):
    a, b = a.float(), b.float()
    if kernel is row_scaled_kernel:
        return (a * a_scale[:, None]) @ (b * b_scale[:, None]).T
    a = a * a_scale.repeat_interleave(128, 1)
    b = b * b_scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
    return a @ b.T


def int4_reference(x, packed, scale, zero, group, **_):
    nibbles = [((packed >> (4 * place)) & 15).float() for place in range(8)]
    weight = scale.new_empty((packed.shape[0], 8, packed.shape[1])).float()
    for place, nibble in enumerate(nibbles):
        weight[:, place] = nibble
    weight = weight.flatten(0, 1)
    weight = (weight - zero.float().repeat_interleave(group, 0)) * scale.float().repeat_interleave(group, 0)
    return x.float() @ weight.to(x.dtype).float()


def row(kernel, m, n, k, **facts):
    if kernel is row_scaled_kernel:
        scales = tensor((m,), "fp32", fill="uniform"), tensor((n,), "fp32", fill="uniform")
    else:
        scales = tensor((m, k // 128), "fp32", fill="uniform"), tensor((n // 128, k // 128), "fp32", fill="uniform")
    return launch(
        scaled, tensor((m, k), "fp8e4nv"), tensor((n, k), "fp8e4nv"), *scales, kernel,
        flops=2 * m * n * k, min_bytes=(m + n) * k + 2 * m * n, reference=scaled_reference, rtol=2e-2, atol=0.5,
        since={"gfx942": "3.4.0"}, **facts,
    )


def int4_row(dtype, m, n, k, group, **facts):
    return launch(
        int4_weight, tensor((m, k), dtype), tensor((k // 8, n), "i32", fill="normal"),
        tensor((k // group, n), dtype, fill="uniform:0:0.1"), tensor((k // group, n), dtype, fill="const:8"), group,
        flops=2 * m * n * k, min_bytes=n * k // 2 + 2 * m * (n + k), reference=int4_reference, rtol=2e-2, atol=0.5,
        **facts,
    )


LAUNCHES = {
    "fp8-rowwise-2048": row(row_scaled_kernel, 2048, 4096, 2048, block=(128, 128, 64), tier="gate"),
    "fp8-blockwise-2048": row(block_scaled_kernel, 2048, 4096, 2048, block=(64, 64, 128), warps=4),
    "fp8-blockwise-decode-16": row(block_scaled_kernel, 16, 4096, 4096, block=(16, 64, 128), warps=4, stages=4),
    "int4-fp16-decode-16": int4_row("fp16", 16, 4096, 4096, 128, tier="gate"),
    "int4-bf16-512": int4_row("bf16", 512, 4096, 2048, 64, block=(64, 64, 32)),
}
