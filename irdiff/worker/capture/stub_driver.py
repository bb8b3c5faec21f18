"""A Triton driver without a device, which answers for a target. Kernels launched on it run nothing."""

from __future__ import annotations

import threading

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from . import streams


class _OfThread(threading.local):
    device = stream = 0


class Current:
    """The current device and stream. Streams are numbered; 0 is the default one."""

    def __init__(self):
        self.begin()

    def begin(self):
        """Resets the state, as if another entry of a workload began in a process of its own."""
        self._thread = _OfThread()
        self.priorities = [0]
        self.clocks = streams.Clocks()

    @property
    def device(self):
        return self._thread.device

    @device.setter
    def device(self, device):
        self._thread.device = device

    @property
    def stream(self):
        return self._thread.stream

    @stream.setter
    def stream(self, stream):
        self._thread.stream = stream

    def new_stream(self, priority=0):
        self.priorities.append(priority)
        return len(self.priorities) - 1

    def priority_of(self, stream):
        """Returns 0 for a stream that something else created."""
        return self.priorities[stream] if 0 <= stream < len(self.priorities) else 0

    def host_waits(self):
        self.clocks.host_waits(self.clocks.event(self.stream))


current = Current()


def answer_as(target):
    """Makes a stub Triton's driver. target: as in its TOML."""
    driver.set_active(StubDriver(gpu_of(target), target["facts"]))


def gpu_of(target):
    return GPUTarget(target["backend"], target["arch"], target["warp_size"])


def capability_of(arch):
    """Returns CUDA's capability; for any other GPU, torch's answer for an MI300."""
    return divmod(arch, 10) if isinstance(arch, int) else (9, 4)


class StubDriver:
    def __init__(self, target, facts):
        self.target, self.facts = target, facts
        self.utils = self

    def get_device_properties(self, device):
        return {
            "multiprocessor_count": self.facts.get("multiprocessors", 132),
            "max_shared_mem": self.facts.get("shared_memory_bytes", 232448),
            "max_num_regs": self.facts.get("registers_per_multiprocessor", 65536),
            "max_threads_per_sm": self.facts.get("threads_per_multiprocessor", 2048),
            "warpSize": self.target.warp_size,
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 3201000,
            "mem_bus_width": 6144,
        }

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return current.device

    def get_current_stream(self, device=0):
        return current.stream

    def set_current_device(self, device):
        current.device = device

    def get_device_capability(self, device=0):
        return capability_of(self.target.arch)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_device_interface(self):
        import torch

        return torch.cuda

    def get_benchmarker(self):
        """3.2 asks for it when an autotuned kernel is created; nothing is timed here."""

        def benchmark(*args, **kwargs):
            raise RuntimeError("irdiff: a measurement was reached; there is no GPU here")

        return benchmark


class NoKernel:
    """Replaces a compiled kernel while launches do not count."""

    def __getitem__(self, grid):
        return lambda *args, **kwargs: None
