"""Settings of LLVM: the flags and options that stages give the functions of Triton's library that run it.

LLVM keeps its flags for the whole process, and releases before 3.9 do not take back what a compilation set.
"""

from __future__ import annotations

import sys

import triton.backends
from triton._C import libtriton

_MAX_SETTING = 200
_settings: dict = {}
_OF_FILES = "link_extern_libs"
"""Gets paths, of files that are part of a module from then on."""
OUTSIDE = "compile_amdgpu"
"""3.9: code generation outside of libtriton."""


def make_ready():
    """Watches these functions in this process, and in those forked from it. Call it once."""
    for name, function in list(vars(libtriton.llvm).items()):
        if callable(function) and not isinstance(function, type) and name != _OF_FILES:
            setattr(libtriton.llvm, name, _watched(name, function))
    for row in triton.backends.backends.values():
        module = sys.modules.get(row.compiler.__module__)  # before 3.4 it is in none
        if hasattr(module, OUTSIDE):
            setattr(module, OUTSIDE, _watched(OUTSIDE, getattr(module, OUTSIDE)))


def begin():
    """Forgets what was noted before."""
    _settings.clear()


def settings():
    """{function: [words]} of the last call of each since `begin`."""
    return {name: words for name, words in _settings.items() if words}


def _watched(name, function):
    def call(*arguments, **named):
        rows = [*enumerate(arguments), *sorted(named.items())]
        _settings[name] = [word for key, value in rows if _is_setting(value) for word in _words(key, value)]
        return function(*arguments, **named)

    return call


def _is_setting(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_setting, value))
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) < _MAX_SETTING)


def _words(key, value):
    return list(map(str, value)) if isinstance(value, (list, tuple)) else [f"{key}={value}"]
