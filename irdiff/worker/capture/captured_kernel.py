"""The kernel that `triton.compile` returns during capture. Launching it records the driver's arguments,
converted as the C launchers of Triton's drivers do (`backends/*/driver.py`, releases 3.2 to 3.9), so that the
same values raise errors.
"""

from __future__ import annotations

import operator
import sys
import types

from .. import storages
from . import noted

_LARGEST_GRID = (1 << 31) - 1
_BITS = {"i1": 8, "u1": 8}
"""C types of launchers whose width differs from that of Triton's type."""


class CapturedKernel:
    """Has the attributes of a `CompiledKernel` that programs use. Figures of the machine code are made up,
    with a caveat.
    """

    def __init__(self, reached, record):
        self.reached, self._record = reached, record
        self.src, self.hash, self.module = reached.src, "irdiff", None
        self.function, self.packed_metadata = _Handle(self), _Handle(self)
        self.name = reached.src.name if reached.function is None else reached.function.fn.__name__
        self.asm = _Asm(reached)
        self.metadata = _Metadata(
            {**(reached.options or {}), "name": self.name, "target": reached.target, "hash": self.hash}
        )

    n_regs = property(lambda self: _made_up("n_regs", 32))
    n_spills = property(lambda self: _made_up("n_spills", 0))
    n_max_threads = property(lambda self: _made_up("n_max_threads", 1024))
    kernel = property(lambda self: _made_up("kernel", b""))

    def _init_handles(self):
        """Does nothing, as for a kernel that is loaded already."""

    def launch_metadata(self, grid, stream, *args):
        import triton.compiler.compiler as compiler

        if _enter_hook() is None:
            return None
        metadata = compiler.LazyDict({"name": self.name, "function": self.function, "stream": stream})
        describe = getattr(self.reached.function, "launch_metadata", None)
        if describe is not None:
            by_name = dict(zip(self.src.fn.arg_names, args))
            metadata.add(describe, (grid, self.metadata, by_name))
        return metadata

    @property
    def run(self):
        return self._launch

    def __getitem__(self, grid):
        from triton.runtime import driver

        def runner(*args, stream=None):
            queue = stream
            if queue is None:
                queue = driver.active.get_current_stream(driver.active.get_current_device())
            metadata = self.launch_metadata(grid, queue, *args)
            hooks = _enter_hook(), _exit_hook()
            self.run(
                grid[0], grid[1], grid[2], queue, self.function, self.packed_metadata, metadata, *hooks, *args
            )

        return runner

    def _launch(self, *driver_arguments):
        *dimensions, stream, function, packed, metadata, enter_hook, exit_hook = driver_arguments[:9]
        grid = [_dimension(number) for number in dimensions]
        launched = function.kernel if isinstance(function, _Handle) else self
        unseen = list(_unseen(launched, function, packed))
        bound = _bound(self.src, driver_arguments[9:])
        signature = {str(name): kind for name, kind in self.src.signature.items()}
        for name, value in bound.items():
            _check(name, signature.get(name), value)
        if enter_hook is not None:
            enter_hook(metadata)
        if launched is not self:
            bound = _bound(launched.src, driver_arguments[9:])
        self._record(launched, bound, grid, stream, unseen)
        if exit_hook is not None:
            exit_hook(metadata)


def _unseen(launched, function, packed):
    """Yields what irdiff cannot read of a launch (`intercept.Captured.unseen`)."""
    if not isinstance(function, _Handle):
        yield f"the program launches {type(function).__name__} as the handle of a kernel"
    if not isinstance(packed, _Handle) or packed.kernel is not launched:
        yield "the program launches with metadata that are not the kernel's own"
    if not _are_launchers_own():
        yield "the program launches with a launcher that is not Triton's own"


class _Handle:
    """The driver's handle of a kernel, and the packed metadata for its launcher."""

    def __init__(self, kernel):
        self.kernel = kernel


def _launchers():
    """Lists (module's names, name there, class, its attributes) for each of Triton's drivers."""
    backends = getattr(sys.modules.get("triton.backends"), "backends", {})
    drivers = [getattr(backend, "driver", object) for backend in backends.values()]
    modules = [getattr(vars(driver).get("__init__"), "__globals__", {}) for driver in drivers]
    return [
        (names, name, value, dict(vars(value)))
        for names in modules
        for name, value in names.items()
        if isinstance(value, type) and name.endswith("Launcher")
    ]


