from __future__ import annotations

import pytest

from irdiff.resolve.toolchains import source_parts

CMAKE = {
    "CMakeLists.txt": """
include_directories(${PROJECT_SOURCE_DIR}/third_party)
set(PYTHON_SRC_PATH ${CMAKE_CURRENT_SOURCE_DIR}/python/src)
configure_file("${CMAKE_CURRENT_SOURCE_DIR}/include/triton/Version.h.in" out.h)
add_subdirectory(include)
add_subdirectory(lib)
foreach(CODEGEN_BACKEND ${TRITON_CODEGEN_BACKENDS})
  add_subdirectory(third_party/${CODEGEN_BACKEND})
endforeach()
add_subdirectory(bin)
add_subdirectory(test)
""",
    "include/CMakeLists.txt": "",
    "lib/CMakeLists.txt": "add_subdirectory(Dialect)\n",
    "lib/Dialect/CMakeLists.txt": "add_triton_library(Dialect Ops.cpp)\n",
    "third_party/nvidia/CMakeLists.txt": "add_subdirectory(lib)\n",
    "third_party/nvidia/lib/CMakeLists.txt": "",
    "bin/CMakeLists.txt": "",
    "test/CMakeLists.txt": "add_subdirectory(lib)\n",
    "test/lib/CMakeLists.txt": "add_mlir_library(TestOnly Test.cpp)\n",
}
FILES = {
    **CMAKE,
    "setup.py": "import os\n\n# how it is built\nsetup(name='triton')\n",
    "pyproject.toml": "[build-system]\nrequires = ['setuptools']\n[tool.yapf]\ncolumn_limit = 120\n",
    "cmake/llvm-hash.txt": "62b7cf9623fc310525f39ed69aaecc318a909731\n",
    "include/triton/Ops.td": "",
    "include/triton/Version.h.in": "",
    "lib/Dialect/Ops.cpp": "",
    "python/src/ir.cc": "",
    "python/triton/__init__.py": "",
    "python/triton/language/core.py": "",
    "python/triton/_C/include": "",
    "python/test/unit/test_core.py": "",
    "third_party/nvidia/triton_nvidia.cc": "",
    "third_party/nvidia/lib/Lower.cpp": "",
    "third_party/nvidia/backend/compiler.py": "",
    "third_party/nvidia/backend/driver.c": "",
    "third_party/nvidia/backend/lib/libdevice.10.bc": "",
    "third_party/nvidia/language/cuda/libdevice.py": "",
    "third_party/nvidia/tools/cuda/compile.c": "",
    "third_party/other/backend/compiler.py": "",
    "third_party/proton/proton/__init__.py": "",
    "bin/triton-opt.cpp": "",
    "bin/RegisterTritonDialects.h": "",
    "test/lib/Test.cpp": "",
    "test/TritonGPU/coalesce.mlir": "",
    "docs/index.rst": "",
    "unused/orphan.cpp": "",
}
NATIVE = {
    *CMAKE,
    "setup.py", "pyproject.toml", "cmake/llvm-hash.txt", "include/triton/Ops.td",
    "include/triton/Version.h.in", "lib/Dialect/Ops.cpp", "python/src/ir.cc",
    "third_party/nvidia/triton_nvidia.cc", "third_party/nvidia/lib/Lower.cpp",
    "third_party/nvidia/backend/driver.c", "third_party/nvidia/tools/cuda/compile.c",
    "bin/triton-opt.cpp", "bin/RegisterTritonDialects.h", "test/lib/Test.cpp", "unused/orphan.cpp",
}  # fmt: skip


def native(files: dict[str, str]) -> set[str]:
    named = source_parts.names_in_cmake(text for path, text in files.items() if source_parts.is_cmake(path))
    return {path for path in files if source_parts.is_native(path, named)}


def test_what_feeds_the_native_part() -> None:
    assert native(FILES) == NATIVE


@pytest.mark.parametrize(
    "named",
    [
        "${GENERATORS}/make.py",
        "../tools/make.py",
        "make.py",
        "${TOOLS}/${WHICH}.py",
        "ma${K}.py",
        "${DIR}/*.py",
    ],
)
@pytest.mark.parametrize("path", ["python/triton/tools/make.py", "test/make.py"])
def test_a_script_that_cmake_names_counts_wherever_it_lies(named: str, path: str) -> None:
    text = f"add_custom_command(COMMAND python {named})"
    assert path not in native({**FILES, path: ""})
    assert path in native({**FILES, path: "", "lib/Dialect/CMakeLists.txt": text})


def test_python_part_goes_where_setup_py_puts_it() -> None:
    installed = {
        "triton/__init__.py",
        "triton/backends/nvidia/compiler.py",
        "triton/language/extra/cuda/libdevice.py",
        "triton/tools/extra/cuda/compile.c",
        "triton/profiler/__init__.py",
    }
    assert source_parts.python_part({path: path for path in FILES}, installed) == {
        "triton/__init__.py": "python/triton/__init__.py",
        "triton/_C/include": "python/triton/_C/include",
        "triton/language/core.py": "python/triton/language/core.py",
        "triton/backends/nvidia/compiler.py": "third_party/nvidia/backend/compiler.py",
        "triton/backends/nvidia/driver.c": "third_party/nvidia/backend/driver.c",
        "triton/backends/nvidia/lib/libdevice.10.bc": "third_party/nvidia/backend/lib/libdevice.10.bc",
        "triton/language/extra/cuda/libdevice.py": "third_party/nvidia/language/cuda/libdevice.py",
        "triton/tools/extra/cuda/compile.c": "third_party/nvidia/tools/cuda/compile.c",
        "triton/profiler/__init__.py": "third_party/proton/proton/__init__.py",
    }


def test_what_is_a_checkout_of_triton() -> None:
    assert source_parts.is_triton(FILES)
    assert not source_parts.is_triton({"setup.py": "", "mykernels/__init__.py": ""})


@pytest.mark.parametrize(
    "path",
    [
        "lib/Dialect/Rewrites.pdll",
        "lib/Dialect/make.py",
        "python/build_helpers.py",
        "test/lib/Test.cpp",
        "third_party/nvidia/lib/Device.hip",
        "lib/Dialect/opcodes.csv",
        "data/latencies.json",
        "third_party/nvidia/backend/include/cuda.h",
        "scripts/generate.sh",
    ],
)
def test_what_no_rule_places_counts_as_native(path: str) -> None:
    assert path in native({**FILES, path: ""})


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs/figure.png",
        "docs/conf.json",
        ".github/workflows/build.yml",
        "lib/.clang-format",
        "python/triton_kernels/triton_kernels/matmul.py",
        "python/test/unit/expected.txt",
        "test/lib/input.txt",
        "python/tutorials/01-add.py",
        "third_party/nvidia/backend/notes.md",
        "third_party/nvidia/backend/latencies.txt",
        "python/triton/py.typed",
    ],
)
def test_documents_tests_and_the_python_part_cost_no_build(path: str) -> None:
    assert path not in native({**FILES, path: ""})


@pytest.mark.parametrize("name", ["table.txt", "kernels.cc", "settings.conf", "lib/helpers.mlir", "notes.md"])
def test_every_file_of_a_backend_is_python_part(name: str) -> None:
    """setup.py installs the whole folder, and stages may read any of it, whatever it is called."""
    path = f"third_party/nvidia/backend/{name}"
    installed = {"triton/backends/nvidia/compiler.py"}
    assert source_parts.python_part({path: "blob"}, installed) == {f"triton/backends/nvidia/{name}": "blob"}
    assert source_parts.is_installed(path)
