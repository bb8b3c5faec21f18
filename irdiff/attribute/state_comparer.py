"""Whether two states between the passes of a stage are the same IR, and the edit between them.

For attribution: more counts as the same here than in verdicts. Spellings of other releases do, and, on the
way to LLVM IR, everything that is not translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from irdiff.attribute import passes, syntax_drift
from irdiff.attribute.passes import State
from irdiff.compare import edits
from irdiff.compare.edits import Edit
from irdiff.errors import NormalizeError
from irdiff.normalize.compressed_text import PackedLines
from irdiff.parallel import LARGE_TEXT
from irdiff.stages import Stage

_CONSTANT = "llvm.mlir.constant"


@dataclass(frozen=True, kw_only=True)
class _Canonical:
    lines: PackedLines
    digest: str


class StateComparer:
    """Keeps what it has read, by digest and compressed, for no longer than one case. Not thread-safe."""

    def __init__(self) -> None:
        self._canonical: dict[tuple[str, str], _Canonical | None] = {}
        self._operations: dict[tuple[str, str], str] = {}
        self._edits: dict[tuple[str, str, str], Edit | None] = {}

    def same(self, base: State, head: State) -> bool:
        """Equal but for their spelling."""
        return self._same(Stage.TTGIR, base, head)

    def same_below_mlir(self, base: State, head: State) -> bool:
        """Equal but for what is not translated to LLVM IR: the module's attributes, Triton's on functions."""
        return self._same("mlir", base, head, without=_CONSTANT)

    def edit(self, ir: str, base: State, head: State) -> Edit | None:
        """Between two states of the same IR, named as in `EditSource`. None where one of them is damaged."""
        key = ir, base.digest, head.digest
        if key not in self._edits:
            with LARGE_TEXT:
                ours, theirs = self._read(ir, base), self._read(ir, head)
                self._edits[key] = edits.between(ir, ours.lines, theirs.lines) if ours and theirs else None
        return self._edits[key]

    def _same(self, ir: str, base: State, head: State, without: str = "") -> bool:
        return base.digest == head.digest or (
            self._names(base, without) == self._names(head, without)
            and self._digest(ir, base) == self._digest(ir, head)
        )

    def _names(self, state: State, without: str) -> str:
        key = without, state.digest
        if key not in self._operations:
            self._operations[key] = _operations(state, without)
        return self._operations[key]

    def _digest(self, ir: str, state: State) -> str:
        """Of the canonical lines; of a text that has none, its own."""
        with LARGE_TEXT:
            found = self._read(ir, state)
        return found.digest if found else state.digest

    def _read(self, ir: str, state: State) -> _Canonical | None:
        key = ir, state.digest
        if key not in self._canonical:
            self._canonical[key] = _canonical(ir, state)
        return self._canonical[key]


def _canonical(ir: str, state: State) -> _Canonical | None:
    digest = sha256()

    def noted(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            digest.update(line.encode())
            digest.update(b"\n")
            yield line

    try:
        lines = PackedLines(noted(syntax_drift.canonical(ir, state.text)))
    except NormalizeError:
        return None
    return _Canonical(lines=lines, digest=digest.hexdigest())


def _operations(state: State, without: str) -> str:
    """Cheap, and enough where operations differ: canonical text takes a hundred times as long."""
    names = "\n".join(name for name in passes.operations(state) if name != without)
    return sha256(names.encode()).hexdigest()
