"""Whether two states between the passes of a stage are the same IR: for attribution.

More counts as the same here than in verdicts: spellings of other releases, and, on the way to LLVM IR,
everything that is not translated.
"""

from __future__ import annotations

from hashlib import sha256

from irdiff.attribute import passes, syntax_drift
from irdiff.attribute.passes import State
from irdiff.errors import NormalizeError
from irdiff.parallel import LARGE_TEXT
from irdiff.stages import Stage

_CONSTANT = "llvm.mlir.constant"


class StateComparer:
    """Keeps what it has read, by digest, for no longer than one case."""

    def __init__(self) -> None:
        self._canonical: dict[tuple[str, str], str] = {}
        self._operations: dict[tuple[str, str], str] = {}

    def same(self, base: State, head: State) -> bool:
        """Equal but for their spelling."""
        return self._same(Stage.TTGIR, base, head)

    def same_below_mlir(self, base: State, head: State) -> bool:
        """Equal but for what is not translated to LLVM IR: the module's attributes, Triton's on functions."""
        return self._same("mlir", base, head, without=_CONSTANT)

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
        """The digest of the canonical lines, none of which is kept."""
        key = ir, state.digest
        if key not in self._canonical:
            with LARGE_TEXT:
                self._canonical[key] = _canonical_digest(ir, state)
        return self._canonical[key]


def _canonical_digest(ir: str, state: State) -> str:
    digest = sha256()
    try:
        for line in syntax_drift.canonical(ir, state.text):
            digest.update(line.encode())
            digest.update(b"\n")
    except NormalizeError:
        return state.digest
    return digest.hexdigest()


def _operations(state: State, without: str) -> str:
    """Cheap, and enough where operations differ: canonical text takes a hundred times as long."""
    names = "\n".join(name for name in passes.operations(state) if name != without)
    return sha256(names.encode()).hexdigest()
