"""Launches of a workload, captured without a GPU from this toolchain's own frontend.

A stub driver answers `get_current_target()` with the target. `JITFunction.run` is wrapped to see the
arguments and the grid, and `triton.compiler.compile`, which it calls with everything it has specialized, runs
the frontend alone (`frontend.run`) and raises `Reached` instead of compiling. So signature, constexprs,
attributes, options and IR are exactly what this side would compile, in the state of that very moment, in
every release from 3.2 on.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import sys
import types

import triton
import triton.compiler
import triton.compiler.compiler
import triton.runtime.autotuner
import triton.runtime.jit
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from . import corpus_api, frontend, importing, launching, running, settings, stages
from .describe import kernel_name, specialization_of
from .kernel_functions import jit_function
from .stages import real_compile
from .texts import code_of

_running = []
"""The JIT functions that are being launched. Each keeps the `compile` of its first launch."""


_compiling = []
"""Of each open `intercepted`, what takes launches that do not come by `JITFunction.run`."""


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


class NoKernel:
    """Stands for the compiled kernel where a workload looks at what a launch returns."""

    n_regs = 32
    n_spills = 0
    asm = types.MappingProxyType({})

    class metadata:
        shared = 0
        num_warps = 4

    def _init_handles(self):
        pass

    def __getitem__(self, grid):
        return lambda *args, **kwargs: None


class StubUtils:
    def __init__(self, facts):
        self.facts = facts

    def get_device_properties(self, device):
        facts = self.facts
        return {
            "multiprocessor_count": facts.get("multiprocessors", 132),
            "max_shared_mem": facts.get("shared_memory_bytes", 232448),
            "max_num_regs": facts.get("registers_per_multiprocessor", 65536),
            "max_threads_per_sm": facts.get("threads_per_multiprocessor", 2048),
            "warpSize": facts.get("warp_size", 32),
            "sm_clock_rate": 1980000,
            "mem_clock_rate": 3201000,
            "mem_bus_width": 6144,
        }


class StubDriver:
    """A driver without a device."""

    def __init__(self, target, facts):
        self.target = target
        self.utils = StubUtils(facts)

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def set_current_device(self, device):
        pass

    def get_device_capability(self, device=0):
        arch = self.target.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_device_interface(self):
        import torch

        return torch.cuda

    def get_benchmarker(self):
        """What 3.2 asks for when an autotuned kernel is made; nothing is timed here."""

        def benchmark(*args, **kwargs):
            raise RuntimeError("irdiff: a measurement was reached; there is no GPU here")

        return benchmark

    def map_python_to_cpp_type(self, ty):
        return ty

    def assemble_tensormap_to_arg(self, *args):
        return None

    def launcher_cls(self, *args, **kwargs):
        raise RuntimeError("irdiff: a launch was reached; there is no GPU here")


class Captured:
    """One launch: the JIT function, what it was called with, and what the frontend made of it."""

    def __init__(self, function, bound, given, grid, reached, tuner=None):
        self.function, self.bound, self.grid = function, bound, grid
        self.given = given
        """The options that the call names."""
        self.tuner = tuner
        """(lines of `launching` of the autotuner that launches it, one list a call; those of the config)."""
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


def answer_as(target):
    """From now on Triton's driver is a stub that says it has a GPU of this target."""
    gpu = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    driver.set_active(StubDriver(gpu, dict(target["facts"], warp_size=target["warp_size"])))


