"""Grouped matrix products: one weight a group, rows of the input sorted by group, any number of rows each."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def grouped_matmul_kernel(
    x_ptr, w_ptr, y_ptr, offsets_ptr, N, K, stride_xm, stride_wg, stride_wn, stride_ym,
    GROUPS: tl.constexpr, PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """A fixed number of programs walk through the tiles of all groups; the tile list is never stored."""
    tile = tl.program_id(0)
    first_tile = 0
    num_n = tl.cdiv(N, BLOCK_N)
    for group in range(GROUPS):
        begin = tl.load(offsets_ptr + group)
        rows = tl.load(offsets_ptr + group + 1) - begin
        tiles = tl.cdiv(rows, BLOCK_M) * num_n
        while tile >= first_tile and tile < first_tile + tiles:
            here = tile - first_tile
            offs_m = (here // num_n) * BLOCK_M + tl.arange(0, BLOCK_M)
            offs_n = (here % num_n) * BLOCK_N + tl.arange(0, BLOCK_N)
            offs_k = tl.arange(0, BLOCK_K)
            x_ptrs = x_ptr + (begin + offs_m)[:, None] * stride_xm + offs_k[None, :]
            w_ptrs = w_ptr + group * stride_wg + offs_n[None, :] * stride_wn + offs_k[:, None]
            acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            for _ in range(0, K, BLOCK_K):
                x = tl.load(x_ptrs, mask=(offs_m < rows)[:, None], other=0.0)
                w = tl.load(w_ptrs, mask=(offs_n < N)[None, :], other=0.0)
                acc = tl.dot(x, w, acc)
                x_ptrs += BLOCK_K
                w_ptrs += BLOCK_K
            y_ptrs = y_ptr + (begin + offs_m)[:, None] * stride_ym + offs_n[None, :]
            tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(offs_m < rows)[:, None] & (offs_n < N)[None, :])
            tile += PROGRAMS
        first_tile += tiles


def grouped_matmul(x, w, offsets, block=(128, 128, 64), programs=132, warps=8, stages=3):
    (m, k), (groups, n, _) = x.shape, w.shape
    y = empty((m, n), x.dtype)
    grouped_matmul_kernel[(programs,)](
        x, w, y, offsets, n, k, x.stride(0), w.stride(0), w.stride(1), y.stride(0),
        GROUPS=groups, PROGRAMS=programs, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages,
    )
    return y


def reference(x, w, offsets, **_):
    bounds = offsets.tolist()
    out = x.new_empty((x.shape[0], w.shape[1])).float()
    for group, (begin, end) in enumerate(zip(bounds, bounds[1:])):
        out[begin:end] = x[begin:end].float() @ w[group].float().T
    return out


def row(dtype, sizes, n, k, **facts):
    offsets = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    m, groups = offsets[-1], len(sizes)
    return launch(
        grouped_matmul, tensor((m, k), dtype), tensor((groups, n, k), dtype), values(offsets),
        flops=2 * m * n * k, min_bytes=2 * (m * k + groups * n * k + m * n), reference=reference,
        rtol=2e-2, atol=0.5, **facts,
    )


LAUNCHES = {
    "fp16-8groups": row("fp16", [1024, 512, 2048, 17, 300, 0, 1500, 900], 4096, 2048, tier="gate"),
    "bf16-16groups": row(
        "bf16", [64, 33, 128, 5, 97, 256, 1, 80, 40, 40, 12, 200, 0, 66, 31, 150], 2048, 1024, block=(64, 128, 64), warps=4
    ),
}
