"""Captures the launches of a workload without a GPU, at the point where Triton passes them to the driver.

A stub driver answers with the target, and `triton.compiler.compile` runs the frontend alone (`frontend.run`)
and returns a kernel that records its launches (`captured_kernel`). Everything above that is this side's own
Triton, so signature, constexprs, options, IR, grid and arguments are exactly its own, in every release from
3.2 on.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import types

import triton
import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit

from .. import corpus_api, run_program, storages
from ..compile import defaults, frontend, settings, staged_compile
from ..compile.staged_compile import real_compile
from ..texts import jit_function, sha256
from . import benchmarks, launching, noted, recorded_ir, stub_driver, torch_storages
from .captured_kernel import CapturedKernel
from .describe import kernel_name, numbered, shape_of_first, specialization_of, tensors
from .stub_driver import NoKernel

_CACHE = "the program changes Triton's cache of compiled kernels"
_paused: list = []
"""Not empty while launches do not count."""
_open: list = []
"""The open interceptions; the last one takes launches."""
_running: list = []
"""The JIT functions that any thread is calling."""


class _Calls(threading.local):
    """The calls of this thread, the innermost last."""

    def __init__(self):
        self.frames: list = []
        self.tuning: list = []
        """The `launching` lines of each autotuner."""


_calls = _Calls()


class _Frame:
    def __init__(self, function, call_options, stops=False, unseen=()):
        self.function, self.call_options = function, call_options
        """The options that the call names."""
        self.stops = stops
        """True if the call ends when it reaches the compiler."""
        self.unseen = unseen
        """As for `Captured.unseen`."""


@contextlib.contextmanager
def _calling(*frame):
    called = _Frame(*frame)
    _calls.frames.append(called)
    _running.append(called.function)
    try:
        with _torch_to_ask():
            yield
    finally:
        _running.remove(called.function)
        _calls.frames.pop()


class Reached(BaseException):
    """Carries the compiler's arguments. It is no Exception, so that `except Exception` in a workload cannot
    catch it.
    """

    def __init__(self, src, target, options, frontend_input=None, error=None):
        super().__init__()
        self.src, self.target, self.options = src, target, options
        self.frontend_input = frontend_input
        """None if the frontend was not run."""
        self.error = error

    @functools.cached_property
    def specialization(self):
        return specialization_of(self)

    @property
    def function(self):
        """None for a kernel in IR form."""
        return getattr(self.src, "fn", None)


class Captured:
    def __init__(self, function, bound, call_options, grid, reached, tuner=(), stream=0):
        self.function, self.bound, self.grid = function, bound, grid
        self.call_options = call_options
        """The options that the call names."""
        self.tuner = tuner
        """The `launching` lines of the autotuner that launches it."""
        self.queue = _queue(stream, grid is not None)
        self.allocator = staged_compile.scratch_allocator()
        self.arguments = launching.seen(self)
        """The arguments as they were at the launch."""
        self.unseen = ()
        """Descriptions of what irdiff cannot read. Such a launch is never equal to another."""
        self.text, self.places = "", []
        """The launch text over all calls of the entry that are this launch, and their places among
        its calls.
        """
        self.reached = reached
        self.src, self.target, self.options = reached.src, reached.target, reached.options
        self.frontend_input, self.error = reached.frontend_input, reached.error

    @property
    def digest(self):
        digest = self.frontend_input.digest if self.frontend_input is not None else None
        return sha256(f"{digest} with an allocator") if digest and self.allocator else digest


def bind(function, args, kwargs):
    names = list(function.signature.parameters)
    bound = dict(zip(names, args))
    bound.update((name, value) for name, value in kwargs.items() if name in names)
    for name, parameter in function.signature.parameters.items():
        if name not in bound and parameter.default is not inspect.Parameter.empty:
            bound[name] = parameter.default
    return {name: bound[name] for name in names if name in bound}


def evaluate_grid(grid, bound):
    if callable(grid):
        grid = grid(bound)
    if grid is None:
        return None
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    return [int(n) for n in (*grid, 1, 1)[:3]]


@contextlib.contextmanager
def paused():
    """Launches nothing while open."""
    _paused.append(True)
    try:
        yield
    finally:
        _paused.pop()


@contextlib.contextmanager
def intercepted(target, sink, configs=None, with_frontend=True, left_out=None, direct=True):
    """Appends every launch for `target` to `sink` while open, and runs no stage.

    configs: how many of an autotuner's configs are launched; None means all. left_out: receives {kernel: how
    many of its configs were not launched}. direct: whether launches count if the kernel went to
    `triton.compile` without `JITFunction.run`.
    """
    stub_driver.answer_as(target)
    jit, tuner = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
    original_run, original_tune = jit.run, tuner.run
    opened = _Interception(sink, original_run, configs, with_frontend, left_out, direct)
    modules = (triton, triton.compiler, triton.compiler.compiler)
    jit.run = functools.wraps(original_run)(lambda *args, **kwargs: opened.run(*args, **kwargs))
    tuner.run = functools.wraps(original_tune)(lambda *args, **kwargs: opened.tune(*args, **kwargs))
    for module in modules:
        module.compile = opened.compile
    _open.append(opened)
    try:
        with benchmarks.run_once():
            yield
    finally:
        _open.remove(opened)
        opened.forget_kernels()
        stub_driver.current.begin()
        jit.run, tuner.run = original_run, original_tune
        for module in modules:
            module.compile = real_compile


class _Interception:
    def __init__(self, sink, original_run, configs, with_frontend, left_out, direct):
        self.sink, self.original_run = sink, original_run
        self.configs, self.with_frontend, self.left_out = configs, with_frontend, left_out
        self.direct = direct
        self.functions: dict = {}
        """{id: JIT function} that keep kernels of this interception."""
        self.left: dict = {}
        """{id of a JIT function: the kernels that its last call left in its caches}"""

    def compile(self, src, target=None, options=None, **_):
        target = target or stub_driver.driver.active.get_current_target()
        if isinstance(src, str):
            return self._compile_file(src, target, options)
        frontend_input = error = None
        if self.with_frontend:
            try:
                frontend_input = frontend.run(src, target, options)
            except Exception as raised:
                if hasattr(self.sink, "failed"):  # a test may expect it
                    self.sink.failed(raised)
                    raise
                error = raised
        else:  # which says what it compiles
            noted.note(src.fn.fn.__code__)
        reached = Reached(src, target, options, frontend_input, error)
        frame = _calls.frames[-1] if _calls.frames else None
        if frame is not None and frame.stops:
            raise reached
        if src.fn not in _running:  # it is compiled by hand, and launches nothing yet
            self.sink.append(Captured(src.fn, {}, {}, None, reached))
        return CapturedKernel(reached, _launch)

    def _compile_file(self, path, target, options):
        if not hasattr(self.sink, "failed"):
            raise TypeError(f"irdiff: triton.compile({path!r}) launches nothing: use launch_ir in LAUNCHES")
        try:
            src = staged_compile.FileSource(path, target)
            reached = Reached(src, target, options, frontend.run(src, target, options))
        except Exception as raised:
            self.sink.failed(raised, path)
            raise
        self.sink.append(Captured(None, {}, {}, None, reached))
        return CapturedKernel(reached, _launch)

    def run(self, function, *args, grid=None, warmup=False, **kwargs):
        if _paused:
            return NoKernel()
        noted.has_launched = True
        unseen = self._without_kernels(function)
        kwargs.update(_options_of_the_side())
        bound = bind(function, args, kwargs)
        call_options = {name: value for name, value in kwargs.items() if name not in bound}
        with _calling(function, call_options, False, unseen):
            kernel = self.original_run(function, *args, grid=grid, warmup=warmup, **kwargs)
        self.left[id(function)] = _kernels_kept_by(function)
        if warmup and kernel is not None:  # it compiles, and launches nothing
            self.take(_kernel_of(kernel).reached, bound, {**call_options, "warmup": True}, None)
        return kernel

    def _without_kernels(self, function):
        """Empties the function's caches, so that each launch is traced in the state of its own moment.
        Returns what the program put there (`Captured.unseen`).
        """
        if id(function) not in self.functions:
            self._begin(function)
        kept_ids = set(map(id, self.left.get(id(function), ())))
        is_own = all(id(kernel) in kept_ids for kernel in _kernels_kept_by(function))
        for kernels in _caches(function):
            kernels.clear()
        return () if is_own else (_CACHE,)

    def take(self, reached, bound, call_options, grid, stream=0, unseen=()):
        tuner = _calls.tuning[-1] if _calls.tuning else ()
        captured = Captured(reached.function, bound, call_options, grid, reached, tuner, stream)
        captured.unseen = tuple(unseen)
        for words in unseen:
            noted.caveat(f"{words}: such a launch is not compared")
        self.sink.append(captured)
        if grid is not None:
            noted.has_launched = True
            storages.launched()
            launching.launched(captured)

    def take_compiled(self, function, bound, grid, compile_now, sources):
        noted.has_launched = True
        try:
            with _calling(function, {}, True):
                compile_now()
        except Reached as reached:
            if reached.frontend_input is not None:
                reached.frontend_input.sources = sorted({*reached.frontend_input.sources, *sources})
            storages.launched()
            self.sink.append(Captured(function, bound, {}, evaluate_grid(grid, bound), reached))

    def tune(self, tuner, *args, **kwargs):
        if _paused:
            return NoKernel()
        tuner.nargs = dict(zip(tuner.arg_names, args))
        all_configs = pinned_configs(tuner, kwargs)
        chosen = all_configs[: self.configs]
        if self.left_out is not None and len(all_configs) > len(chosen):
            name = jit_function(tuner).fn.__name__
            self.left_out[name] = max(self.left_out.get(name, 0), len(all_configs) - len(chosen))
        lines = list(launching.tuner_lines(tuner, all_configs))
        kernel = None
        for config in chosen:
            kernel = self._launch_config(tuner, config, lines, args, kwargs)
        tuner.nargs, tuner.best_config = None, chosen[0]
        return kernel

    def _launch_config(self, tuner, config, lines, args, kwargs):
        options = config.all_kwargs()
        if twice := sorted(options.keys() & kwargs.keys()):
            raise ValueError(f"Conflicting meta-parameters: {', '.join(twice)}")  # as Triton's own does
        everything = {**tuner.nargs, **kwargs, **options}
        measuring = list(launching.measuring_lines(tuner, everything))
        if config.pre_hook is not None:
            config.pre_hook(everything)
        _calls.tuning.append([*lines, *measuring])
        try:
            return tuner.fn.run(*args, **kwargs, **options)
        finally:
            _calls.tuning.pop()

    def _begin(self, function):
        """For another target, arguments are bound in another way."""
        self.functions[id(function)] = function
        target = stub_driver.driver.active.get_current_target()
        kept = _caches_of_devices(function)
        if any(isinstance(cache, tuple) and target not in cache for cache in kept.values()):
            kept.clear()

    def forget_kernels(self):
        """Keeps the functions that bind arguments, because they are the same for all entries of one
        target.
        """
        for function in self.functions.values():
            for kernels in _caches(function):
                kernels.clear()


def _options_of_the_side():
    """Returns {option: value} that a user sets for every launch of this side, if the backend has the
    option.
    """
    side_options = settings.of_every_launch()
    if not side_options:
        return {}
    backend = triton.compiler.compiler.make_backend(stub_driver.driver.active.get_current_target())
    backend_options = defaults.options_of(type(backend))
    return {name: value for name, value in side_options.items() if name in backend_options}


def _queue(stream, is_launched):
    """Returns {fact: number} of the device, the stream, and launches that the launch does not wait for."""
    current = stub_driver.current
    beside = current.clocks.launched(stream) if is_launched else {}
    unordered = {f"may run beside launches of stream {other}": count for other, count in beside.items()}
    priority = current.priority_of(stream)
    return {"device": current.device, "stream": stream, "priority of its stream": priority, **unordered}


def _caches(function):
    """Lists {key: kernel} for each device. Since 3.3 they lie next to the function that binds arguments."""
    return [kept[0] if isinstance(kept, tuple) else kept for kept in _caches_of_devices(function).values()]


def _caches_of_devices(function):
    return getattr(function, "device_caches", None) or getattr(function, "cache", {})


def _kernels_kept_by(function):
    return [kernel for kernels in _caches(function) for kernel in kernels.values()]


def _launch(kernel, bound, grid, stream, unseen):
    if _paused or not _open:
        return
    reached = kernel.reached
    frame = _calls.frames[-1] if _calls.frames else None
    call_options = {}
    if frame is not None and frame.function is reached.function:
        call_options, unseen = frame.call_options, (*unseen, *frame.unseen)
    _open[-1].take(reached, bound, call_options, grid, stream, unseen)


def _kernel_of(kernel):
    """Waits for a kernel that is compiled asynchronously."""
    return kernel if isinstance(kernel, CapturedKernel) else kernel.result()


def compiled_directly(function, bound, grid, compile_now, sources):
    """Returns False if no interception takes launches from `triton.compile`."""
    if not _open or not _open[-1].direct:
        return False
    if not _paused:
        _open[-1].take_compiled(function, bound, grid, compile_now, sources)
    return True


@contextlib.contextmanager
def _torch_to_ask():
    """For AMD targets, 3.3 to 3.7 import torch only for `isinstance(x, torch.Tensor)`."""
    if "torch" in sys.modules:
        yield
        return
    stub: types.ModuleType = types.ModuleType("torch")
    stub.Tensor = type("Tensor", (), {})  # type: ignore[attr-defined]
    sys.modules["torch"] = stub
    try:
        yield
    finally:
        if sys.modules.get("torch") is stub:
            del sys.modules["torch"]


def pinned_configs(tuner, kwargs):
    """Returns the configs that an autotuner would try, without measuring any of them."""
    try:
        return list(tuner.prune_configs(kwargs)) or tuner.configs
    except Exception as error:  # a pruning function may want a real device
        noted.caveat(
            f"prunes the configs of an autotuner and fails here ({type(error).__name__}): all are taken"
        )
        return tuner.configs


class Launches:
    def __init__(self, captures, ended=None, left_out=()):
        self.captures = captures
        """[(suffix of the label, Captured)]: each specialization, and each IR of it, once."""
        self.ended = ended
        """The error that ended a program early."""
        self.left_out = dict(left_out)
        """{kernel: how many of its autotuner's configs were left out on request}"""


def launches_of(entry, target, with_frontend, configs=None):
    """configs: the most configs of an autotuner that count; None means all."""
    if isinstance(entry, corpus_api.FileEntry):
        return Launches([("", _file_of(entry, stub_driver.gpu_of(target)))])
    if isinstance(entry, corpus_api.RecordedEntry):
        path = entry.paths.get(target["name"])
        gpu = stub_driver.gpu_of(target)
        return Launches([("", recorded_ir.RecordedLaunch(path, gpu))] if path else [])
    sink: list = []
    left_out: dict = {}
    ended = None
    own = entry.facts["configs"]
    is_limited_by_user = configs is not None and (own is None or configs < own)
    at_most = configs if is_limited_by_user else own
    is_program = entry.function is run_program.run
    torch_storages.set_default_device("cpu" if is_program else "cuda")
    storages.begin_entry(tensors((*entry.args, *entry.kwargs.values())))
    with intercepted(target, sink, at_most, with_frontend, left_out if is_limited_by_user else None):
        try:
            entry()
        except run_program.EndedEarly as error:
            ended = error
            if not sink:
                raise
    kept = _kept(sink)
    fakes: dict = {}
    for captured in kept:
        captured.bound = {name: _without_memory(value, fakes) for name, value in captured.bound.items()}
    if len(kept) == 1 and not is_program:
        return Launches([("", kept[0])], left_out=left_out)
    names = [kernel_name(captured) for captured in kept]
    if is_program:
        names = [f"{name}-{shape_of_first(captured.bound.values())}" for name, captured in zip(names, kept)]
    return Launches(
        [(f"/{name}", captured) for name, captured in zip(numbered(names), kept)], ended, left_out
    )


def _file_of(entry, gpu):
    src = staged_compile.FileSource(entry.path, gpu)
    frontend_input = frontend.run(src, gpu, entry.options)
    frontend_input.module = None
    return Captured(None, {}, {}, None, Reached(src, gpu, entry.options, frontend_input))


def _kept(sink):
    """Keeps each specialization, and each IR of it, once, with the text of all of its calls."""
    calls = launching.Calls()
    kept: dict = {}
    for place, captured in enumerate(sink, 1):
        frontend_input = captured.frontend_input
        key = [
            captured.reached.specialization,
            captured.digest,
            frontend_input.ir_digest if frontend_input else None,
        ]
        if frontend_input and captured.digest is None:  # what sets it apart may have no digest
            key += [(name, settings.identity(value)) for name, value in frontend_input.settings.changed]
        first, places, texts = kept.setdefault(tuple(key), (captured, [], []))
        first.unseen = tuple(dict.fromkeys((*first.unseen, *captured.unseen)))
        places.append(place)
        texts.append([*captured.tuner, *calls.lines(captured, tuple(key))])
    for captured, places, texts in kept.values():
        captured.text, captured.places = launching.text(texts), places
    return [captured for captured, _, _ in kept.values()]


def _without_memory(value, fakes):
    """Replaces a torch tensor by a fake one, because a workload may launch more than memory holds.

    fakes: {origin: its fake storage}, which is filled.
    """
    if not hasattr(value, "untyped_storage"):
        return value
    origin, offset, fill = corpus_api.storage_of(value)
    fake = corpus_api.FakeTensor(
        value.shape, value.dtype, value.stride(), offset, fill, storage=fakes.get(origin)
    )
    fakes[origin] = fake.storage
    return fake
