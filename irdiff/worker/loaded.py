"""Lists the files that identify a toolchain, from what this process has loaded, each under a name of its own.

    triton/…             every file of the package: a stage may load any of them later
    package:NAME/…       the same for a backend of another distribution
    distribution:NAME/…  other files that this distribution installed
    module:NAME          every other module that was imported from outside of the standard library
    library:NAME         every mapped file that holds code
    interpreter          the interpreter
    program:NAME         a program outside of Triton that a compilation would run
    record:torch         what was installed as torch: workloads may load it into the process

A name holds no installation folder: two installations of one release are one toolchain. Imported modules
count, not installed ones. So a package that lies next to Triton is no part of the toolchain, and a module
that a `.pth` file or `sitecustomize` loads is.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import re
import sys
import sysconfig

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
"""This module stays at the top of the worker's folder."""
_SITE_FOLDERS = {"site-packages", "dist-packages"}


def describe(triton, modules, maps):
    """Returns the reply of `identify`. `modules` (`sys.modules`) and `maps` (the text of `/proc/self/maps`)
    are from before irdiff's own modules were imported.
    """
    root = os.path.dirname(os.path.abspath(triton.__file__))
    files, programs = _Files(), _programs(triton)
    files.add_folder("triton", root)
    for name, backend in triton.backends.backends.items():
        module = sys.modules.get(backend.compiler.__module__)
        place = _place(getattr(module, "__file__", None) or root)
        if not place.startswith(os.path.realpath(root) + os.sep):
            package = _package_of(place)
            files.add_folder(f"package:{os.path.basename(package)}", package)
            files.add_distribution(name)
    for name, module in sorted(modules.items()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and name != "__main__" and not is_standard(path):
            file = os.path.basename(path)
            end = f"/{file}" if file == "__init__.py" else os.path.splitext(file)[1]
            files.add(f"module:{name}{end}", _existing(path))
    files.add("interpreter", os.path.realpath("/proc/self/exe"))
    for path in _libraries(maps):
        files.add_library(path)
    for label, path in programs.items():
        files.add(f"program:{label}", path)
    files.add_record("torch")
    return {
        "triton": triton.__version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "backends": sorted(triton.backends.backends),
        "root": root,
        "files": files.by_name,
        "startup": _startup_lines(),
        "switches": [f"-O{sys.flags.optimize}"] * bool(sys.flags.optimize) + _x_options() + sys.warnoptions,
        "programs": sorted({*programs.values(), *_executables(root)}),
    }


class _Files:
    def __init__(self):
        self.by_name: dict = {}
        self._places: set = set()
        self._targets: set = set()

    def add(self, name, path):
        """Keeps the first name of a file. Another file of the same name (a library) gets a longer one."""
        place = _place(path)
        if place not in self._places:
            while name in self.by_name:
                name += "+"
            self._places.add(place)
            self._targets.add(os.path.realpath(path))
            self.by_name[name] = path

    def add_folder(self, name, folder):
        """Names every file of a package, or the module itself if it is no package."""
        if os.path.isfile(folder):
            self.add(name, folder)
        for place, folders, names in os.walk(folder, followlinks=True):
            folders[:] = sorted(entry for entry in folders if entry != "__pycache__")
            for entry in sorted(names):
                if not entry.endswith((".pyc", ".pyo")):
                    path = os.path.join(place, entry)
                    self.add(f"{name}/{os.path.relpath(path, folder)}", path)

    def add_distribution(self, backend):
        points = importlib.metadata.entry_points()
        group = "triton.backends"
        entry_points = points.select(group=group) if hasattr(points, "select") else points.get(group, ())
        for point in entry_points:
            distribution = getattr(point, "dist", None)
            if point.name == backend and distribution is not None:
                for installed_name in sorted(map(str, distribution.files or ())):
                    if (
                        ".." not in installed_name
                        and ".dist-info" not in installed_name
                        and not installed_name.endswith(".pyc")
                    ):
                        self.add(
                            f"distribution:{backend}/{installed_name}",
                            str(distribution.locate_file(installed_name)),
                        )

    def add_record(self, name):
        """The record of a package has the digests of its files."""
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            return
        for installed_file in distribution.files or ():
            if installed_file.name == "RECORD":
                self.add(f"record:{name}", str(distribution.locate_file(installed_file)))

    def add_library(self, path):
        """Skips a file that has a name under another path (a link)."""
        if os.path.realpath(path) not in self._targets:
            self.add(f"library:{os.path.basename(path)}", path)


def _x_options():
    return [f"-X{name}={value}" for name, value in sorted(sys._xoptions.items())]


def _place(path):
    """Follows links of folders, but not of the file itself: the package of a revision is a folder of
    links.
    """
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _package_of(place):
    """Returns the outermost package around a file, or the file itself."""
    while os.path.isfile(os.path.join(os.path.dirname(place), "__init__.py")):
        place = os.path.dirname(place)
    return place


def is_standard(path):
    place = _place(path)
    inside = any(place.startswith(folder + os.sep) for folder in _standard_folders())
    return inside and not is_installed(place)


@functools.lru_cache
def _standard_folders():
    return {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


def is_installed(path):
    return not _SITE_FOLDERS.isdisjoint(path.split(os.sep))


def _existing(path):
    """Returns the file itself, or the archive that it was imported from."""
    path = os.path.abspath(path)
    while path != os.path.dirname(path) and not os.path.exists(path):
        path = os.path.dirname(path)
    return path


def _libraries(maps):
    mappings = (line.split(None, 5) for line in maps.splitlines())
    return sorted(
        {
            fields[5]
            for fields in mappings
            if len(fields) == 6 and "x" in fields[1] and fields[5].startswith("/")
        }
    )


def _startup_lines():
    """Lists [name, executed lines] of the `.pth` files; other lines name folders."""
    startup_lines = []
    for folder in filter(os.path.isdir, sys.path):
        for name in sorted(name for name in os.listdir(folder) if name.endswith(".pth")):
            with open(os.path.join(folder, name), errors="replace") as file:
                lines = [line.rstrip("\n") for line in file if re.match(r"import[ \t]", line)]
            startup_lines += [[name, lines]] if lines else []
    return startup_lines


def _executables(root):
    """Wheels mark files outside of `bin` as executable too."""
    for folder, _, names in os.walk(os.path.join(root, "backends"), followlinks=True):
        for name in names if os.path.basename(folder) == "bin" else ():
            path = os.path.join(folder, name)
            if ".so" not in name and os.access(path, os.X_OK):
                yield path


def _programs(triton):
    """Returns {label: path} of the programs that this Triton would run for a compilation."""
    paths = {name: value for name, value in os.environ.items() if name.startswith("TRITON_")}
    # an older release, or no such program: that is for the cases to find
    for name in ("ptxas", "ptxas_blackwell"):
        with contextlib.suppress(Exception):
            paths[name] = getattr(triton.knobs.nvidia, name).path
    for name, backend in triton.backends.backends.items():
        with contextlib.suppress(Exception):  # releases since 3.5 link without a program
            paths[f"{name} linker"] = os.fspath(backend.compiler.path_to_rocm_lld())
    return {label: os.path.abspath(path) for label, path in paths.items() if os.path.isfile(path)}
