"""Matrix products in which a block that is done takes the tile of one that has not begun (cluster launch control)."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor

SINCE = "3.9.0"


@triton.jit
def launch_control_pointer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_bn, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :]
    b_ptrs = b_ptr + offs_n[:, None] * stride_bn + offs_k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs).T, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


@triton.jit
def launch_control_descriptor_kernel(
    a_desc, b_desc, c_desc, K,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WARP_SPECIALIZE: tl.constexpr,
):
    """One tile a program: warps may be given their own work in the loop over K."""
    first_m = tl.program_id(0) * BLOCK_M
    first_n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in tl.range(0, K, BLOCK_K, warp_specialize=WARP_SPECIALIZE):
        a = a_desc.load([first_m, k])
        b = b_desc.load([first_n, k])
        acc = tl.dot(a, b.T, acc)
    c_desc.store([first_m, first_n], acc.to(c_desc.dtype))


def pointers(a, b, block=(128, 128, 64), warps=8, stages=3):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)
    launch_control_pointer_kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))](
        a, b, c, m, n, k, a.stride(0), b.stride(0), c.stride(0), BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages, clc=True,
    )
    return c


def descriptors(a, b, block=(128, 128, 64), warps=4, stages=3, warp_specialize=False):
    (m, k), n = a.shape, b.shape[0]
    c = empty((m, n), a.dtype)

    def describe(x, shape):
        return TensorDescriptor(x, list(x.shape), list(x.stride()), list(shape))

    launch_control_descriptor_kernel[(m // block[0], n // block[1])](
        describe(a, (block[0], block[2])), describe(b, (block[1], block[2])), describe(c, (block[0], block[1])), k,
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], WARP_SPECIALIZE=warp_specialize,
        num_warps=warps, num_stages=stages, clc=True,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float().T


def row(function, dtype, m, n, k, **facts):
    return launch(
        function, tensor((m, k), dtype), tensor((n, k), dtype), targets="sm_100", flops=2 * m * n * k,
        min_bytes=2 * (m * k + n * k + m * n), reference=reference, rtol=2e-2, atol=0.5, **facts,
    )


LAUNCHES = {
    "fp16-4096": row(pointers, "fp16", 4096, 4096, 4096),
    "bf16-2048-narrow": row(pointers, "bf16", 2048, 2048, 2048, block=(128, 64, 128), warps=4),
    "bf16-descriptor": row(descriptors, "bf16", 4096, 4096, 2048),
    "fp16-specialized": row(descriptors, "fp16", 4096, 4096, 4096, warp_specialize=True),
    "bf16-specialized": row(descriptors, "bf16", 4096, 2048, 2048, block=(128, 64, 128), warp_specialize=True),
    "fp16-specialized-deep": row(descriptors, "fp16", 2048, 4096, 8192, block=(128, 256, 64), warp_specialize=True),
}
