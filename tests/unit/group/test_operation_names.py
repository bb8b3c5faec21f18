"""What a reader calls the operation of a line."""

from __future__ import annotations

import pytest

from irdiff.group import operation_names

ASSEMBLY = (
    '%1 = llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "{}", "=r" %0 : (i32) -> i32'
)


@pytest.mark.parametrize(
    ("stage", "line", "name"),
    [
        ("ttgir", "ttng.fence_async_shared {bCluster = false}", "`ttng.fence_async_shared`"),
        ("llir", "%1 = load i32, ptr addrspace(3) %0", "`load` from shared memory"),
        ("llir", "store i32 %1, ptr addrspace(1) %0", "`store` to global memory"),
        ("llir", '%1 = call i32 asm sideeffect "ld.global.b32 $0;", "=r"()', "inline `ld.global.b32`"),
        ("llir", "%1 = fadd float %0, %0", "float instruction"),
        ("llir", "%1 = fptrunc float %0 to half", "float conversion"),
        ("llir", "%1 = tail call float @llvm.copysign.f32(float %0)", "`llvm.copysign.f32`"),
        ("ptx", "cvt.rn.f16.f32 %rs1, %f1;", "conversion"),
        ("amdgcn", "ds_bpermute_b32 v1, v2, v3", "lane exchange"),
        ("ptx", "bar.sync 0;", "`bar.sync`"),
        ("mlir", "%1 = llvm.load %0 : !llvm.ptr<3>", "`load` from shared memory"),
        ("mlir", "llvm.store %1, %0 : !llvm.ptr<1>", "`store` to global memory"),
        ("mlir", "nvvm.barrier0", "`nvvm.barrier0`"),
        ("mlir", "rocdl.s.barrier", "`rocdl.s.barrier`"),
        ("mlir", "%1 = llvm.call @f(%0)", "call of `f`"),
        (
            "mlir",
            ASSEMBLY.format(r"mov.u32 $0, $4;\0A\09@$9 ld.global.v4.b32 { $0 }, [ $8 + 0 ];"),
            "inline `ld.global.v4.b32`",
        ),
        ("mlir", ASSEMBLY.format("mov.u32 $0, $1;"), "inline `mov.u32`"),
        ("mlir", ASSEMBLY.format(r"mov.u64 $0, 0x0;\0A\09createpolicy.x.b64 $0;"), "inline `createpolicy.x.b64`"),
        ("mlir", ASSEMBLY.format("exotic"), "inline assembly"),
    ],
)  # fmt: skip
def test_an_operation_is_called_as_a_reader_knows_it(stage: str, line: str, name: str) -> None:
    assert operation_names.name_of(stage, line) == name


@pytest.mark.parametrize(
    ("stage", "line", "untold"),
    [
        ("llir", "!1 = !{i32 1}", ""),
        ("llir", "@g = global i32 0", ""),
        ("llir", "declare void @f()", ""),
        ("llir", "attributes #0 = { nounwind }", ""),
        ("llir", "%1 = add i32 %0, 1", "`add`"),
        ("ttgir", "module attributes {a = 1 : i32} {", ""),
        ("ttgir", "}", ""),
        ("mlir", "llvm.func @f(i32) -> i32", ""),
        ("mlir", "%1 = llvm.add %0, %0 : i32", "`llvm.add`"),
        ("mlir", "%1 = rocdl.workitem.id.x : i32", "`rocdl.workitem.id.x`"),
    ],
)
def test_what_every_change_touches_is_told_by_its_bare_name_alone(stage: str, line: str, untold: str) -> None:
    assert (operation_names.name_of(stage, line), operation_names.minor_name_of(stage, line)) == ("", untold)


def test_names_after_a_count() -> None:
    assert operation_names.plural("call of `f`", 3) == "calls of `f`"
    assert operation_names.plural("float instruction", -2) == "float instructions"
    assert operation_names.plural("`nuw` flag", 2) == "`nuw` flags"
    assert operation_names.plural("lane exchange", -1) == "lane exchange"
    assert operation_names.plural("`tt.load`", 2) == "`tt.load`"


def test_a_name_is_bounded_and_keeps_its_backticks() -> None:
    assert operation_names.name_of("mlir", f"%1 = llvm.call @{'f' * 300}(%0)") == f"call of `{'f' * 90}`"


def test_escaped_letters_of_inline_assembly_are_read() -> None:
    escaped = ASSEMBLY.format(r"mov.u32 $0, $1\3B add.s32 $0, $0, 1;")
    assert operation_names.assembly(escaped) == ("mov.u32", "add.s32")
