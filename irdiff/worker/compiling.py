"""One case compiled, in a child process that does nothing else.

The toolchain's own `triton.compile` does the work (`stages`). What it would put into its cache goes to a
folder, its stages are timed one by one, and it is stopped before the first stage that is not wanted.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import time

import triton
import triton.compiler.compiler as tc
from triton.backends.compiler import GPUTarget

from . import frontend, stages

_TRITON_ROOT = os.path.dirname(os.path.abspath(triton.__file__))


class _StopAtAssembler(BaseException):
    pass


class StageRecorder:
    """Times and artifacts of one compilation, written to `folder` as they come."""

    def __init__(self, folder, assembles=True):
        self.folder = folder
        self.assembles = assembles
        self.stopped = False
        """Whether an assembler that is not wanted was reached: what follows has an empty binary, and goes."""
        self.goes_on = False
        """Whether something was made after that, or left for that assembler beside its input: only a whole
        compilation tells what.
        """
        self.stage = "ttir"
        self.made = None
        """What that stage gave."""
        self.times_s = {}
        self.cpu_s = {}
        """Processor time of each stage, that of the programs it ran too: no other process moves it."""
        self.artifacts = []
        self.metadata = {}
        self.assembler_flags = None
        self.assembler_log = ""
        self.notes = []
        self.begun = None
        """The `stages.Leavings` before the first stage, of a compilation that stops at its assembler."""
        self.entered = set()
        """Python files of Triton whose functions the stages called."""

    def wrap(self, name, stage):
        def timed(module, metadata):
            self.metadata = metadata
            if self.stopped:  # this stage would take the binary
                self.goes_on = True
                raise _StopAtAssembler
            self.stage = name
            if self.begun is None and not self.assembles:
                self.begun = stages.Leavings()
            begin, used = time.perf_counter(), _cpu_s()
            files = set()
            try:
                with stages.entered() as files:
                    self.made = stage(module, metadata)
            except _StopAtAssembler:
                self.stopped, self.made = True, b""
                return self.made
            finally:
                self.entered |= files  # of a stage that stopped or failed, too: it made what there is
            self.times_s[name] = round(time.perf_counter() - begin, 6)
            self.cpu_s[name] = round(_cpu_s() - used, 6)
            return self.made

        return timed

    def keep(self, name, content):
        if name == self.stage and content is not self.made:
            self.assembler_flags = None  # a file that overrides the stage: the assembler did not make this
            self.goes_on |= self.stopped
        if self.stopped:
            self.goes_on |= name != self.stage
            return
        content = content if isinstance(content, bytes) else str(content).encode()
        with open(os.path.join(self.folder, name), "wb") as file:
            file.write(content)
        self.artifacts.append(name)

    def report(self, outcome, **more):
        """`result.json`: what the parent reads. Written last, so that its presence means complete."""
        row = {
            "outcome": outcome,
            "stage": self.stage,
            "artifacts": self.artifacts,
            "times_s": self.times_s,
            "cpu_s": self.cpu_s,
            "metadata": _plain(self.metadata),
            "assembler_flags": self.assembler_flags,
            "assembler_log": self.assembler_log,
            "notes": self.notes,
            "entered": sorted(self.entered),
            "goes_on": self.goes_on,
            **more,
        }
        path = os.path.join(self.folder, "result.json")
        with open(path + ".part", "w") as file:
            json.dump(row, file)
        os.replace(path + ".part", path)


def _cpu_s():
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(row.ru_utime + row.ru_stime for row in spent)


def compile_launch(captured, recorder):
    """Runs the toolchain's pipeline on one captured launch; the recorder gets what comes out.

    It continues from the IR that the frontend made at the launch, where that was made.
    """
    if captured.error is not None:
        recorder.stage = "ttir"
        raise captured.error
    src = captured.src
    if captured.made is not None:
        module = _module_of(captured)
        if not isinstance(src, stages.FileSource):
            src.make_ir = lambda *_, **__: module
    _watch_assembler(recorder)
    try:
        with stages.wrapped(captured.target, recorder.wrap, keep=recorder.keep):
            stages.compile_launch(src, captured.target, captured.options)
    except _StopAtAssembler:
        pass
    except Exception as error:
        if recorder.stopped:
            recorder.goes_on = True  # with the binary
            return
        # 3.2 to 3.4 link for AMD with an ld.lld that the wheel does not have; the code itself is there.
        if recorder.stage != "hsaco" or "lld" not in str(error):
            raise
        recorder.notes.append("no-linker")


def _module_of(captured):
    """The IR that the launch was made of; made again, and the same, where the host did not keep it."""
    if captured.made.module is not None:
        return captured.made.module
    again = frontend.run(captured.src, captured.target, captured.options)
    if again.digest != captured.digest:
        raise RuntimeError("irdiff: the frontend makes another IR of this launch each time")
    return again.module


def assemble(captured, stage_name, text, metadata, recorder):
    """Runs the one stage that makes the binary, on text that this toolchain made before."""
    backend = tc.make_backend(captured.target)
    options = backend.parse_options(dict(captured.options or {}, **captured.src.parse_options()))
    own = stages.of_backend(backend, options, captured.src)
    recorder.metadata = dict(metadata)
    _watch_assembler(recorder)
    recorder.keep(stage_name, recorder.wrap(stage_name, own[stage_name])(text, recorder.metadata))


def _watch_assembler(recorder):
    """Runs `ptxas` so that its result depends on the PTX, the binary and the flags alone.

    The same file names, working directory, argv[0] and environment every time: their lengths move its
    heap, and some releases of ptxas for Blackwell generate other code then. Its flags and what it
    prints (`-v`: registers, spills) are kept. Where assembly is not wanted it stops at the flags.
    """
    from . import server

    class Popen(subprocess.Popen):
        _wanted = None

        def __init__(self, args, **kwargs):
            words = [args] if isinstance(args, str) else [os.fspath(word) for word in args]
            if os.path.basename(words[0]).startswith("ptxas") and "-o" in words:
                words, kwargs = self._prepare(words, kwargs)
            super().__init__(words, preexec_fn=server.die_with_parent, **kwargs)

        def _prepare(self, words, kwargs):
            output = words.index("-o")
            source, self._wanted = words[output - 1], words[output + 1]
            flags = [*words[1 : output - 1], *words[output + 2 :]]
            recorder.assembler_flags = [os.path.realpath(shutil.which(words[0]) or words[0]), *flags]
            if not recorder.assembles:
                recorder.goes_on |= stages.Leavings().differs(recorder.begun)
                raise _StopAtAssembler
            folder = os.path.join(recorder.folder, "assemble")
            os.makedirs(folder, exist_ok=True)
            shutil.copyfile(source, os.path.join(folder, "kernel.ptx"))
            self._made = os.path.join(folder, "kernel.cubin")
            self._log = getattr(kwargs.get("stderr"), "name", None)
            kwargs.update(executable=words[0], cwd=folder, env={"PATH": "/usr/bin:/bin"})
            return ["ptxas", *flags, "kernel.ptx", "-o", "kernel.cubin"], kwargs

        def communicate(self, *args, **kwargs):
            result = super().communicate(*args, **kwargs)
            if self._wanted and self.returncode == 0:
                shutil.move(self._made, self._wanted)  # the folder for temporary files may be on another disk
                if isinstance(self._log, str):
                    with open(self._log) as file:
                        recorder.assembler_log = file.read()[-4000:]
            return result

    subprocess.Popen = Popen


def _plain(metadata):
    """JSON of Triton's metadata; what it cannot hold becomes text."""

    def default(value):
        if isinstance(value, GPUTarget):
            return vars(value)
        return str(value)

    text = json.dumps(metadata, default=default)
    return json.loads(text.replace(_TRITON_ROOT, "<triton>"))
