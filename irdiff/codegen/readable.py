"""Texts as a tool reads them, and the record of what was rewritten for that.

LLVM IR is given in other spellings (`spellings`). PTX is given under the newest ISA version that an
assembler knows, where its header asks for a newer one: Triton writes that header by the ptxas it runs, so an
older ptxas would be given an older one by Triton too. What the text uses of the newer ISA is still refused.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from irdiff.codegen.calls import LlvmCall
from irdiff.codegen.spellings import SPELLINGS
from irdiff.codegen.tool_runner import Runner, unknown_intrinsics
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import Store, sha256

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

    def ptx(self, text: bytes, tool: Tool) -> bytes:
        """Under an ISA version that an assembler knows."""
        newest = self.abilities(tool).newest_ptx
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
    newest_ptx: int | None
    """As 90 for 9.0: that an LLVM can write, or a ptxas read."""
    flags: tuple[str, ...]
    """Of the switches that Triton sets in LLVM, those that it has."""


def of_tool(tool: Tool, runner: Runner, store: Store) -> Abilities:
    """Found by small texts that the tool compiles."""
    if tool.kind is ToolKind.PTXAS:
        return Abilities(unreadable=(), newest_ptx=_newest_isa(tool, runner, store), flags=())

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
        newest_ptx=next((ptx for ptx in tried if reads(_EMPTY, replace(_NVIDIA, ptx=ptx))), None),
        flags=tuple(flag for flag in FLAGS if tried and reads(_EMPTY, replace(_NVIDIA, flags=(flag,)))),
    )


def _newest_isa(tool: Tool, runner: Runner, store: Store) -> int | None:
    """What a ptxas prints about a text of an ISA that does not exist."""
    with store.scratch() as folder:
        (folder / "kernel.ptx").write_text(".version 99.9\n.target sm_80\n.address_size 64\n")
        ended = runner.run_ptxas(tool.programs["ptxas"], ("--gpu-name=sm_80",), folder)
    found = _NEWEST_ISA.search(ended.stderr + ended.stdout)
    return int(found[1] + found[2]) if found else None
