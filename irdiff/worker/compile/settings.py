"""Settings that a program gives the compiler outside of launch options: variables, knobs, replaced functions.

The stages read them at any time, so a launch keeps what its workload had changed by then, and its child
compiles under exactly that. A replaced function or object has no digest: such a launch is compiled each time.

Kept are the variables of Python and of C, the knobs, all members of the modules that stages run in, with the
code of functions, and the functions and classes of the modules that these use (`subprocess`, `re`).
"""

from __future__ import annotations

import ctypes
import functools
import json
import operator
import os
import sys
import types

import triton

_LAUNCH_OPTIONS = "IRDIFF_LAUNCH_OPTIONS"
"""Options for every launch of this side, as JSON. They are in each launch's own options."""
_NEUTRAL_VARIABLES = frozenset(
    {"HOME", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TORCHINDUCTOR_CACHE_DIR"}
    | {"TRITON_CACHE_DIR", "TRITON_DUMP_DIR", "TRITON_HOME", _LAUNCH_OPTIONS}
    | {"COLUMNS", "LINES"}
)
"""They say where things are kept, and compilations here are kept nowhere; or how large the terminal is, which
readline sets for C wherever it is imported, as pytest does.
"""
NEUTRAL_KNOBS = frozenset({"autotuning", "build", "cache", "proton", "redis"})
"""Groups of knobs that no stage reads: how autotuners measure, launchers are built, and results are kept."""
BELOW_FRONTEND = ("triton.backends.", "triton.compiler.", "triton._", "triton.knobs")
"""Prefixes of the names of the modules that stages run in."""
_FRONTEND = "triton.compiler.code_generator"
"""Its output is the IR, which is digested: the modules that it uses count only if a stage uses them, too.
Torch replaces a function of `inspect` whenever it is imported.
"""
_REPORTERS = frozenset(
    {("sys", "excepthook"), ("sys", "unraisablehook"), ("threading", "excepthook")}
    | {("warnings", "showwarning"), ("warnings", "_showwarnmsg_impl")}
)
"""Functions that only show an error or a warning: no stage sees what they do. Test runners replace them, and
`warnings.catch_warnings` does.
"""
_OF_EACH_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")
_CODE_OF = operator.attrgetter(*_OF_EACH_FUNCTION)
_OF_EACH_CLASS = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__"}
    | {"__slotnames__"}  # which `copy` leaves behind
    | {"_torch_available"}  # of AMD's backend: its frontend asks at the first launch, and keeps the answer
)
_UNSET = object()


def _is_neutral(name):
    """A test runner's own variables name the test that runs."""
    return name in _NEUTRAL_VARIABLES or name.startswith("PYTEST_")


class _Held:
    """Compares a dict, a list or the attributes of an object by the identity and order of what they hold."""

    def __init__(self, owner):
        self.owner = owner
        holder = self._holder
        self.items = dict(holder) if isinstance(holder, dict) else dict(enumerate(holder))

    @property
    def _holder(self):
        return self.owner if isinstance(self.owner, (dict, list)) else vars(self.owner)

    def __eq__(self, other):
        return self.owner is other.owner and _are_same_objects(self.items, other.items)

    __hash__ = None  # type: ignore[assignment]

    def restore(self):
        holder = self._holder
        holder.clear()
        add = holder.update if isinstance(holder, dict) else holder.extend
        add(self.items if isinstance(holder, dict) else self.items.values())


