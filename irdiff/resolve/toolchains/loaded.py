"""The files that make a toolchain what it is, each with its layer, from what its interpreter has loaded.

    triton/…             the whole package: a stage may load any of it later
    package:NAME/…       the whole package of a backend of another distribution, and
    distribution:NAME/…  whatever else that distribution installed
    module:NAME          every other module that was loaded, by the name that it was imported under
    python:NAME          the same for modules of the standard library
    library:NAME         every mapped file that holds code; `interpreter` for the interpreter itself
    startup:NAME         the lines of `.pth` files that are run
    set                  variables and knobs that importing all of it has set
    values               plain values that modules below the frontend hold then; below the frontend alone
    program:NAME         programs that a compilation runs from elsewhere, and what scripts among them name

Names do not hold the folder that anything lies in, so two installations of one release are one toolchain.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irdiff.resolve.toolchains import layers
from irdiff.resolve.toolchains.layers import COMMON, Layer, LayerKind
from irdiff.resolve.toolchains.proof import PythonFile

_SITE_FOLDERS = frozenset({"site-packages", "dist-packages"})


@dataclass(frozen=True, kw_only=True)
class CountedFile:
    name: str
    path: Path
    layer: Layer
    module: str | None
    """The name that it is, or would be, imported under. None for what is no Python source to read."""


class Loaded:
    """One reply of `identify`, read."""

    def __init__(self, reply: Mapping[str, Any]) -> None:
        self._reply = reply
        self._root = Path(reply["root"]).resolve()
        self._standard = {Path(folder).resolve() for folder in reply["stdlib"]}
        self._module_of = {_place(path): name for name, path in reply["modules"].items()}
        self._folders: dict[str, Path] = {}
        """The packages of backends that lie outside of Triton, by key."""
        self.used: dict[str, set[str]] = {}
        """By backend: the folders of `triton/backends` and the keys of packages that its class comes from."""
        for backend, part in reply["parts"].items():
            self.used[backend] = set(self._keys_of(backend, part))

    def _keys_of(self, backend: str, part: Mapping[str, Any]) -> Iterator[str]:
        for path in map(_place, part["files"]):
            if self._root in path.parents:
                yield from filter(None, [layers.layer_of(self._name_in_triton(path)).backend])
            elif not self._is_standard(path):
                folder = _package_of(path)
                self._folders[f"package:{folder.name}"] = folder
                yield f"package:{folder.name}"
        if part["distribution"]:
            yield f"distribution:{backend}"

    @property
    def targets(self) -> list[str]:
        """Names of the backends of targets that some backend can be told to support."""
        return sorted({name for part in self._reply["parts"].values() for name in part["targets"] or ()})

    @property
    def undeclared(self) -> list[str]:
        """Backends that do not show which targets they support."""
        return sorted(name for name, part in self._reply["parts"].items() if part["targets"] is None)

    def keys_for(self, target: str) -> set[str]:
        """Folders and packages of every backend that may support targets of this name."""
        rows = self._reply["parts"].items()
        taking = [name for name, part in rows if part["targets"] is None or target in part["targets"]]
        return set().union(*(self.used[name] for name in taking))

    @property
    def startup(self) -> list[tuple[str, Any]]:
        """What was run or set beside the files."""
        lines = [(f"startup:{name}", lines) for name, lines in self._reply["startup"]]
        return [*lines, *([("set", self._reply["set"])] if self._reply["set"] else [])]

    @property
    def held(self) -> list[str]:
        """Where modules below the frontend hold functions or objects of the frontend, or of launchers, that
        they do not import themselves: something that was imported has put them there.
        """
        found = []
        for module, name, path in self._reply["held"]:
            place, given = _place(path), self._reply["modules"].get(module)
            own = _place(given) if given else None  # a part of a library has no file
            if self._is_above(place) and not (own and (self._is_above(own) or _imports(own, name))):
                found.append(f"{module} holds something of {self._name_in_triton(place)}")
        return sorted(set(found))

    def values_below(self, target: str) -> list[tuple[str, str, str]]:
        """What modules that take part in compiling for such targets hold of plain values, which any file may
        have set: those of modules without a file, which are parts of libraries, do not count.
        """
        keys, found = self.keys_for(target), []
        for module, place, value in self._reply["values"]:
            given = self._reply["modules"].get(module)
            layer = self._layer_of(_place(given)) if given else None
            own = layer is not None and layer.kind is LayerKind.BACKEND and layer.backend in keys
            if layer == COMMON or own:
                found.append((module, place, value))
        return found

    def _layer_of(self, path: Path) -> Layer:
        if self._root not in path.parents:
            keys = (key for key, folder in self._folders.items() if folder in (path, *path.parents))
            return next((Layer(kind=LayerKind.BACKEND, backend=key) for key in keys), COMMON)
        return layers.layer_of(self._name_in_triton(path))

    def _is_above(self, path: Path) -> bool:
        """Whether a file of Triton is of the frontend, or of a launcher."""
        return self._layer_of(path).kind in (LayerKind.FRONTEND, LayerKind.LAUNCHER)

    @functools.cached_property
    def files(self) -> list[CountedFile]:
        """Every file that counts, the interpreter's included."""
        own = [*self._triton_files(), *self._backend_files()]
        held = {file.path for file in own}
        found = [*own, *self._modules(held), *self._libraries(held)]
        for label, path in self._reply["programs"].items():
            if _place(path) not in held:
                found.append(_file(f"program:{label}", Path(path)))
        return found

    def _triton_files(self) -> Iterator[CountedFile]:
        mapped = {Path(path) for path in self._reply["libraries"]}
        known = set().union(*self.used.values()) if self.used else set()
        for path in _walk(self._root):
            name = self._name_in_triton(path)
            layer = layers.layer_of(name)
            is_mapped = ".so" in path.name and path.resolve() in mapped
            if is_mapped or (layer.backend and layer.backend not in known):
                layer = COMMON  # loaded before any target is known, or no backend's own
            yield CountedFile(name=name, path=path, layer=layer, module=_module_name(name))

    def _backend_files(self) -> Iterator[CountedFile]:
        drivers = {_place(path) for part in self._reply["parts"].values() for path in part["driver"]}
        for key, folder in sorted(self._folders.items()):
            for path in _walk(folder):
                kind = LayerKind.LAUNCHER if path in drivers else LayerKind.BACKEND
                inside = f"{folder.name}/{path.relative_to(folder)}" if path != folder else folder.name
                yield CountedFile(
                    name=f"{key.partition(':')[0]}:{inside}",
                    path=path,
                    layer=Layer(kind=kind, backend=key),
                    module=self._module_of.get(path, _module_name(inside)),
                )
        for backend, part in sorted(self._reply["parts"].items()):
            layer = Layer(kind=LayerKind.BACKEND, backend=f"distribution:{backend}")
            for path in map(_place, part["distribution"]):
                if not any(folder in (path, *path.parents) for folder in self._folders.values()):
                    name = f"distribution:{backend}/{path.parent.name}/{path.name}"
                    module = self._module_of.get(path) if path.suffix == ".py" else None
                    yield CountedFile(name=name, path=path, layer=layer, module=module)

    def _modules(self, held: set[Path]) -> Iterator[CountedFile]:
        for name, given in sorted(self._reply["modules"].items()):
            path = _place(given)
            if path in held:
                continue
            if self._is_standard(path):
                yield _file(f"python:{name}", path)
                continue
            suffix = "/__init__.py" if path.name == "__init__.py" else path.suffix
            module = name if path.suffix == ".py" else None
            yield replace(_file(f"module:{name}{suffix}", path), module=module)

    def _libraries(self, held: set[Path]) -> Iterator[CountedFile]:
        resolved = {path.resolve() for path in held if ".so" in path.name}
        interpreter = Path(self._reply["executable"])
        yield _file("interpreter", interpreter)
        for path in map(Path, self._reply["libraries"]):
            if path != interpreter and path not in resolved:
                yield _file(f"library:{path.name}", path)

    def _name_in_triton(self, path: Path) -> str:
        return f"triton/{str(path)[len(str(self._root)) + 1 :]}"

    def _is_standard(self, path: Path) -> bool:
        return _SITE_FOLDERS.isdisjoint(path.parts) and not self._standard.isdisjoint(path.parents)


