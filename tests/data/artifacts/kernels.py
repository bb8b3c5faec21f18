"""Small kernels whose compiled artifacts the normalizer's tests use; one for each feature an IR can show.

Read by `generate.py` inside a toolchain. Each entry of `KERNELS` says how a kernel is compiled.
"""

import triton
import triton.language as tl
from triton.language.extra import libdevice

try:
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl
except ImportError:
    gluon = None


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask, eviction_policy="evict_last")
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def softmax(out_ptr, in_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    x = tl.load(in_ptr + row * stride + offsets, mask=offsets < columns, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + offsets, numerator / tl.sum(numerator, axis=0), mask=offsets < columns)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, k, BK):
        acc = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), acc)
        a_ptrs += BK
        b_ptrs += BK * n
    mask = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc.to(tl.float16), mask=mask)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    acc = tl.zeros((BM, D), dtype=tl.float32)
    peak = tl.full((BM,), float("-inf"), tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    for start in range(0, length, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[None, :] * D + d[:, None])
        s = tl.dot(q, k) * scale
        s = tl.where(columns[None, :] <= rows[:, None], s, float("-inf"))
        new_peak = tl.maximum(peak, tl.max(s, 1))
        p = tl.math.exp2(s - new_peak[:, None])
        shrink = tl.math.exp2(peak - new_peak)
        v = tl.load(v_ptr + columns[:, None] * D + d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None])
        total = total * shrink + tl.sum(p, 1)
        peak = new_peak
    tl.store(o_ptr + rows[:, None] * D + d[None, :], (acc / total[:, None]).to(tl.float16))


