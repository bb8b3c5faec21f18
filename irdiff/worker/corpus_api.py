"""The module `irdiff_corpus` of workloads: tensors without storage, and the table of launches.

A workload is ordinary Triton code. It ends with `LAUNCHES`, which maps a label to a user's call:

    LAUNCHES = {
        "fp16-4096": launch(matmul, tensor((4096, 4096), "fp16"), tensor((4096, 4096), "fp16")),
    }

During capture the tensors are fakes (dtype, shape, strides, alignment, fill). To verify kernels on a GPU,
`use_torch` makes the same calls use real tensors.
"""

from __future__ import annotations

import fnmatch
import functools
import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

from . import storages

_DTYPES = {
    "fp64": ("float64", 8, True),
    "fp32": ("float32", 4, True),
    "fp16": ("float16", 2, True),
    "bf16": ("bfloat16", 2, True),
    "fp8e4nv": ("float8_e4m3fn", 1, True),
    "fp8e4b8": ("float8_e4m3fnuz", 1, True),
    "fp8e5": ("float8_e5m2", 1, True),
    "fp8e5b16": ("float8_e5m2fnuz", 1, True),
    "i64": ("int64", 8, False),
    "i32": ("int32", 4, False),
    "i16": ("int16", 2, False),
    "i8": ("int8", 1, False),
    "u64": ("uint64", 8, False),
    "u32": ("uint32", 4, False),
    "u16": ("uint16", 2, False),
    "u8": ("uint8", 1, False),
    "i1": ("bool", 1, False),
}
"""Triton's short name → (torch's name, size in bytes, is floating point)."""
_BY_TORCH_NAME = {torch_name: short for short, (torch_name, _, _) in _DTYPES.items()}
_storage_numbers = itertools.count()
_torch = None


class DType:
    """Prints like torch's dtype (`float16`), which is how Triton reads a tensor's type."""

    def __init__(self, short):
        if short not in _DTYPES:
            raise ValueError(f"unknown dtype {short!r}: one of {', '.join(_DTYPES)}")
        self.short = short
        self.torch_name, self.itemsize, self.is_floating_point = _DTYPES[short]

    def __str__(self):
        return self.torch_name

    def __repr__(self):
        return f"torch.{self.torch_name}"

    def __eq__(self, other):
        return dtype_name(other) == self.short

    def __hash__(self):
        return hash(self.short)


def dtype_name(dtype):
    """Takes a DType, a torch dtype or a name. Returns `fp16`, `fp8e4nv`, `i32`."""
    if isinstance(dtype, DType):
        return dtype.short
    name = str(dtype).rsplit(".", 1)[-1]
    return _BY_TORCH_NAME.get(name, name)


class _Storage:
    def __init__(self, kind, fill):
        # distinct, aligned addresses: what the frontend specializes on is the alignment
        self.address = next(_storage_numbers) + 1 << storages.FAKE_ADDRESS_BITS
        self.fill = fill
        self.size_bytes = 0
        self.origin = storages.StorageOrigin(kind, fill)
        storages.add_fake(self, self.address)


