"""One case compiled, in a child process that does nothing else.

The toolchain's own `triton.compile` does the work. It is given a cache that keeps every artifact in
a folder, stages that are timed one by one, and is stopped before the first stage that is not wanted.
What is replaced decides only where results go and when to stop, never what is generated: the cache
(by one that never hits), the key of that cache (it hashes the whole of libtriton), and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

import triton
import triton.compiler.compiler as tc
from triton.backends.compiler import GPUTarget

from . import capture, closure

_TRITON_ROOT = os.path.dirname(os.path.abspath(triton.__file__))


class _StopBeforeStage(BaseException):
    pass


class StageRecorder:
    """Times and artifacts of one compilation, written to `folder` as they come."""

    def __init__(self, folder, stop_before):
        self.folder = folder
        self.stop_before = stop_before
        self.stage = "ttir"
        self.times_s = {}
        self.artifacts = []
        self.metadata = {}
        self.assembler_flags = None
        self.assembler_log = ""
        self.notes = []

    def wrap(self, name, stage):
        def timed(module, metadata):
            self.metadata = metadata
            if name in self.stop_before and name != "cubin":  # cubin stops at ptxas, with its flags known
                raise _StopBeforeStage
            self.stage = name
            begin = time.perf_counter()
            result = stage(module, metadata)
            self.times_s[name] = round(time.perf_counter() - begin, 6)
            return result

        return timed

    def keep(self, name, content):
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
            "metadata": _plain(self.metadata),
            "assembler_flags": self.assembler_flags,
            "assembler_log": self.assembler_log,
            "notes": self.notes,
            **more,
        }
        path = os.path.join(self.folder, "result.json")
        with open(path + ".part", "w") as file:
            json.dump(row, file)
        os.replace(path + ".part", path)


def compile_launch(captured, recorder):
    """Runs the toolchain's pipeline on one captured launch; the recorder gets what comes out."""
    backend_class = type(tc.make_backend(captured.target))
    _record_into(recorder, backend_class)
    _watch_assembler(recorder)
    closure.pin_lines(captured)
    try:
        tc_compile = capture.real_compile
        tc_compile(captured.src, target=captured.target, options=captured.options)
    except _StopBeforeStage:
        pass
    except Exception as error:
        # 3.2 to 3.4 link for AMD with an ld.lld that the wheel does not have; the code itself is there.
        if recorder.stage != "hsaco" or "lld" not in str(error):
            raise
        recorder.notes.append("no-linker")


def assemble(captured, stage_name, text, metadata, recorder):
    """Runs the one stage that makes the binary, on text that this toolchain made before."""
    backend = tc.make_backend(captured.target)
    options = backend.parse_options(dict(captured.options or {}, **captured.src.parse_options()))
    stages = stages_of(backend, options, captured.src)
    recorder.metadata = dict(metadata)
    _watch_assembler(recorder)
    recorder.keep(stage_name, recorder.wrap(stage_name, stages[stage_name])(text, recorder.metadata))


def stages_of(backend, options, src):
    stages = {}
    if "language" in backend.add_stages.__code__.co_varnames:
        backend.add_stages(stages, options, src.language)
    else:
        backend.add_stages(stages, options)
    return stages


def _record_into(recorder, backend_class):
    original = backend_class.add_stages

    def add_stages(self, stages, options, *language):
        original(self, stages, options, *language)
        for name, stage in list(stages.items()):
            stages[name] = recorder.wrap(name, stage)

    class Folder:
        """A cache manager (Triton's interface) that never hits."""

        def __init__(self, key, *args, **kwargs):
            pass

        def get_file(self, filename):
            return None

        def has_file(self, filename):
            return False

        def get_group(self, filename):
            return None

        def put_group(self, filename, group):
            pass

        def put(self, data, filename, binary=True):
            name = filename.rsplit(".", 1)[-1]
            if name != "json":
                recorder.keep(name, data)
            return os.path.join(recorder.folder, name)

    backend_class.add_stages = add_stages
    backend_class.hash = lambda self: "irdiff"
    tc.get_cache_manager = Folder
    for module in (tc, getattr(tc, "cache", None)):
        if hasattr(module, "triton_key"):
            module.triton_key = lambda: "irdiff"
    if hasattr(tc, "get_cache_key"):
        tc.get_cache_key = lambda *args, **kwargs: "irdiff"
    tc.CompiledKernel = lambda *args, **kwargs: None


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
            if recorder.stop_before:
                raise _StopBeforeStage
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
                os.replace(self._made, self._wanted)
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
