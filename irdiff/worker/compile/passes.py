"""Runs stages and passes alone, on texts.

`replay` runs one stage on the text of the stage before: its own, for the IR after every pass, or the *other*
side's (stage swap).

`run_alone` runs one pass with the options that the stage gives it, to check a test of that pass without
triton-opt.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import traceback
import types

import triton.compiler.compiler as tc
from triton._C import libtriton
from triton._C.libtriton import ir, llvm

from ..protocol import OnePassRequest, ReplayRequest
from . import assembling, compiling, llvm_calls
from .staged_compile import of_backend

DUMP = "passes"
_TAKING_SETTINGS = ("optimize_module", "translate_to_asm", llvm_calls.OUTSIDE)
_LLVM_STAGES = ("llir", "ptx", "amdgcn")


class _Lowered(BaseException):
    pass


def replay(request: ReplayRequest, captured, recorder, remembered):
    """Leaves the artifact of `stage` and what `dump` names. MLIR's names of passes go to stderr, where they
    are not lost if a pass ends the process. Returns the settings of LLVM, and what the stage leaves behind.
    """
    stage = request["stage"]
    backend, stages = _prepared(request, captured, recorder)
    after = os.path.join(recorder.folder, DUMP + ".after") if request["dump"] in ("final", "all") else None
    if request["dump"] == "all":
        os.environ["MLIR_ENABLE_DUMP"] = "1"
        os.environ["MLIR_DUMP_PATH"] = os.path.join(recorder.folder, DUMP)
    elif request["dump"] == "names":
        os.environ["MLIR_ENABLE_DUMP"] = "1"
    elif request["dump"] == "llvm":
        _keep_llvm_passes()
    watched = compiling.stages_of(captured, recorder.folder), assembling.watched(recorder, remembered)
    with watched[0] as left, watched[1], _last_pass_in(after):
        if request["input_stage"] in _LLVM_STAGES:
            _prepare_llvm(backend)
            with open(request["input"]) as file:
                module = file.read()
        else:
            module = _parsed(request["input"], backend)
        if stage not in stages:
            raise KeyError(f"this toolchain has no stage {stage!r}")
        recorder.keep(stage, recorder.wrap(stage, stages[stage])(module, recorder.metadata))
    return _recorded_settings(backend), left


def leave():
    """Calls C's `exit`, which flushes LLVM's streams."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(0)


def run_alone(request: OnePassRequest, captured, recorder):
    """Runs the pass `argument` of `stage` on each of the files `inputs`; `options` tells passes of the same
    name apart.

    Leaves `output.N`, or `error.N` if the pass fails, and in the result the `pipeline` in triton-opt's form,
    or None if the stage has no such pass.
    """
    backend, stages = _prepared(request, captured, recorder)
    first, lowers = _parsed(request["inputs"][0], backend), request["stage"] == "llir"
    calls = _noted_calls(stages[request["stage"]], first, recorder.metadata, lowers)
    add, arguments, pipeline = _find(calls, request["argument"], request["options"], _context(backend))
    for number, path in enumerate(request["inputs"] if pipeline else ()):
        try:
            module = _parsed(path, backend)
            manager = ir.pass_manager(module.context)
            add(manager, *arguments)
            try:
                manager.run(module, "irdiff")
            except TypeError:  # before 3.6 it takes no name
                manager.run(module)
            name, text = "output", str(module)
        except Exception:
            name, text = "error", traceback.format_exc()[-2000:]
        with open(os.path.join(recorder.folder, f"{name}.{number}"), "w") as file:
            file.write(text)
    recorder.report("compiled", pipeline=pipeline)


def _prepared(request, captured, recorder):
    """Returns (backend, its stages); metadata go to the recorder."""
    recorder.stage = request["stage"]
    backend = tc.make_backend(captured.target)
    options = backend.parse_options(dict(captured.options or {}, **captured.src.parse_options()))
    recorder.metadata = {**request["metadata"], **vars(options), "target": captured.target}
    return backend, of_backend(backend, options, captured.src)


