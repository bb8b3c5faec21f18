"""The pass of LLVM's optimizer, for a case whose attribution is known."""

import pytest

from irdiff.attribute.attribution import Attribution, ResponsiblePass
from irdiff.attribute.llvm_passes import with_llvm_pass
from irdiff.attribute.pass_states import END
from irdiff.model import Component, Origin, Sides
from tests.unit.attribute.conftest import states

LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
DEFINE = "define void @k(ptr addrspace(1) {}%0) {{\n  ret {}\n}}\n"
PLAIN, NOFREE = DEFINE.format("", "1"), DEFINE.format("nofree ", "1")


def attribution(*charged, step=""):
    """Of LLVM's optimizer, or of that and a lowering whose edit it may undo."""
    sides = Sides(base="0" * 64, head="1" * 64)
    lowering = ResponsiblePass(name=step, argument="", options=None, entering=sides, leaving=sides)
    origin = Origin(stage="llir", pass_name=None, masked=("Early",) if step else (), charged=charged, note="")
    return Attribution(case_id="a", origin=origin, edit=None, step=lowering if step else None, suspect=False)


def named(replayer, found, base="xyb", head="xyh"):
    """Each side's three passes leave these texts."""
    case = replayer.case({"ttgir": "t", "llir": "1"}, {"ttgir": "t", "llir": "2"})
    for side, texts in (("base", base), ("head", head)):
        rows = zip(("sroa", "instcombine", END), texts, strict=True)
        replayer.makes(side, "llir", "t", through=states(*rows))
    return with_llvm_pass(found, replayer.subject(case), replayer)


def test_a_lowering_whose_edit_llvm_takes_back_is_masked_and_another_is_the_origin(replayer):
    found = named(replayer, attribution(LOWERING, CODEGEN, PTXAS, step="Convert"))
    assert (found.origin.pass_name, found.origin.charged) == ("instcombine", (CODEGEN, PTXAS))
    assert found.origin.masked == ("Early", "Convert")
    stays = named(replayer, attribution(LOWERING, CODEGEN, step="Convert"), "123", "456")
    assert (stays.origin.pass_name, stays.edit and stays.edit.ir) == ("Convert", "mlir")


BOTH_DIFFER = [PLAIN, PLAIN, DEFINE.format("", "2")], [PLAIN, NOFREE, DEFINE.format("nofree ", "3")]


@pytest.mark.parametrize(
    ("base", "head", "name"),
    [(*BOTH_DIFFER, "instcombine"), ([PLAIN] * 3, [PLAIN, NOFREE, NOFREE], "sroa"), ([PLAIN] * 3, [PLAIN] * 3, None)],
    ids=["no edit beside others", "the edit where it is all there is", "no difference"],
)  # fmt: skip
def test_an_attribute_that_llvm_infers(replayer, base, head, name):
    assert named(replayer, attribution(CODEGEN), base, head).origin.pass_name == name
