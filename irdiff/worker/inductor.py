"""torch.compile where there is no GPU: Inductor writes the kernels that it would write for a target.

Its CPU backend for Triton makes them from tensors on the CPU; its questions about the device get the
target's answers; a kernel that would be launched is handed to Triton's frontend once for each config that
Inductor would try. Seen with torch 2.13. Not made: templates of max-autotune, which need measurements.
"""

from __future__ import annotations

import functools
import inspect
import linecache
import re
import sys
import types

import triton
import triton.compiler
import triton.runtime.jit

from . import intercept, noted
from .kernel_functions import jit_function
from .stub_driver import NoKernel
from .torch_on_cpu import properties_of


def install(target):
    """From now on, in this process; nothing of Inductor is imported before something is compiled."""
    try:
        import torch
    except ImportError:
        return
    real, prepare = torch.compile, functools.lru_cache(lambda: _prepare(target))

    @functools.wraps(real)
    def compile_for_target(*args, **kwargs):
        prepare()
        return real(*args, **kwargs)

    torch.compile = compile_for_target


def _prepare(target):
    import torch._dynamo.eval_frame as dynamo
    import torch._inductor.codecache as codecache
    import torch._inductor.config as settings
    from torch._inductor.runtime import hints, triton_helpers, triton_heuristics

    settings.cpu_backend = "triton"
    settings.compile_threads = 1
    settings.force_disable_caches = True  # a cache would bring code that was written for a CPU
    codecache._reload_python_module = _load
    properties = hints.DeviceProperties(
        type="hip" if target["backend"] == "hip" else "cuda",
        index=0,
        cc=target["arch"],
        max_threads_per_block=1024,
        **{name: value for name, value in properties_of(target).items() if name != "minor"},
    )
    hints.DeviceProperties.create = classmethod(lambda cls, device: properties)
    triton_heuristics.CachingAutotuner.precompile = lambda self, *_, **__: None
    triton_heuristics.CachingAutotuner.run = _run
    triton_helpers.set_driver_to_gpu = triton_helpers.set_driver_to_cpu = lambda: None  # the stub stays
    triton.compile = lambda *args, **kwargs: triton.compiler.compile(*args, **kwargs)
    context = dynamo._TorchDynamoContext
    context.__call__ = _outside_of_modes(context.__call__)


def _load(key, path, set_sys_modules=True):
    """Loads a written module under a name that its text alone decides: its folder is a new one every time."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    name = f"inductor/{key}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = types.ModuleType(f"torch._inductor.runtime.compile_tasks.{key}")
    module.__file__ = name
    setattr(module, "key", key)  # noqa: B010
    exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)
    if set_sys_modules:
        sys.modules[module.__name__] = module
    return module


def _run(tuner, *args, stream=None, benchmark_run=False, **kwargs):
    """Runs in place of CachingAutotuner.run: every config goes through the frontend, with the types and
    constants of Inductor's own signature.
    """
    from torch._inductor.runtime.triton_heuristics import GridExpr

    more = tuner.inductor_meta.get("extra_launcher_args", ())  # the grid of a kernel that a user wrote
    own = args[: len(args) - len(more)]
    names = [name for name in tuner.fn.arg_names if name not in tuner.configs[0].kwargs]
    sources = _sources(tuner.fn.__name__)
    for config in tuner.configs:
        bound = {**dict(zip(names, own)), **config.kwargs}
        values = {**bound, **dict(zip(more, args[len(own) :]))}
        grid = GridExpr.from_meta(tuner.inductor_meta, config).eval_slow(values)
        compile_now = functools.partial(_compile, tuner, config)
        if not intercept.compiled_directly(tuner.fn, bound, grid, compile_now, sources):
            options = {"num_warps": config.num_warps, "num_stages": config.num_stages, **config.kwargs}
            tuner.fn.run(*own, grid=grid, warmup=False, **options)
    return NoKernel()


def _sources(name):
    """The files of the kernel that a user wrote and Inductor copied under a name with a number, and of what
    it calls; all of them count as compiled.
    """
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernels = map(jit_function, kernel_side_table.id_to_kernel.values())
    pending = [kernel for kernel in kernels if kernel.fn.__name__ == re.sub(r"_\d+$", "", name)]
    found: dict = {}
    while pending:
        function = pending.pop().fn
        if function not in found:
            found[function] = function.__code__.co_filename
            noted.note(function.__code__)
            used = (function.__globals__.get(word) for word in function.__code__.co_names)
            pending += [value for value in used if isinstance(value, triton.runtime.jit.JITFunction)]
    return set(found.values())


def _compile(tuner, config):
    """As Inductor compiles it ahead of time."""
    words = inspect.signature(tuner._precompile_config).parameters
    tuner._precompile_config(*(config, False)[: len(words)])


def _outside_of_modes(wrap):
    """Runs what is compiled without the mode that moves tensors to the CPU, which Dynamo would trace."""
    from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode

    @functools.wraps(wrap)
    def wrapped(self, function):
        compiled = wrap(self, function)
        if not isinstance(compiled, types.FunctionType):
            return compiled

        @functools.wraps(compiled)
        def call(*args, **kwargs):
            modes = [_pop_mode() for _ in range(_len_torch_function_stack())]
            try:
                return compiled(*args, **kwargs)
            finally:
                for mode in reversed(modes):
                    _push_mode(mode)

        return call

    return wrapped
