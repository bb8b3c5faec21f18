"""Lets a program that asks torch for a GPU run where there is none: its tensors lie on the CPU.

Only what programs ask on their way to a launch: devices in calls, `.cuda()`, and the questions of
`torch.cuda`. Nothing is computed by kernels, so what a program does with their results is worthless.
"""

from __future__ import annotations

import importlib.util
import sys
import types
import warnings

from . import noted, stub_driver, torch_storages
from .stub_driver import capability_of

_EXPECTED = (
    "Failed to initialize NumPy",
    "dynamo_pgo force disabled",
    "Could not find an active CPU backend",
)
"""How torch begins what it warns of, since kernels are recorded and none is run."""
_MEMORY_BYTES = 80 << 30
_MOST_READ = 1 << 12
"""Elements of a tensor that a program may read on the CPU; larger ones stay as they are, without memory."""


def install(target):
    """Works from now on, in this process. Without torch there is nothing to do."""
    if importlib.util.find_spec("torch") is None:
        return
    for text in _EXPECTED:
        warnings.filterwarnings("ignore", message=text)
    import torch

    torch.cuda._CudaDeviceProperties = _Properties
    for name, answer in _answers(torch, target).items():
        setattr(torch.cuda, name, answer)
    if target["backend"] == "hip":
        torch.version.hip = "7.0"
    else:
        torch.version.cuda = torch.version.cuda or "13.0"
    sys.modules.setdefault("torch.cuda", torch.cuda)
    _redirector(torch).__enter__()


