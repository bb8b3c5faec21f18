"""Hints say the real cause: texts in the form in which builds print them, some of them from real builds."""

from __future__ import annotations

import pytest

from irdiff.resolve.toolchains.building import failures

CASES = {
    "LLVM": (
        "downloading and extracting https://host.example/llvm-builds/llvm-0729a74e-ubuntu-x64.tar.gz ...\n"
        "Traceback (most recent call last):\nurllib.error.URLError: <urlopen error [Errno -2]>",
        "LLVM_SYSPATH",
    ),
    "ptxas": (
        "downloading and extracting https://host.example/redist/cuda_nvcc/linux-x86_64/"
        "cuda_nvcc-linux-x86_64-12.9.86-archive.tar.xz ...\nurllib.error.URLError: <urlopen error>",
        "TRITON_HOME/.triton/nvidia",
    ),
    "JSON": (
        "downloading and extracting https://host.example/nlohmann/json/v3.11.3/include.zip ...\n"
        "urllib.error.HTTPError: HTTP Error 403",
        "JSON_SYSPATH",
    ),
    "an offline build": (
        "RuntimeError: Requested an offline build but LLVM_SYSPATH is not set",
        "set LLVM_SYSPATH to a folder",
    ),
    "a header that moved": (
        "python/src/llvm.cc:22:10: fatal error: 'llvm/Passes/PassPlugin.h' file not found\n"
        "python/src/llvm.cc:9:1: error: unused [-Werror,-Wunused]",
        "no llvm/Passes/PassPlugin.h",
    ),
    "a header in GCC's words": ("a.cc:1:10: fatal error: zlib.h: No such file or directory", "with zlib.h"),
    "a warning": (
        "lib/A.cpp:5:1: error: 'isa' is deprecated [-Werror,-Wdeprecated-declarations]",
        "-DCMAKE_CXX_FLAGS=-w",
    ),
    "a package that LLVM names": (
        'CMake Error: The link interface of target "LLVMDebuginfod" contains:\n\n    CURL::libcurl\n',
        "CURL::libcurl",
    ),
    "an undefined symbol": (
        "ImportError: /x/libtriton.so: undefined symbol: _ZN4llvm15PassPluginE",
        "defines _ZN4llvm15PassPluginE",
    ),
    "another interface": (
        "TaskIdPropagation.cpp:9:3: error: 'visit' marked 'override' but does not override",
        "not of the checkout's pin",
    ),
    "memory": ("clang++: fatal: Killed signal terminated program cc1plus", "MAX_JOBS"),
    "disk": ("fatal error: No space left on device", "--cache DIR"),
    "no requirement": ("ModuleNotFoundError: No module named 'pybind11'", "does pyproject.toml list it"),
    "a download that worked": (
        "downloading and extracting https://host.example/llvm.tar.gz ...\nlib/A.cpp: error: no member named 'x'",
        "not of the checkout's pin",
    ),
    "anything else": ("something else went wrong", "irdiff toolchain doctor main"),
}


@pytest.mark.parametrize(("text", "hint"), CASES.values(), ids=CASES.keys())
def test_the_hint_names_the_cause(text: str, hint: str) -> None:
    assert hint in failures.what_to_try(text.splitlines(), "main")


def test_the_telling_lines_are_shown_once() -> None:
    lines = ["[1/2] Building", *["a.cpp:1:1: error: no such thing"] * 2, "FAILED: a.o", "ninja: stopped"]
    assert failures.first_errors(lines) == ["a.cpp:1:1: error: no such thing", "FAILED: a.o"]
    assert failures.first_errors(["one", "two"]) == ["one", "two"]
    assert failures.first_errors([f"error: {n}" for n in range(30)])[0] == "error: 0", "what came first"


def test_what_cmake_complains_of_stands_below() -> None:
    lines = ["CMake Error at x:1 (find_package):", "  Could not find MLIR", "", "-- Configuring incomplete"]
    assert "Could not find MLIR" in failures.first_errors(lines)
