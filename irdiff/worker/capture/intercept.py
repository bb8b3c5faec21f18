"""Launches of a workload, captured without a GPU where Triton passes them to the driver.

A stub driver answers `get_current_target()` with the target. `triton.compiler.compile`, which is called
with everything that a launch has specialized, runs the frontend alone (`frontend.run`) and returns a kernel
that records its launches (`captured_kernel`). All that is above, down to the driver, is this side's own
Triton. So signature, constexprs, attributes, options and IR are exactly what this side would compile, and
grid and arguments what it would launch, in every release from 3.2 on.

`JITFunction.run` is wrapped to see the options that a call names, and what only compiles. An autotuner
measures nothing: each of its configs is launched.
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
"""Holds something while launches do not count."""
_open: list = []
"""The interceptions that are open, the last of which takes launches."""
_running: list = []
"""The JIT functions that are being called, in any thread."""


class _Calls(threading.local):
    """What this thread is calling, the innermost last."""

    def __init__(self):
        self.frames: list = []
        self.tuning: list = []
        """Lines of `launching` of each autotuner."""


_calls = _Calls()


class _Frame:
    """A call of a JIT function."""

    def __init__(self, function, given, stops=False, unseen=()):
        self.function, self.given = function, given
        """The options that the call names."""
        self.stops = stops
        """Whether it ends where the compiler is reached."""
        self.unseen = unseen
        """As of `Captured`."""


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
    """The compiler was reached; carries what it was given. Not an Exception, so that a workload's own
    `except Exception` cannot swallow it where it is raised.
    """

    def __init__(self, src, target, options, made=None, error=None):
        super().__init__()
        self.src, self.target, self.options = src, target, options
        self.made = made
        """The `frontend.Input`; None where the frontend was not run."""
        self.error = error
        """What the frontend raised."""

    @functools.cached_property
    def specialization(self):
        return specialization_of(self)

    @property
    def function(self):
        """None for a kernel that is given as IR."""
        return getattr(self.src, "fn", None)


class Captured:
    """One launch: the JIT function, what it was called with, and what the frontend made of it."""

    def __init__(self, function, bound, given, grid, reached, tuner=(), stream=0):
        self.function, self.bound, self.grid = function, bound, grid
        self.given = given
        """The options that the call names."""
        self.tuner = tuner
        """The autotuner that launches it, as lines of `launching`."""
        self.queue = _queue(stream, grid is not None)
        self.allocator = staged_compile.scratch_allocator()
        self.arguments = launching.seen(self)
        """As they were at the launch."""
        self.unseen = ()
        """What of the launch irdiff cannot read, as words; a launch that has it is never equal."""
        self.text, self.places = "", []
        """What is launched, over all calls of the entry that are this launch, and their places among the
        calls of the entry.
        """
        self.reached = reached
        self.src, self.target, self.options = reached.src, reached.target, reached.options
        self.made, self.error = reached.made, reached.error

    @property
    def digest(self):
        """The input digest, or None where the launch has none."""
        digest = self.made.digest if self.made is not None else None
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
    """While open, launches do not count, and launch nothing either."""
    _paused.append(True)
    try:
        yield
    finally:
        _paused.pop()


@contextlib.contextmanager
def intercepted(target, sink, configs=None, with_frontend=True, left_out=None, direct=True):
    """While open, every launch for `target` is appended to `sink` and no stage runs.

    configs: how many of an autotuner's configs are launched; None: all. with_frontend: whether the IR is
    made. left_out: takes {kernel: how many of its configs were not launched}. direct: whether launches count
    of kernels that somebody hands to `triton.compile` without `JITFunction.run`.
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
    """What takes the place of Triton's own functions."""

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
        made = error = None
        if self.with_frontend:
            try:
                made = frontend.run(src, target, options)
            except Exception as raised:
                if hasattr(self.sink, "failed"):  # a test may expect it
                    self.sink.failed(raised)
                    raise
                error = raised
        else:  # which says what it compiles
            noted.note(src.fn.fn.__code__)
        reached = Reached(src, target, options, made, error)
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
        given = {name: value for name, value in kwargs.items() if name not in bound}
        with _calling(function, given, False, unseen):
            kernel = self.original_run(function, *args, grid=grid, warmup=warmup, **kwargs)
        self.left[id(function)] = _kernels_kept_by(function)
        if warmup and kernel is not None:  # it compiles, and launches nothing
            self.take(_kernel_of(kernel).reached, bound, {**given, "warmup": True}, None)
        return kernel

    def _without_kernels(self, function):
        """Empties its caches: each launch is traced in the state of its own moment. Returns what the program
        has put there, as words of `Captured.unseen`.
        """
        if id(function) not in self.functions:
            self._begin(function)
        known = set(map(id, self.left.get(id(function), ())))
        is_own = all(id(kernel) in known for kernel in _kernels_kept_by(function))
        for kernels in _caches(function):
            kernels.clear()
        return () if is_own else (_CACHE,)

    def take(self, reached, bound, given, grid, stream=0, unseen=()):
        tuner = _calls.tuning[-1] if _calls.tuning else ()
        captured = Captured(reached.function, bound, given, grid, reached, tuner, stream)
        captured.unseen = tuple(unseen)
        for words in unseen:
            noted.caveat(f"{words}: such a launch is not compared")
        self.sink.append(captured)
        if grid is not None:
            noted.has_launched = True
            storages.launched()
            launching.launched(captured)

    def take_compiled(self, function, bound, grid, compile_now, sources):
        """Captures the launch of a kernel that `compile_now` hands to the compiler."""
        noted.has_launched = True
        try:
            with _calling(function, {}, True):
                compile_now()
        except Reached as reached:
            if reached.made is not None:
                reached.made.sources = sorted({*reached.made.sources, *sources})
            storages.launched()
            self.sink.append(Captured(function, bound, {}, evaluate_grid(grid, bound), reached))

    def tune(self, tuner, *args, **kwargs):
        if _paused:
            return NoKernel()
        tuner.nargs = dict(zip(tuner.arg_names, args))
        known = pinned_configs(tuner, kwargs)
        chosen = known[: self.configs]
        if self.left_out is not None and len(known) > len(chosen):
            name = jit_function(tuner).fn.__name__
            self.left_out[name] = max(self.left_out.get(name, 0), len(known) - len(chosen))
        lines = list(launching.tuner_lines(tuner, known))
        kernel = None
        for config in chosen:
            kernel = self._launch_config(tuner, config, lines, args, kwargs)
        tuner.nargs, tuner.best_config = None, chosen[0]
        return kernel

    def _launch_config(self, tuner, config, lines, args, kwargs):
        """As an autotuner launches the config that it chose."""
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
        """Another target binds arguments otherwise."""
        self.functions[id(function)] = function
        target = stub_driver.driver.active.get_current_target()
        kept = _caches_of_devices(function)
        if any(isinstance(cache, tuple) and target not in cache for cache in kept.values()):
            kept.clear()

    def forget_kernels(self):
        """Another entry begins with none, whatever was launched before it. What binds the arguments of a
        function stays: it is the same for all entries of one target.
        """
        for function in self.functions.values():
            for kernels in _caches(function):
                kernels.clear()


