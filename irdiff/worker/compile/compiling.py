"""Compiles one case in a child process, with the toolchain's own `triton.compile` (`staged_compile`)."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
import time

from triton.backends.compiler import GPUTarget

from .. import protocol
from ..capture import noted
from ..capture.describe import TRITON_ROOT
from . import assembling, frontend, llvm_calls, outside, staged_compile


class StageRecorder(staged_compile.Watcher):
    """Writes times and artifacts of one compilation to `folder` as they come."""

    def __init__(self, folder):
        self.folder = folder
        self.stage = "ttir"
        self.stage_output = None
        self.stage_times_s: dict = {}
        self.stage_cpu_s: dict = {}
        """Processor time, including that of programs that the stage ran."""
        self.artifacts: list = []
        self.metadata: dict = {}
        self.assembler_flags = None
        """The command of the last assembler, from its own path on."""
        self.assembler_log = ""
        """The assembler's output (`-v`: registers, spills)."""
        self.notes: list = []
        self.launcher_args = None
        """The launcher's arguments other than the kernel's."""

    def wrap(self, name, stage):
        def timed(module, metadata):
            self.stage, self.metadata = name, metadata
            with open(os.path.join(self.folder, protocol.STAGES), "a") as file:
                file.write(name + "\n")  # what it was at, should it die
            begin, used = time.perf_counter(), _cpu_s()
            self.stage_output = stage(module, metadata)
            self.stage_times_s[name] = round(time.perf_counter() - begin, 6)
            self.stage_cpu_s[name] = round(_cpu_s() - used, 6)
            return self.stage_output

        return timed

    def keep(self, name, content):
        if name == self.stage and content is not self.stage_output:
            # a file overrides the stage: the assembler did not make this
            self.assembler_flags, self.assembler_log = None, ""
        content = content if isinstance(content, bytes) else str(content).encode()
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)
        self.artifacts.append(name)

    def report(self, outcome, **more):
        """Writes `protocol.Result`."""
        fields = {name: value for name, value in vars(self).items() if name not in ("folder", "stage_output")}
        plain = {"metadata": _plain(self.metadata), "launcher_args": _plain(self.launcher_args)}
        result = {**fields, **plain, "outcome": outcome, **more}
        path = os.path.join(self.folder, protocol.RESULT)
        with open(path + ".part", "w") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)


def _cpu_s():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


class LeftBehind:
    """The state of a process after stages ran."""

    def __init__(self):
        self.from_outside = []
        """Imported modules from outside of Triton and the standard library. No digest covers them."""
        self.is_nothing = False
        """True if the stages of another launch would find the process in the same state."""


@contextlib.contextmanager
def stages_of(captured, folder):
    """Notes what the stages of a launch open, import and set in LLVM."""
    left, before = LeftBehind(), set(sys.modules)
    noted.begin_stages(folder)
    llvm_calls.begin()
    try:
        yield left
    finally:
        has_opened = noted.end_stages()
    left.from_outside = sorted(
        name for name in set(sys.modules) - before if outside.path_of(sys.modules[name])
    )
    is_plain = captured.digest is not None and not (
        captured.frontend_input and captured.frontend_input.settings.changed
    )
    left.is_nothing = is_plain and llvm_calls.leave_nothing() and not left.from_outside and not has_opened


def compile_launch(captured, recorder, remembered):
    """Continues from the frontend's IR of the launch, if there is one."""
    if captured.error is not None:
        recorder.stage = "ttir"
        raise captured.error
    src = captured.src
    if captured.frontend_input is not None:
        module = _module_of(captured)
        if not isinstance(src, staged_compile.FileSource):
            src.make_ir = lambda *_, **__: module
    with stages_of(captured, recorder.folder) as left, assembling.watched(recorder, remembered):
        try:
            staged_compile.compile_launch(src, captured.target, captured.options, recorder)
        except Exception as error:
            # 3.2 to 3.4 link for AMD with an ld.lld that the wheel does not have; the code itself is there.
            if recorder.stage != "hsaco" or "lld" not in str(error):
                raise
            recorder.notes.append("no-linker")
    recorder.launcher_args = staged_compile.launcher_args_of(captured.target, recorder.metadata)
    scratch = staged_compile.scratch_memory(captured, recorder.metadata)
    if scratch is not None:
        recorder.metadata = {**recorder.metadata, "scratch": scratch}
    return left


def _module_of(captured):
    """Generates the IR again, and checks it, if the host did not keep it or a stage has consumed it."""
    module, captured.frontend_input.module = captured.frontend_input.module, None
    if module is not None:
        return module
    again = frontend.run(captured.src, captured.target, captured.options)
    if again.ir_digest != captured.frontend_input.ir_digest:
        raise RuntimeError("irdiff: the frontend makes another IR of this launch each time")
    return again.module


def _plain(metadata):
    """Values that JSON lacks become text."""

    def default(value):
        if isinstance(value, GPUTarget):
            return vars(value)
        return str(value)

    text = json.dumps(metadata, default=default)
    return json.loads(text.replace(TRITON_ROOT, "<triton>"))