def _redirector(torch):
    from torch.overrides import TorchFunctionMode

    def on_cpu(value):
        if isinstance(value, str) and value.split(":", 1)[0] in ("cuda", "hip", "xpu"):
            return "cpu"
        return cpu if isinstance(value, torch.device) and value.type == "cuda" else value

    def named(kwargs, others):
        """The device that a call names, the first GPU as `cuda`; empty where it names none."""
        values = [kwargs["device"]] if "device" in kwargs else others
        devices = (str(value) for value in values if isinstance(value, (str, torch.device)))
        device = next((text for text in devices if text.partition(":")[0] in known), "")
        return device.replace("hip", "cuda").removesuffix(":0")

    known = {"cuda", "hip", "xpu", "cpu", "meta"}
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 0)
    answers = {
        torch.Tensor.is_cuda.__get__: lambda host: not host,
        torch.Tensor.is_cpu.__get__: bool,
        torch.Tensor.device.__get__: lambda host: cpu if host else gpu,
        torch.Tensor.get_device: lambda host: -1 if host else 0,
    }
    # results are not computed, so a check of them says nothing, and must not end the program
    made_up = {torch.allclose: True, torch.equal: True}
    torch.testing.assert_close = lambda *_, **__: None
    # their values may decide what is launched next, or divide: the same in every process
    unwritten = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}
    takes_device = {torch.Tensor.to, torch.nn.Module.to}
    read = {torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__bool__, torch.Tensor.__int__}
    read |= {torch.Tensor.__float__, torch.Tensor.__index__}

    class Redirector(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if function is torch.Tensor.cuda:
                torch_storages.moved(args[:1])
                return args[0]
            if function in answers:
                return answers[function](torch_storages.device_of(args[0]))
            if function in made_up:
                return _made_up(f"torch.{function.__name__}", made_up[function])()
            if function in read and noted.has_launched:
                noted.caveat("reads a value after a launch: no kernel computed it, a GPU may give another")
            device = named(kwargs, args[1:] if function is torch.Tensor.to else ())
            if "device" in kwargs:
                kwargs["device"] = on_cpu(kwargs["device"])
            if function in takes_device:
                args = tuple(map(on_cpu, args))
            if kwargs.pop("pin_memory", False):  # a kernel may read it from the host
                device = device if device.startswith("cuda") else "cuda"
            result = function(*args, **kwargs)
            if function in unwritten:
                is_number = result.is_floating_point() or result.is_complex()
                if not is_number or result.numel() <= _MOST_READ:
                    result.fill_(1 if is_number else 0)
            torch_storages.note(function, args, kwargs, result, device)
            return result

    def moved_to_gpu(module, device=None):
        torch_storages.moved([*module.parameters(), *module.buffers()])
        return module

    torch.nn.Module.cuda = moved_to_gpu
    torch.set_default_device = torch_storages.set_default_device
    return Redirector()


class _Context:
    """Stands for events and guards."""

    def __init__(self, *_, **__):
        self.idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def elapsed_time(self, _):
        return _made_up("Event.elapsed_time", 1.0)()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class _Current(_Context):
    """Makes a value of the driver current for a while: a stream or a device."""

    name = ""

    def __init__(self, value=0, *_, **__):
        super().__init__()
        self.value, self.before = value, []

    def __enter__(self):
        self.before.append(getattr(stub_driver.current, self.name))
        setattr(stub_driver.current, self.name, self.value)
        return self

    def __exit__(self, *_):
        setattr(stub_driver.current, self.name, self.before.pop())


class _Stream(_Current):
    """A stream, known by its number: 0 is the default one, others count from 1 as they are made."""

    name, count = "stream", 0

    def __init__(self, *_, number=None, **__):
        _Stream.count += number is None
        super().__init__(_Stream.count if number is None else number)
        self.cuda_stream = self.value


class _Device(_Current):
    name = "device"

    def __init__(self, device=0, *_, **__):
        super().__init__(_index_of(device))


def _index_of(device):
    """Of a device, by number or as `cuda:1`; that of a tensor is 0."""
    if isinstance(device, int):
        return device
    _, _, number = str(device).partition(":")
    return int(number) if number.isdigit() else stub_driver.current.device


def _set_device(device):
    stub_driver.current.device = _index_of(device)


def _made_up(name, answer):
    """Answers what only a GPU knows, and notes the line that asked."""

    def ask(*_, **__):
        noted.caveat(f"asks for {name}: {answer} is made up")
        return answer

    return ask


class _Properties(types.SimpleNamespace):
    """Stands for the class of torch's own, whose objects are constants to Dynamo."""


def properties_of(target):
    """Those that torch and Inductor have names for."""
    facts = target["facts"]
    major, minor = capability_of(target["arch"])
    return {
        "major": major,
        "minor": minor,
        "multi_processor_count": facts.get("multiprocessors", 132),
        "warp_size": target["warp_size"],
        "regs_per_multiprocessor": facts.get("registers_per_multiprocessor", 65536),
        "max_threads_per_multi_processor": facts.get("threads_per_multiprocessor", 2048),
    }


def _answers(torch, target):
    """{name in `torch.cuda`: what stands there}."""
    shared_bytes = target["facts"].get("shared_memory_bytes", 232448)
    properties = _Properties(
        **properties_of(target),
        name=target["name"],
        total_memory=_MEMORY_BYTES,
        shared_memory_per_block_optin=shared_bytes,
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=shared_bytes + 1024,
        gcnArchName=str(target["arch"]),
    )
    answers = {
        "get_device_name": target["name"],
        "get_device_capability": (properties.major, properties.minor),
        "get_device_properties": properties,
    }
    answers.update(dict.fromkeys(("is_available", "is_initialized", "is_bf16_supported"), True))
    answers.update(device_count=1)
    memory: dict = dict.fromkeys(("max_memory_allocated", "memory_allocated", "memory_reserved"), 0)
    memory["mem_get_info"] = (_MEMORY_BYTES, _MEMORY_BYTES)
    silent = ("init", "synchronize", "empty_cache", "set_rng_state", "manual_seed")
    answers.update(dict.fromkeys((*silent, "manual_seed_all", "reset_peak_memory_stats")))
    streams = {
        "current_stream": lambda *_, **__: _Stream(number=stub_driver.current.stream),
        "default_stream": lambda *_, **__: _Stream(number=0),
        "stream": lambda stream: stream if isinstance(stream, _Stream) else _Context(),
        "set_stream": lambda stream: setattr(stub_driver.current, "stream", stream.value),
        "current_device": lambda: stub_driver.current.device,
        "set_device": _set_device,
    }
    return {
        **{name: _made_up(f"torch.cuda.{name}", answer) for name, answer in memory.items()},
        # a function for each: Dynamo tells them apart by what they are
        **{name: lambda *_, answer=answer, **__: answer for name, answer in answers.items()},
        **streams,
        **dict.fromkeys(("device_of", "Event"), _Context),
        "device": _Device,
        "Stream": _Stream,
        "get_rng_state": lambda device=None: torch.zeros(16, dtype=torch.uint8),
    }
