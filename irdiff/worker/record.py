"""Every Triton launch of a program as it runs, with or without a GPU.

Without a GPU the driver is a stub and nothing is compiled; autotuned kernels give one launch per pinned
config. With one, each launch is recorded and then goes on; of an autotuned kernel the chosen config is
recorded, not what was tried on the way. Launches that are the same to the compiler count once.
"""

from __future__ import annotations

import collections
import functools
import threading
import types

import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from . import capture, corpus_api, describe, texts

_VALUES_AT_MOST = 256
_LOOKED_AT_MOST = 1 << 22


class Tensor:
    """A tensor argument without its storage: what a fake of it needs."""

    def __init__(self, tensor):
        self.dtype = corpus_api.dtype_name(tensor.dtype)
        self.shape = tuple(int(n) for n in getattr(tensor, "shape", (1,)))
        self.strides = _strides(tensor, self.shape)
        size = corpus_api.DType(self.dtype).itemsize
        pointer = tensor.data_ptr()
        offset = int(tensor.storage_offset()) if hasattr(tensor, "storage_offset") else 0
        # what the frontend specializes on is the alignment of the address
        self.offset = offset if (offset * size - pointer) % 16 == 0 else pointer % 16 // size
        self.storage = _storage(tensor, pointer - self.offset * size)
        self.fill, self.values = _content(tensor, self.dtype)

    @property
    def place(self):
        """Arguments that are the same in this are one tensor."""
        return (self.storage, self.dtype, self.shape, self.strides, self.offset)


class Descriptor:
    """A host-side tensor descriptor."""

    def __init__(self, descriptor):
        self.type = type(descriptor)
        self.base = Tensor(descriptor.base)
        self.fields = {
            name: getattr(descriptor, name)
            for name in getattr(descriptor, "__dataclass_fields__", ("shape", "strides", "block_shape"))
            if name != "base" and hasattr(descriptor, name)
        }


class Recorded:
    """One launch: the JIT function, its arguments by parameter, its options and grid."""

    def __init__(self, captured, digest, arguments, options):
        self.function, self.grid = captured.function, captured.grid
        self.digest, self.arguments, self.options = digest, arguments, options
        src = captured.src
        self.constexprs = {describe.name_of(src, key): value for key, value in src.constants.items()}
        self.signature = {str(name): texts.text_of(ty) for name, ty in src.signature.items()}
        self.attributes = describe.attributes_of(src)


class Recorder:
    """Open it around a program; `launches` then holds what it launched, in order."""

    def __init__(self, target=None):
        """`target` as in its TOML where there is no GPU; None lets launches go on on the real one."""
        self.target = target
        self.launches = {}
        self.count = 0
        self._seen = set()
        self._state = threading.local()
        self._undo = []

    def __enter__(self):
        if self.target is not None:
            gpu = GPUTarget(self.target["backend"], self.target["arch"], self.target["warp_size"])
            driver.set_active(capture.StubDriver(gpu, {**self.target["facts"], "warp_size": gpu.warp_size}))
        jit, tuner = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
        self._run = jit.run
        for module in (triton.compiler, triton.compiler.compiler):
            self._replace(module, "compile", self._compile)
        self._replace(jit, "run", _method(self._launched))
        if self.target is None:
            self._replace(tuner, "_bench", _method(functools.partial(self._trying, tuner._bench)))
        else:
            self._replace(tuner, "run", _method(self._pinned))
            self._replace_benchmarks()
        return self

    def __exit__(self, *_):
        for owner, name, value in reversed(self._undo):
            setattr(owner, name, value)

    def _replace(self, owner, name, value):
        self._undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _replace_benchmarks(self):
        import triton.testing

        def once(function, *_, **__):
            function()
            return 1.0

        for name in ("do_bench", "do_bench_cudagraph"):
            self._replace(triton.testing, name, once)

    # launches

    def _compile(self, src, target=None, options=None, **rest):
        if self.target is not None or getattr(self._state, "probing", False):
            raise capture.Reached(src, target, options)
        return capture.real_compile(src, target=target, options=options, **rest)

    def _launched(self, function, *args, grid=None, warmup=False, **kwargs):
        if not getattr(self._state, "quiet", False):
            self._record(function, args, kwargs, grid, warmup)
        if self.target is not None:
            return capture.NoKernel()
        return self._run(function, *args, grid=grid, warmup=warmup, **kwargs)

    def _record(self, function, args, kwargs, grid, warmup):
        bound = capture.bind(function, args, kwargs)
        numbers = capture.evaluate_grid(None if warmup and callable(grid) else grid, bound)
        key = (id(function), repr(numbers), *(_cheap(value) for value in (*bound.values(), kwargs)))
        self.count += 1
        if key in self._seen:
            return
        reached = self._probe(function, args, kwargs, grid)
        self._seen.add(key)
        captured = capture.Captured(function, bound, numbers, reached)
        digest = describe.digest_of(captured)
        if digest not in self.launches:
            options = {name: value for name, value in kwargs.items() if name not in bound}
            arguments = {name: _described(value) for name, value in bound.items()}
            self.launches[digest] = Recorded(captured, digest, arguments, options)

    def _probe(self, function, args, kwargs, grid):
        """What the frontend makes of a launch, past any cache of compiled kernels."""
        name = "device_caches" if hasattr(function, "device_caches") else "cache"
        kept = getattr(function, name)
        fresh = collections.defaultdict(function.create_binder if name == "device_caches" else dict)
        hooks, function.pre_run_hooks = function.pre_run_hooks, []
        setattr(function, name, fresh)
        self._state.probing = True
        try:
            self._run(function, *args, grid=grid, warmup=True, **kwargs)
        except capture.Reached as reached:
            return reached
        finally:
            self._state.probing = False
            setattr(function, name, kept)
            function.pre_run_hooks = hooks
        raise RuntimeError(f"irdiff: the frontend of {function.fn.__name__} did not come to its compiler")

    def _trying(self, original, tuner, *args, **kwargs):
        self._state.quiet = True
        try:
            return original(tuner, *args, **kwargs)
        finally:
            self._state.quiet = False

    def _pinned(self, tuner, *args, **kwargs):
        tuner.nargs = dict(zip(tuner.arg_names, args))
        configs = capture.pinned_configs(tuner, kwargs)
        for config in configs:
            options = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**tuner.nargs, **kwargs, **options})
            tuner.fn.run(*args, **{**kwargs, **options})
        tuner.nargs, tuner.best_config = None, configs[0]
        return capture.NoKernel()


