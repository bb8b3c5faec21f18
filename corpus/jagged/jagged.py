"""Operations on ragged batches: values packed under each other, bounds in a second tensor."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def jagged_sum_kernel(x_ptr, bounds_ptr, out_ptr, width, BLOCK_R: tl.constexpr, BLOCK_D: tl.constexpr):
    begin = tl.load(bounds_ptr + tl.program_id(0))
    end = tl.load(bounds_ptr + tl.program_id(0) + 1)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    acc = tl.zeros((BLOCK_R, BLOCK_D), tl.float32)
    for start in range(begin, end, BLOCK_R):
        rows = start + tl.arange(0, BLOCK_R)
        inside = (rows < end)[:, None] & (cols < width)[None, :]
        acc += tl.load(x_ptr + rows[:, None] * width + cols[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0) * width + cols, tl.sum(acc, axis=0), mask=cols < width)


@triton.jit
def jagged_softmax_kernel(x_ptr, bounds_ptr, out_ptr, BLOCK: tl.constexpr):
    begin = tl.load(bounds_ptr + tl.program_id(0))
    end = tl.load(bounds_ptr + tl.program_id(0) + 1)
    top = -float("inf")
    total = 0.0
    for start in range(begin, end, BLOCK):
        where = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + where, mask=where < end, other=-float("inf"))
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        top = higher
    for start in range(begin, end, BLOCK):
        where = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + where, mask=where < end, other=0.0)
        tl.store(out_ptr + where, tl.exp(x - top) / total, mask=where < end)


@triton.jit
def jagged_dense_kernel(
    x_ptr, bounds_ptr, w_ptr, y_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """Each sequence times a matrix of its own."""
    sequence = tl.program_id(2)
    begin = tl.load(bounds_ptr + sequence)
    length = tl.load(bounds_ptr + sequence + 1) - begin
    if tl.program_id(0) * BLOCK_M >= length:
        return
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + (begin + offs_m)[:, None] * K + offs_k[None, :], mask=(offs_m < length)[:, None], other=0.0)
        w = tl.load(w_ptr + sequence * K * N + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(x, w, acc)
    where = (begin + offs_m)[:, None] * N + offs_n[None, :]
    tl.store(y_ptr + where, acc.to(y_ptr.dtype.element_ty), mask=(offs_m < length)[:, None])


def jagged_sum(x, bounds, block=(32, 64)):
    out = empty((bounds.shape[0] - 1, x.shape[1]), "fp32")
    grid = (bounds.shape[0] - 1, triton.cdiv(x.shape[1], block[1]))
    jagged_sum_kernel[grid](x, bounds, out, x.shape[1], BLOCK_R=block[0], BLOCK_D=block[1])
    return out


def jagged_softmax(x, bounds, block=512):
    out = empty(x.shape, x.dtype)
    jagged_softmax_kernel[(bounds.shape[0] - 1,)](x, bounds, out, BLOCK=block)
    return out


def jagged_dense(x, bounds, w, longest, block=(64, 64, 32)):
    (total, k), n = x.shape, w.shape[2]
    y = empty((total, n), x.dtype)
    grid = (triton.cdiv(longest, block[0]), n // block[1], bounds.shape[0] - 1)
    jagged_dense_kernel[grid](x, bounds, w, y, n, k, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2])
    return y


def _pieces(bounds):
    limits = bounds.tolist()
    return list(enumerate(slice(a, b) for a, b in zip(limits, limits[1:])))


def sum_reference(x, bounds, **_):
    out = x.new_empty((bounds.shape[0] - 1, x.shape[1])).float()
    for place, part in _pieces(bounds):
        out[place] = x[part].float().sum(0)
    return out


def softmax_reference(x, bounds, **_):
    out = x.clone()
    for _, part in _pieces(bounds):
        out[part] = x[part].softmax(0)
    return out


def dense_reference(x, bounds, w, longest, **_):
    out = x.new_empty((x.shape[0], w.shape[2])).float()
    for place, part in _pieces(bounds):
        out[part] = x[part].float() @ w[place].float()
    return out


LENGTHS = [100 + (i * 331) % 700 for i in range(64)]
BOUNDS = [sum(LENGTHS[:i]) for i in range(65)]
TOTAL = BOUNDS[-1]

LAUNCHES = {
    "sum-bf16-256": launch(
        jagged_sum, tensor((TOTAL, 256), "bf16"), values(BOUNDS), flops=TOTAL * 256, min_bytes=2 * TOTAL * 256,
        reference=sum_reference, rtol=1e-2, atol=1e-2, tier="gate",
    ),
    "softmax-fp32": launch(
        jagged_softmax, tensor((TOTAL,), "fp32"), values(BOUNDS), flops=5 * TOTAL, min_bytes=8 * TOTAL,
        reference=softmax_reference, rtol=1e-3, atol=1e-5,
    ),
    "dense-fp16-256x256": launch(
        jagged_dense, tensor((TOTAL, 256), "fp16"), values(BOUNDS), tensor((64, 256, 256), "fp16"), max(LENGTHS),
        flops=2 * TOTAL * 256 * 256, min_bytes=2 * (2 * TOTAL * 256 + 64 * 256 * 256), reference=dense_reference,
        rtol=2e-2, atol=5e-2,
    ),
}
