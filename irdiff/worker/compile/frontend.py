"""Runs the frontend at the launch, and computes the input digest of the launch.

The toolchain's own `triton.compile` runs up to its first stage, so the IR reflects globals, closures,
defaults, classes and modules at that moment.

The *input digest* covers everything that the stages get: the IR, the options with the content of every file
that they name, the first stage, the target, and what the program has set for the compiler (`settings`).
`operations` adds the modules that it has loaded (`outside`). So equal digests mean equal launches.

The IR is digested without locations, so a comment, a moved line or a renamed local changes nothing. Locations
count if the IR has an assertion, or if options ask for debugging or instrumentation, which add assertions in
later stages.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import re
import threading

from triton.backends.compiler import GPUTarget

from ..capture import noted
from ..texts import sha256, sha256_of_file
from . import staged_compile
from .settings import Settings

_ASSERTING_OPTIONS = ("debug", "instrumentation_mode")
_one_at_a_time = threading.Lock()
"""A workload may launch from several threads, but the stages of a compilation are watched in one place."""
_OVERRIDING = frozenset({"TRITON_KERNEL_OVERRIDE", "knobs.compilation.override"})


class Undigestible(Exception):
    """An input of the stages has no form that is the same in every process."""


class _Reached(BaseException):
    def __init__(self, name, module):
        super().__init__()
        self.name, self.module = name, module


class _Frontend(staged_compile.Watcher):
    def __init__(self):
        self.options, self.files = None, set()

    def parsed(self, options):
        self.options = options

    def compiles(self, function):
        self.files.add(function.fn.__code__.co_filename)
        noted.note(function.fn.__code__)

    def wrap(self, name, stage):
        def reached(module, metadata):
            raise _Reached(name, module)

        return reached


class Input:
    def __init__(self, module, ir_digest, digest, sources, settings, settings_digest):
        self.module = module
        """A module of libtriton, with the context that owns it."""
        self.ir_digest = ir_digest
        """The digest of the IR alone."""
        self.digest = digest
        """None if an input has no digest."""
        self.sources = sources
        """Files of the functions that the frontend compiled, as their code names them."""
        self.settings = settings
        """The settings of the process at the launch."""
        self.settings_digest = settings_digest
        """The digest of what the program had changed. Empty if that is nothing, or cannot be digested."""


def run(src, target, options):
    """Raises what the frontend raises."""
    with _one_at_a_time, noted.paused():
        return _run(src, target, options)


def _run(src, target, options):
    watcher = _Frontend()
    try:
        staged_compile.compile_launch(src, target, options, watcher)
    except _Reached as reached:
        settings = Settings()
        ir_digest = sha256(_text_of(reached.module, watcher.options))
        try:
            changed = [(name, _of_setting(name, value)) for name, value in settings.changed]
            digest = _digest_of(ir_digest, reached.name, watcher.options, target, changed)
            settings_digest = sha256(repr(changed)) if changed else ""
        except (Undigestible, OSError):
            digest, settings_digest = None, ""
        return Input(reached.module, ir_digest, digest, sorted(watcher.files), settings, settings_digest)
    raise RuntimeError("irdiff: the compiler ended before its first stage")


def _digest_of(ir_digest, first_stage, options, target, changed):
    """Raises Undigestible and OSError."""
    option_values = [(name, _plain(value)) for name, value in sorted(vars(options).items())]
    gpu = (target.backend, target.arch, target.warp_size)
    return sha256(repr(("input/4", first_stage, option_values, gpu, changed, ir_digest)))


def _text_of(module, options):
    if not hasattr(module, "str_nodebug"):  # before 3.4 there is one way to print it, with its locations
        return str(module)
    text = module.str_nodebug()
    asserting = "assert" in text or any(getattr(options, name, None) for name in _ASSERTING_OPTIONS)
    return str(module) if asserting else text


def _plain(value):
    """Returns an option's value by content. Raises Undigestible."""
    if isinstance(value, str):
        return _by_content(value)
    if value is None or isinstance(value, (bool, int, float, bytes)):
        return value
    if isinstance(value, enum.Enum):
        return type(value).__qualname__, value.name
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return sorted(((_plain(key), _plain(item)) for key, item in value.items()), key=repr)
    if isinstance(value, GPUTarget) or dataclasses.is_dataclass(value):
        return type(value).__qualname__, [(name, _plain(item)) for name, item in sorted(vars(value).items())]
    if type(value).__name__ == "constexpr":
        return "constexpr", _plain(value.value)
    raise Undigestible(type(value).__qualname__)


def _of_setting(name, value):
    """Raises Undigestible if a variable or knob replaces stages by files or names a folder (also as a
    relative path), because the files that it reads are then not known.
    """
    if (name in _OVERRIDING and value) or (isinstance(value, str) and os.path.isdir(value)):
        raise Undigestible(name)
    return _plain(value)


def _by_content(text):
    """Returns a string together with the content of the files that it names, as a whole or in its words. The
    folder of a file that it names as a whole does not count: it differs in each export of a revision.
    """
    if os.path.isabs(text) and os.path.isdir(text):
        raise Undigestible(text)
    if os.path.isfile(text):
        return "file", os.path.basename(text), sha256_of_file(text)
    named = [word for word in re.split(r"[\s=,:;]+", text) if os.path.isabs(word)]
    if any(os.path.isdir(word) for word in named):
        raise Undigestible(text)
    contents = [sha256_of_file(word) for word in named if os.path.isfile(word)]
    return ("names files", text, contents) if contents else text
