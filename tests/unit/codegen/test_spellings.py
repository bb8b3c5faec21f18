"""Constructs that are spelled otherwise, and texts that must stay as they are."""

from __future__ import annotations

import pytest

from irdiff.codegen.spellings import SPELLINGS, rewritten

ALL = [row.name for row in SPELLINGS]
FLOATS, TRIPLE, ATTRIBUTES, CAPTURES_NONE, BUFFERS, BARRIER, POWERS, CAPTURES, POINTERS, SIGNS, TRUNC = ALL
BUFFER = (
    "declare ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) readnone, i16, {0}, i32)\n"
    "define void @k(ptr addrspace(1) %0) {{\n"
    "  %2 = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %0, i16 0, {1}, i32 7)\n"
    "  ret void\n}}\n"
)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        (FLOATS, "  %1 = fmul float %0, f0x3FB8AA3B", "  %1 = fmul float %0, 0x3FF7154760000000"),
        (FLOATS, "  %1 = phi float [ -inf, %a ]", "  %1 = phi float [ 0xFFF0000000000000, %a ]"),
        (TRIPLE, 'target triple = "amdgpu9.42-amd-amdhsa"', 'target triple = "amdgcn-amd-amdhsa"'),
        (CAPTURES_NONE, "define void @k(ptr captures(none) %0) {", "define void @k(ptr nocapture %0) {"),
        (CAPTURES, "define void @k(ptr captures(ret: address) %0) {", "define void @k(ptr %0) {"),
        (POINTERS, "  %2 = getelementptr inbounds nuw i8, ptr %0", "  %2 = getelementptr inbounds i8, ptr %0"),
        (POINTERS, "  %2 = getelementptr nusw nuw i8, ptr %0", "  %2 = getelementptr i8, ptr %0"),
        (SIGNS, "  %2 = icmp samesign ult i32 %1, 4", "  %2 = icmp ult i32 %1, 4"),
        (TRUNC, "  %2 = trunc nuw nsw i32 %1 to i16", "  %2 = trunc i32 %1 to i16"),
        (BARRIER, "  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)",
         "  call void @llvm.nvvm.barrier.n(i32 0)"),
        (POWERS, "  call float @llvm.nvvm.ex2.approx.ftz.f32(float %1)",
         "  call float @llvm.nvvm.ex2.approx.ftz.f(float %1)"),
        (BUFFERS, BUFFER.format("i64", "i64 2147483646"), BUFFER.format("i32", "i32 2147483646")),
    ],
)  # fmt: skip
def test_a_construct_is_taken_out(name: str, before: str, after: str) -> None:
    assert rewritten(before, [name]) == (after, (name,))
    assert rewritten(before, []) == (before, ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (FLOATS, "  %1 = fmul float %0, 0x3FF7154760000000"),
        (FLOATS, '@s = constant [3 x i8] c"f0x3FB8AA3B", align 1'),
        (SIGNS, '  call void asm "icmp samesign ult", ""()'),
        (TRIPLE, 'target triple = "nvptx64-nvidia-cuda"'),
        (BUFFERS, BUFFER.format("i64", "i64 4294967296")),
        (BUFFERS, BUFFER.format("i64", "i64 %3")),
        (ATTRIBUTES, "define void @k() #0 {\n}\nattributes #0 = { nounwind nocreateundeforpoison }"),
        (ATTRIBUTES, "declare void @ocml() #0\nattributes #0 = { convergent nounwind }"),
    ],
)
def test_what_means_something_else_stays(name: str, text: str) -> None:
    assert rewritten(text, [name]) == (text, ())


def test_a_promise_is_never_called_exact() -> None:
    assert {row.name for row in SPELLINGS if not row.exact} == {CAPTURES, POINTERS, SIGNS, TRUNC}
