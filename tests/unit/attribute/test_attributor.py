"""What each changed stage is charged to, with a replayer that has its answers ready."""

from dataclasses import replace
from operator import itemgetter

import pytest

from irdiff.attribute.attribution import attributed, is_attributed
from irdiff.attribute.attributor import Attributor
from irdiff.attribute.edit_reader import EditReader
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.model import Component, StageStatus, Verdict
from tests.elf_files import content, rebuilt
from tests.unit import runs
from tests.unit.attribute.conftest import states
from tests.unit.compiled import (
    AMDGCN,
    CUBIN,
    HSACO,
    OTHER_CUBIN,
    OTHER_PTX,
    PTX,
    THIRD_CUBIN,
    coded,
    mlir,
    no_llvm,
)  # fmt: skip
from tests.unit.golden import golden


def lowered(*operations):
    return mlir(*operations, function="llvm.func @k()", end="llvm.return")


def llvm(value):
    return f"define i32 @k() {{\n  ret i32 {value}\n}}\n"


ONE, TWO, THREE, FOUR = (mlir(f"ttg.op{name}") for name in ("one", "two", "three", "four"))
SIZED = mlir("%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")


def attribute(replayer, case, **of_head):
    attributor = Attributor(EditReader(ArtifactComparator(replayer.store, no_llvm)), replayer)
    return attributor.attribute(replayer.subject(case, **of_head))


TTGIR_DIFFERS = [
    (side, "ttgir", ONE, {"output": made, "final": made, "through": states(("P", ONE), (END, made))})
    for side, made in (("base", TWO), ("head", THREE))
]
TTGIR_ONLY = ({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE})
TEXTS = {
    "ONE": ONE, "TWO": TWO, "THREE": THREE, "FOUR": FOUR, "PTX": PTX, "OTHER_PTX": OTHER_PTX,
    "THIRD_PTX": PTX.replace("16", "18"), "PTX_WITH_A_COMMENT": PTX + "// a comment\n",
    "SIZED": SIZED, "UNSIZED": SIZED.replace(", allocation.size = 8 : i32", ""),
    **{f"LLVM_{n}": llvm(n) for n in (1, 2, 3, 9)}, "LLVM_1_WITH_A_COMMENT": f"; a comment\n{llvm(1)}",
    "LOWERED_ONE": lowered("llvm.one"), "LOWERED_TWO": lowered("llvm.two"),
    "BARRIER": lowered("nvvm.barrier0"), "FENCE": lowered("nvvm.fence"),
    **{name: lowered(f"%0 = llvm.mlir.{name.lower()} : i32") for name in ("ZERO", "UNDEF")},
    "CUBIN": CUBIN, "OTHER_CUBIN": OTHER_CUBIN, "THIRD_CUBIN": THIRD_CUBIN,
    "DEBUG_OTHER_CUBIN": rebuilt(OTHER_CUBIN, content(".debug_line", lambda old: old + b"x")),
    "HSACO": HSACO, "OTHER_HSACO": coded(HSACO, ".text", b"\1"),
    "ASSEMBLY": AMDGCN, "OTHER_ASSEMBLY": AMDGCN.replace("s_endpgm", "s_nop 0\n\ts_endpgm"),
}  # fmt: skip


def texts(names):
    return {stage: TEXTS[name] for stage, name in names.items()}


