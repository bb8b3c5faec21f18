"""Answers of `torch.cuda` and `torch.accelerator` without a GPU: from the target, or made up and noted if
only a GPU knows. Anything else raises an error.
"""

from __future__ import annotations

import contextlib
import sys
import types

from . import noted, stub_driver
from .stub_driver import capability_of

_MEMORY_BYTES = 80 << 30
_L2_BYTES = 50 << 20


def install(torch, target):
    cuda = torch.cuda
    cuda._CudaDeviceProperties = _Properties
    for name, answer in {**_facts(cuda, target), **_STREAMS, **_GRAPHS}.items():
        setattr(cuda, name, answer)
    for name in ("Stream", "Event", "ExternalStream"):
        setattr(cuda.streams, name, getattr(cuda, name))
    cuda.get_rng_state = lambda device=None: torch.zeros(16, dtype=torch.uint8)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(cuda.nvtx, name, lambda *_, **__: None)
    cuda.nvtx.range = lambda *_, **__: contextlib.nullcontext()
    for name in ("start", "stop", "profile"):
        setattr(cuda.profiler, name, lambda *_, **__: contextlib.nullcontext())
    for name, answer in _RAW.items():
        setattr(torch._C, name, _own(answer))
    if accelerator := getattr(torch, "accelerator", None):
        for name, answer in _accelerator(torch).items():
            setattr(accelerator, name, _own(answer))
    _refuse_the_rest(cuda)


def properties_of(target):
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


def _own(answer):
    """Dynamo tells functions apart by identity."""
    return lambda *args, **kwargs: answer(*args, **kwargs)


def made_up(name, answer):
    """Notes the line that asks for what only a GPU knows."""

    def ask(*_, **__):
        noted.caveat(f"asks for {name}: {answer} is made up")
        return answer

    return ask


class _Properties(types.SimpleNamespace):
    """Objects of torch's class are constants to Dynamo."""


def _facts(cuda, target):
    """Returns {name in `torch.cuda`: its replacement} for the target and its memory."""
    shared_bytes = target["facts"].get("shared_memory_bytes", 232448)
    properties = _Properties(
        **properties_of(target),
        name=target["name"],
        total_memory=_MEMORY_BYTES,
        L2_cache_size=_L2_BYTES,
        shared_memory_per_block_optin=shared_bytes,
        shared_memory_per_block=49152,
        shared_memory_per_multiprocessor=shared_bytes + 1024,
        gcnArchName=str(target["arch"]),
        is_integrated=0,
        is_multi_gpu_board=0,
    )
    answers = {
        "get_device_name": target["name"],
        "get_device_capability": (properties.major, properties.minor),
        "get_device_properties": properties,
        "get_arch_list": [target["name"]],
        "device_count": 1,
        "can_device_access_peer": False,
        "initial_seed": 0,
        "get_sync_debug_mode": 0,
        "is_current_stream_capturing": False,
        "get_allocator_backend": "native",
    }
    yes = ("is_available", "is_initialized", "is_bf16_supported", "is_tf32_supported")
    answers.update(dict.fromkeys(yes, True))
    silent = (
        "init empty_cache ipc_collect set_rng_state set_rng_state_all manual_seed manual_seed_all seed"
        " seed_all set_sync_debug_mode set_per_process_memory_fraction reset_peak_memory_stats"
        " reset_max_memory_allocated reset_max_memory_cached reset_accumulated_memory_stats"
    )
    answers.update(dict.fromkeys(silent.split()))
    numbers = (
        "max_memory_allocated memory_allocated memory_reserved max_memory_reserved memory_cached"
        " max_memory_cached utilization temperature power_draw clock_rate memory_usage"
    )
    only_a_gpu: dict = dict.fromkeys(numbers.split(), 0)
    only_a_gpu.update(mem_get_info=(_MEMORY_BYTES, _MEMORY_BYTES), memory_stats={}, memory_summary="")
    return {
        **{name: lambda *_, answer=answer, **__: answer for name, answer in answers.items()},
        **{name: made_up(f"torch.cuda.{name}", answer) for name, answer in only_a_gpu.items()},
        "cudart": lambda: _Silent(),
        "default_generators": (sys.modules["torch"].default_generator,),
    }


def _accelerator(torch):
    """Returns {name in `torch.accelerator`: its replacement}."""
    cuda = torch.cuda
    same = (
        "is_available device_count current_stream set_stream synchronize empty_cache memory_stats"
        " memory_allocated max_memory_allocated memory_reserved max_memory_reserved reset_peak_memory_stats"
        " reset_accumulated_memory_stats"
    )
    return {
        **{name: getattr(cuda, name) for name in same.split()},
        "current_accelerator": lambda *_, **__: torch.device("cuda"),
        "current_device_index": cuda.current_device,
        "current_device_idx": cuda.current_device,
        "set_device_index": cuda.set_device,
        "set_device_idx": cuda.set_device,
        "get_memory_info": cuda.mem_get_info,
        "device_index": cuda.device,
    }


