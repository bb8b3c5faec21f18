"""Texts and binaries of a small kernel, others that differ from them, and no LLVM that reads them."""

from irdiff.ir.canonical import Printed
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage


def coded(binary, section, first):
    return rebuilt(binary, content(section, lambda old: first + old[1:]))


PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\t.loc\t1 2 3\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN, THIRD_CUBIN = (coded(CUBIN, ".text.", first) for first in (b"\1", b"\2"))
DEBUG_CUBIN = rebuilt(CUBIN, content(".debug_line", lambda old: old + b"more"))
HSACO = of_stage("hsaco", release="3.9.0", target="gfx942")[0].content
AMDGCN = of_stage("amdgcn", release="3.9.0", target="gfx942")[0].text


def mlir(*operations, function="tt.func public @k()", end="tt.return"):
    """A module of one function."""
    body = "".join(f"    {line}\n" for line in (*operations, end))
    return f"module {{\n  {function} {{\n{body}  }}\n}}\n"


def no_llvm(_):
    """Texts are compared as they are spelled."""
    return Printed(text=None, why_not="unavailable")
