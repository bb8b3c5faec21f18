"""What a process that has imported Triton is made of: the reply of `identify`.

It is what was loaded, not what is installed: a package that only lies beside Triton is no part of it, and a
module that a `.pth` file or `sitecustomize` brought in is.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
import sysconfig
from types import SimpleNamespace

_ASSEMBLERS = ("ptxas", "ptxas_blackwell")


def describe(triton, modules, maps):
    """`sys.modules` and `/proc/self/maps`, both from before irdiff's own modules brought in more."""
    return {
        "modules": _module_files(modules),
        "libraries": _libraries(maps),
        "executable": os.path.realpath("/proc/self/exe"),
        "stdlib": sorted({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}),
        "startup": _startup_lines(),
        "parts": {name: _part(name, row) for name, row in triton.backends.backends.items()},
        "programs": _programs(triton),
    }


def _module_files(modules):
    found = {}
    for name, module in list(modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and name != "__main__":
            found[name] = _existing(path)
    return found


def _existing(path):
    """The file itself, or the archive from which it was imported."""
    path = os.path.abspath(path)
    while path != os.path.dirname(path) and not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _libraries(maps):
    """The files whose code is mapped into this process."""
    rows = (line.split(None, 5) for line in maps.splitlines())
    return sorted({row[5] for row in rows if len(row) == 6 and "x" in row[1] and row[5].startswith("/")})


def _startup_lines():
    """[name, lines that are run] of the `.pth` files. Lines that name folders show in what is loaded."""
    found = []
    for folder in sys.path:
        for name in sorted(os.listdir(folder) if os.path.isdir(folder) else ()):
            if name.endswith(".pth"):
                with open(os.path.join(folder, name), errors="replace") as file:
                    lines = [line.rstrip("\n") for line in file if re.match(r"import[ \t]", line)]
                if lines:
                    found.append([name, lines])
    return found


def _part(name, backend):
    """Where one backend comes from: all that its class is made of, and its distribution."""
    entry = next((point for point in _entry_points() if point.name == name), None)
    places = {place for owner in backend.compiler.__mro__ for place in _places_of(owner)}
    driver = set(_places_of(backend.driver)) - places if hasattr(backend, "driver") else set()
    modules = [entry.value, entry.value + ".compiler"] if entry else []
    for module in modules:
        places.add(getattr(sys.modules.get(module), "__file__", None))
    return {
        "targets": _names_of_targets(backend.compiler),
        "files": sorted(os.path.abspath(place) for place in places if place),
        "driver": sorted(os.path.abspath(place) for place in driver if place),
        "distribution": _distribution_files(entry),
    }


def _entry_points():
    points = importlib.metadata.entry_points()
    if hasattr(points, "select"):
        return list(points.select(group="triton.backends"))
    return list(points.get("triton.backends", ()))


def _places_of(owner):
    """Files that a class, and the functions that it holds, were written in."""
    module = sys.modules.get(owner.__module__)
    yield getattr(module, "__file__", None)
    if getattr(module, "__name__", "") == "builtins":
        return
    for value in vars(owner).values():
        function = getattr(value, "__func__", getattr(value, "fget", value))
        while function is not None:
            code = getattr(function, "__code__", None)
            if code is not None:
                yield code.co_filename if os.path.isfile(code.co_filename) else None
            function = getattr(function, "__wrapped__", None)


class _AskedFor:
    """Stands in for the name of a target's backend: equal to nothing, and knows what it was compared with."""

    def __init__(self):
        self.names = set()

    def __eq__(self, other):
        self.names.add(other)
        return False

    def _refuse(self, *_):
        raise TypeError

    __hash__ = __str__ = __repr__ = __format__ = __bool__ = _refuse


def _names_of_targets(compiler):
    """Names of the backends of targets that a class can support; None where its code does not show it.

    A class that says no to a name which equals none of those that it compares with says no to every other
    such name. Whatever else it looks at raises, and so does anything that is done with the name.
    """
    asked = _AskedFor()
    try:
        supported = compiler.supports_target(SimpleNamespace(backend=asked))
    except Exception:
        return None
    names = asked.names
    known = not supported and names and all(type(name) is str for name in names)
    return sorted(names) if known else None


def _distribution_files(entry):
    """What the distribution of an entry point installed below its own folder of packages."""
    distribution = getattr(entry, "dist", None)
    if distribution is None or entry.value.partition(".")[0] == "triton":
        return []  # the whole of Triton counts
    names = [str(name) for name in distribution.files or ()]
    wanted = (name for name in names if ".." not in name and ".dist-info" not in name)
    return sorted(str(distribution.locate_file(name)) for name in wanted if not name.endswith(".pyc"))


def _programs(triton):
    """Label → path of programs that this Triton would run for a compilation, as it finds them here."""
    found = {}
    for name in _ASSEMBLERS:
        try:
            found[name] = getattr(triton.knobs.nvidia, name).path
        except Exception:  # an older release, or no such program: that is for the cases to find
            continue
    for name, backend in triton.backends.backends.items():
        try:
            found[f"{name} linker"] = os.fspath(backend.compiler.path_to_rocm_lld())
        except Exception:  # releases since 3.5 link without a program
            continue
    for name, value in os.environ.items():
        if name.startswith("TRITON_") and os.path.isfile(value):
            found[name] = value
    return {label: os.path.abspath(path) for label, path in found.items() if os.path.isfile(path)}
