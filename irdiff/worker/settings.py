"""What a program has set for the compiler beside the options of a launch: variables, knobs, its functions.

The stages read all of them at any time (`DISABLE_LLVM_OPT` in C++, `knobs.nvidia.disable_ptxas_opt`, hooks
that add stages, a stage that a program has replaced by its own). What a workload has changed of them when it
launches belongs to that launch, and its child compiles with the same variables and knobs, whatever later
launches have set. A function has no digest: a launch under another one than the worker began with is compiled
each time.
"""

from __future__ import annotations

import os
import sys

import triton

_NEUTRAL_VARIABLES = frozenset(
    {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"}
    | {"TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_HOME"}
)
"""They say where things are kept, and compilations here are kept nowhere."""
_NEUTRAL_KNOBS = frozenset({"autotuning", "build", "cache", "proton", "redis"})
"""Groups of knobs that no stage reads: how autotuners measure, launchers are built, results are kept."""
_BELOW_FRONTEND = ("triton.backends.", "triton.compiler.", "triton._")
_UNSET = object()
_at_first = []
_modules = {}
"""{name: module} that stages run in, of those loaded at first; what is loaded later is as installed."""


class Settings:
    """The settings of this process, as they are now."""

    def __init__(self):
        self._variables = dict(os.environ)
        self._knobs = {name: dict(vars(group)) for name, group in _groups().items()}
        self._code = _code()

    def changed(self):
        """[(name, value)] of what differs from how the worker began; None as the value of what is gone."""
        before, now = _at_first[0]._all(), self._all()
        names = (name for name in sorted({*before, *now}) if not _same(before, now, name))
        return [(name, now.get(name)) for name in names]

    def restore(self):
        os.environ.clear()
        os.environ.update(self._variables)
        for name, group in _groups().items():
            vars(group).clear()
            vars(group).update(self._knobs.get(name, {}))

    def _all(self):
        rows = {**self._code}
        rows |= {name: value for name, value in self._variables.items() if name not in _NEUTRAL_VARIABLES}
        for group, knobs in self._knobs.items():
            if group not in _NEUTRAL_KNOBS:
                rows.update((f"knobs.{group}.{name}", value) for name, value in knobs.items())
        return rows


def _groups():
    """The groups of knobs. Triton has none before 3.4."""
    knobs = getattr(triton, "knobs", None)
    base = getattr(knobs, "base_knobs", ())
    return {name: group for name, group in vars(knobs).items() if isinstance(group, base)} if knobs else {}


def _code():
    """{name: function or class} of the modules that stages run in, and of their classes."""
    found = {}
    for module_name, module in _modules.items():
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if callable(value) and name != "compile":  # that one is ours while launches are captured
                found[f"{module_name}.{name}"] = value
            if isinstance(value, type) and value.__module__ == module_name:
                attributes = vars(value).items()
                found.update((f"{module_name}.{name}.{key}", x) for key, x in attributes if _is_code(x))
    return found


def _is_code(value):
    return callable(value) or isinstance(value, (staticmethod, classmethod, property))


def _same(before, now, name):
    a, b = before.get(name, _UNSET), now.get(name, _UNSET)
    return a is b or (type(a) is type(b) and isinstance(a, (str, int, bool)) and a == b)


def begin():
    """What is set now is the toolchain's own, and known by its digest."""
    own = {row.compiler.__module__ for row in triton.backends.backends.values()}
    for name, module in list(sys.modules.items()):
        if name in own or name.startswith(_BELOW_FRONTEND):
            _modules[name] = module
    _at_first[:] = [Settings()]
