"""Cross entropy over a vocabulary: loss forward, gradient backward, rows far longer than a block."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def cross_entropy_forward_kernel(
    logits_ptr, labels_ptr, loss_ptr, lse_ptr, stride, n_cols, ignore, smoothing, SMOOTH: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_ptr + row)
    logits_ptr += row * stride
    top = -float("inf")
    total = 0.0
    everything = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), axis=0)
        if SMOOTH:
            everything += tl.sum(tl.where(cols < n_cols, x, 0.0), axis=0)
        top = higher
    lse = top + tl.log(total)
    tl.store(lse_ptr + row, lse)
    if label == ignore:
        tl.store(loss_ptr + row, 0.0)
    else:
        loss = lse - tl.load(logits_ptr + label).to(tl.float32)
        if SMOOTH:
            loss = (1 - smoothing) * loss + smoothing * (lse - everything / n_cols)
        tl.store(loss_ptr + row, loss)


@triton.jit
def cross_entropy_backward_kernel(
    logits_ptr, labels_ptr, lse_ptr, dloss_ptr, dlogits_ptr, stride, n_cols, ignore, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    label = tl.load(labels_ptr + row)
    inside = cols < n_cols
    scale = tl.where(label == ignore, 0.0, tl.load(dloss_ptr + row))
    x = tl.load(logits_ptr + row * stride + cols, mask=inside, other=-float("inf")).to(tl.float32)
    p = tl.exp(x - tl.load(lse_ptr + row))
    gradient = (p - tl.where(cols == label, 1.0, 0.0)) * scale
    tl.store(dlogits_ptr + row * stride + cols, gradient.to(dlogits_ptr.dtype.element_ty), mask=inside)


def cross_entropy(logits, labels, smoothing=0.0, block=4096, warps=8):
    rows, cols = logits.shape
    loss, lse = empty((rows,), "fp32"), empty((rows,), "fp32")
    cross_entropy_forward_kernel[(rows,)](
        logits, labels, loss, lse, logits.stride(0), cols, -100, smoothing,
        SMOOTH=smoothing > 0, BLOCK=block, num_warps=warps,
    )
    return loss, lse


def cross_entropy_backward(logits, labels, lse, dloss, block=4096, warps=8):
    rows, cols = logits.shape
    dlogits = empty(logits.shape, logits.dtype)
    cross_entropy_backward_kernel[(rows, triton.cdiv(cols, block))](
        logits, labels, lse, dloss, dlogits, logits.stride(0), cols, -100, BLOCK=block, num_warps=warps
    )
    return dlogits


def reference(logits, labels, smoothing=0.0, block=4096, warps=8):
    x = logits.float()
    lse = x.logsumexp(-1)
    loss = lse - x.gather(1, labels[:, None].long())[:, 0]
    return (1 - smoothing) * loss + smoothing * (lse - x.mean(-1)), lse


def backward_reference(logits, labels, lse, dloss, block=4096, warps=8):
    p = (logits.float() - lse[:, None]).exp()
    p[range(len(labels)), labels.long()] -= 1
    return p * dloss[:, None]


def forward(dtype, rows, cols, **facts):
    return launch(
        cross_entropy, tensor((rows, cols), dtype), tensor((rows,), "i64", fill=f"randint:0:{cols}"),
        flops=4 * rows * cols, min_bytes=rows * cols * (4 if dtype == "fp32" else 2), reference=reference,
        rtol=1e-3, atol=1e-2, **facts,
    )


def backward(dtype, rows, cols, **facts):
    return launch(
        cross_entropy_backward, tensor((rows, cols), dtype), tensor((rows,), "i64", fill=f"randint:0:{cols}"),
        tensor((rows,), "fp32", fill="uniform:10:11"), tensor((rows,), "fp32", fill="uniform"),
        flops=4 * rows * cols, min_bytes=2 * rows * cols * (4 if dtype == "fp32" else 2),
        reference=backward_reference, rtol=2e-2, atol=1e-3, **facts,
    )


LAUNCHES = {
    "bf16-128k": forward("bf16", 2048, 128256, tier="gate"),
    "fp32-32k": forward("fp32", 2048, 32000, block=8192, warps=16),
    "bf16-smooth-50k": forward("bf16", 2048, 50257, smoothing=0.1),  # rows that do not begin aligned
    "backward-bf16-128k": backward("bf16", 1024, 128256),
    "backward-fp32-32k": backward("fp32", 2048, 32000, block=1024, warps=4),
}
