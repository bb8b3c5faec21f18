"""The pass of LLVM's optimizer, for a case whose attribution is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from irdiff.attribute.attribution import Attribution, ResponsiblePass
from irdiff.attribute.llvm_passes import is_quiet, with_llvm_pass
from irdiff.attribute.pass_states import END, State
from irdiff.attribute.replayer import Dump
from irdiff.model import Component, Origin, Sides
from tests.unit.attribute.conftest import Bench, states

LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
DEFINE = "define void @k(ptr addrspace(1) {}%0) {{\n  ret {}\n}}\n"
PLAIN, NOFREE = DEFINE.format("", "1"), DEFINE.format("nofree ", "1")


def attribution(*charged: Component, step: str = "") -> Attribution:
    """Of LLVM's optimizer, or of that and a lowering whose edit it may undo."""
    sides = Sides(base="0" * 64, head="1" * 64)
    lowering = ResponsiblePass(name=step, argument="", options=None, entering=sides, leaving=sides)
    origin = Origin(stage="llir", pass_name=None, masked=("Early",) if step else (), charged=charged, note="")
    return Attribution(case_id="a", origin=origin, edit=None, step=lowering if step else None, suspect=False)


def named(
    bench: Bench, found: Attribution, base: list[str] | None = None, head: list[str] | None = None
) -> Any:
    """Each side's three passes leave these texts."""
    case = bench.case({"ttgir": "t", "llir": "1"}, {"ttgir": "t", "llir": "2"})
    for side, texts in (("base", base or ["x", "y", "b"]), ("head", head or ["x", "y", "h"])):
        bench.makes(side, "llir", "t", through=states(*zip(("sroa", "instcombine", END), texts, strict=True)))
    replayer: Any = bench
    return with_llvm_pass(found, bench.subject(case), replayer)


def test_llvms_pass_is_named_where_llvms_optimizer_is_charged(bench: Bench) -> None:
    origin = named(bench, attribution(CODEGEN, PTXAS)).origin
    assert (origin.pass_name, origin.charged) == ("instcombine", (CODEGEN, PTXAS))
    assert {replay.dump for replay in bench.replays} == {Dump.LLVM}


@pytest.mark.parametrize("change", [{"stage": "ptx"}, {"charged": (LOWERING,)}, {"pass_name": "P"}])
def test_another_origin_stays(bench: Bench, change: dict[str, Any]) -> None:
    found = attribution(CODEGEN)
    found = replace(found, origin=replace(found.origin, **change))
    assert named(bench, found) == found
    assert bench.replays == []


@pytest.mark.parametrize("release", ["3.6.0", "2.9.9", "main"])
def test_not_for_a_release_that_takes_minutes_to_print(bench: Bench, release: str) -> None:
    bench.versions = Sides(base=release, head="3.9.0")
    assert named(bench, attribution(CODEGEN)).origin.pass_name is None
    assert bench.replays == []


@pytest.mark.parametrize("release", ["3.7.0", "4.0.0", "10.1"])
def test_from_3_7_on(bench: Bench, release: str) -> None:
    bench.versions = Sides(base=release, head="3.9.0")
    assert named(bench, attribution(CODEGEN)).origin.pass_name == "instcombine"


def test_a_lowering_whose_edit_llvm_takes_back_is_masked(bench: Bench) -> None:
    found = named(bench, attribution(LOWERING, CODEGEN, PTXAS, step="Convert"))
    assert (found.origin.pass_name, found.origin.charged) == ("instcombine", (CODEGEN, PTXAS))
    assert found.origin.masked == ("Early", "Convert")
    assert "the same of what Convert lowers differently" in found.origin.note


def test_a_lowering_whose_edit_stays_is_the_origin_and_shows_its_edit(bench: Bench) -> None:
    found = named(bench, attribution(LOWERING, CODEGEN, step="Convert"), ["1", "2", "3"], ["4", "5", "6"])
    assert found.origin.pass_name == "Convert"
    assert found.edit is not None
    assert found.edit.ir == "mlir"


def lowered(operation: str) -> State:
    text = f"module {{\n  llvm.func @k() {{\n    {operation}\n    llvm.return\n  }}\n}}\n"
    return State.of(END, text.encode())


@pytest.mark.parametrize(
    ("base", "head", "quiet"),
    [
        (lowered("%0 = llvm.mlir.zero : i32"), lowered("%0 = llvm.mlir.undef : i32"), True),
        (lowered("%0 = rocdl.workitem.id.x : i32"), lowered("%0 = nvvm.read.ptx.sreg.tid.x : i32"), True),
        (lowered("nvvm.barrier0"), lowered("llvm.return"), False),
        (lowered("llvm.call @f() : () -> ()"), lowered("llvm.return"), False),
        (State.of(END, b"module {"), lowered("nvvm.barrier0"), False),
    ],
)
def test_an_edit_of_address_arithmetic_alone_is_quiet(base: State, head: State, quiet: bool) -> None:
    assert is_quiet(base, head) is quiet


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
    assert named(bench, attribution(CODEGEN), base, head).origin.pass_name == name
