"""Every Triton launch of a program as it runs, with or without a GPU.

Without a GPU the driver is a stub and nothing is compiled; autotuned kernels give one launch per pinned
config. With one, each launch is recorded and then goes on; of an autotuned kernel the chosen config is
recorded, not what was tried on the way. Launches that are the same to the compiler count once.

On a GPU recording changes nothing that the program computes: the kernel's own caches and hooks are not
touched, its grid is evaluated once, nothing is read from tensors while a CUDA graph is captured, and what
cannot be recorded is kept with its reason while the program goes on.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import functools
import sys
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
        """What identifies a tensor: arguments with an equal place are one tensor."""
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
        self.failures = {}
        """{(kernel, why it was not recorded): None}: where there is a GPU."""
        self._seen = {}
        """{key of a launch: its function, kept so that its id stays its own}"""
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
        if self.target is None and callable(grid):
            grid = _Once(grid)
        if not getattr(self._state, "quiet", False):
            with self.keeping(function.fn.__name__):
                self._record(function, args, kwargs, None if warmup and callable(grid) else grid)
        if self.target is not None:
            return capture.NoKernel()
        return self._run(function, *args, grid=grid, warmup=warmup, **kwargs)

    @contextlib.contextmanager
    def keeping(self, kernel):
        """On a GPU what fails in here is kept in `failures`: the program must not end by being recorded."""
        try:
            yield
        except Exception as error:
            if self.target is not None:
                raise
            self.missed(kernel, " ".join(f"{type(error).__name__}: {error}".split())[:300])

    def missed(self, kernel, why):
        self.failures[(kernel, why)] = None

    def pending(self, kernel, launcher, args):
        """Arguments of a launch that `add` is to record once it is over; None where it was seen before."""
        if getattr(self._state, "quiet", False):
            return None
        with self.keeping(kernel):
            self.count += 1
            key = (id(launcher), *map(_cheap, args))
            if key not in self._seen:
                self._seen[key] = launcher
                return [(value, _described(value)) for value in args]
        return None

    def add(self, function, words, grid, pending):
        """Records a launch that did not come by the frontend: its arguments and options by name."""
        self._record(function, (), words, grid, {id(value): row for value, row in pending})

    def _record(self, function, args, kwargs, grid, described=None):
        bound = capture.bind(function, args, kwargs)
        numbers = capture.evaluate_grid(grid, bound)
        if described is None:
            self.count += 1
        key = (id(function), repr(numbers), *(_cheap(value) for value in (*bound.values(), kwargs)))
        if key in self._seen:
            return
        reached = self._probe(function, args, kwargs, grid)
        self._seen[key] = function
        captured = capture.Captured(function, bound, {}, numbers, reached)
        digest = describe.specialization_of(captured)
        if digest not in self.launches:
            options = {name: value for name, value in kwargs.items() if name not in bound}
            known = described or {}
            arguments = {
                name: known[id(value)] if id(value) in known else _described(value)
                for name, value in bound.items()
            }
            self.launches[digest] = Recorded(captured, digest, arguments, options)

    def _probe(self, function, args, kwargs, grid):
        """What the frontend makes of a launch, past any cache of compiled kernels.

        A copy of the function is asked: another thread may launch the same one, and its hooks are not for us.
        """
        asked = copy.copy(function)
        name = "device_caches" if hasattr(function, "device_caches") else "cache"
        fresh = collections.defaultdict(asked.create_binder if name == "device_caches" else dict)
        setattr(asked, name, fresh)
        asked.pre_run_hooks = []
        asked._call_hook = lambda *_, **__: None
        self._state.probing = True
        try:
            # in a context of its own: there compilation is not left to other threads
            contextvars.copy_context().run(self._ask, asked, args, kwargs, grid)
        except capture.Reached as reached:
            return reached
        finally:
            self._state.probing = False
        raise RuntimeError(f"irdiff: the frontend of {function.fn.__name__} did not come to its compiler")

    def _ask(self, asked, args, kwargs, grid):
        asynchronous = sys.modules.get("triton.runtime._async_compile")
        if asynchronous is not None:
            asynchronous.active_mode.set(None)
        self._run(asked, *args, grid=grid, warmup=True, **kwargs)

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


class _Once:
    """A program's grid function, called as often as without us."""

    def __init__(self, function):
        self.function, self.values = function, []

    def __call__(self, meta):
        if not self.values:
            self.values.append(self.function(meta))
        return self.values[0]


def _method(function):
    """A bound method or partial as a plain function, so that it binds the instance it is looked up on."""

    def call(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return call


def _cheap(value):
    """A key that is quick to make. Equal keys mean equal launches."""
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
    """The (fill, values) of a torch tensor: small integers by value, others by what they look like."""
    is_floating_point = corpus_api.DType(dtype).is_floating_point
    try:
        if _is_being_captured(tensor):
            return "normal", None
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


def _is_being_captured(tensor):
    """Whether operations on it go into a CUDA graph, which reading a value would spoil."""
    is_on_gpu = getattr(getattr(tensor, "device", None), "type", None) == "cuda"
    return is_on_gpu and sys.modules["torch"].cuda.is_current_stream_capturing()


def _integers(tensor, count):
    low, high = int(tensor.min()), int(tensor.max())
    if low == high:
        return "zeros" if low == 0 else f"const:{low}"
    if (low, high) == (0, count - 1) and tensor.unique().numel() == count:
        flat = tensor.flatten()
        return "arange" if bool((flat[1:] > flat[:-1]).all()) else "perm"
    return f"randint:{low}:{high + 1}"
