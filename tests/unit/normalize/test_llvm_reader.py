"""Texts of LLVMs that are newer than the one that reads: what becomes equal, and what stays different."""

from __future__ import annotations

import pytest

from irdiff.normalize import equivalent, llvm_reader
from tests.unit.findings import told

_HEAD = """target triple = "amdgpu9.50-amd-amdhsa"

define amdgpu_kernel void @k(ptr addrspace(1) %p, ptr addrspace(3) %l, ptr addrspace(8) %r, i32 %x) #0 {
  %y = call i32 @llvm.ctlz.i32(i32 %x, i1 false)
  tail call void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) %r, ptr addrspace(3) nonnull %l, i32 16, i32 %y, i32 0, i32 0, i32 0), !alias.scope !0
  %z = select i1 true, float f0xFF800000, float -inf
  store float %z, ptr addrspace(1) %p, align 4
  ret void
}

declare i32 @llvm.ctlz.i32(i32, i1 immarg)

declare void @llvm.amdgcn.raw.ptr.buffer.load.async.lds(ptr addrspace(8) readonly captures(none), ptr addrspace(3) writeonly captures(none), i32 immarg, i32, i32, i32 immarg, i32 immarg) #1

attributes #0 = { nounwind }
attributes #1 = { nocallback nounwind }

!0 = !{!1}
!1 = distinct !{!1, !2}
!2 = distinct !{!2}
"""
"""As Triton 3.9 prints it: its LLVM 24 has another signature of the intrinsic than LLVM 22."""
_BASE = (
    _HEAD.replace("amdgpu9.50", "amdgcn")
    .replace("i32 %x, i1 false", "i32 %x")
    .replace("ctlz.i32(i32, i1 immarg)", "ctlz.i32(i32)")
    .replace("f0xFF800000, float -inf", "0xFFF0000000000000, float 0xFFF0000000000000")
)
"""The same as an older LLVM spelled it: the triple, the floats, the one-argument form of `ctlz`."""
_NAME = "llvm.amdgcn.raw.ptr.buffer.load.async.lds"


def test_an_intrinsic_of_another_signature_is_read_as_a_function() -> None:
    reading = llvm_reader.reprint(_HEAD)
    assert reading.text is not None
    assert reading.opaque == (_NAME,)
    ours, theirs = (
        [line for line in text.split("\n") if "call" in line and _NAME in line]
        for text in (_HEAD, reading.text)
    )
    assert ours == theirs
    assert "irdiff" not in reading.text


def test_equal_but_for_spelling() -> None:
    assert not equivalent("llir", _BASE, _HEAD).equal
    found = equivalent("llir", _BASE, _HEAD, reprint=llvm_reader.reprint)
    assert found.equal
    assert told(found.findings) == ("equal-as-llvm-prints", f"opaque-intrinsic:{_NAME}")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i32 16, i32 %y", "i32 4, i32 %y"),
        ("i32 0, i32 0, i32 0)", "i32 0, i32 0, i32 1)"),
        ("i32 %y, i32 0", "i32 %x, i32 0"),
        ("nonnull %l", "%l"),
        (_NAME, _NAME.replace("async.lds", "async.lds.other")),
        (", !alias.scope !0", ""),
        ("-inf", "+inf"),
        ("i1 false", "i1 true"),
    ],
)
def test_what_differs_still_differs(old: str, new: str) -> None:
    assert old in _HEAD
    changed = _HEAD.replace(old, new)
    assert llvm_reader.reprint(changed).text
    assert not equivalent("llir", _BASE, changed, reprint=llvm_reader.reprint).equal


def test_what_is_broken_otherwise_is_not_read() -> None:
    for broken in (
        _HEAD.replace("i32 %y, i32 0", "i32 %missing, i32 0"),
        _HEAD.replace("float %z, ptr", "i32 %z, ptr"),
        _HEAD.replace("@k(", "@irdiff.opaque.k("),
    ):
        assert llvm_reader.reprint(broken).text is None
