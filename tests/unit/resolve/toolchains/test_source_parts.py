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
    "CMakeLists.txt", "include/CMakeLists.txt", "lib/CMakeLists.txt", "lib/Dialect/CMakeLists.txt",
    "third_party/nvidia/CMakeLists.txt", "third_party/nvidia/lib/CMakeLists.txt",
    "setup.py", "pyproject.toml", "cmake/llvm-hash.txt", "include/triton/Ops.td",
    "include/triton/Version.h.in", "lib/Dialect/Ops.cpp", "python/src/ir.cc",
    "third_party/nvidia/triton_nvidia.cc",
    "third_party/nvidia/lib/Lower.cpp", "third_party/nvidia/backend/driver.c", "bin/RegisterTritonDialects.h",
}  # fmt: skip


def native(files: dict[str, str]) -> dict[str, str]:
    return source_parts.native_inputs(files, lambda paths: {path: files[path].encode() for path in paths})


def test_what_feeds_the_native_part() -> None:
    assert set(native(FILES)) == NATIVE


def test_tests_that_are_linked_in_count() -> None:
    linked = {**FILES, "test/lib/CMakeLists.txt": "add_triton_library(InTheLibrary Test.cpp)\n"}
    assert set(native(linked)) - NATIVE == {"test/lib/CMakeLists.txt", "test/lib/Test.cpp"}


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
def test_a_script_counts_wherever_a_variable_may_lead(named: str) -> None:
    files = {
        **FILES,
        "lib/Dialect/CMakeLists.txt": f"add_custom_command(COMMAND python {named})",
        "utils/tools/make.py": "",
    }
    assert "utils/tools/make.py" in native(files)


def test_a_script_that_cmake_runs_counts() -> None:
    generated = {
        **FILES,
        "lib/Dialect/CMakeLists.txt": "add_custom_command(COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/make.py)",
        "lib/Dialect/make.py": "",
        "lib/Dialect/lint.py": "",
    }
    assert set(native(generated)) - NATIVE == {"lib/Dialect/make.py"}


@pytest.mark.parametrize(
    ("path", "text", "counts"),
    [
        ("setup.py", "import os\n\n\nsetup(name='triton')  # the same\n", False),
        ("setup.py", "import os\n\nsetup(name='another')\n", True),
        ("pyproject.toml", "[build-system]\nrequires = ['setuptools']\n", False),
        ("pyproject.toml", "[build-system]\nrequires = ['setuptools', 'nanobind']\n", True),
    ],
)
def test_build_files_count_by_what_they_do(path: str, text: str, counts: bool) -> None:
    assert (native({**FILES, path: text}) != native(FILES)) is counts


def test_without_cmake_every_source_counts() -> None:
    files = {"setup.py": "", "src/x.c": "", "src/x.py": "", "python/triton/__init__.py": "", "tests/t.c": ""}
    assert set(native(files)) == {"setup.py", "src/x.c"}


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


def test_llvm_pin() -> None:
    def read(paths):
        return {path: FILES[path].encode() for path in paths}

    assert source_parts.llvm_pin(FILES, read) == "62b7cf9623fc310525f39ed69aaecc318a909731"
    assert source_parts.llvm_pin({}, read) is None


def test_what_is_a_checkout_of_triton() -> None:
    assert source_parts.is_triton(FILES)
    assert not source_parts.is_triton({"setup.py": "", "mykernels/__init__.py": ""})


@pytest.mark.parametrize(
    "path",
    [
        "lib/Dialect/Rewrites.pdll",
        "third_party/nvidia/lib/Device.hip",
        "lib/Dialect/opcodes.csv",
        "data/latencies.json",
        "third_party/nvidia/backend/latencies.txt",
        "third_party/nvidia/tools/table.txt",
        "scripts/generate.sh",
    ],
)
def test_what_no_rule_places_counts_as_native(path: str) -> None:
    assert native({**FILES, path: ""}) != native(FILES)


@pytest.mark.parametrize(
    "path",
    [
        "README.md",
        "docs/figure.png",
        "docs/conf.json",
        ".github/workflows/build.yml",
        "lib/.clang-format",
        "LICENSE",
        "Makefile",
        "python/test/unit/expected.txt",
        "test/lib/input.txt",
        "python/tutorials/01-add.py",
        "third_party/nvidia/backend/notes.md",
        "python/triton/py.typed",
    ],
)
def test_documents_tests_and_the_python_part_cost_no_build(path: str) -> None:
    assert native({**FILES, path: ""}) == native(FILES)


def test_what_a_generator_imports_counts() -> None:
    generated = {
        **FILES,
        "lib/Dialect/CMakeLists.txt": "add_custom_command(COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/make.py)",
        "lib/Dialect/make.py": "from tables import rows\nimport emit.text\n",
        "lib/Dialect/tables.py": "import python_only_here\n",
        "lib/Dialect/emit/text.py": "",
        "lib/Dialect/lint.py": "",
        "setup.py": "from python.build_helpers import find\n",
        "python/other.py": "",
    }
    assert set(native(generated)) - NATIVE == {
        "lib/Dialect/make.py",
        "lib/Dialect/tables.py",
        "lib/Dialect/emit/text.py",
    }


def test_a_script_that_cmake_names_through_the_folder_above_counts() -> None:
    text = "add_custom_command(COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/../make.py)"
    generated = {**FILES, "lib/Dialect/CMakeLists.txt": text, "lib/make.py": ""}
    assert set(native(generated)) - NATIVE == {"lib/make.py"}


@pytest.mark.parametrize("name", ["table.txt", "kernels.cc", "settings.conf", "lib/helpers.mlir", "notes.md"])
def test_every_file_of_a_backend_is_python_part(name: str) -> None:
    """setup.py installs the whole folder, and stages may read any of it, whatever it is called."""
    path = f"third_party/nvidia/backend/{name}"
    installed = {"triton/backends/nvidia/compiler.py"}
    assert source_parts.python_part({path: "blob"}, installed) == {f"triton/backends/nvidia/{name}": "blob"}
    assert source_parts.is_installed(path)
