"""Whether two states between the passes of a stage are the same IR.

For attribution: more counts as the same here than in verdicts. Spellings of other releases do, and, on the
way to LLVM IR, everything that is not translated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from hashlib import sha256

from irdiff import texts
from irdiff.attribute.pass_states import State
from irdiff.errors import NormalizeError
from irdiff.ir.mlir import spellings
from irdiff.parallel import LARGE_TEXT
from irdiff.stages import Stage

_CONSTANT = "llvm.mlir.constant"


def canonical(ir: str, text: str) -> Iterator[str]:
    """Canonical lines of MLIR in the spelling of older releases, one after another.

    The IR `mlir` is that of a pass on the way to LLVM IR: what is not translated is left out.
    Raises NormalizeError, some of it only on the way.
    """
    lines = map(spellings.undone, texts.lines(Stage.TTGIR if ir == "mlir" else ir, text))
    return spellings.translated(lines) if ir == "mlir" else lines


class StateComparer:
    """Remembers what it has compared. Not thread-safe."""

    def __init__(self) -> None:
        self._operations: dict[tuple[str, str], str] = {}
        self._equal: dict[tuple[str, str, str], bool] = {}

    def same(self, base: State, head: State) -> bool:
        """Equal but for their spelling."""
        return self._same(Stage.TTGIR, base, head)

    def same_below_mlir(self, base: State, head: State) -> bool:
        """Equal but for what is not translated to LLVM IR: the module's attributes, Triton's on functions."""
        return self._same("mlir", base, head)

    def _same(self, ir: str, base: State, head: State) -> bool:
        """Names of operations first: canonical text takes a hundred times as long."""
        key = ir, base.digest, head.digest
        if base.digest == head.digest:
            return True
        if key not in self._equal:
            has_same_operations = self._names(ir, base) == self._names(ir, head)
            self._equal[key] = has_same_operations and _have_same_lines(ir, base, head)
        return self._equal[key]

    def _names(self, ir: str, state: State) -> str:
        key = ir, state.digest
        if key not in self._operations:
            self._operations[key] = _operations(ir, state)
        return self._operations[key]


def _operations(ir: str, state: State) -> str:
    names = "\n".join(name for name in state.operations() if ir != "mlir" or name != _CONSTANT)
    return sha256(names.encode()).hexdigest()


def _have_same_lines(ir: str, base: State, head: State) -> bool:
    """Whether the canonical lines are equal, read up to the first that differs. A text that has none equals
    its own bytes alone.
    """
    try:
        with LARGE_TEXT:
            lines = itertools.zip_longest(canonical(ir, base.text), canonical(ir, head.text))
            return all(ours == theirs for ours, theirs in lines)
    except NormalizeError:
        return False
