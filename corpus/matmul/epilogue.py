"""Linear layers with what follows fused in (bias, activation, residual), and tiny or exact products without matrix units."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def linear_epilogue_kernel(
    x_ptr, w_ptr, bias_ptr, residual_ptr, y_ptr, M, N, K,
    ACTIVATION: tl.constexpr, RESIDUAL: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + offs_m[:, None] * K + offs_k[None, :]
    w_ptrs = w_ptr + offs_n[None, :] * K + offs_k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(x_ptrs), tl.load(w_ptrs), acc)
        x_ptrs += BLOCK_K
        w_ptrs += BLOCK_K
    acc += tl.load(bias_ptr + offs_n).to(tl.float32)[None, :]
    if ACTIVATION == "gelu":
        acc = 0.5 * acc * (1 + tl.math.erf(acc * 0.7071067811865476))
    elif ACTIVATION == "silu":
        acc = acc * tl.sigmoid(acc)
    elif ACTIVATION == "leaky":
        acc = tl.where(acc >= 0, acc, 0.01 * acc)
    where = offs_m[:, None] * N + offs_n[None, :]
    if RESIDUAL:
        acc += tl.load(residual_ptr + where).to(tl.float32)
    tl.store(y_ptr + where, acc.to(y_ptr.dtype.element_ty))


@triton.jit
def small_dot_kernel(x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A batch of single tiles; fp32 with exact products is multiplied and added without matrix units."""
    batch = tl.program_id(0)
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    x = tl.load(x_ptr + batch * M * K + m[:, None] * K + k[None, :])
    y = tl.load(y_ptr + batch * K * N + k[:, None] * N + n[None, :])
    z = tl.dot(x, y, input_precision="ieee")
    tl.store(z_ptr + batch * M * N + m[:, None] * N + n[None, :], z)


@triton.jit
def padded_int8_dot_kernel(x_ptr, y_ptr, z_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    """8-bit integers widened to fp32, a short K padded by masks to a block many times its length, no matrix units."""
    batch = tl.program_id(0)
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, BLOCK_K)
    x = tl.load(x_ptr + batch * M * K + m[:, None] * K + k[None, :], mask=(k < K)[None, :], other=0).to(tl.float32)
    y = tl.load(y_ptr + batch * K * N + k[:, None] * N + n[None, :], mask=(k < K)[:, None], other=0).to(tl.float32)
    z = tl.dot(x, y, input_precision="ieee")
    tl.store(z_ptr + batch * M * N + m[:, None] * N + n[None, :], z)


@triton.jit
def upcast_dot_kernel(
    x_ptr, w_ptr, y_ptr, K, PRECISION: tl.constexpr, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr
):
    """16-bit operands widened in registers and multiplied in three tf32 products."""
    batch = tl.program_id(0)
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, STEP):
        k = start + tl.arange(0, STEP)
        x = tl.load(x_ptr + (batch * M + m)[:, None] * K + k[None, :]).to(tl.float32)
        w = tl.load(w_ptr + (batch * N + n)[:, None] * K + k[None, :]).to(tl.float32)
        acc = tl.dot(x, w.T, acc, input_precision=PRECISION)
    tl.store(y_ptr + batch * M * N + m[:, None] * N + n[None, :], acc)


def upcast_dot(x, w, precision, step=16, warps=1, stages=2):
    (batch, m, k), n = x.shape, w.shape[1]
    y = empty((batch, m, n), "fp32")
    upcast_dot_kernel[(batch,)](
        x, w, y, k, PRECISION=precision, M=m, N=n, STEP=step, num_warps=warps, num_stages=stages
    )
    return y


