"""What tools are asked for, as Triton's releases ask, and why they give no result."""

from __future__ import annotations

import pytest

from irdiff.codegen.tool_runner import TRANSIENT, failure_of, unknown_intrinsics
from irdiff.model import FailureKind
from irdiff.process import EndedCommand

SHORT, WIDE, SCHED = "nvptx-short-ptr", "nvptx-mad-wide-opt", "nvptx-sched4reg"


def ended(stderr: str, code: int = 1, *, timed_out: bool = False) -> EndedCommand:
    return EndedCommand(code=code, stdout=b"", stderr=stderr.encode(), timed_out=timed_out)


ASYNC = "llvm.amdgcn.raw.ptr.buffer.load.async.lds"
BROKEN = "LLVM ERROR: Broken module found, compilation aborted!\n"
UNREADABLE = (
    "llc: error: llc: kernel.ll:38:44: error: expected value token\n"
    "  %36 = fmul <2 x float> %35, splat (float f0xBFB8AA3B), !dbg !19\n"
)
WITH_FUNCTION = (
    "RuntimeError: LLVM IR parsing error\n<string>:7:20: error: expected type\n"
    "define void @k(ptr captures(none) %0) {\n"
)
ARGUMENTS = (
    f"Intrinsic has incorrect argument type!\nptr @{ASYNC}\n{BROKEN}PLEASE submit a bug report\n#0 0x00007f"
)
IMMEDIATE = (
    "immarg operand has non-immediate parameter\n  %85 = select i1 %80, i32 %84, i32 0\n"
    f"  tail call void @{ASYNC}(ptr addrspace(8) %81, i32 0)\n{BROKEN}"
)
IGNORED = "'sm_100a' is not a recognized processor for this target (ignoring processor)\n"
OPTION = "ptxas fatal   : Value 'sm_100a' is not defined for option 'gpu-name'\n"
SYNTAX = "ptxas kernel.ptx, line 10; fatal   : Parsing error near '.nvvm': syntax error\n"
SELECT = "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.x"
ERROR, CRASH, UNSUPPORTED = FailureKind.ERROR, FailureKind.CRASH, FailureKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("stderr", "code", "kind", "message"),
    [
        (UNREADABLE, 1, ERROR, "cannot read `f0xBFB8AA3B`: expected value token (line 38)"),
        (WITH_FUNCTION, 1, ERROR, "cannot read `captures(none)`: expected type (line 7)"),
        (ARGUMENTS, -6, CRASH, f"knows {ASYNC} with other arguments"),
        (IMMEDIATE, -6, CRASH, f"takes calls of {ASYNC} for broken IR"),
        (IGNORED, 0, UNSUPPORTED, "does not know the processor sm_100a"),
        (OPTION, 1, UNSUPPORTED, "does not know the processor"),
        (SYNTAX, 255, ERROR, "says: Parsing error near '.nvvm': syntax error"),
        (SELECT, -6, CRASH, f"says: {SELECT}"),
        ("std::bad_alloc\n", -6, FailureKind.MEMORY, "LLVM 22: out of memory, or ended from outside"),
    ],
)
def test_a_failure_names_the_construct(stderr: str, code: int, kind: FailureKind, message: str) -> None:
    failure = failure_of(ended(stderr, code), "LLVM 22", "ptx", 300).failure
    assert (failure.kind, failure.message.removeprefix("LLVM 22 ")) == (kind, message)
    assert "0x00007f" not in failure.stderr
    assert (failure.kind in TRANSIENT) == (kind is FailureKind.MEMORY)


def test_calls_of_unknown_intrinsics_are_no_code() -> None:
    ptx = (
        ".extern .func  (.param .b32 func_retval0) llvm.nvvm.ex2.approx.f32\n(\n)\n;\n"
        ".extern .func llvm.nvvm.div.full\n"
    )
    assert unknown_intrinsics(ptx, "LLVM 19") == "LLVM 19 does not know llvm.nvvm.ex2.approx.f32 (and 1 more)"
    assert unknown_intrinsics(".extern .func vprintf\n", "LLVM 19") == ""
