"""Launches that are kept as the frontend's IR, and compiled from it.

`NAME.mlir` is the module as libtriton prints it with its locations (for a launch in IR form, its own file).
`NAME.json` has everything else that the stages need, with options pickled for the interpreter that wrote
them. A temporary file that an option names is kept as `NAME.OPTION.SUFFIX`.
"""

from __future__ import annotations

import base64
import functools
import json
import os
import pickle
import tempfile

import triton.backends.compiler
import triton.compiler.compiler as tc
from triton._C.libtriton import ir

from ..compile import staged_compile
from ..texts import sha256
from .describe import TRITON_ROOT, is_temporary_file


class Unrecordable(Exception): ...


class RecordedSource(tc.ASTSource):  # of any other source `triton.compile` skips the first stage
    """A kernel's source for `triton.compile`, read from a recording."""

    def __init__(self, path, recording):
        self.path, self.name, self.ext, self.ir_digest = (
            path,
            recording["name"],
            recording["ext"],
            recording["ir_digest"],
        )
        if recording["language"]:
            self.language = triton.backends.compiler.Language[recording["language"]]
        self.signature: dict = {}
        self.constants: dict = {}
        self.attrs: dict = {}

    def hash(self):
        return "irdiff"

    def make_ir(self, *arguments):
        """The last argument is the context. Raises RuntimeError if the module that is read differs from the
        recorded one.
        """
        module = ir.parse_mlir_module(self.path, arguments[-1])
        module.context = arguments[-1]
        _check(module, self.ir_digest)
        return module

    def parse_options(self):
        return {}


class RecordedLaunch:
    """Replaces an `intercept.Captured`."""

    def __init__(self, path, gpu):
        with open(path, encoding="utf-8") as file:
            recording = json.load(file)
        stem = path[: -len(".json")]
        if recording["is_file"]:
            self.src = staged_compile.FileSource(
                f"{stem}.{recording['ext']}", gpu, functools.partial(_check, ir_digest=recording["ir_digest"])
            )
        else:
            self.src = RecordedSource(stem + ".mlir", recording)
        self.target, self.options = gpu, pickle.loads(base64.b64decode(recording["options"]))
        self.options.update((name, f"{stem}{suffix}") for name, suffix in recording.get("files", {}).items())
        self.described, self.digest = recording["described"], recording["digest"]
        self.frontend_input = self.error = self.function = self.grid = self.allocator = None
        self.text, self.places = "", ()  # what is launched is compared test by test


class _StageDone(BaseException):
    def __init__(self, artifact):
        super().__init__()
        self.artifact = artifact


class _Until(staged_compile.Watcher):
    def __init__(self, name):
        self.name = name

    def wrap(self, name, stage):
        def run(module, metadata):
            artifact = stage(module, metadata)
            if name == self.name:
                raise _StageDone(artifact)
            return artifact

        return run


def artifact_of(path, gpu, stage):
    """Returns None if the recorded launch has no such stage. Raises RuntimeError if the compiler fails."""
    with tempfile.NamedTemporaryFile() as result:
        pid = os.fork()  # what a compiler leaves behind in its process is no setting of the test
        if pid == 0:
            _compile_in_child(path, gpu, stage, result.name)
        _, status = os.waitpid(pid, 0)
        kind, artifact = pickle.loads(result.read() or pickle.dumps(("died", f"of status {status}")))
    if kind in ("died", "raised"):
        raise RuntimeError(f"irdiff: the compiler {kind} {artifact}")
    return artifact


def _compile_in_child(path, gpu, stage, result):
    kind, artifact = "made", None
    try:
        launch = RecordedLaunch(path, gpu)
        staged_compile.compile_launch(launch.src, gpu, launch.options, _Until(stage))
    except _StageDone as done:
        artifact = done.artifact if isinstance(done.artifact, bytes) else str(done.artifact)
    except Exception as error:
        kind, artifact = "raised", f"{type(error).__name__}: {error}"
    with open(result, "wb") as file:
        file.write(pickle.dumps((kind, artifact)))
    os._exit(0)


def digest_of(captured):
    """Raises Unrecordable."""
    changed = captured.frontend_input.settings.changed
    if changed:
        raise Unrecordable(f"sets {changed[0][0]}, which the compiler may read, before a launch")
    if captured.digest is None:
        raise Unrecordable("gives a launch an option that has no form on disk")
    return sha256(f"recorded {captured.digest}")


def texts_of(captured, described):
    """Returns {suffix: content} of the files of a launch that `digest_of` accepts, `.json` last. Raises
    Unrecordable.
    """
    src = captured.src
    try:
        options = pickle.dumps(captured.options or {})
    except Exception as error:
        raise Unrecordable(f"gives a launch an option that cannot be kept: {error}") from error
    files = {
        name: f".{name}{os.path.splitext(path)[1]}"
        for name, path in (captured.options or {}).items()
        if is_temporary_file(path)
    }
    language = getattr(src, "language", None)  # since 3.4
    is_file = isinstance(src, staged_compile.FileSource)
    recording = {
        "name": src.name,
        "ext": src.ext,
        "is_file": is_file,
        "language": language.name if language is not None else "",
        "options": base64.b64encode(options).decode(),
        "files": files,
        "digest": digest_of(captured),
        "ir_digest": sha256(_without_locations(captured.frontend_input.module)),
        "described": described,
    }
    text = _with_locations(captured.frontend_input.module)
    if is_file:  # its folder is gone when the test has ended, and another one each time
        text = text.replace(f'loc("{os.path.dirname(src.path)}{os.sep}', 'loc("')
    kept = {suffix: _read(captured.options[name]) for name, suffix in files.items()}
    return {f".{src.ext}" if is_file else ".mlir": text, **kept, ".json": json.dumps(recording)}


def _read(path):
    """Raises Unrecordable."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        raise Unrecordable(f"gives a launch a file that cannot be kept: {error}") from error


def _check(module, ir_digest):
    if sha256(_without_locations(module)) != ir_digest:
        raise RuntimeError("irdiff: libtriton reads the recorded IR back as another module")


def _without_locations(module):
    return module.str_nodebug() if hasattr(module, "str_nodebug") else _with_locations(module)  # since 3.4


def _with_locations(module):
    """Names files relative to toolchain and repository, which lie elsewhere on each side: tests read texts
    with locations.
    """
    root = os.path.join(os.getcwd(), "")
    return str(module).replace(f'loc("{TRITON_ROOT}', 'loc("<triton>').replace(f'loc("{root}', 'loc("')