class FakeTensor:
    """A strided view of a storage that does not exist. Shape and strides are in elements."""

    def __init__(self, shape, dtype, strides=None, offset=0, fill="normal", storage=None, provenance="made"):
        self.shape = tuple(int(n) for n in shape)
        self.dtype = DType(dtype_name(dtype))
        self.strides = tuple(strides) if strides is not None else contiguous_strides(self.shape)
        self.offset = offset
        if storage is None:
            storage = _Storage(f"{provenance} as {storages.kind(self.dtype.short, self.shape)}", fill)
        self.storage = storage
        self.storage.size_bytes = max(self.storage.size_bytes, self._end_bytes())
        self.device = "cuda"
        self.is_cuda, self.requires_grad = True, False

    def _end_bytes(self):
        last = self.offset + sum((n - 1) * s for n, s in zip(self.shape, self.strides))
        return 0 if 0 in self.shape else (last + 1) * self.dtype.itemsize

    def data_ptr(self):
        return self.storage.address + self.offset * self.dtype.itemsize

    def ptr_range(self):
        """Returns the size of the storage in bytes; Triton asks before it uses 32-bit buffer offsets."""
        return self.storage.size_bytes

    def stride(self, dim=None):
        return self.strides if dim is None else self.strides[dim]

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self):
        return len(self.shape)

    ndim = property(dim)

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return self.dtype.itemsize

    def zero_(self):
        return self._written("zeros")

    def fill_(self, value):
        return self._written(fill_word(value))

    def copy_(self, source, non_blocking=False):
        return self._written("")

    def clone(self):
        return FakeTensor(self.shape, self.dtype, provenance="computed")

    def _written(self, fill):
        whole = self.numel() * self.dtype.itemsize == self.storage.size_bytes
        self.storage.origin.state = fill if whole else f"{fill} at {self.offset} {list(self.shape)}"
        return self

    def is_contiguous(self):
        return self.strides == contiguous_strides(self.shape)

    def _view(self, shape, strides, offset=None):
        return FakeTensor(
            shape, self.dtype, strides, self.offset if offset is None else offset, storage=self.storage
        )

    def permute(self, *dims):
        dims = _unpacked(dims)
        return self._view([self.shape[d] for d in dims], [self.strides[d] for d in dims])

    def transpose(self, first, second):
        dims = list(range(len(self.shape)))
        dims[first], dims[second] = dims[second], dims[first]
        return self.permute(*dims)

    def t(self):
        return self.transpose(0, 1)

    T = property(t)

    def contiguous(self):
        return self if self.is_contiguous() else FakeTensor(self.shape, self.dtype, provenance="computed")

    def view(self, *shape):
        shape = _unpacked(shape)
        if not self.is_contiguous():
            raise ValueError("view of a tensor that is not contiguous")
        product = math.prod(n for n in shape if n != -1)
        return self._view([n if n != -1 else self.numel() // product for n in shape], None)

    reshape = view

    def as_strided(self, shape, strides, offset=0):
        """The offset counts from the beginning of the storage."""
        return self._view(shape, strides, offset)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        shape, strides, offset = [], [], self.offset
        for position, (size, step) in enumerate(zip(self.shape, self.strides)):
            part = index[position] if position < len(index) else slice(None)
            if isinstance(part, int):
                offset += (part % size) * step
                continue
            start, stop, stride = part.indices(size)
            shape.append(len(range(start, stop, stride)))
            strides.append(step * stride)
            offset += start * step
        return self._view(shape, strides, offset)

    def new_empty(self, shape, dtype=None):
        return FakeTensor(shape, dtype if dtype is not None else self.dtype, fill="empty")

    def new_zeros(self, shape, dtype=None):
        return FakeTensor(shape, dtype if dtype is not None else self.dtype, fill="zeros")

    def to(self, dtype):
        return FakeTensor(self.shape, dtype, fill=self.storage.fill, provenance="computed")

    def __repr__(self):
        return f"tensor({self.shape}, {self.dtype.short!r})"


def _unpacked(numbers):
    """`f(1, 2)` and `f((1, 2))` mean the same."""
    return tuple(numbers[0] if len(numbers) == 1 and isinstance(numbers[0], (tuple, list)) else numbers)


def storage_of(tensor):
    """Returns (origin of the storage, offset in elements, fill) of a fake tensor, torch's, or a program's
    own.
    """
    place = storages.place_of(tensor)
    return place.origin, place.offset_bytes // size_of(tensor.dtype), fill_of(tensor)


def size_of(dtype):
    """Returns bytes; 1 if a program's own type does not say."""
    _, size, _ = _DTYPES.get(dtype_name(dtype), (None, getattr(dtype, "itemsize", 1), None))
    return size


def fill_of(tensor):
    """Returns what a torch tensor was last filled with, if a GPU run can repeat that."""
    if isinstance(tensor, FakeTensor):
        return tensor.storage.fill
    state = storages.place_of(tensor).origin.state
    return state if state in ("zeros", "ones") else "normal"


def fill_word(value):
    if not isinstance(value, (bool, int, float)):
        return ""
    is_zero = value == 0 and not str(value).startswith("-")
    return "zeros" if is_zero else "ones" if value == 1 else f"const:{value}"


def shape_of(tensor):
    """Takes a fake tensor, torch's, or an object that stands for one and may have no shape."""
    return tuple(int(n) for n in getattr(tensor, "shape", (1,)))


def strides_of(tensor):
    stride = getattr(tensor, "stride", None)
    strides = stride() if callable(stride) else getattr(tensor, "strides", None)
    return contiguous_strides(shape_of(tensor)) if strides is None else tuple(map(int, strides))


def contiguous_strides(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def tensor(shape, dtype="fp32", strides=None, offset=0, fill="normal"):
    """Declares an input. `strides` and `offset` are in elements; the storage is aligned to 256 bytes.

    `fill` says how a GPU run fills it: `normal`, `normal:SCALE`, `uniform`, `uniform:LOW:HIGH`, `zeros`,
    `ones`, `const:VALUE`, `arange`, `randint:LOW:HIGH` (HIGH excluded), `perm` (a permutation of 0..n-1), or
    `values:1,2,3,…` for small inputs that are given by value.
    """
    return FakeTensor(shape, dtype, strides, offset, fill)


def values(numbers, dtype="i32", shape=None):
    """Declares a small integer input by value: offsets, block tables, routing."""
    numbers = list(numbers)
    return FakeTensor(shape or (len(numbers),), dtype, fill="values:" + ",".join(map(str, numbers)))


def empty(shape, dtype):
    """Declares an output that the kernel writes completely."""
    return _new_tensor(shape, dtype, "empty")


def zeros(shape, dtype):
    """Declares an output or workspace that must start as zeros."""
    return _new_tensor(shape, dtype, "zeros")


def _new_tensor(shape, dtype, fill):
    if _torch is None:
        return FakeTensor(shape, dtype, fill=fill)
    dtype = getattr(_torch, DType(dtype_name(dtype)).torch_name)
    return getattr(_torch, fill)(tuple(shape), dtype=dtype, device="cuda")


def use_torch(torch):
    """Makes `empty` and `zeros` return real tensors on the GPU from now on."""
    global _torch
    _torch = torch


class Check(NamedTuple):
    """A call of a workload of torch tensors, and its reference."""

    function: Callable
    reference: Callable
    inputs: tuple
    """The inputs before the call, which may write to them."""
    results: object
    error: float | None
    """The largest relative norm of a result's error; None: by the types of the inputs."""


checks: list = []
"""The calls of `checked` while kernels are verified."""


def checked(function, reference, *inputs, error=None):
    """Calls `function(*inputs)` with torch tensors; `corpus verify` compares it with `reference(*inputs)` in
    fp32.

    Both return a tensor or a tuple of tensors; the reference's has None for a result that is not compared.
    The reference does not run during capture.
    """
    if not _torch:
        return function(*inputs)
    kept = tuple(value.clone() if _torch.is_tensor(value) else value for value in inputs)
    results = function(*inputs)
    checks.append(Check(function, reference, kept, results, error))
    return results


def trained(function, reference, *inputs, error=None):
    """Like `checked`, forward and backward: the results, then the gradient of each floating-point input."""
    both = (functools.partial(_forward_backward, call) for call in (function, reference))
    return checked(*both, *inputs, error=error)


def as_tuple(results):
    return results if isinstance(results, tuple) else (results,)


def _forward_backward(function, *inputs):
    import torch

    def is_float(value):
        return torch.is_tensor(value) and value.is_floating_point()

    leaves = [value.detach().requires_grad_() if is_float(value) else value for value in inputs]
    results = as_tuple(function(*leaves))
    wanted = [value for value in results if is_float(value) and value.requires_grad]
    torch.manual_seed(1)  # what flows back is the same for the reference, and is not the first input again
    flows = [
        torch.randn(value.shape, device=value.device).to(value) if _torch else torch.ones_like(value)
        for value in wanted
    ]
    torch.autograd.backward(wanted, flows)
    return (*results, *(value.grad for value in leaves if is_float(value)))


class LaunchEntry:
    def __init__(self, function, args, kwargs, facts):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.facts = facts

    def __call__(self):
        return self.function(*self.args, **self.kwargs)

    def expects(self, target_name, version):
        facts = self.facts
        if not any(fnmatch.fnmatch(target_name, pattern) for pattern in facts["targets"]):
            return False
        if _release(version) == _release(_bound(facts["failing"], target_name) or ""):
            return False
        return is_within(version, *(_bound(facts[name], target_name) for name in ("since", "until")))


class FileEntry(LaunchEntry):
    """Its kernel is a file of IR."""

    def __init__(self, path, options, facts):
        super().__init__(None, (), {}, facts)
        self.path = path
        self.options = options


class RecordedEntry(LaunchEntry):
    """It was recorded as IR."""

    def __init__(self, paths, facts):
        super().__init__(None, (), {}, facts)
        self.paths = paths


def _bound(bound, target_name):
    """`bound` may give a release for each pattern of target names: `{"gfx942": "3.4.0"}`."""
    if not isinstance(bound, dict):
        return bound
    return next((release for name, release in bound.items() if fnmatch.fnmatch(target_name, name)), None)


def _release(version):
    """Parses `3.6.0+git1234` as [3, 6, 0]; no version as []."""
    parts = version.split(".")[:3] if version else []
    return [int("".join(itertools.takewhile(str.isdigit, part)) or 0) for part in parts]


def is_within(version, since, until):
    """`until` is excluded; None is no bound."""
    release = _release(version)
    return not (since and release < _release(since)) and not (until and release >= _release(until))


def launch(
    function,
    *args,
    tier="core",
    targets=("*",),
    since=None,
    until=None,
    failing=None,
    flops=None,
    min_bytes=None,
    configs=None,
    reference=None,
    rtol=1e-2,
    atol=1e-2,
    **kwargs,
):
    """Declares the call `function(*args, **kwargs)`, which launches one kernel or several.

    tier: `gate` (blocks a release), `core`, or `extended`. targets: names or patterns (`sm_*`) of the targets
    that it should compile for. since, until: the first release of Triton that compiles it, and the first that
    no longer does; if targets differ, `{"gfx942": "3.4.0"}`, the first matching pattern. failing: the one
    release in between that does not, `{"sm_100": "3.6.0"}`. flops: floating-point operations; min_bytes: the
    fewest bytes that must be moved. configs: how many configs of an autotuned kernel count, from the first;
    None means all. reference: a function of the same arguments as torch tensors that returns what `function`
    returns, within rtol and atol.
    """
    _check_is_call(function)
    bounds = {"since": since, "until": until, "failing": failing, "configs": configs}
    work = {"flops": flops, "min_bytes": min_bytes, "reference": reference, "rtol": rtol, "atol": atol}
    return LaunchEntry(function, args, kwargs, _facts(tier, targets, **bounds, **work))


def _check_is_call(function):
    """Raises TypeError for a kernel without its grid, with the corrected call."""
    if callable(function) and not (hasattr(function, "fn") and hasattr(function, "run")):
        return
    inner = function
    while hasattr(inner, "fn"):
        inner = inner.fn
    name = getattr(inner, "__name__", repr(function))
    code = getattr(inner, "__code__", None)
    if code is None:
        raise TypeError(f"launch({name}, ...): the first argument is a function that launches kernels")
    parameters = ", ".join(code.co_varnames[: code.co_argcount])
    raise TypeError(
        f"write launch({name}[grid], {parameters}), not launch({name}, ...): a kernel needs its grid in "
        "brackets, as where it is called; or launch a function that calls it"
    )


def grid_by(names, table):
    """Returns the grid of an autotuned kernel by a config's values of `names`, as recorded. A config that was
    not recorded gets the largest grid of each dimension.
    """

    def grid(meta):
        largest = tuple(map(max, zip(*table.values())))
        return table.get(tuple(meta.get(name) for name in names), largest)

    return grid


def launch_ir(path, options=None, tier="core", targets=("*",), since=None, until=None, failing=None):
    """Declares a file of IR, `.ttir` or `.ttgir` (of XLA, or edited by hand), as a kernel for
    `triton.compile`.

    path: relative to the root of the corpus. options: as for a launch, `{"num_warps": 8}`; a `.ttgir` names
    its warps itself. It has no arguments, so it is compared and never timed. Other parameters are as for
    `launch`.
    """
    facts = _facts(tier=tier, targets=targets, since=since, until=until, failing=failing)
    return FileEntry(path, dict(options or {}), facts)


def recorded(**paths):
    """Declares a launch that was recorded for one target or several: `recorded(sm_90="launches/1a2b.json")`.
    Paths are relative to the root of the corpus. The toolchain that recorded it reads it (`recorded_ir`).
    """
    return RecordedEntry(paths, _facts("core", tuple(paths)))


def program(*words, tier="core", targets=("*",), since=None, until=None, configs=None):
    """Declares all launches of a program: `program("bench/run.py", "--small")`, or `program("-m",
    "pkg.bench")`.

    The path is relative to the root of the corpus. The program runs as if there were a GPU: torch's tensors
    lie on the CPU, and kernels compute nothing. Other parameters are as for `launch`.
    """
    facts = _facts(tier=tier, targets=targets, since=since, until=until, configs=configs)
    from . import run_program  # not with this module alone, which other tools may load as `irdiff_corpus`

    return LaunchEntry(run_program.run, words, {}, facts)


def _facts(tier, targets, **rest):
    if tier not in ("gate", "core", "extended"):
        raise ValueError(f"tier {tier!r}: one of gate, core, extended")
    targets = (targets,) if isinstance(targets, str) else tuple(targets)
    names = ("since", "until", "failing", "configs", "flops", "min_bytes", "reference", "rtol", "atol")
    return {**dict.fromkeys(names), "tier": tier, "targets": targets, **rest}
