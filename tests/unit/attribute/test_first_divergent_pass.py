"""States from logs, and which pass began a difference, in made-up pipelines."""

from operator import itemgetter

import pytest

from irdiff.attribute import pass_states
from irdiff.attribute.attribution import Attribution, FirstDivergentPass
from irdiff.attribute.first_divergent_pass import find_divergence
from irdiff.attribute.llvm_passes import with_llvm_pass
from irdiff.attribute.pass_states import END, State
from irdiff.model import Component, Origin, Sides
from tests.texts import text_of
from tests.unit.attribute.conftest import states
from tests.unit.golden import golden

GOLDEN = golden("responsible-pass")
HEADING = "// -----// IR Dump Before {} ('builtin.module' operation{}) //----- //\n{}\n"


def lines(log):
    return log.encode().splitlines(keepends=True)


def find(base, head):
    return find_divergence(base, head, lambda a, b: a.text == b.text)


def row(written):
    names, _, texts = written.partition("|")
    return states(*zip([*names.split(), END], texts.split(), strict=True)) if texts else []


def test_the_log_of_new_and_old_releases():
    options = "{dump-intermediate-steps=true num-stages=3}"
    log = (
        HEADING.format(f"TritonGPUPipeline: tritongpu-pipeline{options}", "", "module {\n}")
        + "// -----// SoftwarePipeliner internal IR Dump After: LowerLoops\nmodule { inner }\n"
        + HEADING.format("CSE (cse)", ": @x", "module { two }")
    )
    found = pass_states.read_mlir_log(log.encode(), State.of(END, b"module { end }"))
    assert [(s.name, s.argument, s.options, s.text) for s in found] == [
        ("TritonGPUPipeline", "tritongpu-pipeline", "num-stages=3", "module {\n}"),
        ("CSE", "cse", None, "module { two }"),
        (END, "", None, "module { end }"),
    ]


def test_llvms_log_becomes_states_without_debug_numbers():
    log = text_of("passes/llvm-functions.log")
    found = pass_states.read_llvm_log(log.encode())
    assert [state.name for state in found] == ["PostOrderFunctionAttrsPass", END]
    assert found[0].text == found[1].text == "define void @k() {\n  ret void\n}"
    several = log.replace("}\n; ***", "}\ndefine void @d() {\n}\n; ***")
    assert pass_states.read_llvm_log(several.encode()) == []


@pytest.mark.parametrize("case", GOLDEN["pass"], ids=itemgetter("why"))
def test_the_pass_behind_the_last_equal_states(case):
    found = find(row(case["base"]), row(case["head"]))
    assert (found and [found.name, found.note, *found.masked]) == case.get("found")


def test_other_options_of_a_pass_are_named():
    base, head = (states(("A", "1"), (END, n), options=f"num-stages={n} x=1") for n in "23")
    assert find(base, head).note == "has other options: num-stages=2 → num-stages=3"


@pytest.mark.parametrize("case", GOLDEN["synchronized"], ids=itemgetter("why"))
def test_synchronization_that_moved_to_another_pass_is_not_blamed(case):
    texts, plain = GOLDEN["synchronizes"], "%a = op.a\n%b = op.b"
    inserted, at_head = (texts[name] for name in case["texts"])
    base = states(("Lower", plain), ("Clean", texts["lowered"]), (END, texts["lowered"]))
    head = states(("Membar", plain), ("Lower", inserted), ("Clean", at_head), (END, at_head))
    found = find(base, head)
    assert (found and found.name) == case.get("name")
    if found and found.name == "Lower":
        words = "It inserts barriers and fences, as many as base inserts in Lower"
        assert found.note == f"Membar runs on head only. {words}"
        assert (found.entering, found.leaving) == ((0, 1), (1, 2))


LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
DEFINE = "define void @k(ptr addrspace(1) {}%0) {{\n  ret {}\n}}\n"
PLAIN, NOFREE = DEFINE.format("", "1"), DEFINE.format("nofree ", "1")


def attribution(*charged, step=""):
    """Of LLVM's optimizer, or of that and a lowering whose edit it may undo."""
    sides = Sides(base="0" * 64, head="1" * 64)
    lowering = FirstDivergentPass(name=step, argument="", options=None, entering=sides, leaving=sides)
    origin = Origin(stage="llir", pass_name=None, masked=("Early",) if step else (), charged=charged, note="")
    return Attribution(origin=origin, edit=None, step=lowering if step else None, unstable=False)


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
