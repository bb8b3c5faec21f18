"""Texts as a tool reads them, and the record of what was rewritten for that.

LLVM IR is given in other spellings. PTX is given under the newest ISA version that an
assembler knows, where its header asks for a newer one: Triton writes that header by the ptxas it runs, so an
older ptxas would be given an older one by Triton too. What the text uses of the newer ISA is still refused.

Text of LLVM IR is not kept readable from one version to the next, and a release of Triton has a development
version of LLVM, ahead of any that is packaged. Whether a tool reads a construct is asked of the tool, with
a module of a few lines. A construct is *exact* where another spelling means the same: a tool that does not
read the one is given the other. Otherwise it is a promise to the optimizer, and what is left without it is
another, still right, program: where one tool does not read it, *both* are given that, so that both compile
the same; never is it done against the release, whose code was made with the promise. Nothing else is
rewritten: what a tool still cannot read is a failure that names the construct.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from irdiff.codegen.tool_runner import LlvmCall, Runner, unknown_intrinsics
from irdiff.ir.lexing import LLVM_IR, Strings
from irdiff.ir.llir.llvm_floats import spell_floats
from irdiff.resolve.tools import Tool, ToolKind
from irdiff.store import Store, sha256

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
             "define amdgpu_kernel void @f() {\n  ret void\n}\n"),
    Spelling("attributes of intrinsics (nocreateundeforpoison)", True, _declared_attributes,
             "declare float @llvm.fabs.f32(float) #0\n"
             "attributes #0 = { nocreateundeforpoison nounwind }\n"),
    Spelling("captures(none)", True, lambda text: text.replace(" captures(none)", " nocapture"),
             _BODY.format("", "void", "captures(none) ", "")),
    Spelling("make.buffer.rsrc with 64-bit sizes", True, _buffer_sizes,
             f"declare ptr addrspace(8) {_RSRC}(ptr addrspace(1), i16, i64, i32)\n"
             "define ptr addrspace(8) @f(ptr addrspace(1) %0) {\n"
             f"  %2 = call ptr addrspace(8) {_RSRC}(ptr addrspace(1) %0, i16 0, i64 64, i32 0)\n"
             "  ret ptr addrspace(8) %2\n}\n"),
    # LLVM upgrades the older name to this one, with the same argument (AutoUpgrade.cpp)
    Spelling("nvvm.barrier.cta.sync.aligned.all", True,
             lambda text: text.replace(f"{_BARRIER}(", "@llvm.nvvm.barrier.n("),
             f"declare void {_BARRIER}(i32)\n"
             + _BODY.format(f"  call void {_BARRIER}(i32 0)", "void", "", "")),
    # likewise: one name for each type came later
    Spelling("nvvm.ex2.approx.f32", True, lambda text: _POWERS.sub(r"\1f(", text),
             "declare float @llvm.nvvm.ex2.approx.f32(float)\n"
             + _BODY.format("  %4 = call float @llvm.nvvm.ex2.approx.f32(float %2)", "float", "", " %4")),
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
    found = []
    for spelling in SPELLINGS:
        if spelling.name in wanted:
            changed = spelling.without(plain)
            if changed != plain:
                found.append(spelling.name)
                plain = changed
    whole = strings.restore(plain) if found else text
    if _TRIPLE in wanted and _NEW_TRIPLE.search(whole):
        return _NEW_TRIPLE.sub(r"\1amdgcn-", whole), (*found, _TRIPLE)
    return whole, tuple(found)


_EXACT = frozenset(row.name for row in SPELLINGS if row.exact)


class ReadableTexts:
    """For the tools of one comparison. Thread-safe."""

    def __init__(self, tools: Sequence[Tool], runner: Runner, store: Store, *, alone: bool) -> None:
        self._llvms = {tool.version: tool for tool in tools if tool.kind is ToolKind.LLVM}
        self._runner = runner
        self._store = store
        self._alone = alone
        """Whether no side is a release: all compile what they are given."""
        self._abilities: dict[str, Abilities] = {}
        self._respelled: dict[str, set[str]] = {}
        """By spelling, or by the words for a lowered header: digests of texts."""
        self._lock = threading.Lock()

    def abilities(self, tool: Tool) -> Abilities:
        with self._lock:
            known = self._abilities.get(tool.digest)
            if known is None:
                known = self._abilities[tool.digest] = of_tool(tool, self._runner, self._store)
            return known

    def spellings(self, tool: Tool) -> tuple[str, ...]:
        """What is respelled for a tool: what it cannot read, and promises that any LLVM here cannot."""
        names = set(self.abilities(tool).unreadable) & _EXACT
        if self._alone:
            unreadable = {name for one in self._llvms.values() for name in self.abilities(one).unreadable}
            names |= unreadable - _EXACT
        return tuple(row.name for row in SPELLINGS if row.name in names)

    def note(self, names: Iterable[str], text: str) -> None:
        """Notes what was respelled in the text of a digest, or what was lowered in its header."""
        with self._lock:
            for name in names:
                self._respelled.setdefault(name, set()).add(text)

    def assembly(self, text: bytes, tool: Tool) -> bytes:
        """Under an ISA version that an assembler knows."""
        newest = self.abilities(tool).newest_isa
        before, found, rest = text.partition(b".version ")
        line, end, rest = rest.partition(b"\n")
        asked = line.strip().replace(b".", b"")
        if newest is None or not found or not asked.isdigit() or int(asked) <= newest:
            return text
        lowered = f"{newest // 10}.{newest % 10}"
        words = f"{tool.version} knows no ISA {line.decode().strip()}: PTX that asks for it is given as"
        self.note([f"{words} {lowered}"], sha256(text))
        return before + found + lowered.encode() + end + rest

    def notes(self) -> list[str]:
        """What a reader must know of the texts, once all is compiled."""
        notes = []
        known = {row.name for row in SPELLINGS}
        for name, texts in sorted(self._respelled.items()):
            who = [version for version, one in self._llvms.items() if name in self.abilities(one).unreadable]
            how = "spelled differently, with the same meaning" if name in _EXACT else "left out on both sides"
            cannot = f"{' and '.join(who)} cannot read {name}: {how}, in {len(texts)} texts"
            notes.append(cannot if name in known else f"{name} ({len(texts)} texts)")
        for version, one in self._llvms.items():
            lacking = [flag for flag in FLAGS if flag not in self.abilities(one).flags]
            if lacking and "cuda" in one.backends:
                notes.append(f"{version} has no switch {', '.join(lacking)}, which Triton may set")
        return notes


_EMPTY = "define void @f() {\n  ret void\n}\n"
_NEWEST_PTX, _OLDEST_PTX = 99, 60
_NOT_RECOGNIZED = b"is not a recognized feature"
FLAGS = ("nvptx-short-ptr", "nvptx-mad-wide-opt", "nvptx-sched4reg")
_NEWEST_ISA = re.compile(rb"current version is '(\d+)\.(\d+)'")
_NVIDIA = LlvmCall(triple="nvptx64-nvidia-cuda", processor="sm_80", fuses=True, header=("7.0", "sm_80"))
_AMD = LlvmCall(triple="amdgcn-amd-amdhsa", processor="gfx906", fuses=True)


@dataclass(frozen=True, kw_only=True)
class Abilities:
    unreadable: tuple[str, ...]
    """Names of the spellings that it does not read."""
    newest_isa: int | None
    """As 90 for 9.0: that an LLVM can write, or a ptxas read."""
    flags: tuple[str, ...]
    """Of the switches that Triton sets in LLVM, those that it has."""


def of_tool(tool: Tool, runner: Runner, store: Store) -> Abilities:
    """Found by small texts that the tool compiles."""
    if tool.kind is ToolKind.PTXAS:
        return Abilities(unreadable=(), newest_isa=_newest_isa(tool, runner, store), flags=())

    def reads(text: str, call: LlvmCall) -> bool:
        named = re.search(r'target triple = "(\S+)"', text)
        with store.scratch() as folder:
            (folder / "kernel.ll").write_text(text)
            ended = runner.translate(tool, replace(call, triple=named[1]) if named else call, folder)
            made = folder / "kernel.s"
            known = made.exists() and not unknown_intrinsics(made.read_text(), "")
            return ended.code == 0 and known and _NOT_RECOGNIZED not in ended.stderr

    # a spelling of a backend that the tool lacks is in none of its texts
    unreadable = []
    for row in SPELLINGS:
        backend, call = ("hip", _AMD) if "amd" in row.probe else ("cuda", _NVIDIA)
        if backend in tool.backends and not reads(row.probe, call):
            unreadable.append(row.name)
    tried = range(_NEWEST_PTX, _OLDEST_PTX, -1) if "cuda" in tool.backends else ()
    return Abilities(
        unreadable=tuple(unreadable),
        newest_isa=next((isa for isa in tried if reads(_EMPTY, replace(_NVIDIA, newest_isa=isa))), None),
        flags=tuple(flag for flag in FLAGS if tried and reads(_EMPTY, replace(_NVIDIA, flags=(flag,)))),
    )


def _newest_isa(tool: Tool, runner: Runner, store: Store) -> int | None:
    """What a ptxas prints about a text of an ISA that does not exist."""
    with store.scratch() as folder:
        (folder / "kernel.ptx").write_text(".version 99.9\n.target sm_80\n.address_size 64\n")
        ended = runner.run_ptxas(tool.programs["ptxas"], ("--gpu-name=sm_80",), folder)
    found = _NEWEST_ISA.search(ended.stderr + ended.stdout)
    return int(found[1] + found[2]) if found else None
