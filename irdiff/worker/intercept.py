"""Launches of a workload, captured without a GPU from this toolchain's own frontend.

A stub driver answers `get_current_target()` with the target. `JITFunction.run` is wrapped to see the
arguments and the grid, and `triton.compiler.compile`, which it calls with everything it has specialized, runs
the frontend alone (`frontend.run`) and raises `Reached` instead of compiling. So signature, constexprs,
attributes, options and IR are exactly what this side would compile, in the state of that very moment, in
every release from 3.2 on.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types

import triton
import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit

from . import corpus_api, frontend, launching, noted, run_program, settings, staged_compile, stub_driver
from .describe import kernel_name, numbered, shape_of_first, specialization_of
from .staged_compile import real_compile
from .stub_driver import NoKernel
from .texts import jit_function

_running: list = []
"""The JIT functions that are being launched. Each keeps the `compile` of its first launch."""
_paused: list = []
"""Holds something while launches do not count."""
_open: list = []
"""The interceptions that are open and take launches which do not come by `JITFunction.run`."""


class Reached(BaseException):
    """The compiler was reached; carries what it was given. Not an Exception, so that a workload's own
    `except Exception` cannot swallow it.
    """

    def __init__(self, src, target, options, made=None, error=None):
        super().__init__()
        self.src, self.target, self.options = src, target, options
        self.made = made
        """The `frontend.Input`; None where the frontend was not run."""
        self.error = error
        """What the frontend raised."""


class Captured:
    """One launch: the JIT function, what it was called with, and what the frontend made of it."""

    def __init__(self, function, bound, given, grid, reached, tuner=()):
        self.function, self.bound, self.grid = function, bound, grid
        self.given = given
        """The options that the call names."""
        self.tuner = tuner
        """The autotuner that launches it, as lines of `launching`."""
        self.text, self.places = "", []
        """What is launched, over all calls of the entry that are this launch, and their places among the
        calls of the entry.
        """
        self.src, self.target, self.options = reached.src, reached.target, reached.options
        self.made, self.error = reached.made, reached.error

    @property
    def digest(self):
        """The input digest, or None where the launch has none."""
        return self.made.digest if self.made is not None else None


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
    made = _Interception(sink, original_run, configs, with_frontend, left_out)
    modules = (triton.compiler, triton.compiler.compiler)
    jit.run = functools.wraps(original_run)(lambda *args, **kwargs: made.run(*args, **kwargs))
    tuner.run = functools.wraps(original_tune)(lambda *args, **kwargs: made.tune(*args, **kwargs))
    for module in modules:
        module.compile = made.compile
    _open.extend([made] * direct)
    try:
        yield
    finally:
        del _open[len(_open) - direct :]
        jit.run, tuner.run = original_run, original_tune
        for module in modules:
            module.compile = real_compile


class _Interception:
    """What takes the place of Triton's own functions."""

    def __init__(self, sink, original_run, configs, with_frontend, left_out):
        self.sink, self.original_run = sink, original_run
        self.configs, self.with_frontend, self.left_out = configs, with_frontend, left_out
        self.tuning: list = []

    def compile(self, src, target=None, options=None, **_):
        if isinstance(src, str):
            raise TypeError(f"irdiff: triton.compile({src!r}) launches nothing: use launch_ir in LAUNCHES")
        made = error = None
        if self.with_frontend:
            try:
                made = frontend.run(src, target, options)
            except Exception as raised:
                error = raised
        else:  # which says what it compiles
            noted.note(src.fn.fn.__code__)
        reached = Reached(src, target, options, made, error)
        if _running:
            raise reached
        self.sink.append(Captured(src.fn, {}, {}, None, reached))  # `triton.compile`, without a launch
        return NoKernel()

    def run(self, function, *args, grid=None, warmup=False, **kwargs):
        if _paused:
            return NoKernel()
        bound = bind(function, args, kwargs)
        given = {name: value for name, value in kwargs.items() if name not in bound}
        given |= {"warmup": True} if warmup else {}  # it compiles, and launches nothing
        run = functools.partial(self.original_run, function, *args, grid=grid, warmup=warmup, **kwargs)
        self.take(function, bound, given, grid, run)
        return NoKernel()

    def take(self, function, bound, given, grid, compile_now, sources=()):
        """Captures the launch of a kernel that `compile_now` hands to the compiler."""
        noted.has_launched = True
        _running.append(function)
        try:
            with _torch_to_ask():
                compile_now()
        except Reached as reached:
            if reached.made is not None:
                reached.made.sources = sorted({*reached.made.sources, *sources})
            tuner = self.tuning[-1] if self.tuning else ()
            self.sink.append(Captured(function, bound, given, evaluate_grid(grid, bound), reached, tuner))
        finally:
            _running.pop()

    def tune(self, tuner, *args, **kwargs):
        tuner.nargs = dict(zip(tuner.arg_names, args))
        known = pinned_configs(tuner, kwargs)
        chosen = known[: self.configs]
        if self.left_out is not None and len(known) > len(chosen):
            name = jit_function(tuner).fn.__name__
            self.left_out[name] = max(self.left_out.get(name, 0), len(known) - len(chosen))
        for config in chosen:
            options = config.all_kwargs()
            self.tuning.append(list(launching.tuner_lines(tuner, known, config)))
            try:
                if config.pre_hook is not None:
                    config.pre_hook({**tuner.nargs, **kwargs, **options})
                tuner.fn.run(*args, **{**kwargs, **options})
            finally:
                self.tuning.pop()
        tuner.nargs, tuner.best_config = None, chosen[0]
        return NoKernel()


def compiled_directly(function, bound, grid, compile_now, sources):
    """Captures the launch of a kernel that `compile_now` hands to `triton.compile`, and that was made from
    `sources`. False where nobody takes such launches.
    """
    if _open:
        _open[-1].take(function, bound, {}, grid, compile_now, sources)
    return bool(_open)


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
    except Exception:  # a pruning function may want a real device; then all configs are kept
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
    sink: list = []
    left_out: dict = {}
    ended = None
    own = entry.facts["configs"]
    asked_for_fewer = configs is not None and (own is None or configs < own)
    at_most = configs if asked_for_fewer else own
    with intercepted(target, sink, at_most, with_frontend, left_out if asked_for_fewer else None):
        try:
            entry()
        except run_program.EndedEarly as error:
            ended = error
            if not sink:
                raise
    kept = _kept(sink)
    storages: dict = {}
    for captured in kept:
        captured.bound = {name: _without_memory(value, storages) for name, value in captured.bound.items()}
    is_program = entry.function is run_program.run
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
        key = [specialization_of(captured), captured.digest, made.ir_digest if made else None]
        if made and captured.digest is None:  # what sets it apart may have no digest
            key += [(name, settings.identity(value)) for name, value in made.settings.changed()]
        _, places, texts = kept.setdefault(tuple(key), (captured, [], []))
        places.append(place)
        texts.append([*captured.tuner, *calls.lines(captured, tuple(key))])
    for captured, places, texts in kept.values():
        captured.text, captured.places = launching.text(texts), places
    return [captured for captured, _, _ in kept.values()]


def _without_memory(value, storages):
    """A tensor of torch as a fake one: a workload may launch more than memory holds at once.

    storages: {what names a storage: the fake one}, which is filled. Any other value stays.
    """
    if not hasattr(value, "untyped_storage"):
        return value
    name, offset, fill = corpus_api.storage_of(value)
    fake = corpus_api.FakeTensor(
        value.shape, value.dtype, value.stride(), offset, fill, storage=storages.get(name)
    )
    storages[name] = fake.storage
    return fake
