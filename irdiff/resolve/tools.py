"""Tools below Triton as sides: an LLVM or an assembler that compiles stored texts of a run or of a release.

    llvm:/usr/lib/llvm-22            an installed LLVM, by its folder or its llc
    llvm:…/site-packages/llvmlite    the library of llvmlite, by the folder of the package
    ptxas:/usr/local/cuda/bin/ptxas  an assembler of CUDA

A tool is identified by the content of its programs and of every library that they load.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from irdiff import backends, process
from irdiff.backends import ASSEMBLERS, BACKENDS
from irdiff.backends.code_generation import AssemblerProgram
from irdiff.errors import ToolchainError, UsageError
from irdiff.stages import Stage
from irdiff.store import digests_below, key_of, sha256_of_file

KINDS = ("llvm:", *(f"{name}:" for name in ASSEMBLERS))
_AN_ASSEMBLER = " or ".join(ASSEMBLERS)
_EXAMPLES = " or ".join(["llvm:/usr/lib/llvm-22", *(f"{name}:/path/to/{name}" for name in ASSEMBLERS)])
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""The whole environment of a tool, without any variable of the caller."""
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.M)
_TIMEOUT_S = 60


class ToolKind(StrEnum):
    LLVM = "llvm"
    ASSEMBLER = "assembler"
    """A program that assembles for one backend (`backends.ASSEMBLERS`)."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    kind: ToolKind
    spec: str
    version: str
    """`LLVM 22.1.8`, `ptxas 13.5.37`."""
    path: Path
    digest: str
    """SHA-256 over the content of its programs and of the libraries that they load."""
    programs: Mapping[str, Path]
    """By name: `llc`, `opt`, `llvm-mc`, `ld.lld`; `llvmlite`, the folder of the package; an assembler."""
    backends: frozenset[str]
    """Names of the backends that it compiles for."""
    notes: tuple[str, ...]

    @property
    def links(self) -> bool:
        """True if it produces binaries for backends that have no assembler of their own."""
        return "ld.lld" in self.programs and not {"llvm-mc", "llvmlite"}.isdisjoint(self.programs)

    @property
    def assembler(self) -> AssemblerProgram | None:
        """Returns None for an LLVM."""
        return next((each for name, each in ASSEMBLERS.items() if name in self.programs), None)

    @property
    def starts_at(self) -> str:
        """Returns the stage whose text it compiles."""
        kind = backends.of(self.assembler.BACKEND).BINARY if self.assembler else None
        return kind.assembly if kind else Stage.LLIR


def is_tool(spec: str) -> bool:
    return spec.startswith(KINDS)


def resolve(spec: str) -> Tool:
    """Raises UsageError, ToolchainError."""
    kind, _, rest = spec.partition(":")
    if not is_tool(spec) or not rest:
        raise UsageError(f"{spec!r} is no tool", hint=f"write {_EXAMPLES}")
    path = Path(rest).expanduser().absolute()
    if not path.exists():
        raise UsageError(f"{spec}: there is no {path}", hint=f"name an installed LLVM, or a {_AN_ASSEMBLER}")
    return _llvm(spec, path) if kind == "llvm" else _assembler(spec, path, ASSEMBLERS[kind])


def assembler_at(path: str) -> Tool:
    """Raises UsageError, ToolchainError."""
    return resolve(f"{next(iter(ASSEMBLERS))}:{path}")


def _assembler(spec: str, path: Path, assembler: AssemblerProgram) -> Tool:
    program = path / assembler.NAME if path.is_dir() else path
    match = assembler.VERSION.search(_ask(program, "--version"))
    if not match:
        raise ToolchainError(f"{spec}: {program} prints no version", hint=f"name a {assembler.NAME}")
    return Tool(
        kind=ToolKind.ASSEMBLER,
        spec=spec,
        version=f"{assembler.NAME} {match[1]}",
        path=program,
        digest=sha256_of_file(program),
        programs={assembler.NAME: program.resolve()},
        backends=frozenset({assembler.BACKEND}),
        notes=(),
    )


def _ask(program: Path, *words: str, **variables: str) -> str:
    """Raises ToolchainError if the program does not run."""
    try:
        return process.run([program, *words], env={**ENVIRONMENT, **variables}, timeout_s=_TIMEOUT_S)
    except (process.CommandFailed, process.TimeoutExpired, OSError) as error:
        text = error.tail(3) if isinstance(error, process.CommandFailed) else str(error)
        message = f"{program} does not run:\n{text}"
        raise ToolchainError(message, hint="name a program, or the llvmlite, of this machine") from error


def _content_of(programs: Iterable[Path]) -> list[tuple[str, str]]:
    """Returns the name and SHA-256 of each program and of every library that it loads. The system's loader
    lists the libraries without starting the program.
    """
    files: dict[Path, None] = {}
    for program in programs:
        files[program] = None
        listed = _ask(program, "--version", LD_TRACE_LOADED_OBJECTS="1")
        files.update((Path(path), None) for path in _LIBRARY.findall(listed))
    return sorted((path.resolve().name, sha256_of_file(path)) for path in files)


_VERSION = re.compile(r"LLVM version (\S+)")
_GENERATIONS = {name: each.CODE_GENERATION for name, each in BACKENDS.items() if each.CODE_GENERATION}
_LLVMLITE = f"""
import llvmlite.binding as llvm
llvm.initialize_all_targets()
print("LLVM version", ".".join(map(str, llvm.llvm_version_info)))
for triple in {[each.PROBE.triple for each in _GENERATIONS.values()]}:
    try:
        print(llvm.Target.from_triple(triple).name, "- listed")
    except RuntimeError:
        pass
