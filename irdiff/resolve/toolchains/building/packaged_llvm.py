"""An LLVM of a distribution, made fit for a build of Triton, which wants one of archives alone.

Distributions link MLIR with one shared libLLVM. A library of Triton that takes MLIR from archives and LLVM
from there misses symbols at import. The folder made here links to the installed LLVM, and holds copies of
its CMake descriptions in which all of MLIR and lld link the archives of LLVM.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building.linked_llvm import LinkedLlvm
from irdiff.store import key_of

_ALL = "AllLLVMArchives"
_LINKS = re.compile(r'(INTERFACE_LINK_LIBRARIES ")([^"]*)"')
_UNUSED = re.compile(
    r"LLVM|LTO|Remarks|Polly\w*|LLVM(?:BOLT|Exegesis|Debuginfod|LineEditor|OptDriver|Extensions|CFIVerify|Diff)\w*"
    r"|LLVM(?:FileCheck|ExecutionEngine|TestingSupport)"
)
"""What Triton does not link and what would need packages of its own (curl, libedit)."""
_MOVED = {"llvm/Passes/PassPlugin.h": "llvm/Plugins/PassPlugin.h"}
"""Headers by the name that Triton includes, and where a later LLVM has them."""


def prepare(llvm: LinkedLlvm, config: Config) -> LinkedLlvm:
    """The folder for `LLVM_SYSPATH`. Raises ToolchainError where the LLVM has no archives."""
    if not llvm.archives():
        raise ToolchainError(
            f"{llvm.folder} has no archives of LLVM and MLIR to link",
            hint="install the development packages of LLVM, MLIR and lld of one version",
        )
    name = key_of("packaged-llvm/1", Path(__file__).read_text(encoding="utf-8"), llvm.digest(config))[:16]
    folder = config.cache / "llvm" / f"llvm-{llvm.version}-{name}"
    if not folder.is_dir():
        part = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        _make(llvm.folder, part)
        part.rename(folder)
    return LinkedLlvm(folder=folder)


def _make(source: Path, folder: Path) -> None:
    (folder / "lib" / "cmake").mkdir(parents=True)
    (folder / "bin").symlink_to(source / "bin")
    for path in (source / "lib").iterdir():
        if path.name != "cmake":
            (folder / "lib" / path.name).symlink_to(path.resolve())
    _link_headers(source / "include", folder / "include")
    for package in ("llvm", "mlir", "lld"):
        shutil.copytree(source / "lib" / "cmake" / package, folder / "lib" / "cmake" / package)
    for path in sorted((folder / "lib" / "cmake").glob("*/*.cmake")):
        before = path.read_text(encoding="utf-8", errors="replace")
        after = linking_archives(path.name, before)
        if after != before:
            path.write_text(after, encoding="utf-8")


def linking_archives(name: str, text: str) -> str:
    """A CMake description in which the shared libLLVM is replaced by all archives of LLVM."""
    if name in ("MLIRTargets.cmake", "LLDTargets.cmake"):
        return _LINKS.sub(lambda found: f'{found[1]}{_replaced(found[2])}"', text)
    if name == "MLIRConfig.cmake":
        return re.sub(r"(set\(MLIR_LINK_MLIR_DYLIB )\w+", r"\1OFF", text)
    if name != "LLVMConfig.cmake":
        return text
    listed = re.search(r"set\(LLVM_AVAILABLE_LIBS ([^)]*)\)", text)
    archives = [one for one in (listed[1] if listed else "").split(";") if not _UNUSED.fullmatch(one)]
    text = re.sub(r"(set\(LLVM_LINK_LLVM_DYLIB )\w+", r"\1OFF", text)
    listing = ";".join(archives)
    return (
        f"{text}\nif(NOT TARGET {_ALL})\n  add_library({_ALL} INTERFACE IMPORTED)\n"
        f'  set_target_properties({_ALL} PROPERTIES INTERFACE_LINK_LIBRARIES "{listing}")\nendif()\n'
    )


def _replaced(libraries: str) -> str:
    return ";".join(_ALL if name == "LLVM" else name for name in libraries.split(";"))


def _link_headers(source: Path, folder: Path) -> None:
    """Links to the headers, with a header that leads on for each that has moved."""
    moved = ((old, new) for old, new in _MOVED.items() if not (source / old).exists())
    missing = {old: new for old, new in moved if (source / new).exists()}
    folder.mkdir()
    for path in source.iterdir():
        if not any(old.startswith(f"{path.name}/") for old in missing):
            (folder / path.name).symlink_to(path)
            continue
        (folder / path.name).mkdir()
        for inner in path.iterdir():
            if not any(old.startswith(f"{path.name}/{inner.name}/") for old in missing):
                (folder / path.name / inner.name).symlink_to(inner)
                continue
            (folder / path.name / inner.name).mkdir()
            for header in inner.iterdir():
                (folder / path.name / inner.name / header.name).symlink_to(header)
    for old, new in missing.items():
        place = folder / old
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f'#pragma once\n#include "{new}"\n', encoding="utf-8")
