"""An installed LLVM by its folder or its llc, or the LLVM inside llvmlite by the folder of the package."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from irdiff import process
from irdiff.errors import ToolchainError, UsageError
from irdiff.resolve.tools import tool
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import key_of

_VERSION = re.compile(r"LLVM version (\S+)")
_BACKENDS = {"nvptx64": "cuda", "amdgcn": "hip"}
"""LLVM's name of a target → the name of the backend of Triton's."""
_LLVMLITE = """
import llvmlite.binding as llvm
llvm.initialize_all_targets()
print("LLVM version", ".".join(map(str, llvm.llvm_version_info)))
for triple in ("nvptx64-nvidia-cuda", "amdgcn-amd-amdhsa"):
    try:
        print(llvm.Target.from_triple(triple).name, "- listed")
    except RuntimeError:
        pass
"""


def identify(spec: str, path: Path) -> Tool:
    """Raises UsageError where there is no LLVM, ToolchainError where it does not run."""
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
    said = tool.ask(programs["llc"], "--version")
    backends = _backends(said)
    return Tool(
        kind=ToolKind.LLVM,
        spec=spec,
        version=f"LLVM {_version(spec, said)}",
        path=path,
        digest=key_of("llvm/1", tool.content_of(programs.values())),
        programs=programs,
        backends=backends,
        notes=tuple(_notes(spec, programs, backends)),
    )


def _programs_at(path: Path) -> dict[str, Path] | None:
    """The programs next to one another; the linker, which decides nothing of the code, from anywhere."""
    folder, llc = (path.parent, path) if path.is_file() else (path / "bin", path / "bin" / "llc")
    suffix = llc.name.removeprefix("llc")
    if not llc.is_file() or not llc.name.startswith("llc"):
        return None
    found = {"llc": llc}
    for name in ("opt", "llvm-mc"):
        if (folder / f"{name}{suffix}").is_file():
            found[name] = folder / f"{name}{suffix}"
    linker = folder / "ld.lld"
    return {**found, **({"ld.lld": linker} if linker.is_file() else _any_linker())}


def _any_linker() -> dict[str, Path]:
    """`ld.lld`, or the newest `ld.lld-N` and `/usr/lib/llvm-N/bin/ld.lld` of this machine."""
    if found := shutil.which("ld.lld"):
        return {"ld.lld": Path(found)}
    numbered = [*Path("/usr/bin").glob("ld.lld-*"), *Path("/usr/lib").glob("llvm-*/bin/ld.lld")]
    newest = max(numbered, key=lambda path: list(map(int, re.findall(r"-(\d+)", str(path)))), default=None)
    return {"ld.lld": newest} if newest else {}


def _version(spec: str, said: str) -> str:
    found = _VERSION.search(said)
    if not found:
        raise ToolchainError(f"{spec} prints no version of LLVM", hint="name an llc")
    return found[1]


def _backends(said: str) -> frozenset[str]:
    words = {line.split()[0] for line in said.splitlines() if " - " in line}
    return frozenset(backend for name, backend in _BACKENDS.items() if name in words)


def _notes(spec: str, programs: Mapping[str, Path], backends: frozenset[str]) -> list[str]:
    notes = []
    if "hip" in backends and not {"llvm-mc", "ld.lld"} <= programs.keys():
        missing = " and ".join(sorted({"llvm-mc", "ld.lld"} - programs.keys()))
        notes.append(f"{spec}: without {missing} the code for AMD is compared as its assembly")
    notes += [f"{spec}: it has no backend for {name}" for name in sorted({"cuda", "hip"} - backends)]
    return notes


# llvmlite


def _llvmlite_at(path: Path) -> Path | None:
    """The folder of the package: of itself, of what holds it, or of its library."""
    candidates = [path, path / "llvmlite", *path.parents[:2]]
    found = (place for place in candidates if place.name == "llvmlite" and (place / "binding").is_dir())
    return next(found, None)


def _llvmlite(spec: str, package: Path) -> Tool:
    environment = {**tool.ENVIRONMENT, "PYTHONPATH": str(package.parent)}
    try:
        said = process.run([sys.executable, "-P", "-s", "-c", _LLVMLITE], env=environment)
    except process.CommandFailed as error:
        raise ToolchainError(
            f"{spec}: llvmlite does not start under this Python:\n{error.tail(3)}",
            hint="install the wheel of llvmlite for the Python that irdiff runs under",
        ) from error
    files = sorted(file for file in package.rglob("*") if file.suffix in (".py", ".so"))
    rows = [(str(file.relative_to(package)), tool.digest_of(file)) for file in files]
    return Tool(
        kind=ToolKind.LLVM,
        spec=spec,
        version=f"LLVM {_version(spec, said)}",
        path=package,
        digest=key_of("llvmlite/1", sys.version, rows),
        programs={"llvmlite": package, **_any_linker()},
        backends=_backends(said),
        notes=(
            f"{spec}: llvmlite has no option to fuse multiplications and additions that the IR does not "
            "mark: where Triton lets LLVM fuse them, its code differs for that alone",
        ),
    )