def python_files(files: Iterable[CountedFile]) -> list[PythonFile]:
    return [PythonFile(name=file.name, module=file.module) for file in files if file.module]


def _file(name: str, path: Path) -> CountedFile:
    return CountedFile(name=name, path=path, layer=COMMON, module=None)


def _place(path: str) -> Path:
    """Where a file lies, its own link not followed: an overlaid package is a folder of links."""
    folder, name = os.path.split(path)
    return Path(_resolved(folder), name)


_resolved = functools.lru_cache(maxsize=1024)(os.path.realpath)


def _imports(path: Path, name: str) -> bool:
    """Whether a file's own line of imports has a name: what that leads to is proved, or not, by `proof`."""
    if not name:
        return False
    line = rf"^\s*from [^\n]*\bimport\b[^\n]*\b{re.escape(name)}\b"
    return re.search(line, path.read_text(encoding="utf-8", errors="replace"), re.M) is not None


def _package_of(path: Path) -> Path:
    """The outermost package that a file is in, or the file itself."""
    folder = path
    while (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _module_name(name: str) -> str | None:
    if not name.endswith(".py"):
        return None
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _walk(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    for folder, folders, names in os.walk(place, followlinks=True):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if not name.endswith((".pyc", ".pyo")):
                yield Path(folder, name)
