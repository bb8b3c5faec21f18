"""Compares two states of the IR between the passes of a stage.

For attribution: more counts as the same here than in verdicts. Spellings of other releases do, and, on the
way to LLVM IR, everything that is not translated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """Keeps the digests of what it has read. Not thread-safe."""

    def __init__(self) -> None:
        self._operations: dict[tuple[str, str], str] = {}
        self._canonical: dict[tuple[str, str], str] = {}

    def same(self, base: State, head: State) -> bool:
        """Equal but for their spelling."""
        return self._same(Stage.TTGIR, base, head)

    def same_below_mlir(self, base: State, head: State) -> bool:
        """Equal but for what is not translated to LLVM IR: the module's attributes, Triton's on functions."""
        return self._same("mlir", base, head)

    def _same(self, ir: str, base: State, head: State) -> bool:
        """Names of operations first: canonical text takes a hundred times as long."""
        return base.digest == head.digest or all(
            _once(known, make, ir, base) == _once(known, make, ir, head)
            for known, make in ((self._operations, _operations), (self._canonical, _canonical))
        )


def _once(known: dict[tuple[str, str], str], make: Callable[[str, State], str], ir: str, state: State) -> str:
    key = ir, state.digest
    if key not in known:
        known[key] = make(ir, state)
    return known[key]


def _operations(ir: str, state: State) -> str:
    names = "\n".join(name for name in state.operations() if ir != "mlir" or name != _CONSTANT)
    return sha256(names.encode()).hexdigest()


def _canonical(ir: str, state: State) -> str:
    """The digest of the canonical lines; of a text that has none, its own."""
    digest = sha256()
    try:
        with LARGE_TEXT:
            for line in canonical(ir, state.text):
                digest.update(f"{line}\n".encode())
    except NormalizeError:
        return state.digest
    return digest.hexdigest()
