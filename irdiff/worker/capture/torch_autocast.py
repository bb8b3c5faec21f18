"""`torch.autocast("cuda")` for tensors that lie on the CPU: they are cast as on the GPU.

While an operator runs on tensors of the GPU, the CPU's autocast is set as the program has set the GPU's, and
casts the operators that torch's own header lists for the GPU.
"""

from __future__ import annotations

import functools
import os
import re
import warnings

import torch

from . import noted, torch_storages

_HEADER = os.path.join(os.path.dirname(torch.__file__), "include", "ATen", "autocast_mode.h")
_CPU, _GPU = "AutocastCPU", "AutocastCUDA"
_libraries: list = []


def call(function, args, kwargs):
    """The function runs on the host if its tensors lie there."""
    of_gpu, of_cpu = torch.is_autocast_enabled("cuda"), torch.is_autocast_enabled("cpu")
    if not (of_gpu or of_cpu) or torch_storages.is_host(args):
        return function(*args, **kwargs)
    if of_gpu:
        _take_lists()
    dtype = torch.get_autocast_dtype("cpu")
    torch.set_autocast_enabled("cpu", of_gpu)
    torch.set_autocast_dtype("cpu", torch.get_autocast_dtype("cuda"))
    try:
        return function(*args, **kwargs)
    finally:
        torch.set_autocast_enabled("cpu", of_cpu)
        torch.set_autocast_dtype("cpu", dtype)


@functools.lru_cache(maxsize=None)
def _take_lists():
    """Makes the CPU's list of operators the GPU's, in this process."""
    of_cpu, of_gpu = (set(torch._C._dispatch_get_registrations_for_dispatch_key(key)) for key in (_CPU, _GPU))
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    casts = _casts()
    if not casts:
        noted.caveat("runs under autocast, and casts as torch does for a CPU: a GPU may give other types")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of kernels that are registered twice
        for name in sorted(of_cpu - of_gpu):
            library.impl(name, torch.library.fallthrough_kernel, _CPU)
        for name in sorted(of_gpu - of_cpu):
            if cast := casts.get(name.removeprefix("aten::")):
                library.impl(name, _kernel(name, cast), _CPU)


def _casts():
    """Reads {operator: function of its arguments that returns the type to cast to} from torch's header."""
    try:
        with open(_HEADER, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return {}
    return {name: cast for macro, cast in _BY_MACRO.items() for name in _listed(text, macro)}


def _listed(text, macro):
    """Yields operators (`sum` or `sum.dim_IntList`) of a macro that calls `_` for each."""
    start = re.search(rf"#define {macro}\(_\)((?:.*\\\n)*.*)", text)
    body = start[1] if start else ""
    yield from re.findall(r'"([\w.]+)"', body)
    yield from (re.sub(", *", ".", words) for words in re.findall(r"_\((\w+(?:, *\w+)?)\)", body))


def _kernel(name, cast):
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    operator = getattr(getattr(getattr(torch.ops, space), base), overload or "default")
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)

    def kernel(*args, **kwargs):
        values = list(_flat((*args, *kwargs.values())))
        dtype = cast(values)
        with torch._C._ExcludeDispatchKeyGuard(keys):
            return operator(*_to(args, dtype), **dict(zip(kwargs, _to(kwargs.values(), dtype))))

    return kernel


def _flat(values):
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        else:
            yield value


def _to(values, dtype):
    """Casts the tensors that autocast would cast, or none if dtype is None."""
    if dtype is None:
        return tuple(values)
    return tuple(
        type(value)(_to(value, dtype))
        if isinstance(value, (tuple, list))
        else value.to(dtype)
        if _is_cast(value)
        else value
        for value in values
    )


def _is_cast(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64


def _to_float32(values):
    return torch.float32


def _to_float32_unless_named(values):
    return None if any(isinstance(value, torch.dtype) for value in values) else torch.float32


def _to_widest(values):
    dtypes = [value.dtype for value in values if _is_cast(value)]
    return torch.float32 if torch.float32 in dtypes else dtypes[0] if dtypes else None


_BY_MACRO = {
    "AT_FORALL_LOWER_PRECISION_FP": lambda values: torch.get_autocast_dtype("cpu"),
    "AT_FORALL_FP32": _to_float32,
    "AT_FORALL_FP32_SET_OPT_DTYPE": _to_float32_unless_named,
    "AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE": _to_float32,
    "AT_FORALL_PROMOTE": _to_widest,
}
