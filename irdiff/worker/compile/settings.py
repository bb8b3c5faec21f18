"""Settings that a program gives the compiler outside of launch options: variables, knobs, replaced functions.

The stages read them at any time, so a launch keeps what its workload had changed by then, and its child
compiles under exactly that. A replaced function or object has no digest: such a launch is compiled each time.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import types

import triton

_LAUNCH_OPTIONS = "IRDIFF_LAUNCH_OPTIONS"
"""Options for every launch of this side, as JSON. They are in each launch's own options."""
_NEUTRAL_VARIABLES = frozenset(
    {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"}
    | {"TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_HOME", _LAUNCH_OPTIONS}
)
"""They say where things are kept; compilations here are kept nowhere."""
NEUTRAL_KNOBS = frozenset({"autotuning", "build", "cache", "proton", "redis"})
"""Groups of knobs that no stage reads: how autotuners measure, launchers are built, and results are kept."""
BELOW_FRONTEND = ("triton.backends.", "triton.compiler.", "triton._")
"""Prefixes of the names of the modules that stages run in."""
_OF_EACH_CLASS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"}
    | {"__slotnames__"}  # which `copy` leaves behind
    | {"_torch_available"}  # of AMD's backend: its frontend asks at the first launch, and keeps the answer
)
_UNSET = object()
_at_first: list = []
_modules: dict = {}
"""{name: module} that stages run in, of those loaded at the start."""


def _is_neutral(name):
    """A test runner's own variables name the test that runs."""
    return name in _NEUTRAL_VARIABLES or name.startswith("PYTEST_")


class _Held:
    """Compares a dict or list by the identity and order of its objects."""

    def __init__(self, holder):
        self.holder = holder
        self.items = dict(holder) if isinstance(holder, dict) else dict(enumerate(holder))

    def __eq__(self, other):
        others = other.items
        same = self.holder is other.holder and list(self.items) == list(others)
        return same and all(others[key] is value for key, value in self.items.items())

    __hash__ = None  # type: ignore[assignment]

    def restore(self):
        self.holder.clear()
        add = self.holder.update if isinstance(self.holder, dict) else self.holder.extend
        add(self.items if isinstance(self.holder, dict) else self.items.values())


class Settings:
    def __init__(self):
        self._variables = dict(os.environ)
        self._knobs = {name: dict(vars(group)) for name, group in groups().items()}
        self._code = _code()

    @functools.cached_property
    def changed(self):
        """[(name, value)] of what differs from the worker's start; the value is None if it was removed."""
        if self._is_as(_at_first[0]):
            return []
        before, now = _at_first[0]._all, self._all
        names = (name for name in sorted({*before, *now}) if not _same(before, now, name))
        return [(name, now.get(name)) for name in names]

    def _is_as(self, other):
        """Whether nothing differs: true for nearly every launch, and faster than finding the differences."""
        pairs = [(self._code, other._code), (self._read_variables, other._read_variables)]
        names = self._knobs.keys() | other._knobs.keys()
        pairs += [(self._knobs.get(name, {}), other._knobs.get(name, {})) for name in names]
        return all(
            len(now) == len(before) and all(_same(before, now, name) for name in now) for now, before in pairs
        )

    @functools.cached_property
    def _read_variables(self):
        return {name: value for name, value in self._variables.items() if not _is_neutral(name)}

    def restore(self):
        os.environ.clear()
        os.environ.update(self._variables)
        for name, group in groups().items():
            vars(group).clear()
            vars(group).update(self._knobs.get(name, {}))
        now = _code()
        for place in sorted({*now, *self._code}, key=len):  # a class before what it has
            before = self._code.get(place, _UNSET)
            if isinstance(before, _Held):
                before.restore()
                before = before.holder
            current = now.get(place, _UNSET)
            if before is not (current.holder if isinstance(current, _Held) else current):
                _put(place, before)

    @functools.cached_property
    def _all(self):
        values = {".".join(place): value for place, value in self._code.items()}
        values |= self._read_variables
        for group, knobs in self._knobs.items():
            if group not in NEUTRAL_KNOBS:
                values.update((f"knobs.{group}.{name}", value) for name, value in knobs.items())
        return values


def of_every_launch():
    """Returns {option: value} that the user of this side gives every launch."""
    return json.loads(os.environ.get(_LAUNCH_OPTIONS, "{}"))


def groups():
    """Returns {name: group} of knobs. Triton has none before 3.4."""
    knobs = getattr(triton, "knobs", None)
    base = getattr(knobs, "base_knobs", ())
    return {name: group for name, group in vars(knobs).items() if isinstance(group, base)} if knobs else {}


def _code():
    """Returns {place: value} of all members of the modules that stages run in, and of their classes. A place
    is a module's name, a name there and, for a class, a name in it.
    """
    values: dict = {}
    for module_name, module in _modules.items():
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if name == "compile" or name.startswith("__"):  # `compile` is ours while launches are captured
                continue
            if not isinstance(value, types.ModuleType):
                values[module_name, name] = _held(value)
            if isinstance(value, type) and value.__module__ == module_name:
                members = ((key, member) for key, member in vars(value).items() if key not in _OF_EACH_CLASS)
                values.update(((module_name, name, key), _held(member)) for key, member in members)
    return values


def _held(value):
    return _Held(value) if isinstance(value, (dict, list)) else value


def identity(value):
    """Returns a hashable value that is equal for equal settings of this process."""
    if isinstance(value, _Held):
        return tuple((repr(key), id(item)) for key, item in value.items.items())
    return value if isinstance(value, (str, int, bool)) else id(value)


def _put(place, value):
    owner = _modules[place[0]]
    for name in place[1:-1]:
        owner = getattr(owner, name, None)
    if owner is not None:  # else it went with its class
        delattr(owner, place[-1]) if value is _UNSET else setattr(owner, place[-1], value)


def _same(before, now, name):
    a, b = before.get(name, _UNSET), now.get(name, _UNSET)
    return a is b or (type(a) is type(b) and isinstance(a, (str, int, bool, _Held)) and a == b)


def begin():
    """Takes the current settings as the toolchain's own, which its digest covers."""
    own = {backend.compiler.__module__ for backend in triton.backends.backends.values()}
    for name, module in list(sys.modules.items()):
        if name in own or name.startswith(BELOW_FRONTEND):
            _modules[name] = module
    _at_first[:] = [Settings()]
