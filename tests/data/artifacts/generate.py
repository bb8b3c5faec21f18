"""Compile `kernels.py` with several releases of Triton and pack what comes out.

    python tests/data/artifacts/generate.py 3.5.1=PYTHON 3.9.0=PYTHON ... [--folder FOLDER]

Each PYTHON is an interpreter that has that release; no GPU is needed. The kernels are compiled from a
copy in FOLDER, which shows in the artifacts. Writes `artifacts.tar.xz` beside this file, with members
RELEASE/KERNEL/TARGET/STAGE; binaries of the vector addition alone.
"""

import argparse
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).parent
TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
SASS_RELEASE = "3.9.0"
BINARIES = ("cubin", "hsaco")


def compile_all(python, sources, out, target):
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_CACHE_DIR": tempfile.mkdtemp(),
    }
    command = ["setarch", "-R", python, "compile_one.py", str(out), target]
    subprocess.run(command, cwd=sources, env=environment, check=True)
    shutil.rmtree(environment["TRITON_CACHE_DIR"])


def disassemble(python, cubin):
    tools = subprocess.run(
        [python, "-c", "import triton.backends.nvidia as n; print(*n.__path__)"],
        capture_output=True,
        text=True,
        check=True,
    )
    nvdisasm = pathlib.Path(tools.stdout.split()[0]) / "bin" / "nvdisasm"
    return subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, check=True).stdout


def neutral(content, python, release):
    prefix = str(pathlib.Path(python).parent.parent)
    return content.replace(prefix.encode(), f"/opt/triton-{release}".encode())


def pack(out, toolchains):
    with tarfile.open(HERE / "artifacts.tar.xz", "w:xz", preset=9) as archive:
        for path in sorted(out.rglob("*"), key=lambda path: (path.name, str(path))):
            name = path.relative_to(out)
            if not path.is_file() or (path.name in BINARIES and "vector_add" not in name.parts):
                continue
            release = name.parts[0]
            content = path.read_bytes()
            if path.name not in BINARIES:
                content = neutral(content, toolchains[release], release)
            member = tarfile.TarInfo(str(name))
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("toolchain", nargs="+")
    parser.add_argument("--folder", default="/srv/kernels")
    arguments = parser.parse_args()
    toolchains = dict(item.split("=", 1) for item in arguments.toolchain)
    sources = pathlib.Path(arguments.folder)
    sources.mkdir(parents=True, exist_ok=True)
    for name in ("kernels.py", "compile_one.py"):
        shutil.copy(HERE / name, sources / name)
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder)
        for release, python in toolchains.items():
            for target in TARGETS:
                print(release, target, file=sys.stderr)
                compile_all(python, sources, out / release, target)
            if release == SASS_RELEASE:
                for cubin in sorted((out / release).rglob("cubin")):
                    cubin.with_name("sass").write_bytes(disassemble(python, cubin))
        pack(out, toolchains)


if __name__ == "__main__":
    main()
