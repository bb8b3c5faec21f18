"""The first reason that a compiler gives, whatever it prints before and after."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.worker_client import diagnosis

MODULE = "\n".join(f"    %{n} = arith.addi %a, %b : i32" for n in range(2000))
ASSERTION = (
    "python3: /tmp/source/third_party/amd/lib/TritonAMDGPUTransforms/ConvertToBufferOps.cpp:486: virtual "
    "LogicalResult (anonymous namespace)::Convert::matchAndRewrite(Op, PatternRewriter &) const: "
    'Assertion `offset.getType() == expected && "no offset"\' failed.'
)
FAILED_PASS = (
    "/work/matmul.py:12:0: note: Pipeline failed while executing [`TritonAMDGPUConvertToBufferOps` on "
    "'builtin.module' operation]: reproducer generated at `std::errs, please share the reproducer`"
)
CASES = {
    "an assertion": (
        f"warning: something\n{ASSERTION}\nStack dump:\n{MODULE}\n#0 0x00007f llvm::sys::PrintStackTrace",
        'Assertion offset.getType() == expected && "no offset" (ConvertToBufferOps.cpp:486)',
    ),
    "a diagnostic before the module": (
        "/work/matmul.py:31:20: error: 'tt.dot' op expected the same encoding\n"
        "/work/matmul.py:12:0: error: Failures have been detected while processing an MLIR pass pipeline\n"
        f"{FAILED_PASS}\n{MODULE}\nTraceback (most recent call last):\nRuntimeError: PassManager::run failed",
        "'tt.dot' op expected the same encoding (matmul.py:31)",
    ),
    "an unknown place": (
        "<unknown>:0: error: failed to legalize operation 'tt.fp_to_fp'",
        "failed to legalize operation 'tt.fp_to_fp'",
    ),
    "a location": (
        "loc(\"-\":3:4): error: 'tt.load' op requires a mask\n" + MODULE,
        "'tt.load' op requires a mask",
    ),
    "LLVM": (
        "LLVM ERROR: Cannot select: intrinsic %llvm.amdgcn.x\nPLEASE submit",
        "Cannot select: intrinsic",
    ),
    "unreachable": (
        "Unsupported layout\nUNREACHABLE executed at /tmp/source/lib/Layout.cpp:77!",
        "unreachable:",
    ),
    "ptxas": (
        "ptxas /tmp/x.ptx, line 39; error   : Illegal operand type to instruction 'ld'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors",
        "Illegal operand type to instruction 'ld'",
    ),
}


@pytest.mark.parametrize(("text", "reason"), CASES.values(), ids=CASES.keys())
def test_the_first_reason_leads(text: str, reason: str) -> None:
    assert diagnosis.of_text(text).text.startswith(reason)


def test_the_pass_and_the_ending_follow_the_reason() -> None:
    said = diagnosis.of_text(f"{ASSERTION}\n{FAILED_PASS}\n{MODULE}")
    assert said.pass_name == "TritonAMDGPUConvertToBufferOps"
    assert said.explained("the compiler died of SIGABRT").endswith(
        "(ConvertToBufferOps.cpp:486), in TritonAMDGPUConvertToBufferOps (the compiler died of SIGABRT)"
    )


def test_the_beginning_and_the_end_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "stderr"
    path.write_text(f"the beginning\n{MODULE}\nthe end\n")
    excerpt = diagnosis.of_file(path).excerpt
    assert excerpt.startswith("the beginning\n")
    assert excerpt.endswith("\nthe end")
    assert "bytes left out" in excerpt
    assert diagnosis.of_file(tmp_path / "none") == diagnosis.NOTHING
