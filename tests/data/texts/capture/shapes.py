"""Part of a user's program: device functions and constants in a module of its own."""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-6)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)
