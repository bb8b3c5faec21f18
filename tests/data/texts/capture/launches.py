"""On a GPU, real or made up: what a program may notice of being recorded. Its exit code is its own."""

import sys

import triton
import triton.language as tl
from train import Array

grids, hooks, compiled = [], [], []


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=4), triton.Config({"BLOCK": 512}, num_warps=8)],
    key=["n"],
)
@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets, mask=offsets < n) * 2, mask=offsets < n)


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.load(x + offsets))


class Shapeless(Array):
    """Triton takes it; a recording cannot describe it."""

    shape = property(lambda self: 1 // 0, lambda self, _: None)


def grid(meta):
    grids.append(meta["BLOCK"])
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def compiling(*_, **__):
    compiled.append(1)


triton.knobs.runtime.jit_cache_hook = compiling
copy.pre_run_hooks.append(lambda *_, **__: hooks.append(1))
x, out = Array((1, 4096), "fp32"), Array((1, 4096), "fp32")
scale[grid](x, out, 4096)
scale[grid](x, out, 4096)
copy[(1,)](x, out, BLOCK=128)
copy[(1,)](x, Shapeless((1, 1), "fp32", (1, 1)), BLOCK=128)
assert grids == [256, 512, 512, 512], grids
assert len(hooks) == 2 and len(compiled) == 3, (hooks, compiled)
assert triton.launched == [
    ("scale", 4, (16, 1, 1)),
    ("scale", 8, (8, 1, 1)),
    ("scale", 8, (8, 1, 1)),
    ("scale", 8, (8, 1, 1)),
    ("copy", 4, (1, 1, 1)),
    ("copy", 4, (1, 1, 1)),
]
sys.exit(int(sys.argv[1]))
