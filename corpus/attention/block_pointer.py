"""Flash attention forward through block pointers."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor

UNTIL = "3.9.0"  # where block pointers were removed


@triton.jit
def block_pointer_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, length, scale, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr
):
    head = tl.program_id(1).to(tl.int64) * length * D
    first_m = tl.program_id(0) * BLOCK_M
    q_block = tl.make_block_ptr(q_ptr + head, (length, D), (D, 1), (first_m, 0), (BLOCK_M, D), (1, 0))
    k_block = tl.make_block_ptr(k_ptr + head, (D, length), (1, D), (0, 0), (D, BLOCK_N), (0, 1))
    v_block = tl.make_block_ptr(v_ptr + head, (length, D), (D, 1), (0, 0), (BLOCK_N, D), (1, 0))
    out_block = tl.make_block_ptr(out_ptr + head, (length, D), (D, 1), (first_m, 0), (BLOCK_M, D), (1, 0))
    q = tl.load(q_block)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    scale *= 1.4426950408889634
    for _ in range(0, length, BLOCK_N):
        scores = tl.dot(q, tl.load(k_block)) * scale
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.math.exp2(scores - higher[:, None])
        decay = tl.math.exp2(top - higher)
        denominator = denominator * decay + tl.sum(p, 1)
        v = tl.load(v_block)
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        top = higher
        k_block = tl.advance(k_block, (0, BLOCK_N))
        v_block = tl.advance(v_block, (BLOCK_N, 0))
    tl.store(out_block, (acc / denominator[:, None]).to(out_ptr.dtype.element_ty))


def block_pointer_forward(q, k, v, block=(128, 64), warps=8, stages=2):
    heads, length, d = q.shape
    out = empty(q.shape, q.dtype)
    block_pointer_forward_kernel[(length // block[0], heads)](
        q, k, v, out, length, d**-0.5, BLOCK_M=block[0], BLOCK_N=block[1], D=d, num_warps=warps, num_stages=stages
    )
    return out


def reference(q, k, v, **_):
    q, k, v = q.float(), k.float(), v.float()
    return (q @ k.transpose(1, 2) * q.shape[2] ** -0.5).softmax(-1) @ v


def row(dtype, heads, length, d, **facts):
    shape = (heads, length, d)
    return launch(
        block_pointer_forward, tensor(shape, dtype), tensor(shape, dtype), tensor(shape, dtype),
        flops=4 * heads * length * length * d, min_bytes=8 * heads * length * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "fp16-d64": row("fp16", 32, 2048, 64, warps=4),
    "bf16-d128": row("bf16", 16, 2048, 128),
}
