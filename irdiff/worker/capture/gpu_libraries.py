"""Libraries of a GPU's maker that tests call for what they compare a kernel's results with.

Without a GPU they compute nothing, as kernels compute nothing.
"""

from __future__ import annotations

import sys

_CUBLAS = "triton._C.libtriton.nvidia"


class _Silent:
    """Stands for a handle of cuBLASLt: a result stays as it was."""

    def __init__(self, *_):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def silence():
    """Works from now on, in this process."""
    cublas = getattr(sys.modules.get(_CUBLAS), "cublas", None)
    if cublas is not None:
        cublas.CublasLt = _Silent
