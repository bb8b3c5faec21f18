"""Matrix product with pointer arithmetic and grouped program order: the kernel everybody starts from."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr, INTEGER: tl.constexpr,
):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BLOCK_M)
    num_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP_M * num_n)
    first_m = group * GROUP_M
    group_m = min(num_m - first_m, GROUP_M)
    pid_m = first_m + (pid % (GROUP_M * num_n)) % group_m
    pid_n = (pid % (GROUP_M * num_n)) // group_m

    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    if INTEGER:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    else:
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        if INTEGER:
            acc = tl.dot(a, b, acc, out_dtype=tl.int32)
        else:
            acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c = acc.to(c_ptr.dtype.element_ty)
    out_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_ptrs = c_ptr + out_m[:, None] * stride_cm + out_n[None, :] * stride_cn
    tl.store(c_ptrs, c, mask=(out_m[:, None] < M) & (out_n[None, :] < N))


def matmul(a, b, block=(128, 128, 64), out=None, warps=8, stages=3, precision=None, integer=False):
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), out or a.dtype)
    grid = (triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]),)
    matmul_kernel[grid](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], GROUP_M=8, PRECISION=precision, INTEGER=integer,
        num_warps=warps, num_stages=stages,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float()


def row(dtype, m, n, k, size, out="fp16", transposed=False, fill="normal", **facts):
    b = tensor((n, k), dtype, fill=fill).t() if transposed else tensor((k, n), dtype, fill=fill)
    facts.setdefault("atol", 0.1)
    return launch(
        matmul, tensor((m, k), dtype, fill=fill), b, out=out,
        flops=2 * m * n * k, min_bytes=(m * k + k * n) * size + 2 * m * n, reference=reference, **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096, 2, tier="gate"),
    "bf16-4096": row("bf16", 4096, 4096, 4096, 2, out="bf16", tier="gate", atol=1.0),
    # Hopper adds these products up in fewer bits than fp32 has, hence the tolerance; gfx942 has no units for this format: since 3.4.0 it is converted to fp16 first
    "fp8-4096": row("fp8e4nv", 4096, 4096, 4096, 1, transposed=True, since={"gfx942": "3.4.0"}, atol=2.0),
    "tf32-2048": row("fp32", 2048, 2048, 2048, 4, out="fp32", block=(128, 128, 32), atol=0.3),
    "fp8e5-2048": row("fp8e5", 2048, 2048, 2048, 1, transposed=True, atol=0.5),
    "fp8e4b8-2048": row("fp8e4b8", 2048, 2048, 2048, 1, transposed=True, targets="gfx9*", since={"gfx950": "3.4.0"}),  # AMD's own
    "fp16-transposed-a4096": row("fp16", 4096, 4096, 4096, 2, transposed=True),
    "fp16-stages2-4warps": row("fp16", 4096, 4096, 4096, 2, block=(128, 64, 32), stages=2, warps=4),
    "bf16-stages4-small": row("bf16", 1024, 1024, 1024, 2, out="bf16", block=(64, 64, 64), stages=4, warps=4, atol=0.5),
    "fp16-odd": row("fp16", 1000, 1001, 515, 2, block=(64, 64, 32), warps=4),  # nothing divisible by 16
    "ieee-1024": row("fp32", 1024, 1024, 1024, 4, out="fp32", block=(64, 64, 16), warps=4, precision="ieee", atol=1e-3),
    # Beside triton #11526, the shared memory of tf32x3: see also epilogue.py
    "tf32x3-2048": row(
        "fp32", 2048, 2048, 2048, 4, out="fp32", block=(64, 64, 32), warps=4, precision="tf32x3", atol=2e-3,
        targets="sm_*",
    ),
    "tf32x3-stages4-2048": row(
        "fp32", 2048, 2048, 2048, 4, out="fp32", block=(128, 128, 32), stages=2, precision="tf32x3", atol=2e-3,
        targets="sm_*", tier="extended",
    ),
    "int8-4096": row(
        "i8", 4096, 4096, 4096, 1, out="fp32", block=(128, 128, 128), transposed=True, fill="randint:-8:8", atol=1e-3,
        integer=True,
    ),
}
