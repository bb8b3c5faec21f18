"""Records every Triton launch of a program as it runs, with or without a GPU. Launches that are the same to
the compiler count once.

Without a GPU the driver is a stub and nothing is compiled; autotuned kernels give one launch per pinned
config. With a GPU, each launch is recorded and then continues; of an autotuned kernel the chosen config is
recorded.

On a GPU, recording changes nothing that the program computes: the kernel's own caches and hooks are not
touched, its grid is evaluated once, nothing is read from tensors while a CUDA graph is captured, and failures
to record do not end the program.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import copy
import sys
import threading
import types

import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit
import triton.testing

from .. import corpus_api, texts
from ..capture import describe, intercept

_VALUES_AT_MOST = 256
_LOOKED_AT_MOST = 1 << 22


class Tensor:
    """A tensor argument without its storage."""

    def __init__(self, tensor):
        self.dtype = corpus_api.dtype_name(tensor.dtype)
        self.shape = corpus_api.shape_of(tensor)
        self.strides = corpus_api.strides_of(tensor)
        size = corpus_api.DType(self.dtype).itemsize
        pointer = tensor.data_ptr()
        self.storage, offset, self.fill = corpus_api.storage_of(tensor)
        # what the frontend specializes on is the alignment of the address
        self.offset = offset if (offset * size - pointer) % 16 == 0 else pointer % 16 // size
        self.values = None
        if not isinstance(tensor, corpus_api.FakeTensor):
            self.fill, self.values = _content(tensor, self.dtype)

    @property
    def place(self):
        """Arguments with an equal place are one tensor."""
        return (self.storage, self.dtype, self.shape, self.strides, self.offset)


class Descriptor:
    def __init__(self, descriptor):
        self.type = type(descriptor)
        self.base = Tensor(descriptor.base)
        names = getattr(descriptor, "__dataclass_fields__", ("shape", "strides", "block_shape"))
        self.fields = {name: getattr(descriptor, name) for name in names if name != "base"}


class Recorded:
    def __init__(self, captured, digest, arguments):
        self.function, self.grid, self.options = captured.function, captured.grid, captured.call_options
        self.digest, self.arguments = digest, arguments
        src = captured.src
        self.constexprs = {describe.name_of(src, key): value for key, value in src.constants.items()}
        self.signature = {str(name): texts.text_of(ty) for name, ty in src.signature.items()}
        self.attributes = describe.attributes_of(src)


class Recorder:
    """Holds the program's launches in `launches`, in order."""

    def __init__(self, target=None):
        """`target` as in its TOML if there is no GPU; None lets launches continue on the real one."""
        self.target = target
        self.launches: dict = {}
        self.count = 0
        self.failures: dict = {}
        """{(kernel, why it was not recorded): None}, only with a GPU."""
        self._seen: dict = {}
        """{key of a launch: its function, kept so that its id is not reused}"""
        self._state = threading.local()
        self._undo = contextlib.ExitStack()

    def __enter__(self):
        if self.target is not None:
            self._undo.enter_context(
                intercept.intercepted(self.target, self, with_frontend=False, direct=False)
            )
            return self
        jit, tuner = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
        self._run = jit.run
        for module in (triton.compiler, triton.compiler.compiler):
            self._replace(module, "compile", self._compile)
        self._replace(jit, "run", lambda *args, **kwargs: self._launched(*args, **kwargs))
        bench = tuner._bench
        self._replace(tuner, "_bench", lambda *args, **kwargs: self._try(bench, *args, **kwargs))
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _replace(self, owner, name, value):
        self._undo.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, value)

    # without a GPU

    def append(self, captured):
        self.count += 1
        key = _key_of(captured.function, captured.grid, (*captured.bound.values(), captured.call_options))
        if key not in self._seen:
            self._seen[key] = captured.function
            self._keep(captured)

    def _keep(self, captured, described=()):
        """described: {id of an argument: what was recorded of it before the launch}"""
        digest = describe.specialization_of(captured)
        if digest not in self.launches:
            recorded_before = dict(described)
            arguments = {
                name: recorded_before[id(value)] if id(value) in recorded_before else _described(value)
                for name, value in captured.bound.items()
            }
            self.launches[digest] = Recorded(captured, digest, arguments)

    # on a GPU

    def _compile(self, src, target=None, options=None, **rest):
        if getattr(self._state, "probing", False):
            raise intercept.Reached(src, target, options)
        return intercept.real_compile(src, target=target, options=options, **rest)

    def _launched(self, function, *args, grid=None, warmup=False, **kwargs):
        grid = _Once(grid) if callable(grid) else grid
        if not getattr(self._state, "quiet", False):
            with self.keeping(function.fn.__name__):
                self.count += 1
                self._record(function, args, kwargs, None if warmup and callable(grid) else grid)
        return self._run(function, *args, grid=grid, warmup=warmup, **kwargs)

    @contextlib.contextmanager
    def keeping(self, kernel):
        """Keeps errors in `failures`: recording must not end the program."""
        try:
            yield
        except Exception as error:
            self.missed(kernel, " ".join(f"{type(error).__name__}: {error}".split())[:300])

    def missed(self, kernel, why):
        self.failures[(kernel, why)] = None

    def pending(self, kernel, launcher, args):
        """Returns the arguments of a launch that `add` records once it is over; None if it was seen
        before.
        """
        if getattr(self._state, "quiet", False):
            return None
        with self.keeping(kernel):
            self.count += 1
            key = _key_of(launcher, None, args)
            if key not in self._seen:
                self._seen[key] = launcher
                return [(value, _described(value)) for value in args]
        return None

    def add(self, function, words, grid, pending):
        """Takes a launch that did not pass the frontend: its arguments and options by name."""
        self._record(function, (), words, grid, {id(value): described for value, described in pending})

    def _record(self, function, args, kwargs, grid, described=()):
        bound = intercept.bind(function, args, kwargs)
        numbers = intercept.evaluate_grid(grid, bound)
        key = _key_of(function, numbers, (*bound.values(), kwargs))
        if key not in self._seen:
            reached = self._probe(function, args, kwargs, grid)
            self._seen[key] = function
            call_options = {name: value for name, value in kwargs.items() if name not in bound}
            self._keep(intercept.Captured(function, bound, call_options, numbers, reached), described)

    def _probe(self, function, args, kwargs, grid):
        """Returns the frontend's result past any cache of compiled kernels.

        Works on a copy of the function: another thread may launch the same one, and its hooks must not run.
        """
        probe = copy.copy(function)
        name = "device_caches" if hasattr(function, "device_caches") else "cache"
        fresh: dict = collections.defaultdict(probe.create_binder if name == "device_caches" else dict)
        setattr(probe, name, fresh)
        probe.pre_run_hooks = []
        probe._call_hook = lambda *_, **__: None
        self._state.probing = True
        try:
            # in a context of its own: there compilation is not left to other threads
            contextvars.copy_context().run(self._ask, probe, args, kwargs, grid)
        except intercept.Reached as reached:
            return reached
        finally:
            self._state.probing = False
        raise RuntimeError(f"irdiff: the frontend of {function.fn.__name__} did not come to its compiler")

    def _ask(self, probe, args, kwargs, grid):
        asynchronous = sys.modules.get("triton.runtime._async_compile")
        if asynchronous is not None:
            asynchronous.active_mode.set(None)
        self._run(probe, *args, grid=grid, warmup=True, **kwargs)

    def _try(self, bench, tuner, *args, **kwargs):
        self._state.quiet = True
        try:
            return bench(tuner, *args, **kwargs)
        finally:
            self._state.quiet = False


class _Once:
    """A program's grid function, called as often as without irdiff."""

    def __init__(self, function):
        self.function, self.values = function, []

    def __call__(self, meta):
        if not self.values:
            self.values.append(self.function(meta))
        return self.values[0]


def _key_of(function, grid, values):
    """Returns a cheap key. Equal keys mean equal launches."""
    return (id(function), repr(grid), *map(_cheap, values))


def _cheap(value):
    if hasattr(value, "data_ptr"):
        return (
            str(value.dtype),
            corpus_api.shape_of(value),
            corpus_api.strides_of(value),
            value.data_ptr() % 16,
        )
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


def _content(tensor, dtype):
    """Returns (fill, values) of a torch tensor: small integers by value, others by what they look like."""
    is_floating_point = corpus_api.DType(dtype).is_floating_point
    try:
        count = 0 if _is_being_captured(tensor) else tensor.numel()
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
    """Reading a value would break a CUDA graph."""
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
