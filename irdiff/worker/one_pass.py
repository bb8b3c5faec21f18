"""One pass alone, on texts: to check a test of that pass where triton-opt is not at hand.

The pass is taken from the stage that runs it: the stage's own Python is run with the functions that add
passes replaced by ones that only note their arguments. So the pass has the options of the stage.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
import types

import triton.compiler.compiler as tc
from triton._C import libtriton
from triton._C.libtriton import ir

from .staged_compile import of_backend


class _Recorded(BaseException):
    pass


def run(request, captured, recorder):
    """Runs the pass `argument` of `stage` on each of the files `inputs`; `options` tells namesakes apart.

    Leaves `output.N`, or `error.N` where the pass fails, and in the result the `pipeline` as triton-opt takes
    it; None where the stage has no such pass.
    """
    recorder.stage = request["stage"]
    backend = tc.make_backend(captured.target)
    options = backend.parse_options(dict(captured.options or {}, **captured.src.parse_options()))
    stage = of_backend(backend, options, captured.src)[request["stage"]]
    metadata = {**request["metadata"], **vars(options), "target": captured.target}
    calls = _recorded_calls(
        stage, _parse(request["inputs"][0], backend), metadata, request["stage"] == "llir"
    )
    found = _find(calls, request["argument"], request["options"], backend)
    if found is None:
        recorder.report("compiled", pipeline=None)
        return
    add, arguments, pipeline = found
    for number, path in enumerate(request["inputs"]):
        try:
            module = _parse(path, backend)
            manager = ir.pass_manager(module.context)
            add(manager, *arguments)
            _run(manager, module)
            _write(recorder, f"output.{number}", str(module))
        except Exception:
            _write(recorder, f"error.{number}", traceback.format_exc()[-2000:])
    recorder.report("compiled", pipeline=pipeline)


def _parse(path, backend):
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    return module


def _run(manager, module):
    try:
        manager.run(module, "irdiff")
    except TypeError:  # before 3.6 it takes no name
        manager.run(module)


def _write(recorder, name, text):
    with open(os.path.join(recorder.folder, name), "w") as file:
        file.write(text)


def _pass_modules(root, seen):
    for name in dir(root):
        module = getattr(root, name)
        if isinstance(module, types.ModuleType) and id(module) not in seen:
            seen.add(id(module))
            yield module
            yield from _pass_modules(module, seen)


def _recorded_calls(stage, module, metadata, lowers):
    """[(function, arguments)] of every pass that the stage adds, in order."""
    calls, kept = [], []

    def recording(function):
        def add(manager, *arguments):
            calls.append((function, arguments))

        return add

    for owner in _pass_modules(libtriton, set()):
        for name in dir(owner):
            if name.startswith("add_"):
                kept.append((owner, name, getattr(owner, name)))
    run_passes = ir.pass_manager.run

    def ran(self, *_):
        if lowers:
            raise _Recorded  # what follows would crash on IR that was not lowered

    for owner, name, function in kept:
        setattr(owner, name, recording(function))
    ir.pass_manager.run = ran
    try:
        stage(module, dict(metadata))
    except (Exception, _Recorded):
        pass  # without its passes the stage ends early; the passes are noted by then
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)
        ir.pass_manager.run = run_passes
    sys.stdout.flush()
    return calls


def _find(calls, argument, options, backend):
    """The call whose pipeline has the argument, with the same options where they are known."""
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    best = None
    word = re.compile(r"(?<![\w-])" + re.escape(argument) + r"(?:\{([^}]*)\})?(?![\w-])")
    for function, arguments in calls:
        manager = ir.pass_manager(context)
        function(manager, *arguments)
        pipeline = manager.get_pipeline_str()
        match = word.search(pipeline)
        if not match:
            continue
        given = sorted((match.group(1) or "").split())
        if options is None or given == sorted(options.split()):
            return function, arguments, pipeline
        best = best or (function, arguments, pipeline)
    return best
