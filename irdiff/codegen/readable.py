"""Texts as a tool reads them, and the record of what was rewritten for that.

LLVM IR is given in other spellings (`spellings`). PTX is given under the newest ISA version that an
assembler knows, where its header asks for a newer one: Triton writes that header by the ptxas it runs, so an
older ptxas would be given an older one by Triton too. What the text uses of the newer ISA is still refused.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from irdiff.codegen import abilities, spellings
from irdiff.codegen.abilities import Abilities
from irdiff.codegen.kept_results import CODE
from irdiff.codegen.running import Runner
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.store import Store, key_of, sha256

_EXACT = frozenset(row.name for row in spellings.SPELLINGS if row.exact)


class ReadableTexts:
    """For the tools of one comparison. Thread-safe."""

    def __init__(self, tools: Sequence[Tool], runner: Runner, store: Store, *, alone: bool) -> None:
        self._llvms = {tool.version: tool for tool in tools if tool.kind is ToolKind.LLVM}
        self._runner = runner
        self._store = store
        self._alone = alone
        """Whether no side is a release: all compile what they are given."""
        self._abilities: dict[str, Abilities] = {}
        self._rewritten: dict[str, set[str]] = {}
        """By spelling: digests of the texts that it was taken out of."""
        self._lowered: dict[str, set[str]] = {}
        """By what was lowered in the header of a PTX: digests."""
        self._lock = threading.Lock()

    def abilities(self, tool: Tool) -> Abilities:
        with self._lock:
            if tool.digest not in self._abilities:
                self._abilities[tool.digest] = abilities.of_tool(tool, self._runner, self._store)
            return self._abilities[tool.digest]

    def llvm_ir(self, text: str, tool: Tool) -> str:
        """In spellings that the tool reads; without promises that any LLVM here cannot read.

        Raises `normalize.lexing.UnclearError`.
        """
        names = set(self.abilities(tool).unreadable) & _EXACT
        if self._alone:
            unreadable = {name for one in self._llvms.values() for name in self.abilities(one).unreadable}
            names |= unreadable - _EXACT
        chosen = [row.name for row in spellings.SPELLINGS if row.name in names]
        if not chosen:
            return text
        digest = sha256(text.encode())
        key = key_of("readable/1", CODE, digest, chosen)
        known = self._store.get_record("readable", key)
        content = self._store.get(known[0]) if known else None
        if known is None or content is None:
            changed, found = spellings.rewritten(text, chosen)
            content = changed.encode()
            known = [self._store.put(content), found]
            self._store.put_record("readable", key, known)
        with self._lock:
            for name in known[1]:
                self._rewritten.setdefault(name, set()).add(digest)
        return content.decode()

    def ptx(self, text: bytes, tool: Tool) -> bytes:
        """Under an ISA version that an assembler knows."""
        newest = self.abilities(tool).newest_ptx
        before, found, rest = text.partition(b".version ")
        line, end, rest = rest.partition(b"\n")
        asked = line.strip().replace(b".", b"")
        if newest is None or not found or not asked.isdigit() or int(asked) <= newest:
            return text
        lowered = f"{newest // 10}.{newest % 10}"
        words = (
            f"{tool.version} knows no ISA {line.decode().strip()}: PTX that asks for it is given as {lowered}"
        )
        with self._lock:
            self._lowered.setdefault(words, set()).add(sha256(text))
        return before + found + lowered.encode() + end + rest

    def notes(self) -> list[str]:
        """What a reader must know of the texts, once all is compiled."""
        notes = []
        for name, texts in sorted(self._rewritten.items()):
            who = [version for version, one in self._llvms.items() if name in self.abilities(one).unreadable]
            how = "spelled otherwise, with the same meaning" if name in _EXACT else "left out on both sides"
            notes.append(f"{' and '.join(who)} cannot read {name}: {how}, in {len(texts)} texts")
        for version, one in self._llvms.items():
            lacking = [flag for flag in abilities.FLAGS if flag not in self.abilities(one).flags]
            if lacking and "cuda" in one.backends:
                notes.append(f"{version} has no switch {', '.join(lacking)}, which Triton may set")
        notes += [f"{words} ({len(texts)} texts)" for words, texts in sorted(self._lowered.items())]
        return notes
