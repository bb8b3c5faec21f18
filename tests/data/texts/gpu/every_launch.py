"""Every way of launching that a recording must not disturb; what it computes is printed as RESULT lines.

Plain and autotuned kernels, one that accumulates, a CUDA graph, torch.compile forwards, backwards, with a
kernel of one's own and with graphs. `unchecked`: the part that also runs where nothing is computed.
"""

import hashlib
import sys

import torch
import triton
import triton.language as tl

UNCHECKED = "unchecked" in sys.argv
SIZE = 1_000_003
assert UNCHECKED or not torch.cuda.is_initialized(), "the GPU was started before the program asked for it"


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 512}, num_warps=2),
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 4096}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def saxpy(x_ptr, y_ptr, out_ptr, alpha, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, alpha * x + y, mask=mask)


@triton.jit
def row_softmax(x_ptr, out_ptr, stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + row * stride + offsets, (e / tl.sum(e, 0)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (256, 1024)], key=["n"], reset_to_zero=["out_ptr"]
)
@triton.jit
def count_in(bins_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.load(bins_ptr + offsets, mask=offsets < n, other=0)
    tl.atomic_add(out_ptr + bins, 1, mask=offsets < n)


@triton.jit
def gather(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(
        out_ptr + offsets, tl.load(x_ptr + tl.load(index_ptr + offsets, mask=mask), mask=mask), mask=mask
    )


def say(name, value):
    data = value.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes()
    print("RESULT", name, hashlib.sha256(data).hexdigest(), flush=True)


def plain_kernels():
    x, y = torch.randn(SIZE, device="cuda"), torch.randn(SIZE, device="cuda")
    out = torch.empty_like(x)
    grids, hooks = [], []

    def grid(meta):
        grids.append(meta["BLOCK"])
        return (triton.cdiv(SIZE, meta["BLOCK"]),)

    saxpy[grid](x, y, out, 2.5, SIZE)
    m = torch.randn(256, 1000, device="cuda", dtype=torch.float16)
    s = torch.empty_like(m)
    row_softmax.pre_run_hooks.append(lambda *_, **__: hooks.append(1))
    for _ in range(2):
        row_softmax[(256,)](m, s, m.stride(0), 1000, BLOCK=1024, num_warps=8)
    if UNCHECKED:
        return
    del grids[:]
    saxpy[grid](x, y, out, 2.5, SIZE)
    print("RESULT calls", len(grids), len(hooks))
    # a kernel may fuse what torch rounds twice
    assert torch.allclose(out, 2.5 * x + y, atol=1e-5)
    assert torch.allclose(s.float(), torch.softmax(m.float(), 1), atol=1e-3)
    say("saxpy", out)
    say("softmax", s)
    bins = torch.randint(0, 16, (SIZE,), device="cuda", dtype=torch.int32)
    counts = torch.zeros(16, device="cuda", dtype=torch.int32)
    count_in[lambda meta: (triton.cdiv(SIZE, meta["BLOCK"]),)](bins, counts, SIZE)
    assert torch.equal(counts, torch.bincount(bins, minlength=16).int())
    say("counts", counts)


def in_a_graph():
    x, index = torch.randn(4096, device="cuda"), torch.randperm(4096, device="cuda")[:100]
    out, other = torch.empty(100, device="cuda"), torch.empty(100, device="cuda")
    gather[(1,)](x, index, out, 100, BLOCK=128)
    small = index[:50].clone()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gather[(1,)](x, small, other, 50, BLOCK=128)  # compiled before; these shapes are new
    x.mul_(2)
    graph.replay()
    assert torch.equal(other[:50], x[small])
    say("graph", other[:50])


def compiled():
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)).cuda()
    a = torch.randn(64, 512, device="cuda")
    fast = torch.compile(model)
    fast(a).square().sum().backward()
    if UNCHECKED:
        return
    assert torch.allclose(fast(a), model(a), atol=1e-3)

    @torch.compile
    def own(x, y):
        out = torch.empty_like(x)
        saxpy[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, 0.5, x.numel())
        return out.sin()

    x, y = torch.randn(10_000, device="cuda"), torch.randn(10_000, device="cuda")
    assert torch.allclose(own(x, y), (0.5 * x + y).sin(), atol=1e-5)
    replayed = torch.compile(lambda x: torch.softmax(x, -1) + 1, mode="reduce-overhead")
    z = torch.randn(128, 777, device="cuda")
    for _ in range(4):
        got = replayed(z)
    assert torch.allclose(got, torch.softmax(z, -1) + 1, atol=1e-5)
    print("RESULT compiled as eager")


torch.manual_seed(0)
plain_kernels()
if not UNCHECKED:
    in_a_graph()
if "quick" not in sys.argv:
    compiled()
sys.exit(3 if "quick" in sys.argv else 0)