class _Code:
    """The members of the modules that stages run in and of their classes, and of the functions and classes of
    the modules that these use. A place is a module's name, a name there and, for a class, a name in it; for a
    function, last, a name of `_OF_EACH_FUNCTION`.

    Objects that were there at the start are looked at one after another, at every launch: a few thousand.
    """

    def __init__(self, modules, used_modules):
        self._modules, self._used_modules = {**used_modules, **modules}, used_modules
        self._members: dict = {}
        """{place of a module or class: (it, its members at the start)}"""
        for name, module in self._modules.items():
            classes = {
                key: value
                for key, value in getattr(module, "__dict__", {}).items()
                if isinstance(value, type) and value.__module__ == name
            }
            self._members[name,] = module, dict(getattr(module, "__dict__", {}))
            self._members.update({(name, key): (value, dict(vars(value))) for key, value in classes.items()})
        of_stages = [
            (place, name, value)
            for place, (_, members) in self._members.items()
            for name, value in members.items()
            if self._is_compared(place, name, value)
        ]
        self._held = {(*place, name): _Held(value) for place, name, value in of_stages if _is_holder(value)}
        self._functions = {
            (*place, name): value for place, name, value in of_stages if isinstance(value, types.FunctionType)
        }
        self._codes = list(map(_CODE_OF, self._functions.values()))

    def _is_compared(self, place, name, value):
        if len(place) > 1:
            is_compared = name not in _OF_EACH_CLASS
        else:  # `compile` is ours while launches are captured
            is_compared = not name.startswith("__") and name != "compile"
        if place[0] in self._used_modules:
            return is_compared and callable(value) and (*place, name) not in _REPORTERS
        return is_compared and not isinstance(value, types.ModuleType)

    def changes(self):
        """Returns {place: value} of what differs from the start; the value is _UNSET if it was removed."""
        changes = {}
        for place, (owner, before) in self._members.items():
            now = getattr(owner, "__dict__", {})
            if not _are_same_objects(before, now):
                changes.update(self._changes_of(place, before, now))
        for place, held in self._held.items():
            now_held = _Held(held.owner)
            if now_held != held:
                changes.setdefault(place, now_held)
        codes = list(map(_CODE_OF, self._functions.values()))
        if codes != self._codes:
            for place, before, now in zip(self._functions, self._codes, codes):
                names = zip(_OF_EACH_FUNCTION, before, now)
                changes.update(((*place, name), value) for name, first, value in names if first != value)
        return changes

    def _changes_of(self, place, before, now):
        for name in {*before, *now}:
            value, first = now.get(name, _UNSET), before.get(name, _UNSET)
            if _same(first, value):
                continue
            if self._is_compared(place, name, first if value is _UNSET else value):
                yield (*place, name), _Held(value) if _is_holder(value) else value
                if isinstance(value, type) and value.__module__ == place[0]:
                    members = ((key, vars(value)[key]) for key in vars(value).keys() - _OF_EACH_CLASS)
                    for key, member in members:
                        yield (*place, name, key), _Held(member) if _is_holder(member) else member

    def restore(self, changes):
        now = self.changes()
        for place in sorted({*now, *changes}, key=len):  # a class before what it has
            value = changes[place] if place in changes else self._value_at_first(place)
            if isinstance(value, _Held):
                value.restore()
                value = value.owner
            self._put(place, value)

    def _value_at_first(self, place):
        if place in self._held:
            return self._held[place]
        if place[:-1] in self._functions and place[-1] in _OF_EACH_FUNCTION:
            code = self._codes[list(self._functions).index(place[:-1])]
            return code[_OF_EACH_FUNCTION.index(place[-1])]
        _, members = self._members.get(place[:-1], (None, {}))
        return members.get(place[-1], _UNSET)

    def _put(self, place, value):
        owner = self._modules[place[0]]
        for name in place[1:-1]:
            owner = getattr(owner, name, None)
        current = getattr(owner, "__dict__", {}).get(place[-1], _UNSET)
        if owner is None or value is current:  # or it went with its class
            return
        if value is not _UNSET:
            setattr(owner, place[-1], value)
        elif current is not _UNSET:
            delattr(owner, place[-1])


_code: _Code = _Code({}, {})
_at_first: list = []


def variables_of_c():
    """Includes variables that were set without Python: C++ reads these too."""
    entries, variables, number = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), {}, 0
    while entries[number] is not None:
        name, _, value = os.fsdecode(entries[number]).partition("=")
        variables[name], number = value, number + 1
    return variables