def _options_of_the_side():
    """{option: value} that a user gives every launch of this side, as far as the backend has the option."""
    given = settings.of_every_launch()
    if not given:
        return {}
    backend = triton.compiler.compiler.make_backend(stub_driver.driver.active.get_current_target())
    known = defaults.options_of(type(backend))
    return {name: value for name, value in given.items() if name in known}


def _queue(stream, is_launched):
    """{what: number} of where a launch is put: its device, its stream, what it does not wait for."""
    current = stub_driver.current
    beside = current.clocks.launched(stream) if is_launched else {}
    unordered = {f"may run beside launches of stream {other}": count for other, count in beside.items()}
    priority = current.priority_of(stream)
    return {"device": current.device, "stream": stream, "priority of its stream": priority, **unordered}


def _caches(function):
    """[{key: kernel}] of a JIT function, one for each device; since 3.3 beside what binds its arguments."""
    return [kept[0] if isinstance(kept, tuple) else kept for kept in _caches_of_devices(function).values()]


def _caches_of_devices(function):
    return getattr(function, "device_caches", None) or getattr(function, "cache", {})


def _kernels_kept_by(function):
    return [kernel for kernels in _caches(function) for kernel in kernels.values()]


def _launch(kernel, bound, grid, stream, unseen):
    """Records a launch at the driver; `unseen` as of `Captured`."""
    if _paused or not _open:
        return
    reached = kernel.reached
    frame = _calls.frames[-1] if _calls.frames else None
    given = {}
    if frame is not None and frame.function is reached.function:
        given, unseen = frame.given, (*unseen, *frame.unseen)
    _open[-1].take(reached, bound, given, grid, stream, unseen)


