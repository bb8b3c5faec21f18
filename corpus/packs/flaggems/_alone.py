"""FlagGems without its measurements: what its tuner and its cache of launches would do on a GPU is Triton's own here.

Pointwise kernels take pointers, the setting that FlagGems has for other devices: NVIDIA's takes block pointers, which
Triton 3.9.0 no longer has. `shipped` asks for them all the same.
"""

import contextlib
import os
import tempfile
from unittest import mock

import torch

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


@contextlib.contextmanager
def shipped():
    generated.prefer_block_pointer = True
    yield
    generated.prefer_block_pointer = False


def call(name, dtype, *args):
    """An operator with a tensor for each tuple, `(64, 4096)`, and with other values as they are."""
    tensors = (torch.zeros(word, dtype=dtype) if isinstance(word, tuple) else word for word in args)
    getattr(flag_gems, name)(*tensors)
