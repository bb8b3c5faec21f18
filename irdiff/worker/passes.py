"""One stage of the pipeline run again on the text of the stage before, with the IR between passes kept.

This answers two questions. On a side's own text it gives the IR after every pass. On the *other* side's
text it says what this side's stage makes of it (stage swap). Artifacts of the other side are read the way
`triton.compile` reads an IR file. The environment is that of this child alone.
"""

from __future__ import annotations

import ctypes
import os
import sys

import triton.compiler.compiler as tc
from triton._C import libtriton
from triton._C.libtriton import ir, llvm

from . import assembling
from .staged_compile import of_backend

DUMP = "passes"
_MAX_SETTING = 200
_LLVM_STAGES = ("llir", "ptx", "amdgcn")


def replay(request, captured, recorder, remembered):
    """Runs `stage` on the file `input`, which holds the text of `input_stage`.

    Leaves the artifact. Where `dump` is `final` or `all` also the file `passes.after`, the IR after the last
    pass; with `all` also `passes`, the IR before each pass under MLIR's own headings. With `llvm` LLVM's
    dumps go to the child's stderr. With `names` those of MLIR do: what it prints there is not lost when a
    pass ends the process.
    """
    stage = request["stage"]
    recorder.stage = stage
    backend = tc.make_backend(captured.target)
    options = backend.parse_options(dict(captured.options or {}, **captured.src.parse_options()))
    stages = of_backend(backend, options, captured.src)
    recorder.metadata = {**request["metadata"], **vars(options), "target": captured.target}
    if request["dump"] in ("final", "all"):
        _keep_passes(os.path.join(recorder.folder, DUMP), request["dump"] == "all")
    elif request["dump"] == "names":
        os.environ["MLIR_ENABLE_DUMP"] = "1"
    elif request["dump"] == "llvm":
        _keep_llvm_passes()
    assembling.watch(recorder, remembered)
    settings = _recorded_settings(backend)
    module = _read(request["input"], request["input_stage"], backend)
    if stage not in stages:
        raise KeyError(f"this toolchain has no stage {stage!r}")
    recorder.keep(stage, recorder.wrap(stage, stages[stage])(module, recorder.metadata))
    return settings


def leave():
    """Ends the child through `exit`, which writes out what LLVM's streams still hold."""
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).exit(0)


def _read(path, stage, backend):
    if stage in _LLVM_STAGES:
        _prepare_llvm(backend)
        with open(path) as file:
            return file.read()
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = ir.parse_mlir_module(path, context)
    module.context = context
    return module


def _prepare_llvm(backend):
    """What the stage that makes LLVM IR leaves set in LLVM for the stages after it."""
    llvm.init_targets()
    names = type(backend).make_llir.__code__.co_names
    if "set_short_ptr" in names:  # 3.4 to 3.8, NVIDIA
        libtriton.nvidia.set_short_ptr()


def _recorded_settings(backend):
    """{function: [arguments]} of the calls into LLVM that take flags and options; filled as they are made."""
    settings = {}

    def watched(name, function):
        def call(*arguments, **named):
            rows = [*enumerate(arguments), *sorted(named.items())]
            settings[name] = [
                word for key, value in rows if _is_setting(value) for word in _words(key, value)
            ]
            return function(*arguments, **named)

        return call

    module = sys.modules.get(type(backend).__module__)  # before 3.4 it is in none
    for owner, name in (
        (llvm, "optimize_module"),
        (llvm, "translate_to_asm"),
        (module, "compile_amdgpu"),  # 3.9, AMD: code generation outside of libtriton
    ):
        if hasattr(owner, name):
            setattr(owner, name, watched(name, getattr(owner, name)))
    return settings


def _is_setting(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_setting, value))
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) < _MAX_SETTING)


def _words(key, value):
    return list(map(str, value)) if isinstance(value, (list, tuple)) else [f"{key}={value}"]


def _keep_passes(path, between):
    if between:
        os.environ["MLIR_ENABLE_DUMP"] = "1"
        os.environ["MLIR_DUMP_PATH"] = path
    run = ir.pass_manager.run

    def run_and_print(self, module, *name):
        result = run(self, module, *name)
        with open(path + ".after", "w") as file:
            file.write(str(module))
        return result

    ir.pass_manager.run = run_and_print


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