@pytest.mark.parametrize("case", golden("attribution")["case"], ids=itemgetter("name"))
def test_what_is_charged(replayer, case):
    for row in case.get("replays", ()):
        made = dict(row)
        side, stage, of = (made.pop(name) for name in ("side", "stage", "of"))
        made |= {name: TEXTS[made[name]] for name in ("output", "final") if name in made}
        if "through" in made:
            through = ((name.replace("END", END), TEXTS[text]) for name, text in made["through"])
            made["through"] = states(*through)
        replayer.makes(side, stage, TEXTS[of], **made)
    changes = {}
    if "hsaco" in case["base"]:
        changes = {"stages": {"amdgcn": StageStatus.CHANGED}, "origin": runs.origin("amdgcn")}
        changes["case_id"] = "matmul/tma:fp16@gfx942"
    compared = replayer.case(texts(case["base"]), texts(case["head"]), **changes)
    equivalent = dict.fromkeys(case.get("equivalent", ()), StageStatus.EQUIVALENT)
    found = attribute(replayer, replace(compared, stages={**compared.stages, **equivalent}))
    assert list(found.origin.charged) == case["charged"]
    assert (found.origin.stage, found.origin.pass_name) == (case["stage"], case.get("pass"))
    assert case["note"] in found.origin.note if "note" in case else not found.origin.note
    assert found.edit is None or (
        found.step and found.edit.ir == ("mlir" if case["stage"] == "llir" else "ttgir")
    )
    assert not any(replay.dump is Dump.LLVM for replay in replayer.replays)


def test_the_pass_that_began_it_is_kept_with_what_enters_and_leaves_it(replayer):
    entering, leaving = mlir("ttg.a"), (mlir("ttg.b"), mlir("ttg.c"))
    for side, early, last in zip(("base", "head"), (TWO, THREE), leaving, strict=True):
        through = states(("Early", ONE), ("Mid", early), ("Late", entering), (END, last))
        replayer.makes(side, "ttgir", ONE, through=through)
    found = attribute(replayer, replayer.case(*TTGIR_ONLY, renamed_from="old/w:a@sm_90"))
    assert (found.origin.pass_name, found.origin.masked) == ("Late", ("Early",))
    assert found.step and (found.step.name, found.step.argument) == ("Late", "late")
    kept = [replayer.store.get(digest) for digest in (*found.step.entering, *found.step.leaving)]
    assert kept == [text.encode() for text in (entering, entering, *leaving)]
    assert found.edit and (found.edit.base, found.edit.head) == tuple(found.step.leaving)
    rows = sorted((row.launch.id, row.input_stage, str(row.metadata["of"])) for row in replayer.replays)
    assert rows == [("matmul/tma:fp16", "ttir", "head"), ("old/w:a", "ttir", "base")]


@pytest.mark.parametrize("again", [TWO, FOUR])
def test_a_side_that_does_not_make_the_same_of_its_own_text_is_suspect(replayer, again):
    for side, stage, of, made in TTGIR_DIFFERS:
        replayer.makes(side, stage, of, **{**made, "output": {"base": again, "head": THREE}[side]})
    assert attribute(replayer, replayer.case(*TTGIR_ONLY)).unstable is (again == FOUR)
    assert all(replay.randomized for replay in replayer.replays)


