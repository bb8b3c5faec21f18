"""What LLVM and ptxas print where they give up, and what a reader is told."""

from __future__ import annotations

import pytest

from irdiff.codegen.running import TRANSIENT, failure_of, unknown_intrinsics
from irdiff.model import FailureKind
from irdiff.process import EndedCommand


def ended(stderr: str, code: int = 1, *, timed_out: bool = False) -> EndedCommand:
    return EndedCommand(code=code, stdout=b"", stderr=stderr.encode(), timed_out=timed_out)


@pytest.mark.parametrize(
    ("stderr", "code", "kind", "message"),
    [
        (
            "llc: error: llc: kernel.ll:38:44: error: expected value token\n"
            "  %36 = fmul <2 x float> %35, splat (float f0xBFB8AA3B), !dbg !19\n",
            1,
            FailureKind.ERROR,
            "LLVM 22 cannot read `f0xBFB8AA3B`: expected value token (line 38)",
        ),
        (
            "RuntimeError: LLVM IR parsing error\n<string>:7:20: error: expected type\n"
            "define void @k(ptr captures(none) %0) {\n",
            1,
            FailureKind.ERROR,
            "LLVM 22 cannot read `captures(none)`: expected type (line 7)",
        ),
        (
            "Intrinsic has incorrect argument type!\nptr @llvm.amdgcn.raw.ptr.buffer.load.async.lds\n"
            "LLVM ERROR: Broken module found, compilation aborted!\nPLEASE submit a bug report\n#0 0x00007f",
            -6,
            FailureKind.CRASH,
            "LLVM 22 knows llvm.amdgcn.raw.ptr.buffer.load.async.lds with other arguments",
        ),
        (
            "immarg operand has non-immediate parameter\n  %85 = select i1 %80, i32 %84, i32 0\n"
            "  tail call void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) %81, i32 0)\n"
            "LLVM ERROR: Broken module found, compilation aborted!\n",
            -6,
            FailureKind.CRASH,
            "LLVM 22 takes calls of llvm.amdgcn.raw.ptr.buffer.load.async.lds for broken IR",
        ),
        (
            "'sm_100a' is not a recognized processor for this target (ignoring processor)\n",
            0,
            FailureKind.UNSUPPORTED,
            "LLVM 22 does not know the processor sm_100a",
        ),
        (
            "ptxas fatal   : Value 'sm_100a' is not defined for option 'gpu-name'\n",
            1,
            FailureKind.UNSUPPORTED,
            "LLVM 22 does not know the processor",
        ),
        (
            "ptxas kernel.ptx, line 10; fatal   : Parsing error near '.nvvm': syntax error\n",
            255,
            FailureKind.ERROR,
            "LLVM 22 says: Parsing error near '.nvvm': syntax error",
        ),
        (
            "LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.x\n",
            -6,
            FailureKind.CRASH,
            "LLVM 22 says: LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.x",
        ),
        ("std::bad_alloc\n", -6, FailureKind.MEMORY, "LLVM 22: out of memory, or ended from outside"),
    ],
)
def test_a_failure_names_the_construct(stderr: str, code: int, kind: FailureKind, message: str) -> None:
    made = failure_of(ended(stderr, code), "LLVM 22", "ptx", 300)
    assert (made.kind, made.message) == (kind, message)
    assert "0x00007f" not in made.stderr


def test_only_what_another_time_may_cure_is_transient() -> None:
    assert failure_of(ended("", -9, timed_out=True), "LLVM 22", "ptx", 300).kind in TRANSIENT
    assert failure_of(ended("error: no\n"), "LLVM 22", "ptx", 300).kind not in TRANSIENT


def test_calls_of_unknown_intrinsics_are_no_code() -> None:
    ptx = (
        ".extern .func  (.param .b32 func_retval0) llvm.nvvm.ex2.approx.f32\n(\n)\n;\n"
        ".extern .func llvm.nvvm.div.full\n"
    )
    assert unknown_intrinsics(ptx, "LLVM 19") == "LLVM 19 does not know llvm.nvvm.ex2.approx.f32 (and 1 more)"
    assert unknown_intrinsics(".extern .func vprintf\n", "LLVM 19") == ""
