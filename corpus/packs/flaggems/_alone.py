"""FlagGems without its measurements: what its tuner and its cache of launches would do on a GPU is Triton's own here.

Pointwise kernels take pointers, the setting that FlagGems has for other devices: NVIDIA's takes block pointers, which
Triton 3.9.0 no longer has. `shipped` asks for them all the same.
"""

import contextlib
import functools
import os
import tempfile
from unittest import mock

import torch
import torch.nn.functional as F
from _tensors import integers, normal
from irdiff_corpus import checked

place = os.path.join(tempfile.gettempdir(), f"flag_gems-{os.getuid()}")
with mock.patch.dict(os.environ, GEMS_VENDOR="nvidia", FLAGGEMS_DB_URL="sqlite://", FLAGGEMS_CACHE_DIR=place):
    import flag_gems
    from flag_gems.utils.code_cache import code_cache_dir
    from flag_gems.utils.codegen_config_utils import get_codegen_config
    from flag_gems.utils.libentry import LibEntry, LibTuner

    code_cache_dir()

del LibTuner.run
LibEntry.run = lambda self, *args, **kwargs: (self.fn.run(*args, **kwargs), {})
generated = get_codegen_config()
generated.prefer_block_pointer = False

FLOATS = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
INTEGERS = {"i32": torch.int32, "i64": torch.int64}


def gated(gate):
    def reference(x, _):
        first, second = x.chunk(2, -1)
        return gate(first) * second

    return reference


ATEN = {function.__name__: name.partition(".")[0] for name, function, *_ in flag_gems._FULL_CONFIG}
FUSED = {
    "reglu": gated(F.relu),
    "swiglu": gated(F.silu),
    "geglu": gated(functools.partial(F.gelu, approximate="tanh")),
    "gelu_and_mul": lambda x, y: F.gelu(x) * y,
    "silu_and_mul": lambda x, y: F.silu(x) * y,
}


@contextlib.contextmanager
def shipped():
    generated.prefer_block_pointer = True
    try:
        yield
    finally:
        generated.prefer_block_pointer = False


def compared(name, *inputs, part=lambda x: x, error=None):
    """An operator beside PyTorch's own of that name; of results with indices, the values: equal ones may change places."""

    def reference(*inputs):
        results = operator(*map(part, inputs))
        return tuple(x if x.is_floating_point() else None for x in results) if isinstance(results, tuple) else results

    operator = FUSED.get(name) or getattr(torch.ops.aten, ATEN[name])
    checked(lambda *inputs: getattr(flag_gems, name)(*map(part, inputs)), reference, *inputs, error=error)


def call(name, dtype, *args, **options):
    """An operator with a tensor for each tuple, `(64, 4096)`, and with other values as they are."""

    def made(shape):
        return normal(*shape, dtype=dtype) if dtype.is_floating_point else integers(1, 100, *shape, dtype=dtype)

    inputs = [made(word) if isinstance(word, tuple) else word for word in args]
    if name in ("argmax", "argmin"):  # one in each row, or column
        x, axis = inputs
        place = torch.randint(x.shape[axis], [1 if size == axis % 2 else x.shape[size] for size in range(2)])
        x.scatter_(axis, place, 100.0 if name == "argmax" else -100.0)
    error = 0.01 if name == "digamma_" and dtype == torch.float32 else None  # near its poles
    compared(name, *inputs, error=error if dtype.is_floating_point else 1e-6, **options)