def test_a_stage_that_makes_the_other_sides_output_again_passes_the_difference_on(replayer):
    """An assembler is none of these: it runs on its own side's text with randomized addresses."""
    for side, stage, of, made in TTGIR_DIFFERS:
        replayer.makes(side, stage, of, **made)
    replayer.makes("head", "ptx", TWO, PTX)
    replayer.makes("head", "cubin", PTX, CUBIN)
    base, head = TTGIR_ONLY
    case = replayer.case(
        {**base, "ptx": PTX, "cubin": CUBIN}, {**head, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
    )
    assert attribute(replayer, case).passed_on == ("ptx",)
    assert {row.stage for row in replayer.replays if not row.randomized} == {"cubin"}
    replayer.makes("head", "ptx", TWO, TEXTS["THIRD_PTX"])
    replayer.makes("base", "ptx", TWO, PTX)
    assert attribute(replayer, replace(case, error="another")).passed_on == ()


def test_one_compiler_makes_other_code_of_another_text_alone(replayer):
    """Nothing is run again."""
    case = replayer.case(
        {"source": ONE, "ttir": ONE, "ttgir": ONE, "ptx": PTX},
        {"source": TWO, "ttir": TWO, "ttgir": TWO, "ptx": OTHER_PTX},
    )
    compiler = runs.side("base", replayer.versions.base).toolchain
    assert attribute(replayer, case, toolchain=compiler).origin.charged == (Component.FRONTEND,)
    assert not replayer.replays


def test_other_settings_of_one_compiler_are_charged_to_the_stage_that_reads_them(replayer):
    """A knob turns the assembler's optimizer off at head, whose kernel is edited, too."""
    case = replayer.case(
        {"source": ONE, "ttir": ONE, "ttgir": ONE, "ptx": PTX, "cubin": CUBIN},
        {"source": TWO, "ttir": TWO, "ttgir": TWO, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN},
    )
    for stage, of, made in (
        ("cubin", PTX, THIRD_CUBIN),
        ("ptx", ONE, PTX),
        ("ttgir", ONE, ONE),
        ("ttir", ONE, ONE),
    ):
        replayer.makes("base", stage, of, made)
    subject = replayer.subject(case, toolchain=runs.side("base", replayer.versions.base).toolchain)
    launches = replace(subject.launches, head=replace(subject.launches.head, settings="ab" * 32))
    attributor = Attributor(EditReader(ArtifactComparator(replayer.store, no_llvm)), replayer)
    origin = attributor.attribute(replace(subject, launches=launches)).origin
    assert origin.charged == (Component.FRONTEND, Component.PTXAS)
    assert "the program changes other settings of the compiler" in origin.note


@pytest.fixture
def changed(replayer):
    for side, stage, of, made in TTGIR_DIFFERS:
        replayer.makes(side, stage, of, **made)
    return replayer.case(*TTGIR_ONLY)


def test_what_was_found_is_kept_but_not_what_there_was_no_time_for(replayer, changed):
    known = dict(replayer.answers)
    replayer.makes("head", "ttgir", ONE, error="no result in time", transient=True)
    assert attribute(replayer, changed).origin.pass_name is None
    replayer.answers = known
    found = attribute(replayer, changed)
    assert found.origin.pass_name == "P"
    count, other = len(replayer.replays), "other/name:fp16@sm_90"
    assert attribute(replayer, replace(changed, id=other)) == found
    assert len(replayer.replays) == count
    replayer.store.object_path(found.step.leaving.base).unlink()
    assert attribute(replayer, changed) == found
    assert replayer.store.get(found.step.leaving.base) == TWO.encode(), "texts that are gone are made again"


def test_only_changed_code_that_both_sides_have_is_attributed(changed):
    found = {verdict for verdict in Verdict if is_attributed(replace(changed, verdict=verdict))}
    assert found == {Verdict.CHANGED, Verdict.IR_ONLY, Verdict.BROKEN, Verdict.FIXED}
    assert not is_attributed(replace(changed, origin=None))
    assert not is_attributed(replace(changed, findings=runs.findings("not-compared:ttir,asm")))


@pytest.mark.parametrize(
    ("verdict", "stage", "side"),
    [(Verdict.BROKEN, "ttgir", "head"), (Verdict.FIXED, "ttgir", "base"), (Verdict.BROKEN, "cubin", None)],
)
def test_what_broke_or_was_fixed_names_the_pass_that_failed(replayer, verdict, stage, side):
    """What failed outside of passes is not run again."""
    if side:
        replayer.makes(side, stage, ONE, error="it died", failed_in="TritonGPUPipeline")
    error = "Assertion x > 0 (Pipeliner.cpp:12) (the compiler died of SIGABRT)"
    changes = {"origin": runs.origin(stage), "error": f"head: {error}"}
    case = replayer.case({"ttir": ONE}, {"ttir": ONE}, verdict=verdict, **changes)
    found = attributed(case, attribute(replayer, case))
    rows = [(row.side.toolchain.spec, row.dump) for row in replayer.replays]
    assert rows == ([(side, Dump.NAMES)] if side else [])
    assert found.origin and found.origin.pass_name == ("TritonGPUPipeline" if side else None)
    if side == "head":
        assert found.error == f"head: TritonGPUPipeline: {error}"
        assert attributed(found, attribute(replayer, case)) == found, "it is said once"
