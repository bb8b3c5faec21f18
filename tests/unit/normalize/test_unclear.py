"""Texts of which it is not certain what they mean: no rule touches them, so the least edit is a difference."""

from __future__ import annotations

import pytest

from irdiff.normalize import canonicalize, equivalent
from irdiff.normalize.lexing import AMDGCN, LLVM_IR, MLIR, PTX, Strings, UnclearError

_PTX = ".version 8.7\n.target sm_90\n{}\n"
_AMDGCN = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"\n{}\n\ts_endpgm\n'
_LLVM = "define void @f() {{\n{}\n  ret void\n}}\n"
_MLIR = "module {{\n  tt.func public @f() {{\n{}\n    tt.return\n  }}\n}}\n"


def _hiding(used: str, first: str, second: str) -> str:
    """A region that uses a name which is visible from outside, and then defines it itself."""
    lines = (
        f"{first} = op.a",
        f"{second} = op.b",
        "iso {",
        "cf.br ^bb2",
        "^bb1:",
        f"op.use {used}",
        "cf.br ^bb3",
    )
    return "\n".join([*lines, "^bb2:", "%a = op.c", "%b = op.d", "cf.br ^bb1", "^bb3:", "op.e", "}"])


PAIRS = {
    "string without an end": ("ptx", _PTX, '.pragma "a\n// b";', '.pragma "a\n// c";'),
    "string that ptxas ends": ("ptx", _PTX, r'.pragma "a\" ; // "; ret; //";', r'.pragma "a\" ; // "; exit; //";'),
    "comment without an end": ("ptx", _PTX, "ret; /* a", "ret; /* b"),
    "comment that some end at a carriage return": ("ptx", _PTX, "// a\rret;", "// a\rexit;"),
    "statement behind a carriage return": ("amdgcn", _AMDGCN, "s_nop 1 ; a\rs_nop 2", "s_nop 1 ; a\rs_nop 3"),
    "string over lines": ("amdgcn", _AMDGCN, '.ascii "a\n; b"', '.ascii "a\n; c"'),
    "sign within a line": ("amdgcn", _AMDGCN, "l: # /*\ns_nop 1 # */", "l: # /*\ns_nop 2 # */"),
    "quote alone": ("amdgcn", _AMDGCN, "s_nop 1 ' ; a", "s_nop 1 ' ; b"),
    "macro": (
        "amdgcn",
        _AMDGCN,
        ".macro m a\ns_branch .LBB0_\\a\n.endm\nm 1\n.LBB0_1:\n.LBB0_2:",
        ".macro m a\ns_branch .LBB0_\\a\n.endm\nm 2\n.LBB0_1:\n.LBB0_2:",
    ),
    "label in quotes": (
        "amdgcn",
        _AMDGCN,
        's_branch ".LBB0_1"\n.LBB0_1:\ns_branch .LBB0_1\n.LBB0_2:\ns_branch .LBB0_2',
        's_branch ".LBB0_1"\n.LBB0_2:\ns_branch .LBB0_2\n.LBB0_1:\ns_branch .LBB0_1',
    ),
    "label of a debug section in quotes": (
        "amdgcn",
        _AMDGCN,
        's_branch ".La"\n.section .debug_x\n.La:\n.byte 1\n.text',
        's_branch ".La"\n.section .debug_x\n.byte 1\n.La:\n.text',
    ),
    "local in quotes": (
        "llir",
        _LLVM,
        '  %x = load i32, ptr @a\n  %y = load i32, ptr @b\n  call void @g(i32 %"x")',
        '  %y = load i32, ptr @a\n  %x = load i32, ptr @b\n  call void @g(i32 %"x")',
    ),
    "local in two spellings": (
        "llir",
        _LLVM,
        '  %"a b" = load i32, ptr @a\n  %"c d" = load i32, ptr @b\n  call void @g(i32 %"a\\20b")',
        '  %"c d" = load i32, ptr @a\n  %"a b" = load i32, ptr @b\n  call void @g(i32 %"a\\20b")',
    ),
    "variable in quotes": (
        "llir",
        "@a = private global i32 1\n@b = private global i32 2\n" + _LLVM,
        '  call void @g(ptr @"a")',
        '  call void @g(ptr @"b")',
    ),
    "string of LLVM IR over lines": ("llir", _LLVM, '  call void asm "a\n; b", ""()', '  call void asm "a\n; c", ""()'),
    "symbol in quotes": (
        "ttir",
        _MLIR + "tt.func private @a__b() {{\n}}\ntt.func private @a__c() {{\n}}\n",
        'tt.call @"a__b"()',
        'tt.call @"a__c"()',
    ),
    "name used before it is hidden": ("ttir", _MLIR, _hiding("%a", "%a", "%b"), _hiding("%b", "%b", "%a")),
    "block of no region": ("ttir", _MLIR, "scf.if %c {\ncf.br ^bb1\n}\n^bb1:\n^bb2:", "scf.if %c {\ncf.br ^bb2\n}\n^bb1:\n^bb2:"),
}  # fmt: skip


@pytest.mark.parametrize(("ir", "text", "one", "other"), PAIRS.values(), ids=PAIRS.keys())
def test_nothing_is_taken_for_the_same(ir: str, text: str, one: str, other: str) -> None:
    base, head = text.format(one), text.format(other)
    assert not equivalent(ir, base, head).equal
    assert canonicalize(ir, base).text == base
    assert canonicalize(ir, base).numbers == tuple(range(1, base.count("\n") + 2))


@pytest.mark.parametrize(
    ("language", "text", "read"),
    [
        (PTX, 'a /* 16" */ b // "\nc', "a   b \nc"),
        (PTX, "a // /*\nb /* // */ c", "a \nb   c"),
        (PTX, "/*/ a /*/ b /**/c", "  b  c"),
        (PTX, r'"a\\" // b', r'"a\\" '),
        (LLVM_IR, '"a;\\" ; "b', '"a;\\" '),
        (LLVM_IR, '"a" /* ;\n" */ "b"', '"a"  \n "b"'),
        (MLIR, r'"\" // " // "', r'"\" // " '),
        (MLIR, "a /* b */", "a /* b */"),
        (AMDGCN, "a '\"' ; '\n# it's\n\t# b\nc: 'd'", "a '\"' \n\n\t\nc: 'd'"),
    ],
)
def test_comments_and_strings_in_one_pass(language, text: str, read: str) -> None:
    strings = Strings(language)
    assert strings.restore(strings.read(text)) == read


@pytest.mark.parametrize("text", ['"', '"a\\', "/*", "/*/", "a\fb"])
def test_what_does_not_end_is_unclear(text: str) -> None:
    with pytest.raises(UnclearError):
        Strings(PTX).read(text)