def _kernel_of(kernel):
    """The kernel that asynchronous compilation promises, once it is there."""
    return kernel if isinstance(kernel, CapturedKernel) else kernel.result()


def compiled_directly(function, bound, grid, compile_now, sources):
    """Captures the launch of a kernel that `compile_now` hands to `triton.compile`, and that was made from
    `sources`. False where nobody takes such launches.
    """
    if not _open or not _open[-1].direct:
        return False
    if not _paused:
        _open[-1].take_compiled(function, bound, grid, compile_now, sources)
    return True


@contextlib.contextmanager
def _torch_to_ask():
    """3.3 to 3.7 import torch for AMD targets, only to ask `isinstance(x, torch.Tensor)`."""
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
    """The configs an autotuner would try, without measuring any of them."""
    try:
        return list(tuner.prune_configs(kwargs)) or tuner.configs
    except Exception as error:  # a pruning function may want a real device
        noted.caveat(
            f"prunes the configs of an autotuner and fails here ({type(error).__name__}): all are taken"
        )
        return tuner.configs


class Launches:
    """What one entry of LAUNCHES launches."""

    def __init__(self, rows, ended=None, left_out=()):
        self.rows = rows
        """[(suffix of the label, Captured)]: each specialization, and each IR of it, once."""
        self.ended = ended
        """What ended a program before its end."""
        self.left_out = dict(left_out)
        """{kernel: how many of its autotuner's configs were left out, because somebody asked for that}"""


def launches_of(entry, target, with_frontend, configs=None):
    """The `Launches` of one entry. configs: the most configs of an autotuner that count; None: all."""
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
    asked_for_fewer = configs is not None and (own is None or configs < own)
    at_most = configs if asked_for_fewer else own
    is_program = entry.function is run_program.run
    torch_storages.set_default_device("cpu" if is_program else "cuda")
    storages.begin_entry(tensors((*entry.args, *entry.kwargs.values())))
    with intercepted(target, sink, at_most, with_frontend, left_out if asked_for_fewer else None):
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
        names = [f"{name}-{shape_of_first(row.bound.values())}" for name, row in zip(names, kept)]
    return Launches([(f"/{name}", row) for name, row in zip(numbered(names), kept)], ended, left_out)


def _file_of(entry, gpu):
    """A kernel that is given as IR."""
    src = staged_compile.FileSource(entry.path, gpu)
    made = frontend.run(src, gpu, entry.options)
    made.module = None
    return Captured(None, {}, {}, None, Reached(src, gpu, entry.options, made))


def _kept(sink):
    """Each specialization, and each IR of it, once, with what all of its calls launch."""
    calls = launching.Calls()
    kept: dict = {}
    for place, captured in enumerate(sink, 1):
        made = captured.made
        key = [captured.reached.specialization, captured.digest, made.ir_digest if made else None]
        if made and captured.digest is None:  # what sets it apart may have no digest
            key += [(name, settings.identity(value)) for name, value in made.settings.changed]
        first, places, texts = kept.setdefault(tuple(key), (captured, [], []))
        first.unseen = tuple(dict.fromkeys((*first.unseen, *captured.unseen)))
        places.append(place)
        texts.append([*captured.tuner, *calls.lines(captured, tuple(key))])
    for captured, places, texts in kept.values():
        captured.text, captured.places = launching.text(texts), places
    return [captured for captured, _, _ in kept.values()]


def _without_memory(value, fakes):
    """A tensor of torch as a fake one: a workload may launch more than memory holds at once.

    fakes: {origin: its fake storage}, which is filled. Any other value stays.
    """
    if not hasattr(value, "untyped_storage"):
        return value
    origin, offset, fill = corpus_api.storage_of(value)
    fake = corpus_api.FakeTensor(
        value.shape, value.dtype, value.stride(), offset, fill, storage=fakes.get(origin)
    )
    fakes[origin] = fake.storage
    return fake
