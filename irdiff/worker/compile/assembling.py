"""Runs `ptxas` so that its result depends on its input alone, and remembers the result.

File names, working directory, argv[0] and environment are always the same: their lengths move its heap, and
some releases of ptxas for Blackwell then generate other code.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess

from ..texts import sha256, sha256_of_file

_LOG_CHARACTERS = 4000
_ALONE_CPU_S = 3600
"""Ends a program whose host was killed."""


class Remembered:
    """Results of assemblers, in files that many processes share.

    programs: {path without links: SHA-256} of those that are machine code; others are run each time.
    """

    def __init__(self, folder, programs):
        self._folder, self._programs = folder, programs

    def path(self, program, flags, source):
        """Returns None if the run is not remembered."""
        digest = self._programs.get(program)
        if self._folder is None or digest is None:
            return None
        named = [word for flag in flags for word in flag.split("=") if os.path.isfile(word)]
        contents = [sha256_of_file(path) for path in [source, *named]]
        key = sha256(json.dumps(["assembled/2", digest, flags, contents]))
        return os.path.join(self._folder, key[:2], key[2:])


def read(path):
    """Returns (binary, log); None if there is none, or it is damaged."""
    try:
        with open(path, "rb") as file:
            digest, log, binary = file.read().split(b"\n", 2)
    except (OSError, ValueError):
        return None
    return (binary, json.loads(log)) if _digest(path, log, binary) == digest else None


def _digest(path, log, binary):
    """Covers the key, which the end of the path is: a file at another place is damaged."""
    key = "".join(path.split(os.sep)[-2:])
    return sha256(key.encode() + log + binary).encode()


def write(path, binary, log):
    """Writes the file whole or not at all. Errors are ignored: the result is then computed again."""
    encoded_log = json.dumps(log).encode()
    part = f"{path}.part-{os.urandom(16).hex()}"
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(part, "wb") as file:
            file.write(_digest(path, encoded_log, binary) + b"\n" + encoded_log + b"\n" + binary)
        os.replace(part, path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)


@contextlib.contextmanager
def watched(recorder, remembered):
    """Notes each run of `ptxas` in the recorder, or answers it with an earlier result."""

    class Popen(subprocess.Popen):
        _run = None

        def __init__(self, args, **kwargs):
            words = [args] if isinstance(args, str) else [os.fspath(word) for word in args]
            if os.path.basename(words[0]).startswith("ptxas") and "-o" in words:
                self._run = _Run(words, kwargs, recorder, remembered)
                words, kwargs = self._run.words, self._run.kwargs
            super().__init__(words, **kwargs)  # without `preexec_fn` Python need not copy this process
            with contextlib.suppress(OSError):
                resource.prlimit(self.pid, resource.RLIMIT_CPU, (_ALONE_CPU_S, _ALONE_CPU_S))

        def communicate(self, *args, **kwargs):
            result = super().communicate(*args, **kwargs)
            if self._run and self.returncode == 0:
                self._run.ended()
            return result

    original = subprocess.Popen
    subprocess.Popen = Popen  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        subprocess.Popen = original  # type: ignore[misc]


class _Run:
    """`words` and `kwargs` are what is started in the assembler's place."""

    def __init__(self, words, kwargs, recorder, remembered):
        output = words.index("-o")
        source, self._wanted = words[output - 1], words[output + 1]
        program = os.path.realpath(shutil.which(words[0]) or words[0])
        flags = [*words[1 : output - 1], *words[output + 2 :]]
        log = getattr(kwargs.get("stderr"), "name", None)
        self._log = log if isinstance(log, str) else None
        self._recorder = recorder
        recorder.assembler_flags, recorder.assembler_log = [program, *flags], ""
        # a stage that reads what was printed in another way than from a file gets it from a run alone
        is_readable = self._log is not None and kwargs.get("stdout") is None
        self._kept_at = remembered.path(program, flags, source) if is_readable else None
        self._remembered_result = read(self._kept_at) if self._kept_at else None
        if self._remembered_result is not None:
            self.words, self.kwargs = ["true"], dict(kwargs, executable=shutil.which("true"))
            return
        self._folder = os.path.join(recorder.folder, "assemble")
        os.makedirs(self._folder, exist_ok=True)
        shutil.copyfile(source, os.path.join(self._folder, "kernel.ptx"))
        self.words = ["ptxas", *flags, "kernel.ptx", "-o", "kernel.cubin"]
        self.kwargs = dict(kwargs, executable=words[0], cwd=self._folder, env={"PATH": "/usr/bin:/bin"})

    def ended(self):
        """Puts the binary and the log where the toolchain looks for them."""
        if self._remembered_result is not None:
            binary, self._recorder.assembler_log = self._remembered_result
            with open(self._wanted, "wb") as file:
                file.write(binary)
            with open(str(self._log), "w") as file:
                file.write(self._recorder.assembler_log)
            return
        if self._log is not None:
            with open(self._log) as file:
                self._recorder.assembler_log = file.read()[-_LOG_CHARACTERS:]
        binary_path = os.path.join(self._folder, "kernel.cubin")
        if self._kept_at:
            with open(binary_path, "rb") as file:
                write(self._kept_at, file.read(), self._recorder.assembler_log)
        shutil.move(binary_path, self._wanted)  # the folder for temporary files may be on another disk