@contextlib.contextmanager
def intercepted(target, sink, configs=None, with_frontend=True, left_out=None):
    """While open, every launch for `target` is appended to `sink` and no stage runs.

    configs: how many of an autotuner's configs are launched; None: all. with_frontend: whether the IR is
    made. left_out: takes {kernel: how many of its configs were not launched}.
    """
    answer_as(target)
    jit, tuner = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
    original_run, original_tune = jit.run, tuner.run
    tuning = []

    def compile_reached(src, target=None, options=None, **_):
        if isinstance(src, str):
            raise TypeError(f"irdiff: triton.compile({src!r}) launches nothing: use launch_ir in LAUNCHES")
        made = error = None
        if with_frontend:
            try:
                made = frontend.run(src, target, options)
            except Exception as raised:
                error = raised
        reached = Reached(src, target, options, made, error)
        if _running:
            raise reached
        sink.append(Captured(src.fn, {}, {}, None, reached))  # `triton.compile`, without a launch
        return NoKernel()

    @functools.wraps(original_run)
    def run(self, *args, grid=None, warmup=False, **kwargs):
        bound = bind(self, args, kwargs)
        given = {name: value for name, value in kwargs.items() if name not in bound}
        given |= {"warmup": True} if warmup else {}  # it compiles, and launches nothing
        _running.append(self)
        try:
            original_run(self, *args, grid=grid, warmup=warmup, **kwargs)
        except Reached as reached:
            tuned_by = tuning[-1] if tuning else None
            sink.append(Captured(self, bound, given, evaluate_grid(grid, bound), reached, tuned_by))
        finally:
            _running.pop()
        return NoKernel()

    @functools.wraps(original_tune)
    def tune(self, *args, **kwargs):
        self.nargs = dict(zip(self.arg_names, args))
        known = pinned_configs(self, kwargs)
        chosen = known[:configs]
        if left_out is not None and len(known) > len(chosen):
            name = jit_function(self).fn.__name__
            left_out[name] = max(left_out.get(name, 0), len(known) - len(chosen))
        lines = list(launching.tuner_lines(self))
        for config in chosen:
            options = config.all_kwargs()
            hook = config.pre_hook
            tuning.append((lines, [f"config's hook: {code_of(hook)}"] if hook else []))
            try:
                if hook is not None:
                    hook({**self.nargs, **kwargs, **options})
                self.fn.run(*args, **{**kwargs, **options})
            finally:
                tuning.pop()
        self.nargs, self.best_config = None, chosen[0]
        return NoKernel()

    def run_compiled(function, bound, grid, compile_now, sources):
        _running.append(function)
        try:
            compile_now()
        except Reached as reached:
            if reached.made is not None:
                reached.made.sources = sorted({*reached.made.sources, *sources})
            sink.append(Captured(function, bound, {}, evaluate_grid(grid, bound), reached))
        finally:
            _running.pop()

    modules = (triton.compiler, triton.compiler.compiler)
    without_torch = "torch" not in sys.modules
    if without_torch:  # 3.3 to 3.7 import it for AMD targets, only to ask `isinstance(x, torch.Tensor)`
        sys.modules["torch"] = types.ModuleType("torch")
        sys.modules["torch"].Tensor = type("Tensor", (), {})
    jit.run, tuner.run = run, tune
    _compiling.append(run_compiled)
    for module in modules:
        module.compile = compile_reached
    try:
        yield
    finally:
        if without_torch:
            del sys.modules["torch"]
        jit.run, tuner.run = original_run, original_tune
        _compiling.pop()
        for module in modules:
            module.compile = real_compile


def compiled_directly(function, bound, grid, compile_now, sources):
    """Captures the launch of a kernel that `compile_now` hands to `triton.compile`, and that was made from
    `sources`. False where nothing is intercepted.
    """
    if _compiling:
        _compiling[-1](function, bound, grid, compile_now, sources)
    return bool(_compiling)


class CapturedFile:
    """A kernel that is given as IR."""

    def __init__(self, src, target, options, made):
        self.src, self.target, self.options, self.made = src, target, options, made
        self.made.module = None
        self.error = None
        self.digest = made.digest
        self.text, self.places = "", []


def _file_of(entry, target):
    gpu = GPUTarget(target["backend"], target["arch"], target["warp_size"])
    src = stages.FileSource(entry.path, gpu)
    return CapturedFile(src, gpu, entry.options, frontend.run(src, gpu, entry.options))


def pinned_configs(tuner, kwargs):
    """The configs an autotuner would try, without measuring any of them."""
    try:
        return list(tuner.prune_configs(kwargs)) or tuner.configs
    except Exception:  # a pruning function may want a real device; then all configs are kept
        return tuner.configs


