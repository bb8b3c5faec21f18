"""The pass of LLVM's optimizer, for a case whose attribution is known."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.attribute.attribution import Attribution, ResponsiblePass
from irdiff.attribute.llvm_passes import with_llvm_pass
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump
from irdiff.compare.edits import EditSource
from irdiff.model import Component, Origin, Sides
from tests.unit.attribute.conftest import Bench, states

LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
DEFINE = "define void @k(ptr addrspace(1) {}%0) {{\n  ret {}\n}}\n"
PLAIN, NOFREE = DEFINE.format("", "1"), DEFINE.format("nofree ", "1")


def lowered(operation: str) -> str:
    return f"module {{\n  llvm.func @k() {{\n    {operation}\n    llvm.return\n  }}\n}}\n"


def attribution(bench: Bench, *charged: Component, edit: tuple[str, str] | None = None) -> Attribution:
    """Of LLVM's optimizer, or of a lowering with its edit."""
    source = step = None
    if edit:
        base, head = (bench.store.put(text.encode()) for text in edit)
        sides = Sides(base=base, head=head)
        source = EditSource(ir="mlir", base=base, head=head)
        step = ResponsiblePass(name="Convert", argument="", options=None, entering=sides, leaving=sides)
    origin = Origin(
        stage="llir", pass_name="Convert" if edit else None, masked=("Early",), charged=charged, note=""
    )
    return Attribution(case_id="a", origin=origin, edit=source, step=step, suspect=False)


def named(
    bench: Bench, found: Attribution, base: list[str] | None = None, head: list[str] | None = None
) -> Any:
    """Each side's three passes leave these texts."""
    case = bench.case({"ttgir": "t", "llir": "1"}, {"ttgir": "t", "llir": "2"})
    for side, texts in (("base", base or ["x", "y", "b"]), ("head", head or ["x", "y", "h"])):
        bench.makes(side, "llir", "t", through=states(*zip(("sroa", "instcombine", END), texts, strict=True)))
    replayer: Any = bench
    return with_llvm_pass(found, bench.subject(case), replayer, bench.store).origin


def test_llvms_pass_is_named_where_llvms_optimizer_is_charged(bench: Bench) -> None:
    origin = named(bench, attribution(bench, CODEGEN))
    assert (origin.pass_name, origin.charged) == ("instcombine", (CODEGEN,))
    assert {replay.dump for replay in bench.replays} == {Dump.LLVM}


@pytest.mark.parametrize("release", ["3.6.0", "2.9.9", "main"])
def test_not_for_a_release_that_takes_minutes_to_print(bench: Bench, release: str) -> None:
    bench.versions = Sides(base=release, head="3.9.0")
    assert named(bench, attribution(bench, CODEGEN)).pass_name is None
    assert bench.replays == []


@pytest.mark.parametrize("release", ["3.7.0", "4.0.0", "10.1"])
def test_from_3_7_on(bench: Bench, release: str) -> None:
    bench.versions = Sides(base=release, head="3.9.0")
    assert named(bench, attribution(bench, CODEGEN)).pass_name == "instcombine"


@pytest.mark.parametrize(
    ("base", "head", "is_quiet"),
    [
        ("%0 = llvm.mlir.zero : i32", "%0 = llvm.mlir.undef : i32", True),
        ("%0 = rocdl.workitem.id.x : i32", "%0 = nvvm.read.ptx.sreg.tid.x : i32", True),
        ("nvvm.barrier0", "llvm.return", False),
        ("llvm.call @f() : () -> ()", "llvm.return", False),
    ],
)
def test_a_lowering_whose_edit_llvm_takes_back_is_masked(
    bench: Bench, base: str, head: str, is_quiet: bool
) -> None:
    """One that computes an address differently, of which `sroa` makes the same."""
    origin = named(bench, attribution(bench, LOWERING, PTXAS, edit=(lowered(base), lowered(head))))
    if is_quiet:
        assert (origin.pass_name, origin.charged) == ("instcombine", (CODEGEN, PTXAS))
        assert origin.masked == ("Early", "Convert")
        assert "the same of what Convert lowers differently" in origin.note
    else:
        assert (origin.pass_name, origin.charged, bench.replays) == ("Convert", (LOWERING, PTXAS), [])


def test_a_lowering_that_cannot_be_read_stays_the_origin(bench: Bench) -> None:
    found = attribution(bench, LOWERING, edit=("module {", lowered("nvvm.barrier0")))
    assert named(bench, found) == found.origin


@pytest.mark.parametrize(
    ("base", "head", "name"),
    [
        (
            [PLAIN, PLAIN, DEFINE.format("", "2")],
            [PLAIN, NOFREE, DEFINE.format("nofree ", "3")],
            "instcombine",
        ),
        ([PLAIN, PLAIN, PLAIN], [PLAIN, NOFREE, NOFREE], "sroa"),
        ([PLAIN, PLAIN, PLAIN], [PLAIN, PLAIN, PLAIN], None),
    ],
    ids=["no edit beside others", "the edit where it is all there is", "no difference"],
)
def test_an_attribute_that_llvm_infers(
    bench: Bench, base: list[str], head: list[str], name: str | None
) -> None:
    assert named(bench, attribution(bench, CODEGEN), base, head).pass_name == name
