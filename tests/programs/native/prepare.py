"""Makes what a build of Triton would download, from a distribution's LLVM and a release of Triton.

    python tests/programs/native/prepare.py CHECKOUT --llvm /usr/lib/llvm-22 --release SITE_PACKAGES --out FOLDER

prints the variables to export. `README.md` says what was tried. Standard library only.

Distributions link MLIR with one shared libLLVM. A library of Triton that takes MLIR from archives and LLVM from there
misses symbols at import. The folder made here links to the installed LLVM and holds copies of its CMake files in
which MLIR and lld link LLVM's archives.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

ALL = "AllLLVMArchives"
LINKS = re.compile(r'(INTERFACE_LINK_LIBRARIES ")([^"]*)"')
UNUSED = re.compile(
    r"LLVM|LTO|Remarks|Polly\w*|LLVM(?:BOLT|Exegesis|Debuginfod|LineEditor|OptDriver|Extensions|CFIVerify|Diff)\w*"
    r"|LLVM(?:FileCheck|ExecutionEngine|TestingSupport)"
)
"""What Triton does not link and what would need packages of its own (curl, libedit)."""
MOVED = {"llvm/Passes/PassPlugin.h": "llvm/Plugins/PassPlugin.h"}
"""Headers by the name that Triton includes, and where a later LLVM has them."""
DOWNLOAD = re.compile(r"^    download_and_copy\(\n(.*?)^    \)", re.MULTILINE | re.DOTALL)
FIELDS = (
    r'name="(\w+)"',
    r'src_func=(?s:.*?)f"([^"]+)"',
    r'dst_path=f?"([^"]+)"',
    r'version=\w+\["([\w-]+)"\]',
)


def prepare_llvm(source: Path, folder: Path) -> None:
    """A folder for `LLVM_SYSPATH`."""
    if not list((source / "lib").glob("libMLIR*.a")):
        raise SystemExit(
            f"{source} has no archives of MLIR: install the development packages of LLVM, MLIR and lld"
        )
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lib" / "cmake").mkdir(parents=True)
    (folder / "bin").symlink_to(source / "bin")
    for path in (source / "lib").iterdir():
        if path.name != "cmake":
            (folder / "lib" / path.name).symlink_to(path.resolve())
    link_headers(source / "include", folder / "include")
    for package in ("llvm", "mlir", "lld"):
        shutil.copytree(source / "lib" / "cmake" / package, folder / "lib" / "cmake" / package)
    for path in sorted((folder / "lib" / "cmake").glob("*/*.cmake")):
        path.write_text(linking_archives(path.name, path.read_text(errors="replace")))


def linking_archives(name: str, text: str) -> str:
    """A CMake file in which the shared libLLVM is replaced by one target of all LLVM's archives."""
    if name in ("MLIRTargets.cmake", "LLDTargets.cmake"):
        return LINKS.sub(lambda found: f'{found[1]}{replaced(found[2])}"', text)
    if name == "MLIRConfig.cmake":
        return re.sub(r"(set\(MLIR_LINK_MLIR_DYLIB )\w+", r"\1OFF", text)
    if name != "LLVMConfig.cmake":
        return text
    listed = re.search(r"set\(LLVM_AVAILABLE_LIBS ([^)]*)\)", text)
    archives = [one for one in (listed[1] if listed else "").split(";") if not UNUSED.fullmatch(one)]
    return (
        re.sub(r"(set\(LLVM_LINK_LLVM_DYLIB )\w+", r"\1OFF", text)
        + f"\nif(NOT TARGET {ALL})\n  add_library({ALL} INTERFACE IMPORTED)\n"
        + f'  set_target_properties({ALL} PROPERTIES INTERFACE_LINK_LIBRARIES "{";".join(archives)}")\nendif()\n'
    )


def replaced(libraries: str) -> str:
    return ";".join(ALL if name == "LLVM" else name for name in libraries.split(";"))


def link_headers(source: Path, folder: Path) -> None:
    """Links to every header, with a header that leads on for each that has moved."""
    shutil.copytree(
        source, folder, copy_function=lambda path, place: Path(place).symlink_to(Path(path).resolve())
    )
    for old, new in MOVED.items():
        if not (source / old).exists() and (source / new).exists():
            (folder / old).parent.mkdir(parents=True, exist_ok=True)
            (folder / old).write_text(f'#pragma once\n#include "{new}"\n')


def downloads(checkout: Path) -> Iterator[tuple[str, str, str]]:
    """What setup.py takes from NVIDIA's archives: the folder below `.triton/nvidia`, the path there, and the path in
    `triton/backends/nvidia`.
    """
    setup = next(path for path in (checkout / "setup.py", checkout / "python/setup.py") if path.exists())
    versions = json.loads((checkout / "cmake" / "nvidia-toolchain-version.json").read_text())
    for call in DOWNLOAD.findall(setup.read_text()):
        fields = [found[1] for pattern in FIELDS if (found := re.search(pattern, call))]
        if len(fields) == len(FIELDS) and fields[3] in versions:
            name, source, place, version = fields
            yield name, filled(source, versions[version]), filled(place, versions[version])


def filled(template: str, version: str) -> str:
    values = {
        "system": "linux",
        "arch": {"aarch64": "sbsa"}.get(platform.machine(), platform.machine()),
        "version": version,
        "exe_extension": "",
        "crt": "crt" if int(version.partition(".")[0]) >= 13 else "nvcc",
    }
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


def provide_tools(checkout: Path, backend: Path, home: Path) -> None:
    """Copies NVIDIA's tools from a release's `triton/backends/nvidia` to where setup.py looks for them.

    Where two parts (`ptxas` and `ptxas-blackwell`) come from one archive, the file of the first is for both.
    """
    for name, source, place in downloads(checkout):
        target = home / ".triton" / "nvidia" / name / source
        if target.exists():
            continue
        if not (backend / place).exists():
            print(f"# {backend} has no {place}: the build will want to download it")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (backend / place).is_dir() else shutil.copy2
        copy(backend / place, target)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--llvm", type=Path, required=True)
    parser.add_argument(
        "--release", type=Path, required=True, help="site-packages that holds a release of triton"
    )
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    out = asked.out.absolute()
    prepare_llvm(asked.llvm.absolute(), out / "llvm")
    provide_tools(asked.checkout, asked.release / "triton" / "backends" / "nvidia", out / "home")
    variables = {
        "LLVM_SYSPATH": str(out / "llvm"),
        "TRITON_HOME": str(out / "home"),
        "TRITON_BUILD_PROTON": "OFF",
        "TRITON_BUILD_WITH_O1": "1",
        "TRITON_BUILD_WITH_CLANG_LLD": "true",
        "TRITON_APPEND_CMAKE_ARGS": "-DTRITON_BUILD_UT=OFF -DCMAKE_CXX_FLAGS=-w",
    }
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    print(f'export PATH={shlex.quote(str(asked.llvm.absolute() / "bin"))}:"$PATH"')


if __name__ == "__main__":
    main()
