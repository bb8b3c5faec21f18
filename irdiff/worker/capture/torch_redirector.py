"""Moves the GPU tensors of a program that runs without a GPU to the CPU. Imported only if torch is there."""

from __future__ import annotations

import contextlib
import functools
import threading

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack

from .. import storages
from . import noted, stub_driver, torch_autocast, torch_cuda, torch_operators, torch_reach, torch_storages

_MOST_READ = 1 << 12
"""The most elements of a tensor that a program may read on the CPU. Larger ones have no memory."""
_MOST_COPIED_BYTES = 1 << 28
"""Copies of larger tensors have no values."""
_GPUS = ("cuda", "hip", "xpu")
_CPU, _GPU = torch.device("cpu"), torch.device("cuda", 0)
_ANSWERS = {
    torch.Tensor.is_cuda.__get__: lambda is_host: not is_host,
    torch.Tensor.is_cpu.__get__: bool,
    torch.Tensor.device.__get__: lambda is_host: _CPU if is_host else _GPU,
    torch.Tensor.get_device: lambda is_host: -1 if is_host else 0,
}
_MADE_UP = {torch.allclose: True, torch.equal: True}
"""A check of results that are not computed means nothing, and must not end the program."""
_UNWRITTEN = {torch.empty, torch.empty_like, torch.empty_strided, torch.Tensor.new_empty}
"""Values that may decide what is launched next, or be divisors, are the same in every process."""
_NAMES_A_DEVICE = {torch.Tensor.to, torch.Tensor.cuda, torch.Tensor.pin_memory}
"""They take it by its place."""
_MOVES = {
    torch.Tensor.to: "",
    torch.as_tensor: "",
    torch.asarray: "",
    torch.Tensor.cpu: "cpu",
    torch.Tensor.cuda: "cuda",
    torch.Tensor.pin_memory: torch_storages.PINNED,
}
"""{function: where its result lies if the call names no device}"""
_HAVE_NO_GPU = {torch.Tensor.cuda, torch.Tensor.pin_memory}
_READS = {
    torch.Tensor.item,
    torch.Tensor.tolist,
    torch.Tensor.__bool__,
    torch.Tensor.__int__,
    torch.Tensor.__float__,
    torch.Tensor.__index__,
    torch.Tensor.__array__,
    torch.Tensor.__contains__,
    torch.Tensor.is_nonzero,
    torch.is_nonzero,
}
_SHAPED_BY_VALUES = {
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in ("argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive")
    if hasattr(owner, name)
}
"""The shape of their result depends on values."""

_ANSWERED_TO_HOST = {
    torch.Tensor.numpy,
    torch.Tensor.__repr__,
    torch.Tensor.__format__,
    *(getattr(owner, name) for owner in (torch, torch.Tensor) for name in ("allclose", "equal")),
}
"""Other calls that need values, so the host waits for them."""
_COPIES = {torch.Tensor.to, torch.Tensor.cpu, torch.Tensor.cuda, torch.Tensor.copy_}


def install():
    torch.testing.assert_close = lambda *_, **__: None
    for name, note in (
        ("from_dlpack", torch_storages.note_memory),
        ("from_numpy", torch_storages.note_array),
        ("frombuffer", torch_storages.note_array),
    ):
        setattr(torch, name, _noted(getattr(torch, name), note))
    torch.utils.dlpack.from_dlpack = torch.from_dlpack
    torch.load = _loaded_to_its_device(torch.load)
    torch.Tensor.record_stream = lambda *_: None
    torch.set_default_device = torch_storages.set_default_device
    torch.Generator = _generator()
    torch_operators.install(_with_redirector)
    torch_storages.install(torch)
    for owner, name in _CALLED_BACK:
        setattr(owner, name, _with_redirector(getattr(owner, name)))
    _Redirector().__enter__()


_CALLED_BACK = (
    (torch.autograd.function.BackwardCFunction, "apply"),
    (threading.Thread, "_bootstrap_inner"),
)
"""Entry points of a program's code that torch calls from C++, or in a thread of its own. The redirector is
off there.
"""