def linear(x, w, bias, residual=None, activation="", block=(128, 128, 64), warps=8, stages=3):
    (m, k), n = x.shape, w.shape[0]
    y = empty((m, n), x.dtype)
    linear_epilogue_kernel[(m // block[0], n // block[1])](
        x, w, bias, residual, y, m, n, k, ACTIVATION=activation, RESIDUAL=residual is not None,
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps, num_stages=stages,
    )
    return y


def small_dot(x, y, warps=4):
    (batch, m, k), n = x.shape, y.shape[2]
    z = empty((batch, m, n), "fp32")
    small_dot_kernel[(batch,)](x, y, z, M=m, N=n, K=k, num_warps=warps)
    return z


def padded_int8_dot(x, y, block_k=256, warps=4):
    (batch, m, k), n = x.shape, y.shape[2]
    z = empty((batch, m, n), "fp32")
    padded_int8_dot_kernel[(batch,)](x, y, z, k, M=m, N=n, BLOCK_K=block_k, num_warps=warps)
    return z


def reference(x, w, bias, residual=None, activation="", **_):
    y = x.float() @ w.float().T + bias.float()
    if activation == "gelu":
        y = 0.5 * y * (1 + (y * 0.7071067811865476).erf())
    elif activation == "silu":
        y = y * y.sigmoid()
    elif activation == "leaky":
        y = y.where(y >= 0, 0.01 * y)
    return y if residual is None else y + residual.float()


def small_reference(x, y, warps=4):
    return x.double() @ y.double()


def upcast_reference(x, w, precision, **_):
    return x.float() @ w.float().transpose(1, 2)


def row(dtype, m, n, k, residual=False, **facts):
    more = {"residual": tensor((m, n), dtype)} if residual else {}
    return launch(
        linear, tensor((m, k), dtype), tensor((n, k), dtype, fill="normal:0.05"), tensor((n,), dtype),
        flops=2 * m * n * k, min_bytes=2 * (m * k + n * k + m * n), reference=reference, rtol=2e-2, atol=5e-2, **more, **facts,
    )


def small(dtype, batch, m, n, k, **facts):
    return launch(
        small_dot, tensor((batch, m, k), dtype), tensor((batch, k, n), dtype), flops=2 * batch * m * n * k,
        min_bytes=batch * 4 * (m * k + k * n + m * n), reference=small_reference, rtol=1e-3, atol=1e-3, **facts,
    )


LAUNCHES = {
    "gelu-bf16-4096": row("bf16", 4096, 4096, 2048, activation="gelu", tier="gate"),
    "silu-residual-fp16-2048": row("fp16", 2048, 2048, 4096, activation="silu", residual=True),
    "leaky-fp16-4warps": row("fp16", 2048, 2048, 2048, activation="leaky", block=(128, 64, 64), warps=4, stages=2),
    # triton #11526: three times the shared memory with 3.8.0 (sm_90: 1024 bytes before and after it, 3072 with it)
    "upcast-tf32x3-16x16": launch(
        upcast_dot, tensor((1024, 16, 256), "bf16"), tensor((1024, 16, 256), "bf16"), "tf32x3", targets="sm_*",
        flops=2 * 1024 * 16 * 16 * 256, min_bytes=4 * 1024 * 16 * 256, reference=upcast_reference, rtol=1e-3, atol=1e-3,
    ),
    # triton #5572: the product of 16×256 and 256×16 that a compiler of models makes of five columns of 8-bit
    # integers. sm_80, 3.2.0: 255 registers and a stack of 120 bytes, as reported; 3.3.0: 32 registers, no stack
    "small-int8-16x16x5": launch(
        padded_int8_dot, tensor((4096, 16, 5), "i8"), tensor((4096, 5, 16), "i8"), warps=8, flops=2 * 4096 * 16 * 16 * 5,
        min_bytes=4096 * (2 * 16 * 5 + 4 * 16 * 16), reference=small_reference, rtol=0, atol=0,
    ),
    "small-fp32-16x16x16": small("fp32", 4096, 16, 16, 16, warps=1),
    "small-fp32-32x32x32": small("fp32", 2048, 32, 32, 32),
    "small-fp32-64x64x16": small("fp32", 1024, 64, 64, 16),
    "small-fp16-16x16x16": small("fp16", 4096, 16, 16, 16, warps=1),
}
