"""Matrix product through block pointers: the form between plain pointers and tensor descriptors."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor

UNTIL = "3.9.0"  # where block pointers were removed


@triton.jit
def block_pointer_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    first_m = tl.program_id(0) * BLOCK_M
    first_n = tl.program_id(1) * BLOCK_N
    a_block = tl.make_block_ptr(
        a_ptr, (M, K), (stride_am, stride_ak), (first_m, 0), (BLOCK_M, BLOCK_K), order=(1, 0)
    )
    b_block = tl.make_block_ptr(
        b_ptr, (K, N), (stride_bk, stride_bn), (0, first_n), (BLOCK_K, BLOCK_N), order=(1, 0)
    )
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc)
        a_block = tl.advance(a_block, (0, BLOCK_K))
        b_block = tl.advance(b_block, (BLOCK_K, 0))
    c_block = tl.make_block_ptr(
        c_ptr, (M, N), (stride_cm, stride_cn), (first_m, first_n), (BLOCK_M, BLOCK_N), order=(1, 0)
    )
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


def matmul(a, b, block=(128, 128, 64), warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]
    c = empty((m, n), a.dtype)
    block_pointer_kernel[(triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))](
        a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps, num_stages=stages,
    )
    return c


def reference(a, b, **_):
    return a.float() @ b.float()


def row(dtype, m, n, k, size, **facts):
    return launch(
        matmul, tensor((m, k), dtype), tensor((k, n), dtype), flops=2 * m * n * k,
        min_bytes=((m + n) * k + m * n) * size, reference=reference, atol=facts.pop("atol", 0.1), **facts,
    )


LAUNCHES = {
    "fp16-4096": row("fp16", 4096, 4096, 4096, 2),
    "bf16-odd": row("bf16", 1000, 1208, 520, 2, block=(64, 128, 32), warps=4, atol=0.5),
}
