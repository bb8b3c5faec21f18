"""torch.compile: captures the kernels that Inductor writes, with and without a GPU.

Without a GPU, Inductor's CPU backend for Triton generates them from tensors on the CPU, and each config of a
kernel goes through Triton's frontend. Tested with torch 2.7, 2.9 and 2.13; templates of max-autotune need
measurements and are not generated.

On a GPU, Inductor may compile in other processes, so kernels are recorded at the launch, in
`CachingAutotuner.run`. Tested with torch 2.11; kernels that generated C++ launches (AOTInductor,
`cpp_wrapper`) are not recorded.
"""

from __future__ import annotations

import copy
import functools
import importlib.abc
import importlib.util
import inspect
import linecache
import re
import sys
import types
import unittest.mock

import triton
import triton.compiler
import triton.runtime.jit

from ..texts import jit_function
from . import intercept, noted
from .stub_driver import NoKernel
from .torch_cuda import properties_of


def install(target, missed=None):
    """Inductor is imported when something compiled is first called.

    missed: receives the name of a kernel that cannot be recorded, and the reason.
    """
    try:
        import torch
    except ImportError:
        return
    real = torch.compile
    prepare = functools.lru_cache(noted.paused()(lambda: _prepare(target, missed)))

    @functools.lru_cache
    @noted.paused()
    def begin():
        from torch._dynamo.eval_frame import _TorchDynamoContext as context

        context.__call__ = _outside_of_modes(context.__call__, prepare)

    @functools.wraps(real)
    def compile_for_target(*args, **kwargs):
        begin()
        return real(*args, **kwargs)

    torch.compile = compile_for_target


def _prepare(target, missed):
    import torch._dynamo.convert_frame as convert_frame
    import torch._dynamo.symbolic_convert as symbolic_convert
    import torch._inductor.codecache as codecache
    import torch._inductor.compile_fx as compile_fx
    import torch._inductor.config as settings
    import torch._inductor.decomposition as decomposition
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch._inductor.fx_passes.post_grad as post_grad
    from torch._inductor.graph import GraphLowering
    from torch._inductor.runtime import hints, triton_helpers, triton_heuristics

    settings.cpu_backend = "triton"
    settings.compile_threads = 1
    settings.force_disable_caches = True  # a cache would bring code that was written for a CPU
    codecache._reload_python_module = _load
    joint_graph.lazy_init = _without_gpu(joint_graph.lazy_init)
    # only graphs on a GPU get sums outside of matrix products and of convolutions, and online softmax
    decomposition.is_gpu = post_grad.is_gpu = lambda device: True
    post_grad.prepare_softmax_extra_check = lambda match: settings.online_softmax
    facts = {
        **properties_of(target),
        "type": "hip" if target["backend"] == "hip" else "cuda",
        "index": 0,
        "cc": target["arch"],
        "max_threads_per_block": 1024,
    }
    field_names = hints.DeviceProperties._fields  # more in each release of torch
    properties = hints.DeviceProperties(**{name: facts[name] for name in field_names if name in facts})
    hints.DeviceProperties.create = classmethod(lambda cls, device: properties)
    triton_heuristics.CachingAutotuner.precompile = lambda self, *_, **__: None
    triton_heuristics.CachingAutotuner.run = functools.partialmethod(_run, missed)
    triton_helpers.set_driver_to_gpu = triton_helpers.set_driver_to_cpu = lambda: None  # the stub stays
    triton.compile = lambda *args, **kwargs: triton.compiler.compile(*args, **kwargs)
    GraphLowering.is_unspec_arg = _is_number(GraphLowering.is_unspec_arg)
    compile_fx._compile_fx_inner = _computed(noted.paused()(compile_fx._compile_fx_inner))
    # what Dynamo and Inductor call while they compile is most of what is called, and not the program's
    frames = convert_frame.CatchErrorsWrapper
    frames.__call__ = noted.paused()(frames.__call__)
    traced = symbolic_convert.InstructionTranslatorBase
    traced.__init__ = _noting(traced.__init__)


def _without_gpu(make_patterns):
    """Has Inductor build its patterns for the CPU. Before torch 2.13 it builds them for a GPU if `torch.cuda`
    has one, and builds of torch for CUDA then call the driver.
    """
    import torch

    @functools.wraps(make_patterns)
    def make(*args):
        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: False):
            return make_patterns(*args)

    return make


def _noting(begin):
    """Counts each function that Dynamo traces as called."""

    @functools.wraps(begin)
    def begin_and_note(translator, *args, **kwargs):
        begin(translator, *args, **kwargs)
        noted.note(translator.f_code)

    return begin_and_note


def _computed(compile_graph):
    """Has torch's own operators compute a compiled graph, because later launches may depend on values."""

    @functools.wraps(compile_graph)
    def compile_and_keep(graph, *args, **kwargs):
        kept = copy.deepcopy(graph)  # Inductor changes it
        launch = compile_graph(graph, *args, **kwargs)

        def launch_and_compute(arguments):
            own = list(arguments)
            launch(arguments)
            with intercept.paused():
                return kept(*own)

        launch_and_compute._boxed_call = True  # type: ignore[attr-defined]
        return launch_and_compute

    return compile_and_keep


def _is_number(is_unspecialized):
    """Inductor passes CPU tensors without dimensions by value. Tensors that belong on the GPU lie on the CPU
    too, so only those that Dynamo made from Python floats are passed by value.
    """
    import torch

    @functools.wraps(is_unspecialized)
    def answer(graph, name):
        graph_input = graph.graph_inputs.get(name)
        return (
            is_unspecialized(graph, name)
            and graph_input is not None
            and graph_input.get_dtype() == torch.float64
        )

    return answer