def _context(backend):
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    return context


def _parsed(path, backend):
    context = _context(backend)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    return module


def _prepare_llvm(backend):
    """Sets in LLVM what the stage that generates LLVM IR leaves set for later stages."""
    llvm.init_targets()
    names = type(backend).make_llir.__code__.co_names
    if "set_short_ptr" in names:  # 3.4 to 3.8, NVIDIA
        libtriton.nvidia.set_short_ptr()


def _recorded_settings(backend):
    """Collects {function: [arguments]} of the calls into LLVM that take flags and options."""
    calls = llvm_calls.settings()
    settings = {name: calls[name] for name in _TAKING_SETTINGS if name in calls}
    if llvm_calls.OUTSIDE in settings:
        module = sys.modules[type(backend).__module__]
        revision = getattr(module, "get_amd_codegen_revision", str)()
        settings["codegen library"] = [f"LLVM {revision}"]
    return settings


@contextlib.contextmanager
def _last_pass_in(path):
    """The IR after the last MLIR pass is written to this file."""
    run = ir.pass_manager.run

    def run_and_print(self, module, *name):
        result = run(self, module, *name)
        with open(path, "w") as file:
            file.write(str(module))
        return result

    if path is not None:
        ir.pass_manager.run = run_and_print
    try:
        yield
    finally:
        ir.pass_manager.run = run


def _keep_llvm_passes():
    os.environ["LLVM_IR_ENABLE_DUMP"] = "1"
    # Unbuffered, as LLVM's error stream is, this takes minutes. Libraries from 3.7 on export the switch.
    library = ctypes.CDLL(sys.modules["triton._C.libtriton"].__file__)
    try:
        errors = library["_ZN4llvm4errsEv"]
        buffered = library["_ZN4llvm11raw_ostream11SetBufferedEv"]
    except AttributeError:
        return
    errors.restype = ctypes.c_void_p
    buffered.argtypes = [ctypes.c_void_p]
    buffered.restype = None
    buffered(errors())


def _pass_modules(root, seen):
    for name in dir(root):
        module = getattr(root, name)
        if isinstance(module, types.ModuleType) and id(module) not in seen:
            seen.add(id(module))
            yield module
            yield from _pass_modules(module, seen)


def _noted_calls(stage, module, metadata, lowers):
    """Lists (function, arguments) of every pass that the stage adds, in order."""
    calls, kept = [], [(ir.pass_manager, "run", ir.pass_manager.run)]

    def noting(function):
        return lambda manager, *arguments: calls.append((function, arguments))

    def ran(self, *_):
        if lowers:
            raise _Lowered  # what follows would crash on IR that was not lowered

    ir.pass_manager.run = ran
    for owner in _pass_modules(libtriton, set()):
        for name in filter(lambda name: name.startswith("add_"), dir(owner)):
            kept.append((owner, name, getattr(owner, name)))
            setattr(owner, name, noting(kept[-1][2]))
    try:
        stage(module, dict(metadata))
    except (Exception, _Lowered):
        pass  # without its passes the stage ends early; the passes are noted by then
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)
    return calls


def _find(calls, argument, options, context):
    """Returns the call whose pipeline has the argument with the same options, if these are known, and that
    pipeline; else the first call with the argument.
    """
    best = None, (), None
    word = re.compile(r"(?<![\w-])" + re.escape(argument) + r"(?:\{([^}]*)\})?(?![\w-])")
    for function, arguments in calls:
        manager = ir.pass_manager(context)
        function(manager, *arguments)
        pipeline = manager.get_pipeline_str()
        match = word.search(pipeline)
        if match and (options is None or sorted((match[1] or "").split()) == sorted(options.split())):
            return function, arguments, pipeline
        if match and best[2] is None:
            best = function, arguments, pipeline
    return best