@triton.jit
def matmul_descriptor(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WS: tl.constexpr
):
    a = tl.make_tensor_descriptor(a_ptr, shape=[m, k], strides=[k, 1], block_shape=[BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, shape=[n, k], strides=[k, 1], block_shape=[BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, shape=[m, n], strides=[n, 1], block_shape=[BM, BN])
    row = tl.program_id(0) * BM
    column = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in tl.range(0, tl.cdiv(k, BK), warp_specialize=WS):
        acc = tl.dot(a.load([row, step * BK]), b.load([column, step * BK]).T, acc)
    c.store([row, column], acc.to(tl.float16))


@triton.jit(noinline=True)
def smooth_step(x, low, high):
    t = tl.minimum(tl.maximum((x - low) / (high - low), 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


@triton.jit(noinline=True)
def blend(x, y, weight):
    return smooth_step(x, 0.0, weight) * y + x


@triton.jit
def calls(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    weight = tl.load(x_ptr)
    y = smooth_step(weight, 0.25, 0.75)
    tl.store(out_ptr + offsets, x * blend(weight, y, 0.5), mask=offsets < n)


@triton.jit
def prints(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.device_print("value // of x; ", x)
    tl.device_assert(x >= 0.0, "negative: %d \"input\"")
    tl.store(out_ptr + offsets, x * 2.0, mask=offsets < n)


@triton.jit
def special_functions(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    y = libdevice.tanh(x) + libdevice.erf(x) + libdevice.pow(x, 1.5) + tl.sin(x) / tl.sqrt_rn(x + 1.5)
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit
def inline_assembly(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.inline_asm_elementwise(
        """{
        .reg .b32 t<2>;  // two temporaries
        shr.b32 t0, $1, 3;
        and.b32 t1, t0, 0x0f0f0f0f;
        xor.b32 $0, t1, $1;
        }""",
        "=r,r",
        [x],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit
def inline_assembly_amd(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    y = tl.inline_asm_elementwise(
        "v_lshrrev_b32 $0, 3, $1 ; a third", "=v,v", [x], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out_ptr + offsets, y, mask=offsets < n)


@triton.jit
def atomics(x_ptr, lock_ptr, histogram_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    tl.atomic_add(histogram_ptr + x, 1, mask=offsets < n, sem="relaxed")
    tl.atomic_max(histogram_ptr + x, offsets, sem="acq_rel", scope="sys")
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def add_op(a, b):
    return a + b * 0.5


@triton.jit
def scans(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0)
    y = tl.cumsum(x, 0) + tl.associative_scan(x, 0, add_op)
    biggest, where = tl.max(x, 0, return_indices=True)
    if biggest > 4.0:
        y = y * where
    tl.store(out_ptr + offsets, tl.sort(y), mask=offsets < columns)


if gluon is not None:

    @gluon.jit
    def gluon_add(x_ptr, out_ptr, n, BLOCK: gl.constexpr, THREADS: gl.constexpr):
        layout: gl.constexpr = gl.BlockedLayout([4], [THREADS], [4], [0])
        offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
        x = gl.load(x_ptr + offsets, mask=offsets < n)
        other: gl.constexpr = gl.BlockedLayout([1], [THREADS], [4], [0])
        y = gl.convert_layout(x + 1.0, other)
        where = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=other)
        gl.store(out_ptr + where, y, mask=where < n)


def _entry(fn, signature, constexprs, **options):
    return {"fn": fn, "signature": signature, "constexprs": constexprs, "options": options}


_ELEMENTWISE = {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
_INTEGER = {"x_ptr": "*i32", "out_ptr": "*i32", "n": "i32"}
_MATMUL = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "m": "i32", "n": "i32", "k": "i32"}
_ATTENTION = {
    "q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp16", "scale": "fp32", "length": "i32"
}  # fmt: skip
_ATOMICS = {"x_ptr": "*i32", "lock_ptr": "*i32", "histogram_ptr": "*i32", "n": "i32"}
_VECTOR_ADD = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}
_SOFTMAX = {"out_ptr": "*fp32", "in_ptr": "*fp32", "stride": "i32", "columns": "i32"}


def entries(backend, arch):
    """The kernels that this target has, by name."""
    threads = 64 if backend == "hip" else 32
    kernels = {
        "vector_add": _entry(vector_add, _VECTOR_ADD, {"BLOCK": 1024}),
        "softmax": _entry(softmax, _SOFTMAX, {"BLOCK": 2048}, num_warps=8),
        "matmul": _entry(matmul, _MATMUL, {"BM": 64, "BN": 64, "BK": 32}, num_stages=3),
        "attention": _entry(attention, _ATTENTION, {"BM": 64, "BN": 32, "D": 64}, num_stages=2),
        "calls": _entry(calls, _ELEMENTWISE, {"BLOCK": 256}),
        "prints": _entry(prints, _ELEMENTWISE, {"BLOCK": 128}, debug=True),
        "special_functions": _entry(special_functions, _ELEMENTWISE, {"BLOCK": 128}),
        "atomics": _entry(atomics, _ATOMICS, {"BLOCK": 256}),
        "scans": _entry(scans, {"x_ptr": "*fp32", "out_ptr": "*fp32", "columns": "i32"}, {"BLOCK": 128}),
    }
    if backend == "hip":
        kernels["inline_assembly"] = _entry(inline_assembly_amd, _INTEGER, {"BLOCK": 256})
    else:
        kernels["inline_assembly"] = _entry(inline_assembly, _INTEGER, {"BLOCK": 256})
        blocks = {"BM": 128, "BN": 64, "BK": 64}
        kernels["descriptor"] = _entry(matmul_descriptor, _MATMUL, {**blocks, "WS": False}, num_stages=3)
        kernels["warp_specialized"] = _entry(matmul_descriptor, _MATMUL, {**blocks, "WS": True}, num_stages=2)
        kernels["two_ctas"] = _entry(
            matmul, _MATMUL, {"BM": 128, "BN": 64, "BK": 32}, num_stages=2, num_ctas=2
        )
    if gluon is not None:
        kernels["gluon_add"] = _entry(gluon_add, _ELEMENTWISE, {"BLOCK": 1024, "THREADS": threads})
    return kernels
