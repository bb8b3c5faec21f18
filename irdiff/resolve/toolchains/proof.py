"""Proof that what compiles IR leads to nothing that is not counted with it.

From the file that drives the stages and from a backend's own files every reference is followed, through
common files too, to the file that defines what is referred to. Each must be among the files that count
below the frontend for this backend. Names that one module only passes on (`from .errors import
OutOfResources` in the autotuner) are followed to where they are made.

What the text does not show (patches made at import, objects handed over at run time) is for the other
proof: every compilation records which files' functions were entered while its stages ran.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from irdiff.resolve.toolchains.references import Bindings, Reference, read_bindings, read_references

DRIVING_FILE = "triton/compiler/compiler.py"


@dataclass(frozen=True, kw_only=True)
class PythonFile:
    """One module, by its path below site-packages."""

    name: str
    module: str

    @property
    def is_package(self) -> bool:
        return self.name.endswith("__init__.py")


@dataclass(frozen=True, kw_only=True)
class Exemption:
    """References in functions whose names match `where`, in files whose names match `file`."""

    file: str
    where: str
    reason: str


EXEMPTIONS = (
    Exemption(
        file="triton/compiler/compiler.py",
        where=r"ASTSource\.make_ir",
        reason="the frontend's entrance itself: what it returns is the IR that the input digest is taken of",
    ),
    Exemption(
        file=r".+",
        where=r"\w+\.(get_codegen_implementation|get_module_map)",
        reason="what a backend hands to the frontend: `compile` calls both before the first stage, and gives "
        "what they return to `make_ir` alone",
    ),
    Exemption(
        file="triton/_utils.py",
        where=r"(get|set)_iterable_path|is_iterable|is_namedtuple|apply_with_path|find_paths_if",
        reason="walks over arguments that may be tuples of the language: before the stages and at a launch",
    ),
    Exemption(
        file="triton/knobs.py",
        where=r"env_class\.get",
        reason="imports a cache manager that a variable names; a worker's environment has no such variable",
    ),
    Exemption(
        file="triton/backends/__init__.py",
        where="_discover_backends|_load_module",
        reason="imports the backends, whose files are counted by what their classes are made of",
    ),
)


class Proof:
    """Follows references between the modules of one toolchain; each file is read once."""

    def __init__(self, files: Iterable[PythonFile], read: Callable[[str], bytes]) -> None:
        """`read` gives the content of a file by its name."""
        self._modules: Mapping[str, PythonFile] = {file.module: file for file in files}
        self._by_name = {file.name: file for file in self._modules.values()}
        self._read = read
        self._references: dict[str, list[Reference]] = {}
        self._bindings: dict[str, Bindings] = {}

    def violations(self, roots: Iterable[str], counted: Collection[str]) -> list[str]:
        """Sentences, one a reference from the roots on that leads out of the files that count."""
        found: list[str] = []
        pending = [name for name in roots if name in self._by_name]
        done = set(pending)
        while pending:
            file = self._by_name[pending.pop()]
            for reference in self._references_of(file):
                target, leads_on = self._target(reference)
                if target is None or target == file.name or _is_exempt(file.name, reference.where):
                    continue
                if target not in counted:
                    found.append(_sentence(file.name, reference, target))
                elif leads_on and target not in done:
                    done.add(target)
                    pending.append(target)
        return sorted(found)

    def _target(self, reference: Reference) -> tuple[str | None, bool]:
        """The file that defines what is referred to, and whether that can refer to anything further.

        None is a file outside of the known modules, an empty name one that the text does not tell.
        """
        if not reference.module:
            return "", False
        module, names = reference.module, list(reference.names)
        seen: set[tuple[str, str]] = set()
        while names:
            inner = f"{module}.{names[0]}"
            passed_on = self._bindings_of(module).imported.get(names[0])
            if inner in self._modules:
                module = inner
                names.pop(0)
            elif passed_on is not None and (module, names[0]) not in seen:
                seen.add((module, names[0]))
                module, names[0] = passed_on
            else:
                break
        known = self._modules.get(module)
        leads_on = not names or names[0] not in self._bindings_of(module).literals
        return (known.name if known else None), leads_on

    def _references_of(self, file: PythonFile) -> list[Reference]:
        if file.name not in self._references:
            content = self._read(file.name)
            # what else the interpreter has loaded refers to modules of Triton only where it names it
            mentions = b"triton" in content or not file.name.startswith("module:")
            try:
                found = read_references(content, file.module, is_package=file.is_package) if mentions else []
            except (SyntaxError, ValueError):
                found = [Reference(module="", names=(), where="", line=1)]
            self._references[file.name] = found
        return self._references[file.name]

    def _bindings_of(self, module: str) -> Bindings:
        if module not in self._bindings:
            file = self._modules.get(module)
            bindings = Bindings(imported={}, literals=frozenset())
            if file is not None:
                with contextlib.suppress(SyntaxError, ValueError):
                    bindings = read_bindings(self._read(file.name), module, is_package=file.is_package)
            self._bindings[module] = bindings
        return self._bindings[module]


def _is_exempt(name: str, where: str) -> bool:
    return any(re.fullmatch(row.file, name) and re.fullmatch(row.where, where) for row in EXEMPTIONS)


def _sentence(name: str, reference: Reference, target: str) -> str:
    place = f"{name}:{reference.line}" + (f" ({reference.where})" if reference.where else "")
    wanted = (
        ".".join((reference.module, *reference.names)) if reference.module else "what its text does not tell"
    )
    return f"{place} refers to {wanted}" + (f" of {target}" if target else "")
