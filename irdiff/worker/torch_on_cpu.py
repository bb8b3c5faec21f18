"""Lets a program that asks torch for a GPU run where there is none: its tensors lie on the CPU.

Only what programs ask on their way to a launch: devices in calls, `.cuda()`, and the questions of
`torch.cuda`. Nothing is computed by kernels, so what a program does with their results is worthless.
"""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings

_EXPECTED = (
    "Failed to initialize NumPy",
    "dynamo_pgo force disabled",
    "Could not find an active CPU backend",
)
"""How torch begins what it warns of, since kernels are recorded and none is run."""


def install(target):
    """Works from now on, in this process. Without torch there is nothing to do."""
    if importlib.util.find_spec("torch") is None:
        return
    for text in _EXPECTED:
        warnings.filterwarnings("ignore", message=text)
    import torch

    _answer(torch, target)
    _redirector(torch).__enter__()


def _redirector(torch):
    from torch.overrides import TorchFunctionMode

    def on_cpu(value):
        if isinstance(value, str) and value.split(":", 1)[0] in ("cuda", "hip", "xpu"):
            return "cpu"
        if isinstance(value, torch.device) and value.type == "cuda":
            return _cpu
        return value

    _cpu, gpu = torch.device("cpu"), torch.device("cuda", 0)
    moves = {torch.Tensor.cuda}
    answers = {
        torch.Tensor.is_cuda.__get__: True,
        torch.Tensor.is_cpu.__get__: False,
        torch.Tensor.device.__get__: gpu,
        torch.Tensor.get_device: 0,
    }
    # results are not computed, so a check of them says nothing, and must not end the program
    checks = {torch.allclose, torch.equal}
    torch.testing.assert_close = lambda *_, **__: None
    # their values may decide what is launched next: the same in every process
    unwritten = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}
    takes_device = {torch.Tensor.to, torch.nn.Module.to}

    class Redirector(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if function in moves:
                return args[0]
            if function in answers:
                return answers[function]
            if function in checks:
                return True
            if "device" in kwargs:
                kwargs["device"] = on_cpu(kwargs["device"])
            if function in takes_device:
                args = tuple(map(on_cpu, args))
            kwargs.pop("pin_memory", None)
            result = function(*args, **kwargs)
            if function in unwritten and not (result.is_floating_point() or result.is_complex()):
                result.zero_()
            return result

    torch.nn.Module.cuda = lambda self, device=None: self
    return Redirector()


class _Context:
    """Stands for streams, events, guards."""

    def __init__(self, *_, **__):
        self.cuda_stream = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def elapsed_time(self, _):
        return 1.0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


def _answer(torch, target):
    facts = target["facts"]
    arch = target["arch"]
    capability = divmod(arch, 10) if isinstance(arch, int) else (9, 4)
    properties = types.SimpleNamespace(
        name=target["name"],
        major=capability[0],
        minor=capability[1],
        multi_processor_count=facts.get("multiprocessors", 132),
        total_memory=80 << 30,
        warp_size=target["warp_size"],
        regs_per_multiprocessor=facts.get("registers_per_multiprocessor", 65536),
        max_threads_per_multi_processor=facts.get("threads_per_multiprocessor", 2048),
        shared_memory_per_block_optin=facts.get("shared_memory_bytes", 232448),
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=facts.get("shared_memory_bytes", 232448) + 1024,
        gcnArchName=str(arch),
    )
    answers = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "get_device_name": lambda device=None: target["name"],
        "get_device_capability": lambda device=None: capability,
        "get_device_properties": lambda device=None: properties,
        "is_bf16_supported": lambda *_, **__: True,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": lambda state, device=None: None,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "max_memory_allocated": lambda device=None: 0,
        "memory_allocated": lambda device=None: 0,
        "reset_peak_memory_stats": lambda device=None: None,
        "current_stream": lambda device=None: _Context(),
        "default_stream": lambda device=None: _Context(),
        "stream": _Context,
        "device": _Context,
        "device_of": _Context,
        "Stream": _Context,
        "Event": _Context,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    if target["backend"] == "hip":
        torch.version.hip = "7.0"
    else:
        torch.version.cuda = torch.version.cuda or "13.0"
    sys.modules.setdefault("torch.cuda", torch.cuda)
