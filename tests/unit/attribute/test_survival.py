"""Which edits survive."""

from __future__ import annotations

import pytest

from irdiff.attribute import survival
from irdiff.attribute.passes import END, State
from irdiff.attribute.state_comparer import StateComparer

DEFINE = "define void @k(ptr addrspace(1) {}%0) {{\n  ret {}\n}}\n"
PLAIN, NOFREE = DEFINE.format("", "1"), DEFINE.format("nofree ", "1")


def states(*rows: tuple[str, str]) -> list[State]:
    return [State.of(name, name.lower(), "", text.encode()) for name, text in rows]


def test_an_attribute_that_llvm_infers_is_not_the_edit_that_survives() -> None:
    base = states(("Attrs", PLAIN), ("Vectorize", PLAIN), (END, DEFINE.format("", "2")))
    head = states(("Attrs", PLAIN), ("Vectorize", NOFREE), (END, DEFINE.format("nofree ", "3")))
    found = survival.llvm_culprit(base, head)
    assert found is not None
    assert found.name == "Vectorize"


def test_it_is_where_it_is_all_there_is() -> None:
    base = states(("Attrs", PLAIN), ("Vectorize", PLAIN), (END, PLAIN))
    head = states(("Attrs", PLAIN), ("Vectorize", NOFREE), (END, NOFREE))
    found = survival.llvm_culprit(base, head)
    assert found is not None
    assert found.name == "Attrs"
    assert survival.llvm_culprit(base, base) is None


def lowered(*operations: str) -> State:
    body = "".join(f"    {line}\n" for line in operations)
    return states(("P", f"module {{\n  llvm.func @k() {{\n{body}    llvm.return\n  }}\n}}\n"))[0]


@pytest.mark.parametrize(
    ("base", "head", "quiet"),
    [
        ("%0 = llvm.mlir.zero : i32", "%0 = llvm.mlir.undef : i32", True),
        ("%0 = rocdl.workitem.id.x : i32", "%0 = nvvm.read.ptx.sreg.tid.x : i32", True),
        ("nvvm.barrier0", "llvm.return", False),
        ("llvm.call @f() : () -> ()", "llvm.return", False),
    ],
)
def test_what_tells_nothing(base: str, head: str, quiet: bool) -> None:
    assert survival.tells_nothing(StateComparer().edit("mlir", lowered(base), lowered(head))) is quiet


def test_what_cannot_be_read_tells_something() -> None:
    damaged = states(("P", "module {"))[0]
    assert survival.tells_nothing(StateComparer().edit("mlir", damaged, lowered("nvvm.barrier0"))) is False