def _method(function):
    """A bound method or partial as a plain function, so that it binds the instance it is looked up on."""

    def call(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return call


def _cheap(value):
    """A key that is quick to make: equal keys mean equal launches."""
    if hasattr(value, "data_ptr"):
        shape = tuple(getattr(value, "shape", ()))
        return (str(value.dtype), shape, _strides(value, shape), value.data_ptr() % 16)
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        return (_cheap(value.base), repr(value.shape), repr(value.strides), repr(value.block_shape))
    if isinstance(value, (tuple, list)):
        return tuple(map(_cheap, value))
    if isinstance(value, dict):
        return tuple((name, _cheap(item)) for name, item in value.items())
    if isinstance(value, (int, float, str, bool, types.FunctionType)) or value is None:
        return (type(value).__name__, value)
    return (id(value), repr(value))


def _described(value):
    if hasattr(value, "data_ptr"):
        return Tensor(value)
    if hasattr(value, "base") and hasattr(value, "block_shape"):
        return Descriptor(value)
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_described(item) for item in value)
    return value


def _strides(tensor, shape):
    stride = getattr(tensor, "stride", None)
    found = stride() if callable(stride) else getattr(tensor, "strides", None)
    return tuple(int(n) for n in found) if found is not None else corpus_api.contiguous_strides(shape)


def _storage(tensor, base):
    storage = getattr(tensor, "untyped_storage", None)
    try:
        return storage().data_ptr() if callable(storage) else base
    except Exception:  # a tensor without a storage
        return base


def _content(tensor, dtype):
    """(fill, values) of a torch tensor: small integers by value, others by what they look like."""
    is_floating_point = corpus_api.DType(dtype).is_floating_point
    try:
        count = tensor.numel()
        if not is_floating_point and 0 < count <= _VALUES_AT_MOST and tensor.is_contiguous():
            return "normal", [int(n) for n in tensor.flatten().tolist()]
        if count == 0 or count > _LOOKED_AT_MOST:
            return "normal", None
        if is_floating_point:
            return ("normal" if bool(tensor.any()) else "zeros"), None
        return _integers(tensor, count), None
    except Exception:  # not a torch tensor, or one without values
        return "normal", None


def _integers(tensor, count):
    low, high = int(tensor.min()), int(tensor.max())
    if low == high:
        return "zeros" if low == 0 else f"const:{low}"
    if (low, high) == (0, count - 1) and tensor.unique().numel() == count:
        flat = tensor.flatten()
        return "arange" if bool((flat[1:] > flat[:-1]).all()) else "perm"
    return f"randint:{low}:{high + 1}"