"""


def _llvm(spec: str, path: Path) -> Tool:
    """Raises UsageError if there is no LLVM, ToolchainError if it does not run."""
    package = _llvmlite_at(path)
    if package is not None:
        return _llvmlite(spec, package)
    programs = _programs_at(path)
    if programs is None:
        raise UsageError(
            f"{spec}: there is no llc, and no llvmlite",
            hint="name the folder of an installed LLVM (llvm:/usr/lib/llvm-22), its llc, or a folder "
            "with the package llvmlite",
        )
    version_text = _ask(programs["llc"], "--version")
    listed = _backends(version_text)
    return Tool(
        kind=ToolKind.LLVM,
        spec=spec,
        version=f"LLVM {_version(spec, version_text)}",
        path=path,
        digest=key_of("llvm/1", _content_of(programs.values())),
        programs=programs,
        backends=listed,
        notes=tuple(_notes(spec, programs, listed)),
    )


def _programs_at(path: Path) -> dict[str, Path] | None:
    """Finds programs next to one another. The linker may come from anywhere, because it does not affect the
    code.
    """
    folder, llc = (path.parent, path) if path.is_file() else (path / "bin", path / "bin" / "llc")
    suffix = llc.name.removeprefix("llc")
    if not llc.is_file() or not llc.name.startswith("llc"):
        return None
    programs = {"llc": llc}
    for name in ("opt", "llvm-mc"):
        if (folder / f"{name}{suffix}").is_file():
            programs[name] = folder / f"{name}{suffix}"
    linker = folder / "ld.lld"
    return {**programs, **({"ld.lld": linker} if linker.is_file() else _any_linker())}


def _any_linker() -> dict[str, Path]:
    """Returns `ld.lld`, or the newest `ld.lld-N` or `/usr/lib/llvm-N/bin/ld.lld` of this machine."""
    if linker := shutil.which("ld.lld"):
        return {"ld.lld": Path(linker)}
    numbered = [*Path("/usr/bin").glob("ld.lld-*"), *Path("/usr/lib").glob("llvm-*/bin/ld.lld")]
    newest = max(numbered, key=lambda path: list(map(int, re.findall(r"-(\d+)", str(path)))), default=None)
    return {"ld.lld": newest} if newest else {}


def _version(spec: str, version_text: str) -> str:
    match = _VERSION.search(version_text)
    if not match:
        raise ToolchainError(f"{spec} prints no version of LLVM", hint="name an llc")
    return match[1]


def _backends(version_text: str) -> frozenset[str]:
    words = {line.split()[0] for line in version_text.splitlines() if " - " in line}
    return frozenset(backend for backend, each in _GENERATIONS.items() if each.LLVM_NAME in words)


def _notes(spec: str, programs: Mapping[str, Path], listed: frozenset[str]) -> list[str]:
    notes = []
    missing = " and ".join(sorted({"llvm-mc", "ld.lld"} - programs.keys()))
    for name in sorted(listed):
        if missing and not _GENERATIONS[name].ASSEMBLER:
            notes.append(f"{spec}: without {missing} the code for {name} is compared as its assembly")
    notes += [f"{spec}: it has no backend for {name}" for name in sorted(_GENERATIONS.keys() - listed)]
    return notes


# llvmlite


def _llvmlite_at(path: Path) -> Path | None:
    """Takes the package, its parent, or its library."""
    candidates = [path, path / "llvmlite", *path.parents[:2]]
    places = (place for place in candidates if place.name == "llvmlite" and (place / "binding").is_dir())
    return next(places, None)


def _llvmlite(spec: str, package: Path) -> Tool:
    words = ("-P", "-s", "-c", _LLVMLITE)
    version_text = _ask(Path(sys.executable), *words, PYTHONPATH=str(package.parent))
    files = sorted(file for file in package.rglob("*") if file.suffix in (".py", ".so"))
    return Tool(
        kind=ToolKind.LLVM,
        spec=spec,
        version=f"LLVM {_version(spec, version_text)}",
        path=package,
        digest=key_of("llvmlite/1", sys.version, digests_below(package, files)),
        programs={"llvmlite": package, **_any_linker()},
        backends=_backends(version_text),
        notes=(
            f"{spec}: llvmlite has no option to fuse multiplications and additions that the IR does not "
            "mark: where Triton lets LLVM fuse them, its code differs for that alone",
        ),
    )
