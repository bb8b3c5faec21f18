"""vLLM's kernel modules without its engine: importing `vllm` itself asks for a server's packages and a GPU.

Replaced: `vllm.platforms` and what else asks about the machine (torch answers here, and names of GPUs that vLLM has
configs for); torch's choice of an accelerator; operators written in CUDA (they launch nothing here); the registration
of operators; and each module that is not in `KERNELS`: its names are there, false and empty.
"""

import contextlib
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from typing import NamedTuple

import torch

KERNELS = (  # of `vllm`, modules that are imported as they are, and packages whose modules all are
    "envs",
    "kernels.triton.activation",
    "lora.ops.triton_ops",
    "model_executor.determinism",
    "model_executor.layers.fused_moe.activation",
    "model_executor.layers.fused_moe.fused_moe",
    "model_executor.layers.fused_moe.experts.fused_batched_moe",
    "model_executor.layers.fused_moe.moe_fused_mul_sum",
    "model_executor.layers.fused_moe.utils",
    "model_executor.layers.fused_qk_norm_rope",
    "model_executor.layers.lightning_attn",
    "model_executor.layers.mamba.ops",
    "model_executor.layers.quantization.awq_triton",
    "model_executor.layers.quantization.compressed_tensors.triton_scaled_mm",
    "model_executor.layers.quantization.utils.fp8_utils",
    "model_executor.layers.quantization.utils.int8_utils",
    "model_executor.layers.quantization.utils.mxfp8_utils",
    "model_executor.layers.quantization.utils.quant_utils",
    "model_executor.layers.rotary_embedding.mrope",
    "model_executor.layers.rotary_embedding.packed_qk_rope",
    "model_executor.warmup.jit_warmup",
    "model_executor.warmup.jit_warmup_triton_helper",
    "models.common.ops.fused_qk_rmsnorm",
    "models.deepseek_v32.common.kernels",
    "scalar_type",
    "third_party.flash_linear_attention.ops",
    "triton_utils",
    "utils.math_utils",
    "v1.attention.backends.registry",
    "v1.attention.ops",
    "v1.kv_cache_interface",
    "v1.kv_cache_layout",
    "v1.kv_cache_spec_registry",
    "v1.sample.ops.topk_topp_triton",
    "v1.sample.rejection_sampler",
    "v1.spec_decode.utils",
    "v1.worker.gpu.sample",
    "v1.worker.gpu.structured_outputs",
)
RUN = ("vllm.triton_utils",)
"""Packages whose `__init__` runs."""


class Absent:
    """What is not here: false, empty, a decorator that changes nothing, a base without content."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *args, **_):
        return args[0] if len(args) == 1 and callable(args[0]) else self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())

    def __getitem__(self, _):
        return self

    def __or__(self, _):
        return self

    def __mro_entries__(self, _):
        return ()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    __ror__ = __or__


absent = Absent()


class Module(types.ModuleType):
    """A package whose `__init__` does not run, or a module that is not here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if importlib.util.find_spec(f"{self.__name__}.{name}") is None:
            return absent
        return importlib.import_module(f"{self.__name__}.{name}")


class Finder:
    """Finds modules of `vllm`: those of `KERNELS` as they are, the rest as `Module`."""

    def find_spec(self, name, path=None, _=None):
        if name.partition(".")[0] != "vllm":
            return None
        found = importlib.machinery.PathFinder.find_spec(name, path)
        if found is None:
            return importlib.machinery.ModuleSpec(name, self, is_package=True) if name in ANSWERS else None
        is_package = found.submodule_search_locations is not None
        if name in RUN or not is_package and is_kernel(name):
            return found
        spec = importlib.machinery.ModuleSpec(name, self, origin=found.origin, is_package=True)
        spec.submodule_search_locations = list(found.submodule_search_locations or ())
        return spec

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        module.__dict__.update(ANSWERS.get(module.__name__, {}))


def is_kernel(name):
    return any(name.startswith(f"vllm.{known}.") or name == f"vllm.{known}" for known in KERNELS)


class Capability(NamedTuple):
    major: int
    minor: int


class Machine:
    """`vllm.platforms.current_platform`: questions about the machine; False to what is not here."""

    def is_rocm(self):
        return torch.version.hip is not None

    def is_cuda(self):
        return torch.version.hip is None

    def is_cuda_alike(self):
        return True

    def is_gpu(self, name):
        return self.is_rocm() and name in torch.cuda.get_device_properties(0).gcnArchName

    def is_fp8_fnuz(self):
        return self.is_gpu("gfx942")

    def fp8_dtype(self):
        return torch.float8_e4m3fnuz if self.is_fp8_fnuz() else torch.float8_e4m3fn

    def get_device_capability(self, device_id=0):
        return Capability(*torch.cuda.get_device_capability())

    def has_device_capability(self, capability, device_id=0):
        return self.get_device_capability() >= pair(capability)

    def is_device_capability(self, capability, device_id=0):
        return self.is_cuda() and self.get_device_capability() == pair(capability)

    def is_device_capability_family(self, capability, device_id=0):
        return self.is_cuda() and self.get_device_capability().major == capability // 10

    def get_device_name(self, device_id=0):
        if self.is_rocm():
            return "AMD Instinct MI300X" if self.is_fp8_fnuz() else "AMD Instinct MI355X"
        return "NVIDIA H100 80GB HBM3" if self.is_device_capability(90) else "NVIDIA B200"

    def num_compute_units(self, device_id=0):
        return torch.cuda.get_device_properties(0).multi_processor_count

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return no


def pair(capability):
    return capability if isinstance(capability, tuple) else divmod(capability, 10)


def no(*_, **__):
    return False


def register(op_name, op_func, *_, **__):
    setattr(torch.ops.vllm, op_name, op_func)


def to_gpu(values, dtype=None, device=None, **_):
    return torch.as_tensor(values, dtype=dtype)


machine = Machine()
FP8 = machine.fp8_dtype()
ANSWERS = {
    "vllm.platforms": {"current_platform": machine, "vllm_version_matches_substr": no},
    "vllm.platforms.rocm": {
        "_ON_GFX942": machine.is_gpu("gfx942"),
        "_ON_GFX950": machine.is_gpu("gfx950"),
        "on_mi3xx": machine.is_rocm,
        "on_gfx1x": no,
        "on_gfx12x": no,
        "on_gfx1250": no,
    },
    "vllm.utils.mem_utils": {
        "get_max_shared_memory_bytes": lambda *_: torch.cuda.get_device_properties(0).shared_memory_per_block_optin
    },
    "vllm.utils.platform_utils": {
        "num_compute_units": machine.num_compute_units,
        "get_device_name_as_file_name": lambda: machine.get_device_name().replace(" ", "_"),
        "is_pin_memory_available": no,
        "is_uva_available": no,
    },
    "vllm.utils.torch_utils": {
        "direct_register_custom_op": register,
        "async_tensor_h2d": to_gpu,
        "PIN_MEMORY": False,
        "is_torch_equal_or_newer": lambda *_: True,
    },
    "vllm.utils.deep_gemm": {"is_deep_gemm_e8m0_used": no},
    "vllm.v1.attention.backends.utils": {"NULL_BLOCK_ID": 0, "PAD_SLOT_ID": -1},
    "vllm.config.cache": {"get_kv_cache_dtype_handler": lambda _: None},
    "vllm.config.model": {"PROCESSED_LOGPROBS_MODES": ()},
}
sys.meta_path.insert(0, Finder())
torch.accelerator.device_index = contextlib.nullcontext