def load_workload(root, name, folder=".", imports=()):
    """The module of `ROOT/FOLDER/NAME.py`; `imports` are more folders on the module search path, from the
    root.

    Its code carries the path relative to the corpus root, so that locations in the IR, and the file
    names in assertion messages, do not depend on where the corpus lies.
    """
    os.chdir(root)
    importing.import_below(root, [folder, *imports])
    path = os.path.normpath(os.path.join(folder, name + ".py"))
    with open(path, encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType("irdiff_workload." + name.replace("/", "."))
    module.__file__ = path
    sys.modules[module.__name__] = module
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    if not isinstance(getattr(module, "LAUNCHES", None), dict) or not module.LAUNCHES:
        raise ValueError(f"{path} has no launches: it must end with a dictionary LAUNCHES")
    return module


def release_bounds(root, name, folder="."):
    """(SINCE, UNTIL) of a workload, read without running it: an import may fail in an old release."""
    with open(os.path.join(root, folder, name + ".py"), encoding="utf-8") as file:
        source = file.read()
    found = {"SINCE": None, "UNTIL": None}
    if not any(variable in source for variable in found):
        return None, None
    for node in ast.parse(source, name + ".py").body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            for variable in node.targets:
                if isinstance(variable, ast.Name) and variable.id in found:
                    found[variable.id] = node.value.value
    return found["SINCE"], found["UNTIL"]


def wanted_here(bounds):
    since, until = bounds
    version = triton.__version__
    return corpus_api._at_least(version, since) and not (until and corpus_api._at_least(version, until))


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
        return Launches([("", _file_of(entry, target))])
    sink, left_out, ended = [], {}, None
    own = entry.facts["configs"]
    asked_for_fewer = configs is not None and (own is None or configs < own)
    at_most = configs if asked_for_fewer else own
    with intercepted(target, sink, at_most, with_frontend, left_out if asked_for_fewer else None):
        try:
            entry()
        except running.EndedEarly as error:
            ended = error
            if not sink:
                raise
    kept = _kept(sink)
    is_program = isinstance(entry, corpus_api.ProgramEntry)
    if len(kept) == 1 and not is_program:
        return Launches([("", kept[0])], left_out=left_out)
    names = [_name_in_program(captured) if is_program else kernel_name(captured) for captured in kept]
    rows, counts = [], {}
    for name, captured in zip(names, kept):
        counts[name] = counts.get(name, 0) + 1
        number = f"#{counts[name]}" if names.count(name) > 1 else ""
        rows.append((f"/{name}{number}", captured))
    return Launches(rows, ended, left_out)


def _kept(sink):
    """Each specialization, and each IR of it, once, with what all of its calls launch."""
    calls, kept, place, tuned = launching.Calls(), {}, 0, None
    for captured in sink:
        made = captured.made
        before, (tuned, of_config) = tuned, captured.tuner or (None, [])
        place += tuned is None or tuned is not before  # the order of an autotuner's configs is none
        key = specialization_of(captured), captured.digest, made.ir_digest if made else None
        if made and captured.digest is None:  # what sets it apart may have no digest
            key += tuple((name, settings.identity(value)) for name, value in made.settings.changed())
        _, places, texts = kept.setdefault(key, (captured, [], []))
        places.append(place)
        texts.append([*(tuned or ()), *of_config, *calls.lines(captured, key)])
    for captured, places, texts in kept.values():
        captured.text, captured.places = launching.text(texts), places
    return [captured for captured, _, _ in kept.values()]


def _name_in_program(captured):
    """The kernel with the type and shape of its first tensor: another launch in between moves no other."""
    tensors = (value for value in captured.bound.values() if hasattr(value, "data_ptr"))
    first = next(tensors, None)
    if first is None:
        return kernel_name(captured)
    shape = "x".join(map(str, getattr(first, "shape", ()))) or "scalar"
    return f"{kernel_name(captured)}-{corpus_api.dtype_name(first.dtype)}-{shape}"
