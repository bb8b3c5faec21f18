"""Watches the flags and options that stages pass to the functions of libtriton that run LLVM.

LLVM keeps its flags for the whole process, so one compilation's flags affect the next: releases before 3.4
then lay out pointers of the second kernel differently.
"""

from __future__ import annotations

import sys

import triton.backends
from triton._C import libtriton

_MAX_SETTING = 200
_RUN_NOTHING = frozenset({"init_targets", "to_module", "link_extern_libs", "add_version_info", "to_bitcode"})
"""Functions that create or join modules, and do not run the generator."""
OUTSIDE = "compile_amdgpu"
"""3.9: code generation outside of libtriton."""
_settings: dict = {}
_flags: set = set()
_switches: dict = {}
_first: dict = {}


def make_ready():
    """Watches this process, and those forked from it. Call it once."""
    for name, function in list(vars(libtriton.llvm).items()):
        if callable(function) and not isinstance(function, type) and name not in _RUN_NOTHING:
            setattr(libtriton.llvm, name, _watched(name, function))
    for backend in triton.backends.backends.values():
        module = sys.modules.get(backend.compiler.__module__)  # before 3.4 it is in none
        if hasattr(module, OUTSIDE):
            setattr(module, OUTSIDE, _watched(OUTSIDE, getattr(module, OUTSIDE)))


def begin():
    _settings.clear()
    _flags.clear()
    _switches.clear()


def settings():
    """Returns {function: [words]} of the last call of each since `begin`."""
    return dict(_settings)


def leave_nothing():
    """Checks that every call set the same flags, and the same flags and switches as calls of that function
    for other launches of this process.
    """
    return len(_flags) <= 1 and all(_first.setdefault(*switch) == switch[1] for switch in _switches.items())


def _watched(name, function):
    def call(*arguments, **named):
        passed = [*enumerate(arguments), *sorted(named.items())]
        _settings[name] = [word for key, value in passed if _is_setting(value) for word in _words(key, value)]
        flags = frozenset(word for _, value in passed if _is_flags(value) for word in value)
        _flags.add(flags)
        _switches[name] = flags, [pair for pair in passed if isinstance(pair[1], bool)]
        return function(*arguments, **named)

    return call


def _is_flags(value):
    return isinstance(value, (list, tuple)) and _is_setting(value)


def _is_setting(value):
    if isinstance(value, (list, tuple)):
        return all(map(_is_setting, value))
    return isinstance(value, (bool, int, float)) or (isinstance(value, str) and len(value) < _MAX_SETTING)


def _words(key, value):
    return list(map(str, value)) if isinstance(value, (list, tuple)) else [f"{key}={value}"]