def _with_redirector(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        is_on = any(isinstance(mode, _Redirector) for mode in _get_current_function_mode_stack())
        with contextlib.nullcontext() if is_on else _Redirector():
            return function(*args, **kwargs)

    return call


class _Redirector(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if torch.compiler.is_compiling():  # what torch.compile traces runs, and is noted, later
            if "device" in kwargs:
                kwargs["device"] = _on_cpu(kwargs["device"])
            return function(*args, **kwargs)
        if function is torch._C._nn._parse_to:
            return _parsed(args, kwargs)
        reads = function in _READS or function in _SHAPED_BY_VALUES or _is_masked(function, args)
        if _waits(function, args, kwargs, reads):
            stub_driver.current.host_waits()
        if function in _ANSWERS:
            return _ANSWERS[function](torch_storages.device_of(args[0]))
        if function in _MADE_UP and not noted.is_checked():
            return torch_cuda.made_up(f"torch.{function.__name__}", _MADE_UP[function])()
        if function in _MADE_UP:
            return _MADE_UP[function]
        arguments, launches_before = (args, kwargs), storages.launches()
        was_out = noted.has_launched and torch_reach.is_out(arguments)
        if reads and not was_out:
            noted.value_read()
        device = _named(kwargs, args[1:] if function in _NAMES_A_DEVICE else ())
        if function is torch.Tensor.to and not device:
            device = _device_like((args[1:], kwargs))
        if "device" in kwargs:
            kwargs["device"] = _on_cpu(kwargs["device"])
        if function is torch.Tensor.to:
            args = (*args[:1], *map(_on_cpu, args[1:]))
        if kwargs.pop("pin_memory", False):
            device = torch_storages.PINNED
        result = args[0] if function in _HAVE_NO_GPU else torch_autocast.call(function, args, kwargs)
        if function in _UNWRITTEN:
            _write(result)
        if function not in _MOVES or result is not args[0]:
            torch_storages.note(function, args, kwargs, result, device)
        if function in _MOVES and (device or _MOVES[function]):
            device = device or _MOVES[function].replace("cuda", _current_gpu())
            result = torch_storages.moved(result, device, _copied)
        if noted.has_launched:
            torch_reach.note(arguments, was_out and storages.launches() == launches_before, result)
        if function is torch.Tensor.numpy and noted.has_launched and noted.listener is not None:
            from . import computed_arrays  # not without numpy

            return computed_arrays.of(result)
        return result


def _is_masked(function, args):
    if function is torch.where:
        return len(args) == 1  # else it picks values, and none of them shapes its result
    if function is not torch.Tensor.__getitem__:
        return False
    indices = args[1] if isinstance(args[1], tuple) else (args[1],)
    return any(getattr(index, "dtype", None) in (torch.bool, torch.uint8) for index in indices)


def _waits(function, args, kwargs, reads):
    """The host waits for the stream if it reads a tensor of the GPU, or copies from or to one."""
    if reads or function in _ANSWERED_TO_HOST:
        return not torch_storages.is_host(args)
    if function not in _COPIES or kwargs.get("non_blocking"):
        return False
    if function is torch.Tensor.copy_:
        is_blocking = len(args) < 3 or not args[2]
        return is_blocking and torch_storages.is_host(args[:1]) != torch_storages.is_host(args[1:2])
    if any(value is True for value in args[1:]):  # `non_blocking`, by its place
        return False
    is_to_host = function is torch.Tensor.cpu or _named(kwargs, args[1:]) == "cpu"
    is_to_gpu = function is torch.Tensor.cuda or _named(kwargs, args[1:]).startswith("cuda")
    return is_to_gpu if torch_storages.is_host(args[:1]) else is_to_host


def _write(tensor):
    is_number = tensor.is_floating_point() or tensor.is_complex()
    if not is_number or tensor.numel() <= _MOST_READ:
        tensor.fill_(1 if is_number else 0)


def _is_number(device):
    return isinstance(device, int) and not isinstance(device, bool)


def _on_cpu(device):
    if (isinstance(device, str) and device.partition(":")[0] in _GPUS) or _is_number(device):
        return "cpu"
    return _CPU if isinstance(device, torch.device) and device.type in _GPUS else device


def _named(kwargs, others):
    """Returns the device that a call names; the first GPU is `cuda`."""
    for value in [kwargs["device"]] if "device" in kwargs else others:
        if isinstance(value, (str, torch.device)) or _is_number(value):
            text = f"cuda:{value}" if _is_number(value) else str(value)
            if text.partition(":")[0] in (*_GPUS, "cpu", "meta"):
                text = text.replace("hip", "cuda")
                return _current_gpu() if text == "cuda" else text.removesuffix(":0")
    return ""


def _current_gpu():
    number = stub_driver.current.device
    return f"cuda:{number}" if number else "cuda"


def _parsed(args, kwargs):
    """Answers `Module.to`, which then calls `Tensor.to` for each parameter."""
    named = _named(kwargs, args) or _device_like((args, kwargs))
    if "device" in kwargs:
        kwargs["device"] = _on_cpu(kwargs["device"])
    device, *rest = torch._C._nn._parse_to(*map(_on_cpu, args), **kwargs)
    return (torch.device(named) if named.startswith("cuda") else device, *rest)


def _noted(function, note):
    @functools.wraps(function)
    def call(*args, **kwargs):
        result = function(*args, **kwargs)
        note(result)
        return result

    return call


def _loaded_to_its_device(load):
    @functools.wraps(load)
    def loaded(file, map_location=None, *args, **kwargs):
        device = _named({}, [map_location])
        result = load(file, _on_cpu(map_location), *args, **kwargs)
        for tensor in torch_reach.tensors_in(result) if device else ():
            origin = storages.place_of(tensor).origin
            origin.device, origin.launches_before = device, None
        return result

    return loaded


def _copied(tensor, *, has_values):
    is_read = tensor.numel() <= _MOST_READ
    if is_read or (has_values and tensor.numel() * tensor.itemsize <= _MOST_COPIED_BYTES):
        return tensor.clone()
    return _CopyWithoutValues.apply(tensor)


class _CopyWithoutValues(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        return torch.zeros_like(tensor)  # which touches no memory

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def _device_like(arguments):
    """Returns the device of the first tensor among them; empty if there is none."""
    return next(map(torch_storages.device_like, torch_reach.tensors_in(arguments)), "")


def _generator():
    """A generator of the GPU becomes one of the CPU."""
    original = torch.Generator

    def new(cls, device="cpu"):
        return original.__new__(cls, device=_on_cpu(device))

    any_generator = type("AnyGenerator", (type(original),), {"__instancecheck__": _is_generator})
    return any_generator("Generator", (original,), {"__new__": new})


def _is_generator(_, value):
    return isinstance(value, torch._C.Generator)
