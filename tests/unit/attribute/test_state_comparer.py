"""More is the same for attribution than for verdicts, and what cannot be read is the same only to the byte."""

from __future__ import annotations

import pytest

from irdiff.attribute import state_comparer
from irdiff.attribute.passes import State
from irdiff.attribute.state_comparer import StateComparer
from irdiff.compare.edits import Edit
from tests.programs.mutation.artifacts import of_stage


def state(*operations: str, function: str = "tt.func public @k()", end: str = "tt.return") -> State:
    body = "".join(f"    {line}\n" for line in (*operations, end))
    return State.of("P", "", None, f"module {{\n  {function} {{\n{body}  }}\n}}\n".encode())


def lowered(*operations: str, attributes: str = "") -> State:
    return state(*operations, function=f"llvm.func @k(){attributes}", end="llvm.return")


ONE = "llvm.mlir.constant(1 : i32) : i32"


def test_names_of_values_and_newer_spellings_are_the_same() -> None:
    comparer = StateComparer()
    named, numbered = state("%a = ttg.x : i32", "ttg.y %a : i32"), state("%0 = ttg.x : i32", "ttg.y %0 : i32")
    assert comparer.same(named, numbered)
    sized = state("%0 = ttg.x {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")
    assert comparer.same(sized, state("%0 = ttg.x {allocation.offset = 0 : i32} : i32"))


@pytest.mark.parametrize("other", [("ttg.y",), ("ttg.x", "ttg.x"), (), ("ttg.x {a = 1 : i32}",)])
def test_other_operations_and_attributes_are_not(other: tuple[str, ...]) -> None:
    assert not StateComparer().same(state("ttg.x"), state(*other))


def test_what_does_not_become_llvm_ir_does_not_count_on_the_way_to_it() -> None:
    comparer = StateComparer()
    early = lowered(f"%0 = {ONE}", "%1 = llvm.x : i32", "llvm.use %0, %1 : i32")
    late = lowered("%1 = llvm.x : i32", f"%0 = {ONE}", "llvm.use %0, %1 : i32")
    marked = lowered(
        "%1 = llvm.x : i32",
        f"%0 = {ONE}",
        "llvm.use %0, %1 : i32",
        attributes=" attributes {ttg.mark = 1 : i32}",
    )
    assert comparer.same_below_mlir(early, late)
    assert not comparer.same(early, late)
    other = lowered("%0 = llvm.mlir.constant(2 : i32) : i32", "%1 = llvm.x : i32", "llvm.use %0, %1 : i32")
    assert not comparer.same_below_mlir(early, other)
    assert not comparer.same_below_mlir(early, lowered("%1 = llvm.x : i32"))
    assert not comparer.same(late, marked)


def test_a_text_is_read_once_for_each_way_of_looking_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = state_comparer._canonical

    def counted(ir: str, text: State) -> state_comparer._Canonical | None:
        read.append(ir)
        return plain(ir, text)

    monkeypatch.setattr(state_comparer, "_canonical", counted)
    comparer = StateComparer()
    a, b = state("%a = ttg.x : i32"), state("%b = ttg.x : i32")
    for _ in range(2):
        assert comparer.same(a, b)
        assert comparer.same(a, a)
    assert read == ["ttgir", "ttgir"]
    assert comparer.same_below_mlir(a, b)
    assert read == ["ttgir", "ttgir", "mlir", "mlir"]
    assert comparer.edit("mlir", a, b) == Edit(stage="mlir", lines=())
    assert read == ["ttgir", "ttgir", "mlir", "mlir"]


def test_a_state_that_is_no_ir_is_the_same_only_to_the_byte() -> None:
    comparer = StateComparer()
    broken = [State.of("P", "", None, text) for text in (b"not IR", b"nor this", b"not IR")]
    assert comparer.same(broken[0], broken[2])
    assert not comparer.same(broken[0], broken[1])


CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