class Settings:
    def __init__(self):
        self._variables = dict(os.environ)
        self._variables_of_c = variables_of_c()
        self._knobs = {name: dict(vars(group)) for name, group in groups().items()}
        self._changes = _code.changes()

    @functools.cached_property
    def changed(self):
        """[(name, value)] of what differs from the worker's start; the value is None if it was removed."""
        before, now = _at_first[0]._values, self._values
        names = (
            name for name in {*before, *now} if not _same(before.get(name, _UNSET), now.get(name, _UNSET))
        )
        changed = {name: now.get(name) for name in names}
        places = self._changes.items()
        changed |= {".".join(place): None if value is _UNSET else value for place, value in places}
        return sorted(changed.items(), key=lambda item: item[0])

    @functools.cached_property
    def _values(self):
        """Variables and knobs."""
        of_c = self._variables_of_c
        values = {name: value for name, value in self._variables.items() if not _is_neutral(name)}
        for name in of_c.keys() | values.keys():
            if of_c.get(name) != self._variables.get(name) and not _is_neutral(name):
                values[f"getenv({name})"] = of_c.get(name)
        for group, knobs in self._knobs.items():
            if group not in NEUTRAL_KNOBS:
                values.update((f"knobs.{group}.{name}", value) for name, value in knobs.items())
        return values

    def restore(self):
        os.environ.clear()
        os.environ.update(self._variables)
        for name in variables_of_c().keys() - self._variables_of_c.keys():
            os.unsetenv(name)
        for name, value in self._variables_of_c.items() - os.environ.items():
            os.putenv(name, value)
        for name, group in groups().items():
            vars(group).clear()
            vars(group).update(self._knobs.get(name, {}))
        _code.restore(self._changes)


def of_every_launch():
    """Returns {option: value} that the user of this side gives every launch."""
    return json.loads(os.environ.get(_LAUNCH_OPTIONS, "{}"))


def groups():
    """Returns {name: group} of knobs. Triton has none before 3.4."""
    knobs = getattr(triton, "knobs", None)
    base = getattr(knobs, "base_knobs", ())
    return {name: group for name, group in vars(knobs).items() if isinstance(group, base)} if knobs else {}


def _is_holder(value):
    """A knob is a descriptor, an object of Triton's own, in the class of its group. Groups are looked at by
    `groups`.
    """
    if isinstance(value, (dict, list)):
        return True
    owner = type(value).__module__
    is_own = owner.startswith(BELOW_FRONTEND) and not owner.startswith("triton._C.")
    groups = getattr(getattr(triton, "knobs", None), "base_knobs", ())
    return is_own and isinstance(getattr(value, "__dict__", None), dict) and not isinstance(value, groups)


def _are_same_objects(one, other):
    return (
        len(one) == len(other)
        and all(map(operator.is_, one.values(), other.values()))
        and list(one) == list(other)
    )


def identity(value):
    """Returns a hashable value that is equal for equal settings of this process."""
    if isinstance(value, _Held):
        return tuple((repr(key), id(item)) for key, item in value.items.items())
    return value if isinstance(value, (str, int, bool)) else id(value)


def _same(before, now):
    return before is now or (
        type(before) is type(now) and isinstance(before, (str, int, bool, _Held)) and before == now
    )


def begin():
    """Takes the current settings as the toolchain's own, which its digest covers."""
    global _code
    own = {backend.compiler.__module__ for backend in triton.backends.backends.values()}
    modules = {
        name: module
        for name, module in list(sys.modules.items())
        if name in own or name.startswith(BELOW_FRONTEND)
    }
    used_modules = {}
    for module in (module for name, module in modules.items() if name != _FRONTEND):
        for value in list(getattr(module, "__dict__", {}).values()):
            if isinstance(value, types.ModuleType) and not value.__name__.startswith("triton"):
                used_modules[value.__name__] = value
    _code = _Code(modules, used_modules)
    _at_first[:] = [Settings()]
