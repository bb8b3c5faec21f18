"""torch.compile where there is a GPU: Inductor works as ever, and each kernel that it launches is recorded.

Inductor compiles its kernels by itself, often in other processes, so the frontend of this one does not see
them. They are recorded where they are launched: `CachingAutotuner.run`, which knows the chosen config once
it has run. No setting of Inductor is changed. Seen with torch 2.11; kernels that generated C++ launches
(AOTInductor, `cpp_wrapper`) do not come by here.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.util
import inspect
import sys

from . import inductor

_MODULE = "torch._inductor.runtime.triton_heuristics"


def install(recorder):
    """From now on, in this process; nothing of torch is imported before the program does."""
    if _MODULE in sys.modules:
        _wrap(sys.modules[_MODULE], recorder)
    else:
        sys.meta_path.insert(0, _Finder(recorder))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module as it would be found without us, and wraps its class once it is loaded."""

    def __init__(self, recorder):
        self.recorder = recorder

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        loader = spec.loader
        load = loader.exec_module

        def load_and_wrap(module):
            del loader.exec_module
            load(module)
            _wrap(module, self.recorder)

        loader.exec_module = load_and_wrap  # type: ignore[method-assign]
        return spec


def _wrap(module, recorder):
    tuner_class = getattr(module, "CachingAutotuner", None)
    if tuner_class is None:
        recorder.missed("torch.compile's kernels", "this torch has no CachingAutotuner")
        return
    run = tuner_class.run
    functions: dict = {}
    """{tuner's file: its JIT function, where another process compiled it}"""

    @functools.wraps(run)
    def run_and_record(tuner, *args, benchmark_run=False, **kwargs):
        if benchmark_run:
            return run(tuner, *args, benchmark_run=True, **kwargs)
        kernel = getattr(tuner.fn, "__name__", "a kernel of torch.compile")
        if why := inductor.why_not_recorded(tuner):
            recorder.missed(kernel, why)
            return run(tuner, *args, **kwargs)
        pending = recorder.pending(kernel, tuner, args)  # before: the launch may write to its arguments
        result = run(tuner, *args, **kwargs)
        if pending is not None:
            with recorder.keeping(kernel):
                function = _function(tuner, functions)
                recorder.add(function, *_launch(module, tuner, function, args, kwargs), pending)
        return result

    tuner_class.run = run_and_record


def _function(tuner, functions):
    """Its JIT function. One that another process compiled comes back without its Python function."""
    if tuner.fn.fn is not None:
        return tuner.fn
    if tuner.filename not in functions:
        written = inductor._load(tuner.fn.__name__, tuner.filename, set_sys_modules=False)
        functions[tuner.filename] = getattr(written, tuner.fn.__name__).fn
    return functions[tuner.filename]


def _launch(module, tuner, function, args, kwargs):
    """(arguments and options by name, grid) of the launch that just was."""
    (launcher,) = tuner.launchers
    config = launcher.config
    given = {**dict(zip(inspect.signature(launcher).parameters, args)), **kwargs}
    given.pop("stream", None)
    constants = {**tuner.triton_meta.get("constants", {}), **config.kwargs}
    values = {**given, **constants}
    grid = given.get("grid")  # before torch 2.7 it was an argument
    if grid is None:
        grid = module.GridExpr.from_meta(tuner.inductor_meta, config).eval_slow(values)
    words = {name: values[name] for name in function.arg_names if name in values}
    words.update(config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages)
    if getattr(config, "maxnreg", None) is not None:
        words["maxnreg"] = config.maxnreg
    return words, grid
