"""Divergences between distributions (Kullback-Leibler, Jensen-Shannon), and a linear layer fused with its loss."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def kl_kernel(log_q_ptr, p_ptr, loss_ptr, dlog_q_ptr, n_cols, LOG_TARGET: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        log_q = tl.load(log_q_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        target = tl.load(p_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
        if LOG_TARGET:
            p = tl.where(inside, tl.exp(target), 0.0)
            total += tl.sum(p * (target - log_q), axis=0)
        else:
            p = target
            total += tl.sum(p * (tl.log(tl.maximum(p, 1e-10)) - log_q), axis=0)
        tl.store(dlog_q_ptr + row * n_cols + cols, -p, mask=inside)
    tl.store(loss_ptr + row, total)


@triton.jit
def jsd_kernel(log_q_ptr, log_p_ptr, loss_ptr, dlog_q_ptr, n_cols, beta, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        log_q = tl.load(log_q_ptr + row * n_cols + cols, mask=inside, other=-float("inf")).to(tl.float32)
        log_p = tl.load(log_p_ptr + row * n_cols + cols, mask=inside, other=-float("inf")).to(tl.float32)
        q = tl.exp(log_q)
        p = tl.exp(log_p)
        log_m = tl.log(beta * p + (1 - beta) * q)
        terms = beta * p * (log_p - log_m) + (1 - beta) * q * (log_q - log_m)
        total += tl.sum(tl.where(inside, terms, 0.0), axis=0)
        tl.store(dlog_q_ptr + row * n_cols + cols, (1 - beta) * q * (log_q - log_m), mask=inside)
    tl.store(loss_ptr + row, total)


@triton.jit
def linear_cross_entropy_kernel(
    x_ptr, w_ptr, labels_ptr, loss_ptr, vocabulary, hidden,
    BLOCK_M: tl.constexpr, BLOCK_V: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """Logits are made a tile at a time and never stored; the running maximum and sum go across tiles."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    label = tl.load(labels_ptr + offs_m)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    chosen = tl.zeros((BLOCK_M,), tl.float32)
    for first in range(0, vocabulary, BLOCK_V):
        offs_v = first + tl.arange(0, BLOCK_V)
        logits = tl.zeros((BLOCK_M, BLOCK_V), tl.float32)
        for start in range(0, hidden, BLOCK_K):
            offs_k = start + tl.arange(0, BLOCK_K)
            x = tl.load(x_ptr + offs_m[:, None] * hidden + offs_k[None, :])
            w = tl.load(w_ptr + offs_v[None, :] * hidden + offs_k[:, None], mask=(offs_v < vocabulary)[None, :], other=0.0)
            logits = tl.dot(x, w, logits)
        logits = tl.where((offs_v < vocabulary)[None, :], logits, -float("inf"))
        higher = tl.maximum(top, tl.max(logits, 1))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(logits - higher[:, None]), 1)
        chosen += tl.sum(tl.where(offs_v[None, :] == label[:, None], logits, 0.0), 1)
        top = higher
    tl.store(loss_ptr + offs_m, top + tl.log(total) - chosen)


def kl(log_q, target, log_target=False, block=4096):
    loss, gradient = empty((log_q.shape[0],), "fp32"), empty(log_q.shape, "fp32")
    kl_kernel[(log_q.shape[0],)](
        log_q, target, loss, gradient, log_q.shape[1], LOG_TARGET=log_target, BLOCK=block, num_warps=8
    )
    return loss, gradient


def jsd(log_q, log_p, beta, block=4096):
    loss, gradient = empty((log_q.shape[0],), "fp32"), empty(log_q.shape, "fp32")
    jsd_kernel[(log_q.shape[0],)](log_q, log_p, loss, gradient, log_q.shape[1], beta, BLOCK=block, num_warps=8)
    return loss, gradient


def linear_cross_entropy(x, weight, labels, block=(64, 128, 64), warps=4, stages=3):
    loss = empty((x.shape[0],), "fp32")
    linear_cross_entropy_kernel[(x.shape[0] // block[0],)](
        x, weight, labels, loss, weight.shape[0], x.shape[1], BLOCK_M=block[0], BLOCK_V=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages,
    )
    return loss


def kl_reference(log_q, target, log_target=False, block=4096):
    log_q, target = log_q.float(), target.float()
    p = target.exp() if log_target else target
    log_p = target if log_target else p.clamp_min(1e-10).log()
    return (p * (log_p - log_q)).sum(1), -p


def jsd_reference(log_q, log_p, beta, block=4096):
    log_q, log_p = log_q.float(), log_p.float()
    log_m = (beta * log_p.exp() + (1 - beta) * log_q.exp()).log()
    gradient = (1 - beta) * log_q.exp() * (log_q - log_m)
    return (beta * log_p.exp() * (log_p - log_m) + gradient).sum(1), gradient


def linear_reference(x, weight, labels, **_):
    logits = x.float() @ weight.float().T
    return logits.logsumexp(1) - logits.gather(1, labels.long()[:, None])[:, 0]


def row(function, reference, fills, *args, **facts):
    shape = (2048, 32000)
    return launch(
        function, *(tensor(shape, "fp32", fill=fill) for fill in fills), *args, flops=8 * shape[0] * shape[1],
        min_bytes=12 * shape[0] * shape[1], reference=reference, rtol=1e-3, atol=1e-2, **facts,
    )


LAUNCHES = {
    "kl-fp32-32k": row(kl, kl_reference, ["uniform:-12:-9", "uniform:0:0.0001"]),
    "kl-log-target-fp32-32k": row(kl, kl_reference, ["uniform:-12:-9", "uniform:-12:-9"], log_target=True),
    "jsd-fp32-32k": row(jsd, jsd_reference, ["uniform:-12:-9", "uniform:-12:-9"], 0.5),
    "linear-bf16-1024x32000": launch(
        linear_cross_entropy, tensor((8192, 1024), "bf16"), tensor((32000, 1024), "bf16", fill="normal:0.05"),
        tensor((8192,), "i64", fill="randint:0:32000"), flops=2 * 8192 * 32000 * 1024,
        min_bytes=2 * 1024 * (8192 + 32000), reference=linear_reference, rtol=1e-2, atol=5e-2,
    ),
}
