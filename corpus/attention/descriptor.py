"""Flash attention forward through tensor descriptors, plain and warp-specialized."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor

SINCE = "3.4.0"


@triton.jit
def descriptor_forward_kernel(
    q_desc, k_desc, v_desc, out_desc, length, scale,
    WARP_SPECIALIZE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    """Rows of all heads lie under each other in one two-dimensional descriptor."""
    first_row = tl.program_id(1) * length
    q = q_desc.load([first_row + tl.program_id(0) * BLOCK_M, 0])
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    scale *= 1.4426950408889634
    for start in tl.range(0, length, BLOCK_N, warp_specialize=WARP_SPECIALIZE):
        k = k_desc.load([first_row + start, 0])
        scores = tl.dot(q, k.T)
        higher = tl.maximum(top, tl.max(scores, 1) * scale)
        p = tl.math.exp2(scores * scale - higher[:, None])
        decay = tl.math.exp2(top - higher)
        denominator = denominator * decay + tl.sum(p, 1)
        acc = acc * decay[:, None]
        v = v_desc.load([first_row + start, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = higher
    out = acc / denominator[:, None]
    out_desc.store([first_row + tl.program_id(0) * BLOCK_M, 0], out.to(out_desc.dtype))


def descriptor_forward(q, k, v, block=(128, 64), warps=8, stages=2, warp_specialize=False):
    heads, length, d = q.shape
    out = empty(q.shape, q.dtype)
    def describe(x, rows):
        return TensorDescriptor(x, [heads * length, d], [d, 1], [rows, d])

    descriptor_forward_kernel[(length // block[0], heads)](
        describe(q, block[0]), describe(k, block[1]), describe(v, block[1]), describe(out, block[0]), length, d**-0.5,
        WARP_SPECIALIZE=warp_specialize, BLOCK_M=block[0], BLOCK_N=block[1], D=d, num_warps=warps, num_stages=stages,
    )
    return out


def reference(q, k, v, **_):
    q, k, v = q.float(), k.float(), v.float()
    return (q @ k.transpose(1, 2) * q.shape[2] ** -0.5).softmax(-1) @ v


def row(dtype, heads, length, d, **facts):
    shape = (heads, length, d)
    return launch(
        descriptor_forward, tensor(shape, dtype), tensor(shape, dtype), tensor(shape, dtype),
        flops=4 * heads * length * length * d, min_bytes=8 * heads * length * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "fp16-d64": row("fp16", 32, 2048, 64, tier="gate"),
    "bf16-d128": row("bf16", 16, 2048, 128),
    "fp16-d128-specialized": row("fp16", 16, 2048, 128, warps=4, warp_specialize=True, targets=("sm_100", "gfx*")),
}
