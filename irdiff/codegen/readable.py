"""Texts as a tool reads them, and the record of what was rewritten for that.

LLVM IR is given in other spellings (`ir.llir.spellings`), an assembly under the newest version of its
language that an assembler knows.

A release of Triton has a development version of LLVM, ahead of any that is packaged. Whether a tool reads a
construct is asked of the tool, with a module of a few lines. A tool that does not read an exact construct is
given its other spelling. Where one tool does not read a promise to the optimizer, *both* are given the text
without it, so that both compile the same; never is it done against the release, whose code was made with the
promise. Nothing else is rewritten: what a tool still cannot read is a failure that names the construct.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from irdiff import backends, texts
from irdiff.backends.code_generation import CodeGeneration, LlvmCall
from irdiff.codegen.tool_runner import Runner
from irdiff.ir.llir.spellings import SPELLINGS
from irdiff.resolve.tools import Tool, ToolKind
from irdiff.store import Store, sha256

_EXACT = frozenset(row.name for row in SPELLINGS if row.exact)


class ReadableTexts:
    """For the tools of one comparison. Thread-safe."""

    def __init__(self, tools: Sequence[Tool], runner: Runner, store: Store, *, alone: bool) -> None:
        self._llvms = {tool.version: tool for tool in tools if tool.kind is ToolKind.LLVM}
        self._runner = runner
        self._store = store
        self._alone = alone
        """True if every side is an LLVM: then a promise that one cannot read is left out for both."""
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
        """Returns the names of what is respelled for a tool: exact constructs that it cannot read, and, if
        every side is an LLVM, promises that one of them cannot read.
        """
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
        """Under a version of its language that an assembler knows."""
        newest = self.abilities(tool).newest_isa
        lowered = tool.assembler.lowered(text, newest) if tool.assembler else None
        if lowered is None:
            return text
        words = f"{tool.version} knows no ISA {lowered.asked}: {texts.title(tool.starts_at)} that asks for it"
        self.note([f"{words} is given as {lowered.now}"], sha256(text))
        return lowered.text

    def notes(self) -> list[str]:
        """Returns what a reader must know about the texts; complete once all is compiled."""
        notes = []
        known = {row.name for row in SPELLINGS}
        for name, digests in sorted(self._respelled.items()):
            who = [version for version, one in self._llvms.items() if name in self.abilities(one).unreadable]
            how = "spelled differently, with the same meaning" if name in _EXACT else "left out on both sides"
            cannot = f"{' and '.join(who)} cannot read {name}: {how}, in {len(digests)} texts"
            notes.append(cannot if name in known else f"{name} ({len(digests)} texts)")
        for version, one in self._llvms.items():
            wanted = [flag for each in _generations(one) for flag in each.SWITCHES]
            lacking = [flag for flag in wanted if flag not in self.abilities(one).flags]
            if lacking:
                notes.append(f"{version} has no switch {', '.join(lacking)}, which Triton may set")
        return notes


_EMPTY = "define void @f() {\n  ret void\n}\n"
_NOT_RECOGNIZED = b"is not a recognized feature"


@dataclass(frozen=True, kw_only=True)
class Abilities:
    unreadable: tuple[str, ...]
    """Names of the spellings that it does not read."""
    newest_isa: int | None
    """The newest version of an assembly that an LLVM can write, or an assembler read: 90 for 9.0."""
    flags: tuple[str, ...]
    """The switches of LLVM that Triton may set and the tool has."""


def of_tool(tool: Tool, runner: Runner, store: Store) -> Abilities:
    """Found by small texts that the tool compiles."""
    if tool.kind is ToolKind.ASSEMBLER:
        return Abilities(unreadable=(), newest_isa=_newest_isa(tool, runner, store), flags=())

    def reads(text: str, call: LlvmCall) -> bool:
        named = re.search(r'target triple = "(\S+)"', text)
        own = backends.of(call.backend).CODE_GENERATION
        with store.scratch() as folder:
            (folder / "kernel.ll").write_text(text)
            ended = runner.translate(tool, replace(call, triple=named[1]) if named else call, folder)
            made = folder / "kernel.s"
            known = made.exists() and not (own and own.unknown_intrinsics(made.read_text()))
            return ended.code == 0 and known and _NOT_RECOGNIZED not in ended.stderr

    able = _generations(tool)
    unreadable = []
    for row in SPELLINGS:
        # a spelling of a target that the tool lacks is in none of its texts
        probe = next((each.PROBE for each in able if row.target in ("", each.LLVM_NAME)), None)
        if probe and not reads(row.probe, probe):
            unreadable.append(row.name)
    tried = (replace(each.PROBE, newest_isa=isa) for each in able for isa in each.ISAS)
    return Abilities(
        unreadable=tuple(unreadable),
        newest_isa=next((call.newest_isa for call in tried if reads(_EMPTY, call)), None),
        flags=tuple(
            flag
            for each in able
            for flag in each.SWITCHES
            if reads(_EMPTY, replace(each.PROBE, flags=(flag,)))
        ),
    )


def _generations(tool: Tool) -> list[CodeGeneration]:
    """Returns `CODE_GENERATION` of the backends that a tool compiles for."""
    known = ((name, each.CODE_GENERATION) for name, each in backends.BACKENDS.items())
    return [own for name, own in known if own and name in tool.backends]


def _newest_isa(tool: Tool, runner: Runner, store: Store) -> int | None:
    """By what an assembler prints about a text of a version that does not exist."""
    assembler = tool.assembler
    assert assembler is not None
    with store.scratch() as folder:
        (folder / f"kernel.{tool.starts_at}").write_text(assembler.NEWER_THAN_ALL)
        program = tool.programs[assembler.NAME]
        ended = runner.run_assembler(assembler, program, assembler.NEWER_THAN_ALL_FLAGS, folder)
    return assembler.newest_isa(ended.stderr + ended.stdout)
