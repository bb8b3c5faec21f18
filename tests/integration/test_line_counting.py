"""A library built by clang through the launcher of a build that counts lines, and what its counters say."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from irdiff.coverage import line_counter
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains import cxx_compiler, line_counting
from irdiff.resolve.toolchains.line_counting import ROOT
from tests.texts import TEXTS, text_of

CLANG = next(filter(None, (shutil.which(name) for name in ("clang++-22", "clang++"))), None) or next(
    (str(path) for path in sorted(Path("/usr/lib").glob("llvm-*/bin/clang++"), reverse=True)), None
)
pytestmark = pytest.mark.skipif(
    CLANG is None, reason="no clang++: apt-get install clang-22 libclang-rt-22-dev"
)

DRIVER = text_of("line_counting/driver.py")


@pytest.fixture(scope="module")
def lines_of(tmp_path_factory):
    """Builds the library in a folder, loads it, and gives the counts of a request by its name."""
    chosen = cxx_compiler.chosen({"CXX": str(CLANG), "PATH": os.environ["PATH"]})
    folder = tmp_path_factory.mktemp("it's a tree")
    source = folder / "source"
    shutil.copytree(TEXTS / "line_counting/lib", source / "lib")
    try:
        tools = line_counting.require(chosen)
        units, path = ("lib/counted.cpp",), {"PATH": os.environ["PATH"]}
        line_counting.prepare(units, folder / "counting", source, chosen, path)
    except ToolchainError as error:  # a clang++ without its runtime for profiles cannot link
        pytest.skip(str(error))
    words = [str(folder / "counting" / "launcher"), str(CLANG)]
    for name in ("counted", "other"):
        unit = source / "lib" / f"{name}.cpp"
        subprocess.run([*words, "-O1", "-fPIC", "-o", f"{name}.o", "-c", unit], cwd=folder, check=True)
    linked = ["-shared", "-Wl,--exclude-libs,ALL", "counted.o", "other.o", "-o", "lib.so"]
    subprocess.run([*words, *linked], cwd=folder, check=True)
    subprocess.run([sys.executable, "-c", DRIVER, folder / "lib.so", folder], cwd=folder, check=True)
    shutil.rmtree(source)  # a tree is removed once it is built
    assert not list(folder.glob("*.profraw")), "nothing is written when a process ends"

    def read(name):
        merged = folder / f"{name}.merged"
        subprocess.run([tools / "llvm-profdata", "merge", folder / name, "-o", merged], check=True)
        words = [tools / "llvm-cov", "export", "-format=lcov", folder / "lib.so", f"-instr-profile={merged}"]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        return line_counter.line_counts(text)

    return read


def test_each_request_has_the_lines_that_it_ran(lines_of):
    counted, header = f"{ROOT}/lib/counted.cpp", f"{ROOT}/lib/twice.h"
    low, high = lines_of("low"), lines_of("high")
    assert set(high) == {counted, header}, "headers of a counted unit count, other units do not"
    assert (low[header][2], high[header][2]) == (0, 1)
    assert (low[counted][4] > 0, low[counted][5], low[counted][6] > 0) == (True, 0, True)
    assert (high[counted][4] > 0, high[counted][5]) == (True, 1)
    assert high[counted][6] == 1, "f(1) before the mark; f(5) after it is another launch's"
    assert 2 not in high[counted], "a comment holds no code"
