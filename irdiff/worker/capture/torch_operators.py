"""Uses the kernel registered for CUDA for operators that a program registers with torch.

Tensors of the GPU lie on the CPU, where torch would use the kernel for the CPU. It calls kernels in Python
from C++, where the redirector is off; so each kernel is called with it on.
"""

from __future__ import annotations

import functools
import warnings

import torch

from . import torch_storages

_OF_TORCH = frozenset("_inductor_test aten c10d inductor prim prims quantized rngprims".split())
_FOR_EVERY_DEVICE = ("", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
_FOR_A_DEVICE = {"CPU": "CPU", "CUDA": "CPU", "AutogradCPU": "AutogradCPU", "AutogradCUDA": "AutogradCPU"}
"""{dispatch key: the key that tensors have here}"""
_kernels: dict = {}
"""{(namespace, operator): {dispatch key: function}}"""


def install(with_redirector):
    """with_redirector: wraps a function so that it runs with the redirector on."""
    original = torch.library.Library.impl

    @functools.wraps(original)
    def impl(library, op_name, fn, dispatch_key="", **words):
        key = dispatch_key or library.dispatch_key
        is_ours = library.ns not in _OF_TORCH and fn is not torch.library.fallthrough_kernel
        if not is_ours or key not in (*_FOR_EVERY_DEVICE, *_FOR_A_DEVICE):
            return original(library, op_name, fn, dispatch_key, **words)
        name = getattr(op_name, "_name", op_name).rpartition("::")[2]
        kernels = _kernels.setdefault((library.ns, name), {})
        kernels[key] = with_redirector(fn)
        if key in _FOR_EVERY_DEVICE:
            return original(library, op_name, kernels[key], dispatch_key, **words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the kernel takes the place of one for the other device
            return original(library, op_name, _by_device(name, kernels, key), _FOR_A_DEVICE[key], **words)

    torch.library.Library.impl = impl


def _by_device(name, kernels, key):
    of_gpu, of_host = (key.replace("CPU", device).replace("CUDA", device) for device in ("CUDA", "CPU"))

    def kernel(*args, **kwargs):
        is_host = torch_storages.is_host((*args, *kwargs.values()))
        for candidate in (of_host if is_host else of_gpu, *_FOR_EVERY_DEVICE):
            if candidate in kernels:
                return kernels[candidate](*args, **kwargs)
        device = "CPU" if is_host else "GPU"
        raise NotImplementedError(f"operator {name} has no kernel for tensors of the {device}")

    return kernel
