"""What large texts and large runs take of irdiff's own memory, counted by Python: the same on every machine.

The bounds are a little above what is taken. With whole texts in every step it was two to three times as much.
"""

import tracemalloc
from contextlib import contextmanager

import pytest

from irdiff.attribute.edit_reader import EditReader
from irdiff.attribute.pass_states import State
from irdiff.attribute.state_comparer import StateComparer
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.compare.edits import EditSource
from irdiff.group.describer import CaseDescriber
from irdiff.store import Store
from tests.texts import text_of
from tests.unit import runs
from tests.unit.compiled import no_llvm

pytestmark = pytest.mark.slow
VALUES = 8_000
ROWS = text_of("memory/rows.mlir.template").splitlines()
"""As IR between passes, late on the way to LLVM IR: the largest has 21 MB."""


def large_ir(end="llvm.return"):
    rows = [f"    {ROWS[n % len(ROWS)].format(n, n % 64, n - 1)}" for n in range(1, VALUES)]
    head = ["module attributes {a = 1 : i32} {", "  llvm.func @kernel(%arg0: i32) {", "    %0 = llvm.x : i32"]
    return "\n".join([*head, *rows, f"    {end}", "  }", "}"]).encode()


@contextmanager
def at_most(size_bytes):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < size_bytes
    finally:
        tracemalloc.stop()


def test_states_are_compared_without_holding_their_lines():
    base = State.of("A", large_ir())
    head = State.of("A", large_ir("llvm.return  // other"))
    with at_most(7 * len(base.content)):
        assert StateComparer().same_below_mlir(base, head)


def test_an_edit_takes_little_more_than_its_lines(tmp_path):
    store = Store(tmp_path)
    base, head = large_ir(), large_ir("llvm.unreachable")
    source = EditSource(ir="mlir", base=store.put(base), head=store.put(head))
    describer = CaseDescriber(EditReader(ArtifactComparator(store, no_llvm)))
    with at_most(5 * (len(base) + len(head))):
        describer.describe(runs.case(), source)
