"""Embedding: rows gathered by number; gradients scattered back with atomic additions, which may collide."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def embedding_kernel(ids_ptr, table_ptr, out_ptr, tokens, width, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    ids = tl.load(ids_ptr + token, mask=token < tokens, other=0)
    inside = (token < tokens)[:, None] & (cols < width)[None, :]
    rows = tl.load(table_ptr + ids[:, None] * width + cols[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + token[:, None] * width + cols[None, :], rows, mask=inside)


@triton.jit
def embedding_backward_kernel(ids_ptr, dout_ptr, dtable_ptr, tokens, width, BLOCK_T: tl.constexpr, BLOCK_D: tl.constexpr):
    token = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    cols = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    ids = tl.load(ids_ptr + token, mask=token < tokens, other=0)
    inside = (token < tokens)[:, None] & (cols < width)[None, :]
    dout = tl.load(dout_ptr + token[:, None] * width + cols[None, :], mask=inside, other=0.0)
    target = dtable_ptr + ids[:, None] * width + cols[None, :]
    tl.atomic_add(target, dout.to(dtable_ptr.dtype.element_ty), mask=inside, sem="relaxed")


@triton.jit
def scatter_max_kernel(index_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < n
    index = tl.load(index_ptr + where, mask=inside, other=0)
    tl.atomic_max(out_ptr + index, tl.load(x_ptr + where, mask=inside, other=0), mask=inside)


def embedding(ids, table, block=(4, 256)):
    out = empty((ids.shape[0], table.shape[1]), table.dtype)
    grid = (triton.cdiv(ids.shape[0], block[0]), triton.cdiv(table.shape[1], block[1]))
    embedding_kernel[grid](ids, table, out, ids.shape[0], table.shape[1], BLOCK_T=block[0], BLOCK_D=block[1])
    return out


def embedding_backward(ids, dout, words, dtype="fp32", block=(4, 256)):
    dtable = zeros((words, dout.shape[1]), dtype)
    grid = (triton.cdiv(ids.shape[0], block[0]), triton.cdiv(dout.shape[1], block[1]))
    embedding_backward_kernel[grid](ids, dout, dtable, ids.shape[0], dout.shape[1], BLOCK_T=block[0], BLOCK_D=block[1])
    return dtable


def scatter_max(index, x, size, block=1024):
    out = zeros((size,), x.dtype)
    scatter_max_kernel[(triton.cdiv(x.numel(), block),)](index, x, out, x.numel(), BLOCK=block)
    return out


def reference(ids, table, **_):
    return table[ids.long()]


def backward_reference(ids, dout, words, dtype="fp32", **_):
    out = dout.new_zeros((words, dout.shape[1])).float()
    return out.index_add_(0, ids.long(), dout.float())


def max_reference(index, x, size, **_):
    return x.new_zeros((size,)).scatter_reduce_(0, index.long(), x, "amax")


def ids(tokens, words):
    return tensor((tokens,), "i64", fill=f"randint:0:{words}")


LAUNCHES = {
    "bf16-32k-words": launch(
        embedding, ids(16384, 32000), tensor((32000, 2048), "bf16"), min_bytes=4 * 16384 * 2048, flops=16384 * 2048,
        reference=reference, rtol=0, atol=0, tier="gate",
    ),
    "backward-fp32": launch(
        embedding_backward, ids(16384, 4000), tensor((16384, 1024), "bf16"), 4000, min_bytes=2 * 16384 * 1024 + 4 * 4000 * 1024,
        flops=16384 * 1024, reference=backward_reference, rtol=1e-3, atol=1e-3,
    ),
    "backward-fp16-atomics": launch(
        embedding_backward, ids(16384, 4000), tensor((16384, 1024), "fp16"), 4000, "fp16",
        min_bytes=2 * (16384 + 4000) * 1024, flops=16384 * 1024, reference=backward_reference, rtol=1e-2, atol=5e-2,
    ),
    "scatter-max-i32": launch(
        scatter_max, tensor((1 << 20,), "i32", fill="randint:0:5000"), tensor((1 << 20,), "i32", fill="randint:0:1000000"),
        5000, min_bytes=8 << 20, flops=1 << 20, reference=max_reference, rtol=0, atol=0,
    ),
}
