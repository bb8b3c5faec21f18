
import ctypes, os, time
import triton
import triton.language as tl
from irdiff_corpus import launch, tensor


@tl.core.builtin
def misbehave(how, _semantic=None):
    how = tl.core._unwrap_if_constexpr(how)
    if how == "crash":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    if how == "hang":
        while True:
            time.sleep(1)
    if how == "memory":
        hoard = []
        while True:
            hoard.append(bytearray(64 << 20))
    if how == "error":
        raise ValueError("planted error")


@triton.jit
def kernel(x_ptr, HOW: tl.constexpr):
    misbehave(HOW)
    tl.store(x_ptr, 1.0)


def run(x, how):
    kernel[(1,)](x, HOW=how)


LAUNCHES = {how: launch(run, tensor((16,), "fp32"), how) for how in ("fine", "crash", "abort", "error", "hang", "memory")}
