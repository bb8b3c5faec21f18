"""What a ptxas is asked for, and why a tool gives no result."""

import tomllib
from operator import itemgetter
from pathlib import Path

import pytest

from irdiff.codegen.readable import rewritten
from irdiff.codegen.tool_runner import TRANSIENT, failure_of, ptxas_flags, unknown_intrinsics
from irdiff.model import FailureKind
from irdiff.process import EndedCommand
from tests.unit import runs
from tests.unit.golden import golden


@pytest.mark.parametrize(
    ("version", "options", "flags"),
    [
        ("3.6.0", {}, "-lineinfo -v --gpu-name=sm_90a"),
        ("3.7.1", {}, "-lineinfo -v --regAllocOptLevel=2 --gpu-name=sm_90a"),
        ("3.9.0", {"enable_fp_fusion": "False", "ptx_options": "--maxrregcount 64"},
         "-lineinfo --fmad=false -v --regAllocOptLevel=2 --maxrregcount 64 --gpu-name=sm_90a"),
    ],
)  # fmt: skip
def test_a_ptxas_is_called_as_the_release_calls_it(version, options, flags):
    launch = runs.launch("matmul/pointer:fp16@sm_90", options=options)
    assert ptxas_flags(launch, version, ".version 8.7\n.target sm_90a\n") == tuple(flags.split())


@pytest.mark.parametrize("row", golden("tool-failures")["failure"], ids=itemgetter("message"))
def test_a_failure_names_the_construct(row):
    ended = EndedCommand(code=row["code"], stdout=b"", stderr=row["stderr"].encode(), timed_out=False)
    failure = failure_of(ended, "LLVM 22", "ptx", 300).failure
    assert (failure.kind, failure.message.removeprefix("LLVM 22 ")) == (row["kind"], row["message"])
    assert "0x00007f" not in failure.stderr
    assert (failure.kind in TRANSIENT) == (failure.kind is FailureKind.MEMORY)


def test_calls_of_unknown_intrinsics_are_no_code():
    ptx = (
        ".extern .func  (.param .b32 func_retval0) llvm.nvvm.ex2.approx.f32\n(\n)\n;\n"
        ".extern .func llvm.nvvm.div.full\n"
    )
    assert unknown_intrinsics(ptx, "LLVM 19") == "LLVM 19 does not know llvm.nvvm.ex2.approx.f32 (and 1 more)"
    assert unknown_intrinsics(".extern .func vprintf\n", "LLVM 19") == ""


GOLDEN = tomllib.loads((Path(__file__).parents[2] / "golden/pairs/llvm-spellings.toml").read_text())


@pytest.mark.parametrize("row", GOLDEN["rewritten"], ids=lambda row: row["before"])
def test_a_construct_is_taken_out(row):
    assert rewritten(row["before"], [row["name"]]) == (row["after"], (row["name"],))
    assert rewritten(row["before"], []) == (row["before"], ())


@pytest.mark.parametrize("row", GOLDEN["stays"], ids=lambda row: row["text"])
def test_what_means_something_else_stays(row):
    assert rewritten(row["text"], [row["name"]]) == (row["text"], ())