def _load(key, path, set_sys_modules=True):
    """Names a generated module by its text alone, because its folder is a new one each time."""
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


def _run(tuner, missed, *args, stream=None, benchmark_run=False, **kwargs):
    """Replaces CachingAutotuner.run: every config goes through the frontend."""
    from torch._inductor.runtime.triton_heuristics import GridExpr

    more = tuner.inductor_meta.get("extra_launcher_args", ())  # the grid of a kernel that a user wrote
    own = args[: len(args) - len(more)]
    runtime_arguments = dict(
        zip((parameter.name for parameter in tuner.fn.params if not parameter.is_constexpr), own)
    )
    sources = _sources(tuner.fn.__name__)
    for config in tuner.configs:
        values = {**tuner.triton_meta["constants"], **config.kwargs, **runtime_arguments}
        bound = {name: values[name] for name in tuner.fn.arg_names if name in values}
        grid = GridExpr.from_meta(tuner.inductor_meta, config).eval_slow(
            {**values, **dict(zip(more, args[len(own) :]))}
        )
        compile_now = functools.partial(_compile, tuner, config)
        if intercept.compiled_directly(tuner.fn, bound, grid, compile_now, sources):
            continue
        if why := why_not_recorded(tuner):
            missed(tuner.fn.__name__, why)
            break
        tuner.fn.run(
            grid=grid, warmup=False, num_warps=config.num_warps, num_stages=config.num_stages, **bound
        )
    return NoKernel()


def why_not_recorded(tuner):
    """Returns the reason why a recorded launch with the same values would differ from this one."""
    wide = [name for name, kind in tuner.triton_meta.get("signature", {}).items() if kind == "fp64"]
    if not wide:
        return None
    return (
        f"torch.compile passes {wide[0]} as fp64, a recorded launch fp32: `irdiff init PROGRAM` compares it"
    )


def _sources(name):
    """Lists the files of a user's kernel that Inductor copied under a numbered name, and of the functions
    that it calls.
    """
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table

    kernels = map(jit_function, kernel_side_table.id_to_kernel.values())
    pending = [kernel for kernel in kernels if kernel.fn.__name__ == re.sub(r"_\d+$", "", name)]
    files: dict = {}
    while pending:
        function = pending.pop().fn
        if function not in files:
            files[function] = function.__code__.co_filename
            noted.note(function.__code__)
            used = (function.__globals__.get(word) for word in function.__code__.co_names)
            pending += [value for value in used if isinstance(value, triton.runtime.jit.JITFunction)]
    return set(files.values())


def _compile(tuner, config):
    words = inspect.signature(tuner._precompile_config).parameters
    tuner._precompile_config(*(config, False)[: len(words)])


def _outside_of_modes(wrap, prepare):
    """Calls compiled functions without the mode that moves tensors to the CPU, because Dynamo would trace it.
    Prepares Inductor at the first call, because a library that compiles on import may never call the result.
    """
    from torch.overrides import _len_torch_function_stack, _pop_mode, _push_mode

    @functools.wraps(wrap)
    def wrapped(self, function):
        compiled = wrap(self, function)
        if not isinstance(compiled, types.FunctionType):
            return compiled

        @functools.wraps(compiled)
        def call(*args, **kwargs):
            prepare()
            modes = [_pop_mode() for _ in range(_len_torch_function_stack())]
            try:
                return compiled(*args, **kwargs)
            finally:
                for mode in reversed(modes):
                    _push_mode(mode)

        return call

    return wrapped


_MODULE = "torch._inductor.runtime.triton_heuristics"


# on a GPU


def record_on_gpu(recorder):
    """Imports nothing of torch before the program does."""
    if _MODULE in sys.modules:
        _wrap(sys.modules[_MODULE], recorder)
    else:
        sys.meta_path.insert(0, _Finder(recorder))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, and wraps its class once it is loaded."""

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
    """{tuner's file: its JIT function, if another process compiled it}"""

    @functools.wraps(run)
    def run_and_record(tuner, *args, benchmark_run=False, **kwargs):
        if benchmark_run:
            return run(tuner, *args, benchmark_run=True, **kwargs)
        kernel = getattr(tuner.fn, "__name__", "a kernel of torch.compile")
        if why := why_not_recorded(tuner):
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
    """Loads the Python function of a tuner that another process compiled from its file."""
    if tuner.fn.fn is not None:
        return tuner.fn
    if tuner.filename not in functions:
        written = _load(tuner.fn.__name__, tuner.filename, set_sys_modules=False)
        functions[tuner.filename] = getattr(written, tuner.fn.__name__).fn
    return functions[tuner.filename]


def _launch(module, tuner, function, args, kwargs):
    """Returns (arguments and options by name, grid)."""
    (launcher,) = tuner.launchers
    config = launcher.config
    passed = {**dict(zip(inspect.signature(launcher).parameters, args)), **kwargs}
    passed.pop("stream", None)
    constants = {**tuner.triton_meta.get("constants", {}), **config.kwargs}
    values = {**passed, **constants}
    grid = passed.get("grid")  # before torch 2.7 it was an argument
    if grid is None:
        grid = module.GridExpr.from_meta(tuner.inductor_meta, config).eval_slow(values)
    words = {name: values[name] for name in function.arg_names if name in values}
    words.update(config.kwargs, num_warps=config.num_warps, num_stages=config.num_stages)
    if getattr(config, "maxnreg", None) is not None:
        words["maxnreg"] = config.maxnreg
    return words, grid
