"""Kernels shaped as torch.compile's Inductor writes them: flat index arithmetic, eviction hints, no names of meaning."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.language.extra import libdevice


@triton.jit
def pointwise_kernel(in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    """(x + bias[channel]) → GELU → times a broadcast gate, over N×C×HW with index arithmetic."""
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x3 = xindex
    x1 = (xindex // 3136) % 96
    x2 = xindex // 301056
    tmp0 = tl.load(in_ptr0 + x3, xmask).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + x1, xmask, eviction_policy="evict_last").to(tl.float32)
    tmp2 = tl.load(in_ptr2 + (x1 + 96 * x2), xmask, eviction_policy="evict_last").to(tl.float32)
    tmp3 = tmp0 + tmp1
    tmp4 = tmp3 * 0.5
    tmp5 = libdevice.erf(tmp3 * 0.7071067811865476)
    tmp6 = tmp4 * (tmp5 + 1.0)
    tl.store(out_ptr0 + x3, tmp6 * tl.sigmoid(tmp2), xmask)


@triton.jit
def transposed_pointwise_kernel(in_ptr0, in_ptr1, out_ptr0, ynumel, xnumel, YBLOCK: tl.constexpr, XBLOCK: tl.constexpr):
    """Two index dimensions: one operand is read along x, the other along y."""
    yindex = tl.program_id(1) * YBLOCK + tl.arange(0, YBLOCK)[None, :]
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    ymask = yindex < ynumel
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + (xindex + xnumel * yindex), xmask & ymask, eviction_policy="evict_last")
    tmp1 = tl.load(in_ptr1 + (yindex + ynumel * xindex), xmask & ymask, eviction_policy="evict_last")
    tl.store(out_ptr0 + (yindex + ynumel * xindex), tmp0 + tl.maximum(tmp1, 0.0), xmask & ymask)


@triton.jit
def reduction_kernel(
    in_ptr0, in_ptr1, out_ptr0, out_ptr1, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr
):
    """A looped reduction, x × r, with a second pass over what was reduced."""
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    _tmp4 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), rmask & xmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        tmp2 = tmp0 * tmp1
        tmp3 = tl.broadcast_to(tmp2 * tmp2, [XBLOCK, RBLOCK])
        _tmp4 = tl.where(rmask & xmask, _tmp4 + tmp3, _tmp4)
    tmp4 = tl.sum(_tmp4, 1)[:, None]
    tl.store(out_ptr0 + xindex, tmp4, xmask)
    tmp5 = libdevice.rsqrt(tmp4 / rnumel + 1e-05)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        rmask = rindex < rnumel
        tmp6 = tl.load(in_ptr0 + (rindex + rnumel * xindex), rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tl.store(out_ptr1 + (rindex + rnumel * xindex), tmp6 * tmp5, rmask & xmask)


@triton.jit
def persistent_reduction_kernel(
    in_ptr0, in_ptr1, in_ptr2, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr
):
    """The whole row in a block: layer norm of a sum, then softmax of it."""
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    rindex = tl.arange(0, RBLOCK)[None, :]
    rmask = rindex < rnumel
    tmp0 = tl.load(in_ptr0 + (rindex + rnumel * xindex), rmask, other=0.0).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (rindex + rnumel * xindex), rmask, other=0.0).to(tl.float32)
    tmp2 = tl.load(in_ptr2 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
    tmp3 = tmp0 + tmp1
    tmp4 = tl.sum(tl.where(rmask, tmp3, 0.0), 1)[:, None] / rnumel
    tmp5 = tl.where(rmask, tmp3 - tmp4, 0.0)
    tmp6 = tl.sum(tmp5 * tmp5, 1)[:, None] / rnumel
    tmp7 = tmp5 * libdevice.rsqrt(tmp6 + 1e-05) * tmp2
    tmp8 = tl.where(rmask, tmp7, float("-inf"))
    tmp9 = tl.max(tmp8, 1)[:, None]
    tmp10 = tl.exp(tmp8 - tmp9)
    tmp11 = tl.sum(tl.where(rmask, tmp10, 0.0), 1)[:, None]
    tl.store(out_ptr0 + (rindex + rnumel * xindex), tmp10 / tmp11, rmask)


@triton.jit
def wide_reduction_kernel(in_ptr0, in_ptr1, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    """Many outputs of one reduction with modular index arithmetic: long straight-line code for LLVM."""
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    acc0 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    acc1 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    acc2 = tl.full([XBLOCK, RBLOCK], float("-inf"), tl.float32)
    acc3 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rindex = roffset + rbase
        mask = (rindex < rnumel) & xmask
        place = (rindex % 56) * 56 + (rindex // 56) % 56 + 3136 * (xindex % 96) + 301056 * (xindex // 96)
        tmp0 = tl.load(in_ptr0 + place, mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + (rindex + rnumel * xindex), mask, eviction_policy="evict_first", other=0.0).to(tl.float32)
        acc0 = tl.where(mask, acc0 + tmp0, acc0)
        acc1 = tl.where(mask, acc1 + tmp0 * tmp1, acc1)
        acc2 = tl.where(mask, tl.maximum(acc2, tmp0), acc2)
        acc3 = tl.where(mask, acc3 + tl.exp(-tmp1 * tmp1), acc3)
    tl.store(out_ptr0 + 4 * xindex, tl.sum(acc0, 1)[:, None], xmask)
    tl.store(out_ptr0 + 4 * xindex + 1, tl.sum(acc1, 1)[:, None], xmask)
    tl.store(out_ptr0 + 4 * xindex + 2, tl.max(acc2, 1)[:, None], xmask)
    tl.store(out_ptr0 + 4 * xindex + 3, tl.sum(acc3, 1)[:, None], xmask)


@triton.jit
def combo_reduction_kernel(
    in_ptr0, in_ptr1, out_ptr0, in_ptr2, in_ptr3, out_ptr1, xnumel_0, xnumel_1, rnumel_0, rnumel_1,
    XBLOCK: tl.constexpr, RBLOCK: tl.constexpr,
):
    """Two reductions that have nothing to do with each other in one launch, told apart by the program's number."""
    pid = tl.program_id(0)
    num_xblocks_0 = tl.cdiv(xnumel_0, XBLOCK)
    num_xblocks_1 = num_xblocks_0 + tl.cdiv(xnumel_1, XBLOCK)
    if pid < num_xblocks_0:
        xindex = pid * XBLOCK + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel_0
        rbase = tl.arange(0, RBLOCK)[None, :]
        _tmp0 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
        for roffset in range(0, rnumel_0, RBLOCK):
            rindex = roffset + rbase
            rmask = (rindex < rnumel_0) & xmask
            tmp1 = tl.load(in_ptr0 + (rindex + rnumel_0 * xindex), rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
            _tmp0 = tl.where(rmask, _tmp0 + tmp1 * tmp1, _tmp0)
        tmp2 = libdevice.rsqrt(tl.sum(_tmp0, 1)[:, None] / rnumel_0 + 1e-06)
        for roffset in range(0, rnumel_0, RBLOCK):
            rindex = roffset + rbase
            rmask = rindex < rnumel_0
            tmp3 = tl.load(in_ptr0 + (rindex + rnumel_0 * xindex), rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
            tmp4 = tl.load(in_ptr1 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
            tl.store(out_ptr0 + (rindex + rnumel_0 * xindex), tmp3 * tmp2 * tmp4, rmask & xmask)
    elif pid < num_xblocks_1:
        xindex = (pid - num_xblocks_0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
        xmask = xindex < xnumel_1
        rbase = tl.arange(0, RBLOCK)[None, :]
        _tmp0 = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
        for roffset in range(0, rnumel_1, RBLOCK):
            rindex = roffset + rbase
            rmask = (rindex < rnumel_1) & xmask
            tmp1 = tl.load(in_ptr2 + (rindex + rnumel_1 * xindex), rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
            _tmp0 = tl.where(rmask, _tmp0 + tmp1 * tmp1, _tmp0)
        tmp2 = libdevice.rsqrt(tl.sum(_tmp0, 1)[:, None] / rnumel_1 + 1e-06)
        for roffset in range(0, rnumel_1, RBLOCK):
            rindex = roffset + rbase
            rmask = rindex < rnumel_1
            tmp3 = tl.load(in_ptr2 + (rindex + rnumel_1 * xindex), rmask & xmask, eviction_policy="evict_first", other=0.0).to(tl.float32)
            tmp4 = tl.load(in_ptr3 + rindex, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
            tl.store(out_ptr1 + (rindex + rnumel_1 * xindex), tmp3 * tmp2 * (tmp4 + 1.0), rmask & xmask)


@triton.jit
def template_mm_kernel(
    arg_A, arg_B, in_ptr2, out_ptr0, M, N, K,
    GROUP_M: tl.constexpr, EVEN_K: tl.constexpr, ALLOW_TF32: tl.constexpr, ACC_TYPE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    """The matrix product template with a fused suffix, in the manner of max-autotune."""
    stride_am = K
    stride_bk = N
    pid = tl.program_id(0)
    grid_m = (M + BLOCK_M - 1) // BLOCK_M
    grid_n = (N + BLOCK_N - 1) // BLOCK_N
    width = GROUP_M * grid_n
    group_id = pid // width
    group_size = min(grid_m - group_id * GROUP_M, GROUP_M)
    pid_m = group_id * GROUP_M + (pid % group_size)
    pid_n = (pid % width) // group_size
    rm = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    rn = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    ram = tl.max_contiguous(tl.multiple_of(rm % M, BLOCK_M), BLOCK_M)
    rbn = tl.max_contiguous(tl.multiple_of(rn % N, BLOCK_N), BLOCK_N)
    rk = tl.arange(0, BLOCK_K)
    A = arg_A + (ram[:, None] * stride_am + rk[None, :])
    B = arg_B + (rk[:, None] * stride_bk + rbn[None, :])
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC_TYPE)
    for k in range(K, 0, -BLOCK_K):
        if EVEN_K:
            a = tl.load(A)
            b = tl.load(B)
        else:
            a = tl.load(A, mask=rk[None, :] < k, other=0.0)
            b = tl.load(B, mask=rk[:, None] < k, other=0.0)
        acc += tl.dot(a, b, allow_tf32=ALLOW_TF32)
        A += BLOCK_K
        B += BLOCK_K * stride_bk
    idx_m = rm[:, None]
    idx_n = rn[None, :]
    mask = (idx_m < M) & (idx_n < N)
    xindex = idx_n + N * idx_m
    tmp0 = tl.load(in_ptr2 + tl.broadcast_to(idx_n, acc.shape), mask, eviction_policy="evict_last").to(tl.float32)
    tmp1 = tl.maximum(acc + tmp0, 0.0)
    tl.store(out_ptr0 + tl.broadcast_to(xindex, acc.shape), tmp1, mask)


def pointwise(x, bias, gate, block=1024):
    out = empty(x.shape, x.dtype)
    pointwise_kernel[(triton.cdiv(x.numel(), block),)](x, bias, gate, out, x.numel(), XBLOCK=block)
    return out


def transposed_pointwise(x, y, block=32):
    out = empty(y.shape, y.dtype)
    rows, cols = y.shape
    transposed_pointwise_kernel[(triton.cdiv(rows, block), triton.cdiv(cols, block))](
        x, y, out, cols, rows, YBLOCK=block, XBLOCK=block
    )
    return out


def reduction(x, weight, xblock=1, rblock=2048, warps=16):
    rows, cols = x.shape
    total, out = empty((rows,), "fp32"), empty(x.shape, x.dtype)
    reduction_kernel[(triton.cdiv(rows, xblock),)](
        x, weight, total, out, rows, cols, XBLOCK=xblock, RBLOCK=rblock, num_warps=warps
    )
    return total, out


def persistent_reduction(x, y, weight, xblock=4, warps=8):
    rows, cols = x.shape
    out = empty(x.shape, "fp32")
    persistent_reduction_kernel[(rows // xblock,)](
        x, y, weight, out, rows, cols, XBLOCK=xblock, RBLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return out


def wide_reduction(x, y, xblock=8, rblock=256, warps=8):
    images, channels, pixels = x.shape
    out = empty((images * channels, 4), "fp32")
    wide_reduction_kernel[(triton.cdiv(images * channels, xblock),)](
        x, y, out, images * channels, pixels, XBLOCK=xblock, RBLOCK=rblock, num_warps=warps
    )
    return out


def combo_reduction(x, weight_x, y, weight_y, xblock=1, rblock=2048, warps=16):
    out_x, out_y = empty(x.shape, x.dtype), empty(y.shape, y.dtype)
    combo_reduction_kernel[(triton.cdiv(x.shape[0], xblock) + triton.cdiv(y.shape[0], xblock),)](
        x, weight_x, out_x, y, weight_y, out_y, x.shape[0], y.shape[0], x.shape[1], y.shape[1],
        XBLOCK=xblock, RBLOCK=rblock, num_warps=warps,
    )
    return out_x, out_y


def template_mm(a, b, bias, block=(128, 128, 32), warps=8, stages=3):
    (m, k), n = a.shape, b.shape[1]
    out = empty((m, n), a.dtype)
    template_mm_kernel[(triton.cdiv(m, block[0]) * triton.cdiv(n, block[1]),)](
        a, b, bias, out, m, n, k, GROUP_M=8, EVEN_K=k % block[2] == 0, ALLOW_TF32=False, ACC_TYPE=tl.float32,
        BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2], num_warps=warps, num_stages=stages,
    )
    return out


def pointwise_reference(x, bias, gate, block=1024):
    y = x.float() + bias.float()[:, None]
    return 0.5 * y * (1 + (y * 0.7071067811865476).erf()) * gate.float().sigmoid()[:, :, None]


def transposed_reference(x, y, block=32):
    return x.T + y.clamp_min(0)


def reduction_reference(x, weight, **_):
    total = (x.float() * weight.float()).square().sum(1)
    return total, x.float() * (total / x.shape[1] + 1e-5).rsqrt()[:, None]


def persistent_reference(x, y, weight, **_):
    z = x.float() + y.float()
    z = (z - z.mean(1, keepdim=True)) * (z.var(1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
    return (z * weight.float()).softmax(1)


def wide_reference(x, y, **_):
    x, y = x.float().flatten(0, 1), y.float().flatten(0, 1)
    moved = x.unflatten(1, (56, 56)).transpose(1, 2).flatten(1)
    out = x.new_empty((x.shape[0], 4))
    out[:, 0], out[:, 1] = moved.sum(1), (moved * y).sum(1)
    out[:, 2], out[:, 3] = moved.amax(1), (-y * y).exp().sum(1)
    return out


def combo_reference(x, weight_x, y, weight_y, **_):
    x, y = x.float(), y.float()
    x = x * (x.square().mean(1, keepdim=True) + 1e-6).rsqrt() * weight_x.float()
    return x, y * (y.square().mean(1, keepdim=True) + 1e-6).rsqrt() * (weight_y.float() + 1)


def template_reference(a, b, bias, **_):
    return (a.float() @ b.float() + bias.float()).clamp_min(0)


def rows(function, reference, dtype, shape, *more, **facts):
    count = shape[0] * shape[1]
    return launch(
        function, tensor(shape, dtype), *more, flops=8 * count, min_bytes=4 * count, reference=reference,
        rtol=2e-2, atol=facts.pop("atol", 2e-2), **facts,
    )


IMAGES = (32, 96, 3136)

LAUNCHES = {
    "pointwise-bf16": launch(
        pointwise, tensor(IMAGES, "bf16"), tensor((96,), "bf16"), tensor((32, 96), "bf16"), flops=10 * 32 * 96 * 3136,
        min_bytes=4 * 32 * 96 * 3136, reference=pointwise_reference, rtol=2e-2, atol=2e-2, tier="gate",
    ),
    "transposed-fp32": launch(
        transposed_pointwise, tensor((4096, 4096), "fp32"), tensor((4096, 4096), "fp32"), flops=2 << 24,
        min_bytes=12 << 24, reference=transposed_reference, rtol=1e-5, atol=1e-5,
    ),
    "reduction-bf16-8k": rows(reduction, reduction_reference, "bf16", (4096, 8192), tensor((8192,), "bf16"), tier="gate"),
    "reduction-fp32-x8": rows(
        reduction, reduction_reference, "fp32", (16384, 1000), tensor((1000,), "fp32"), xblock=8, rblock=256, warps=8
    ),
    "persistent-bf16-768": rows(
        persistent_reduction, persistent_reference, "bf16", (16384, 768), tensor((16384, 768), "bf16"),
        tensor((768,), "bf16"), atol=1e-3,
    ),
    # triton #10465: two norms guarded by the program's number took minutes to lower for AMD after an update of LLVM;
    # with the releases from 3.6.0 to 3.9.0 it is a second each
    "combo-bf16": launch(
        combo_reduction, tensor((2048, 4096), "bf16"), tensor((4096,), "bf16"), tensor((4096, 1536), "bf16"),
        tensor((1536,), "bf16"), flops=5 * (2048 * 4096 + 4096 * 1536), min_bytes=4 * (2048 * 4096 + 4096 * 1536),
        reference=combo_reference, rtol=2e-2, atol=3e-2,
    ),
    "wide-reduction-fp32": launch(
        wide_reduction, tensor(IMAGES, "fp32"), tensor(IMAGES, "fp32"), flops=8 * 32 * 96 * 3136,
        min_bytes=8 * 32 * 96 * 3136, reference=wide_reference, rtol=1e-3, atol=1e-2,
    ),
    "template-mm-fp16": launch(
        template_mm, tensor((2048, 1024), "fp16"), tensor((1024, 4096), "fp16"), tensor((4096,), "fp16"),
        flops=2 * 2048 * 4096 * 1024, min_bytes=2 * (2048 * 1024 + 1024 * 4096 + 2048 * 4096),
        reference=template_reference, rtol=2e-2, atol=5e-2, tier="gate",
    ),
    "template-mm-bf16-odd": launch(
        template_mm, tensor((1000, 520), "bf16"), tensor((520, 1208), "bf16"), tensor((1208,), "bf16"), block=(64, 64, 64),
        warps=4, flops=2 * 1000 * 1208 * 520, min_bytes=2 * (1000 * 520 + 520 * 1208 + 1000 * 1208),
        reference=template_reference, rtol=2e-2, atol=0.3,
    ),
}
