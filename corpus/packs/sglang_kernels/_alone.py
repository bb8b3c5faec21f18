"""SGLang's kernel modules without its engine: importing `sglang` itself asks for a server's packages and a GPU.

Replaced: what `sglang.srt` tells of the machine (asked of torch here), and quantization kernels written in CUDA (which
launch nothing here).
"""

import importlib.machinery
import importlib.util
import sys
import types

import torch


def bare(name, **answers):
    """A package whose `__init__` does not run, or a module that answers alone."""
    sys.modules.pop(name, None)
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True) if answers else importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(answers)
    sys.modules[name] = module
    return module


def no(*_, **__):
    return False


class Machine(types.ModuleType):
    """`sglang.srt.utils` and `sglang.kernels.jit.utils`: questions about the machine; False to what is not here."""

    __path__ = []
    torch_release = tuple(map(int, torch.__version__.split("+")[0].split(".")))

    def is_hip(self):
        return torch.version.hip is not None

    def is_cuda(self):
        return torch.version.hip is None

    def is_sm90_supported(self):
        return self.is_cuda() and torch.cuda.get_device_capability()[0] == 9

    def is_gfx95_supported(self):
        return self.is_hip() and "gfx95" in torch.cuda.get_device_properties(0).gcnArchName

    def get_device_core_count(self, device=0):
        return torch.cuda.get_device_properties(device).multi_processor_count

    def ceil_align(self, x, y):
        return (x + y - 1) // y * y

    def is_arch_support_pdl(self):
        return self.is_cuda() and torch.cuda.get_device_capability()[0] >= 9

    def cdiv(self, x, y):
        return -(-x // y)

    def next_power_of_2(self, x):
        return 1 << (x - 1).bit_length()

    def cache_once(self, function):
        return function

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return no


machine = Machine("sglang.srt.utils")
for package in ("", ".srt", ".srt.layers", ".kernels", ".kernels.ops"):
    bare("sglang" + package)
for group in ("quantization", "attention", "moe", "mamba"):
    bare(f"sglang.kernels.ops.{group}").__dict__["sgl_per_token_quant_fp8"] = no
bare("sglang.kernels.ops.mamba.triton_ops")
for name in ("per_tensor_quant_fp8", "per_token_group_quant"):
    bare(f"sglang.kernels.ops.quantization.{name}", **{name: no})
bare("sglang.kernels.jit", x=None)
bare("sglang.srt.batch_invariant_ops", is_batch_invariant_mode_enabled=no)
bare("sglang.srt.layers.moe", x=None)
bare("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda _: 0)
bare("sglang.srt.utils.patch_torch", register_fake_if_exists=lambda _: lambda function: function)
for name in ("sglang.srt.utils", "sglang.srt.utils.common", "sglang.kernels.jit.utils"):
    sys.modules[name] = machine


def unpublished():
    raise ValueError("not published")


bare("sglang.srt.runtime_context", get_exec=unpublished)
