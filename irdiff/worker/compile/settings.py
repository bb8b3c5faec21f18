"""What a program sets for the compiler next to the options of a launch: variables, knobs, its functions.

The stages read all of them at any time (`DISABLE_LLVM_OPT` in C++, `knobs.nvidia.disable_ptxas_opt`, hooks
that add stages, a stage that a program has replaced by its own, a registry that it has written to). A
launch keeps what its workload had changed of them by then, and its child compiles under exactly that,
whatever later launches set. A function or object has no digest: a launch under another one
than the worker began with is compiled each time.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import types

import triton

_LAUNCH_OPTIONS = "IRDIFF_LAUNCH_OPTIONS"
"""Options of every launch, as JSON: those that a user gave this side. They are in each launch's own
options."""
_NEUTRAL_VARIABLES = frozenset(
    {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"}
    | {"TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_HOME", _LAUNCH_OPTIONS}
)
"""They say where things are kept, and compilations here are kept nowhere."""
NEUTRAL_KNOBS = frozenset({"autotuning", "build", "cache", "proton", "redis"})
"""Groups of knobs that no stage reads: how autotuners measure, launchers are built, results are kept."""
BELOW_FRONTEND = ("triton.backends.", "triton.compiler.", "triton._")
"""How the names of the modules begin that stages run in."""
_OF_EACH_CLASS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"}
    | {"__slotnames__"}  # which `copy` leaves behind
    | {"_torch_available"}  # of AMD's backend: its frontend asks at the first launch, and keeps the answer
)
_UNSET = object()
_at_first: list = []
_modules: dict = {}
"""{name: module} that stages run in, of those loaded at first; what is loaded later is as installed."""


def _is_neutral(name):
    """A test runner's own variables name the test that runs."""
    return name in _NEUTRAL_VARIABLES or name.startswith("PYTEST_")


class _Held:
    """What a dict or list holds now; equal where these are the same objects in the same order."""

    def __init__(self, holder):
        self.holder = holder
        self.rows = dict(holder) if isinstance(holder, dict) else dict(enumerate(holder))

    def __eq__(self, other):
        rows = other.rows
        same = self.holder is other.holder and list(self.rows) == list(rows)
        return same and all(rows[key] is value for key, value in self.rows.items())

    __hash__ = None  # type: ignore[assignment]

    def restore(self):
        self.holder.clear()
        add = self.holder.update if isinstance(self.holder, dict) else self.holder.extend
        add(self.rows if isinstance(self.holder, dict) else self.rows.values())


class Settings:
    """The settings of this process, as they are now."""

    def __init__(self):
        self._variables = dict(os.environ)
        self._knobs = {name: dict(vars(group)) for name, group in groups().items()}
        self._code = _code()

    @functools.cached_property
    def changed(self):
        """[(name, value)] of what differs from how the worker began; None as the value of what is gone."""
        if self._is_as(_at_first[0]):
            return []
        before, now = _at_first[0]._all, self._all
        names = (name for name in sorted({*before, *now}) if not _same(before, now, name))
        return [(name, now.get(name)) for name in names]

    def _is_as(self, other):
        """Whether nothing differs: so it is for nearly every launch, and sooner told than what does."""
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
            found = now.get(place, _UNSET)
            if before is not (found.holder if isinstance(found, _Held) else found):
                _put(place, before)

    @functools.cached_property
    def _all(self):
        rows = {".".join(place): value for place, value in self._code.items()}
        rows |= self._read_variables
        for group, knobs in self._knobs.items():
            if group not in NEUTRAL_KNOBS:
                rows.update((f"knobs.{group}.{name}", value) for name, value in knobs.items())
        return rows


def of_every_launch():
    """{option: value} that the user of this side gives every launch."""
    return json.loads(os.environ.get(_LAUNCH_OPTIONS, "{}"))


def groups():
    """{name: group} of knobs. Triton has none before 3.4."""
    knobs = getattr(triton, "knobs", None)
    base = getattr(knobs, "base_knobs", ())
    return {name: group for name, group in vars(knobs).items() if isinstance(group, base)} if knobs else {}


def _code():
    """{place: value} of all that the modules which stages run in have, and their classes. A place is a
    module's name, a name there and, of a class, a name in it.
    """
    found: dict = {}
    for module_name, module in _modules.items():
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if name == "compile" or name.startswith("__"):  # `compile` is ours while launches are captured
                continue
            if not isinstance(value, types.ModuleType):
                found[module_name, name] = _held(value)
            if isinstance(value, type) and value.__module__ == module_name:
                rows = ((key, row) for key, row in vars(value).items() if key not in _OF_EACH_CLASS)
                found.update(((module_name, name, key), _held(row)) for key, row in rows)
    return found


def _held(value):
    return _Held(value) if isinstance(value, (dict, list)) else value


def identity(value):
    """Hashable, and equal for equal settings of this process."""
    if isinstance(value, _Held):
        return tuple((repr(key), id(row)) for key, row in value.rows.items())
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
    """What is set now is the toolchain's own, and known by its digest."""
    own = {row.compiler.__module__ for row in triton.backends.backends.values()}
    for name, module in list(sys.modules.items()):
        if name in own or name.startswith(BELOW_FRONTEND):
            _modules[name] = module
    _at_first[:] = [Settings()]