_LAUNCHERS = _launchers()
"""The launchers before any program runs."""


def _are_launchers_own():
    return all(
        names.get(name) is value and vars(value) == attributes
        for names, name, value, attributes in _LAUNCHERS
    )


class _Asm(dict):
    """Texts by stage. A recorded test gets the texts of this side's compiler."""

    def __init__(self, reached):
        super().__init__()
        self._reached = reached

    def __missing__(self, stage):
        text = None if noted.compiled_text is None else noted.compiled_text(self._reached, stage)
        return _made_up(f"asm[{stage!r}]", "") if text is None else text

    def get(self, stage, default=None):
        return self[stage]

    def __contains__(self, stage):
        return bool(self[stage])

    def __iter__(self):
        return iter(_made_up("the stages of asm", ()))

    def keys(self):
        return list(self)

    def items(self):
        return list(self)

    def values(self):
        return list(self)


class _Metadata(types.SimpleNamespace):
    """Options by name. Values that only compiled code has are made up."""

    def __init__(self, options):
        super().__init__(**{name: value for name, value in options.items() if isinstance(name, str)})

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _made_up(f"metadata.{name}", 0)

    def _asdict(self):
        return dict(vars(self))


def _made_up(name, answer):
    noted.caveat(f"asks a kernel that is not compiled for {name}: {answer!r} is made up")
    return answer


def _enter_hook():
    return _hook("launch_enter_hook")


def _exit_hook():
    return _hook("launch_exit_hook")


def _hook(name):
    """Hooks are knobs since 3.5; before, attributes of the class of compiled kernels."""
    import triton

    owner = getattr(getattr(triton, "knobs", None), "runtime", None)
    owner = owner or getattr(triton.compiler, "CompiledKernel", None)
    return getattr(owner, name, None)


def _dimension(number):
    """Raises TypeError for a float, and OverflowError, as C's `int` does."""
    number = operator.index(number)
    if not -_LARGEST_GRID <= number <= _LARGEST_GRID:
        raise OverflowError("signed integer is greater than maximum")
    return number


def _bound(src, args):
    """Maps arguments by name: all parameters, or only those that are no constants (before 3.3, and in direct
    calls). Kernels in IR form number their arguments.
    """
    function = getattr(src, "fn", None)
    names = list(src.signature) if function is None else list(function.arg_names)
    if function is not None and len(args) != len(names):
        constants = {parameter.name for parameter in function.params if parameter.is_constexpr}
        names = [name for name in names if name not in constants]
    if len(args) != len(names):
        raise TypeError(f"{src.name} takes {len(names)} arguments at its launch, {len(args)} were given")
    return dict(zip(names, args))


def _check(name, kind, value):
    """Raises a launcher's error for a value of another type than the kernel was compiled for."""
    if isinstance(kind, (tuple, list)):
        for number, item in enumerate(kind):
            _check(f"{name}.{number}", item, value[number])
    elif not isinstance(kind, str) or kind == "constexpr":
        return
    elif kind.startswith("*"):
        _check_pointer(name, value)
    elif kind[0] in "iu" and kind[1:].isdigit():
        bits, number = _BITS.get(kind, int(kind[1:])), operator.index(value)
        least = -(1 << bits - 1) if kind[0] == "i" else 0
        if not least <= number < least + (1 << bits):
            raise OverflowError(f"argument {name}: {number} is no {kind}")
    elif kind.startswith(("fp", "bf")):
        float(value)


def _check_pointer(name, value):
    if value is None or isinstance(value, int):
        return
    if not hasattr(value, "data_ptr"):
        raise TypeError(f"argument {name}: Pointer argument must be either uint64 or have data_ptr method")
    if not isinstance(value.data_ptr(), int):
        raise TypeError(f"argument {name}: data_ptr method of Pointer object must return 64-bit int")
    if storages.place_of(value).origin.device == "cpu":
        raise ValueError(f"argument {name}: Pointer argument cannot be accessed from Triton (cpu tensor?)")