def _refuse_the_rest(cuda):
    """Raises an error with the function's name if a program needs a real GPU."""
    original = cuda._lazy_init

    def refuse():
        name = sys._getframe(1).f_code.co_name
        raise RuntimeError(f"irdiff runs programs without a GPU, and has no answer for torch.cuda.{name}")

    for module in [value for name, value in sys.modules.items() if name.startswith("torch.cuda")]:
        if getattr(module, "_lazy_init", None) is original:
            vars(module)["_lazy_init"] = refuse


class _Silent:
    """Accepts every call, and returns None."""

    def __init__(self, *_, **__):
        self.idx = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


class _Current(_Silent):
    """Makes a stream or a device current while open."""

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
    """Stream 0 is the default one, others count from 1."""

    name = "stream"

    def __init__(self, device=None, priority=0, *, number=None, **__):
        super().__init__(stub_driver.current.new_stream(priority) if number is None else number)
        self.priority = stub_driver.current.priority_of(self.value)
        self.cuda_stream = self.stream_id = self.value
        self.device_index, self.device_type = stub_driver.current.device, 1

    @property
    def device(self):
        return sys.modules["torch"].device("cuda", stub_driver.current.device)

    def __eq__(self, other):
        return isinstance(other, _Stream) and other.value == self.value

    def __hash__(self):
        return hash(self.value)

    def query(self):
        return self.record_event().query()

    def record_event(self, event=None):
        event = event or _Event()
        event.record(self)
        return event

    def wait_event(self, event):
        event.wait(self)

    def wait_stream(self, stream):
        self.wait_event(stream.record_event())

    def synchronize(self):
        self.record_event().synchronize()


class _Event(_Silent):
    """Before an event is recorded, nothing waits for it."""

    def __init__(self, *_, **__):
        super().__init__()
        self.clock = {}

    def record(self, stream=None):
        self.clock = stub_driver.current.clocks.event(_number_of(stream))

    def wait(self, stream=None):
        stub_driver.current.clocks.wait(_number_of(stream), self.clock)

    def synchronize(self):
        stub_driver.current.clocks.host_waits(self.clock)

    def query(self):
        """Returns True: a program that continues has waited for the event."""
        self.synchronize()
        return made_up("the state of an event", True)()

    def elapsed_time(self, _):
        return made_up("Event.elapsed_time", 1.0)()


class _Device(_Current):
    name = "device"

    def __init__(self, device=0, *_, **__):
        super().__init__(_index_of(device))


def _number_of(stream):
    return stub_driver.current.stream if stream is None else stream.value


def _index_of(device):
    """Takes a number or `cuda:1`; the index of a tensor is 0."""
    if isinstance(device, int):
        return device
    _, _, number = str(device).partition(":")
    return int(number) if number.isdigit() else stub_driver.current.device


def _set_device(device):
    stub_driver.current.device = _index_of(device)


_STREAMS = {
    "current_stream": lambda *_, **__: _Stream(number=stub_driver.current.stream),
    "default_stream": lambda *_, **__: _Stream(number=0),
    "stream": lambda stream: stream if isinstance(stream, _Stream) else _Silent(),
    "set_stream": lambda stream: setattr(stub_driver.current, "stream", stream.value),
    "current_device": lambda: stub_driver.current.device,
    "set_device": _set_device,
    "synchronize": lambda *_, **__: stub_driver.current.clocks.host_waits(),
    "device": _Device,
    "device_of": _Silent,
    "Stream": _Stream,
    "ExternalStream": lambda number, *_, **__: _Stream(number=number),
    "Event": _Event,
}


class _Graph(_Silent):
    """Launches in a graph count once, as they are captured."""

    def replay(self):
        noted.caveat("replays a CUDA graph: how often was not compared", is_compared=False)

    def pool(self):
        return (0, 0)


def _graphed(callables, *_, **__):
    noted.caveat("makes CUDA graphs of functions: their launches are compared as called")
    return callables


_GRAPHS = {
    "CUDAGraph": _Graph,
    "graph": lambda graph, *_, **__: graph,
    "graph_pool_handle": lambda: (0, 0),
    "make_graphed_callables": _graphed,
}

_RAW = {
    "_cuda_getCurrentRawStream": lambda device=0: stub_driver.current.stream,
    "_cuda_isCurrentStreamCapturing": lambda: False,
    "_cuda_getDevice": lambda: stub_driver.current.device,
    "_cuda_setDevice": _set_device,
    "_cuda_getDeviceCount": lambda: 1,
}
"""Functions of `torch._C` that generated code and older libraries call."""
