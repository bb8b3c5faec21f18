"""Constructs of LLVM IR that not every LLVM reads, and texts without them.

Text of LLVM IR is not kept readable from one version to the next. A construct is *exact* where another
spelling means the same. Otherwise it is a promise to the optimizer, and what is left without it is another,
still right, program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from irdiff.ir.lexing import LLVM_IR, Strings
from irdiff.ir.llir.llvm_floats import spell_floats

_NEW_TRIPLE = re.compile(r'^(target triple = ")amdgpu[\w.]*-', re.M)
_GROUP = re.compile(r"^attributes (#\d+) = \{[^\n]*\}$", re.M)
_USED_GROUP = re.compile(r"#\d+")
_CAPTURES = re.compile(r" captures\((?:[^()\n]|\([^()\n]*\))*\)")
_POINTER_FLAGS = re.compile(r"(?<=getelementptr )((?:inbounds |nuw |nusw )+)")
_TRUNC_FLAGS = re.compile(r"(?<=trunc )(?:nuw |nsw )+")
_BUFFER = re.compile(
    r"(@llvm\.amdgcn\.make\.buffer\.rsrc\.[\w.]+\((?:[^(),\n]|\([^()\n]*\))*, "
    r"i16 ?[^,()\n]*, )i64(?: ([^,()\n]+))?(?=, )"
)


class Spelling(NamedTuple):
    name: str
    exact: bool
    without: Callable[[str], str]
    """Takes the construct out of a text whose strings are hidden."""
    probe: str
    """A module that has the construct."""
    target: str = ""
    """LLVM's name of the one target that has it; empty where all have it."""


def _declared_attributes(text: str) -> str:
    """Attributes of intrinsics' declarations are LLVM's own to set: its reader replaces what the text says
    (AutoUpgrade.cpp, `UpgradeIntrinsicFunction`). Groups that nothing but such declarations uses may go.
    """
    kept = "\n".join(line for line in text.split("\n") if not line.startswith(("declare ", "attributes ")))
    used = set(_USED_GROUP.findall(kept))
    for line in text.split("\n"):
        if line.startswith("declare ") and "@llvm." not in line:
            used.update(_USED_GROUP.findall(line))
    return _GROUP.sub(lambda m: m[0] if m[1] in used else f"attributes {m[1]} = {{ nounwind }}", text)


def _buffer_sizes(text: str) -> str:
    """The number of bytes of a buffer was 32 bits wide: a constant that fits says the same there."""
    sizes = [match[2] for match in _BUFFER.finditer(text) if match[2]]
    if not all(size.isdigit() and int(size) < 1 << 31 for size in sizes):
        return text
    return _BUFFER.sub(lambda m: f"{m[1]}i32{' ' + m[2] if m[2] else ''}", text)


_POWERS = re.compile(r"(@llvm\.nvvm\.ex2\.approx\.(?:ftz\.)?)f32\(")
_BARRIER = "@llvm.nvvm.barrier.cta.sync.aligned.all"
_RSRC = "@llvm.amdgcn.make.buffer.rsrc.p8.p1"
_BODY = "define {1} @f(ptr {2}%0, i32 %1, float %2) {{\n{0}\n  ret {1}{3}\n}}\n"
_TRIPLE = "AMD's triple with the processor in it"
# fmt: off
SPELLINGS = (
    Spelling("floats as f0x…, +inf and decimals that are not exact", True, spell_floats,
             "@a = global float f0x3FB8AA3B\n@b = global float -inf\n@c = global float -1.000000e+30\n"),
    Spelling(_TRIPLE, True, lambda text: text,  # the triple is a string: see `rewritten`
             'target triple = "amdgpu9.42-amd-amdhsa"\n'
             "define amdgpu_kernel void @f() {\n  ret void\n}\n", "amdgcn"),
    Spelling("attributes of intrinsics (nocreateundeforpoison)", True, _declared_attributes,
             "declare float @llvm.fabs.f32(float) #0\n"
             "attributes #0 = { nocreateundeforpoison nounwind }\n"),
    Spelling("captures(none)", True, lambda text: text.replace(" captures(none)", " nocapture"),
             _BODY.format("", "void", "captures(none) ", "")),
    Spelling("make.buffer.rsrc with 64-bit sizes", True, _buffer_sizes,
             f"declare ptr addrspace(8) {_RSRC}(ptr addrspace(1), i16, i64, i32)\n"
             "define ptr addrspace(8) @f(ptr addrspace(1) %0) {\n"
             f"  %2 = call ptr addrspace(8) {_RSRC}(ptr addrspace(1) %0, i16 0, i64 64, i32 0)\n"
             "  ret ptr addrspace(8) %2\n}\n", "amdgcn"),
    # LLVM upgrades the older name to this one, with the same argument (AutoUpgrade.cpp)
    Spelling("nvvm.barrier.cta.sync.aligned.all", True,
             lambda text: text.replace(f"{_BARRIER}(", "@llvm.nvvm.barrier.n("),
             f"declare void {_BARRIER}(i32)\n"
             + _BODY.format(f"  call void {_BARRIER}(i32 0)", "void", "", ""), "nvptx64"),
    # likewise: one name for each type came later
    Spelling("nvvm.ex2.approx.f32", True, lambda text: _POWERS.sub(r"\1f(", text),
             "declare float @llvm.nvvm.ex2.approx.f32(float)\n"
             + _BODY.format("  %4 = call float @llvm.nvvm.ex2.approx.f32(float %2)", "float", "", " %4"),
             "nvptx64"),
    Spelling("captures(…)", False, lambda text: _CAPTURES.sub("", text),
             _BODY.format("", "void", "captures(address) ", "")),
    Spelling("getelementptr nuw", False,
             lambda text: _POINTER_FLAGS.sub(lambda m: "inbounds " if "inbounds" in m[1] else "", text),
             _BODY.format("  %4 = getelementptr inbounds nuw i8, ptr %0, i32 %1", "void", "", "")),
    Spelling("icmp samesign", False, lambda text: text.replace("icmp samesign ", "icmp "),
             _BODY.format("  %4 = icmp samesign ult i32 %1, 4", "void", "", "")),
    Spelling("trunc nuw", False, lambda text: _TRUNC_FLAGS.sub("", text),
             _BODY.format("  %4 = trunc nuw i32 %1 to i16", "void", "", "")),
)
# fmt: on


def rewritten(text: str, names: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The text without these constructs, and those that it had. A text that has none stays as it is.

    Raises `ir.lexing.UnclearError` for a text whose strings cannot be separated from the rest.
    """
    wanted = set(names)
    strings = Strings(LLVM_IR)
    plain = strings.read(text)
    names_of_spellings = []
    for spelling in SPELLINGS:
        if spelling.name in wanted:
            changed = spelling.without(plain)
            if changed != plain:
                names_of_spellings.append(spelling.name)
                plain = changed
    whole = strings.restore(plain) if names_of_spellings else text
    if _TRIPLE in wanted and _NEW_TRIPLE.search(whole):
        return _NEW_TRIPLE.sub(r"\1amdgcn-", whole), (*names_of_spellings, _TRIPLE)
    return whole, tuple(names_of_spellings)
