"""What each changed stage is charged to, with a replayer that has its answers ready."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from irdiff.attribute.attribution import Attribution, attributed, is_attributed
from irdiff.attribute.attributor import Attributor
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.model import Case, Component, StageStatus, Verdict
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit import runs
from tests.unit.attribute.conftest import FakeReplayer, states
from tests.unit.no_llvm import no_llvm


def mlir(*operations: str, function: str = "tt.func public", end: str = "tt.return") -> str:
    body = "".join(f"    {line}\n" for line in (*operations, end))
    return f"module {{\n  {function} @k() {{\n{body}  }}\n}}\n"


def lowered(*operations: str) -> str:
    return mlir(*operations, function="llvm.func", end="llvm.return")


def llvm(value: int) -> str:
    return f"define i32 @k() {{\n  ret i32 {value}\n}}\n"


def coded(binary: bytes, section: str, first: bytes) -> bytes:
    return rebuilt(binary, content(section, lambda old: first + old[1:]))


ONE, TWO, THREE, FOUR = (mlir(f"ttg.op{name}") for name in ("one", "two", "three", "four"))
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN, THIRD_CUBIN = (coded(CUBIN, ".text.", first) for first in (b"\1", b"\2"))
HSACO = of_stage("hsaco", release="3.9.0", target="gfx942")[0].content
OTHER_HSACO = coded(HSACO, ".text", b"\1")
ASSEMBLY = of_stage("amdgcn", release="3.9.0", target="gfx942")[0].text
SIZED = mlir("%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")
UNSIZED = SIZED.replace(", allocation.size = 8 : i32", "")
ZERO, UNDEF = (lowered(f"%0 = llvm.mlir.{name} : i32") for name in ("zero", "undef"))

FRONTEND, TTIR, TTGIR = Component.FRONTEND, Component.TTIR_PASSES, Component.TTGIR_PASSES
LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
INSEPARABLE = Component.NOT_SEPARABLE


def attribute(replayer: FakeReplayer, case: Case, **of_head: Any) -> Attribution:
    given: Any = replayer
    attributor = Attributor(ArtifactComparator(replayer.store, no_llvm), given)
    return attributor.attribute(replayer.subject(case, **of_head))


def passes(stage: str, of: str, base: str, head: str, name: str = "P") -> list[tuple[str, str, str, Any]]:
    """Both sides' passes of a stage on one text."""
    return [
        (side, stage, of, {"output": made, "final": made, "through": states((name, of), (END, made))})
        for side, made in (("base", base), ("head", head))
    ]


TTGIR_DIFFERS = passes("ttgir", ONE, TWO, THREE)
TTGIR_ONLY = ({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE})
GIVEN = ({"ttir": ONE, "ttgir": TWO, "llir": llvm(1)}, {"ttir": ONE, "ttgir": THREE, "llir": llvm(2)})
"""Another TTGIR, and another LLVM IR."""
LLIR_ONLY = ({"ttgir": ONE, "llir": llvm(1)}, {"ttgir": ONE, "llir": llvm(2)})
TO_CUBIN = (
    {"ttgir": ONE, "llir": llvm(1), "ptx": PTX, "cubin": CUBIN},
    {"ttgir": ONE, "llir": llvm(2), "ptx": OTHER_PTX, "cubin": OTHER_CUBIN},
)
ASSEMBLED = ({"ptx": PTX, "cubin": CUBIN}, {"ptx": OTHER_PTX, "cubin": OTHER_CUBIN})
SAME_END = {"final": lowered("llvm.one")}
O2, O3 = {"settings": {"opt": ["-O2"]}}, {"settings": {"opt": ["-O3"]}}
REFUSES = ("head", "llir", TWO, {"error": "unknown attribute"})


def debug(cubin: bytes) -> bytes:
    return rebuilt(cubin, content(".debug_line", lambda old: old + b"x"))


CHARGED: dict[str, tuple[Any, list[Any], list[Component], tuple[str, str | None], str]] = {
    # where it begins
    "another source is the frontend's, and what passes it on is innocent": (
        ({"source": ONE, "ttir": THREE}, {"source": TWO, "ttir": FOUR}),
        [("head", "ttir", ONE, {"output": THREE})], [FRONTEND], ("ttir", None), "",
    ),
    "another source that the first passes make the same is not at fault": (
        ({"source": TWO, "ttir": ONE, "ttgir": THREE}, {"source": THREE, "ttir": ONE, "ttgir": FOUR}),
        passes("ttgir", ONE, THREE, FOUR), [TTGIR], ("ttgir", "P"), "",
    ),
    "without a source the frontend is not told from the first passes": (
        ({"ttir": ONE, "ttgir": THREE}, {"ttir": TWO, "ttgir": FOUR}),
        [("head", "ttgir", ONE, {"output": THREE})], [INSEPARABLE], ("ttir", None), "before 3.3",
    ),
    "a stage that cannot be run alone is charged with a note": (
        TTGIR_ONLY, [*TTGIR_DIFFERS[:1], ("head", "ttgir", ONE, {"error": "it needs more"})],
        [TTGIR], ("ttgir", None), "head cannot run the stage alone: it needs more",
    ),
    "a later stage that differs on the same input does not take the name": (
        ({"source": ONE, "ttir": TWO, "glir": FOUR, "ttgir": TWO},
         {"source": ONE, "ttir": THREE, "glir": FOUR, "ttgir": THREE}),
        [*passes("ttir", ONE, TWO, THREE, "First"), *passes("ttgir", FOUR, TWO, THREE)],
        [TTIR, TTGIR], ("ttir", "First"), "",
    ),
    # one side's stage on the other side's text
    "a stage that makes of base's text what base made is innocent": (
        GIVEN, [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": "; a comment\n" + llvm(1)})],
        [TTGIR], ("ttgir", "P"), "",
    ),
    "where the lowering ends the same it is LLVM's optimizer": (
        GIVEN,
        [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": llvm(3), **SAME_END, **O3}),
         ("base", "llir", TWO, {"output": llvm(1), **SAME_END, **O2})],
        [TTGIR, CODEGEN], ("ttgir", "P"), "opt: -O2 → -O3",
    ),
    **{
        f"a side that does not repeat itself alone: {own}": (
            GIVEN, [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": llvm(3)}), ("base", "llir", TWO, own)],
            [TTGIR, INSEPARABLE], ("ttgir", "P"), "base's own stage makes something else",
        )
        for own in ({"output": llvm(9)}, {"error": "no"})
    },
    "where head does not take base's text base is tried on head's": (
        GIVEN, [*TTGIR_DIFFERS, REFUSES, ("base", "llir", THREE, {"output": llvm(2)})],
        [TTGIR], ("ttgir", "P"), "",
    ),
    "where neither takes the other's text nothing is separable": (
        GIVEN, [*TTGIR_DIFFERS, REFUSES, ("base", "llir", THREE, {"error": "unknown operation"})],
        [TTGIR, INSEPARABLE], ("ttgir", "P"),
        "head does not take base's ttgir (unknown attribute), nor base head's (unknown operation)",
    ),
    "head's assembler makes head's code of base's text": (
        ASSEMBLED, [("head", "cubin", PTX, {"output": debug(OTHER_CUBIN)})],
        [PTXAS], ("sass", None), "what differs in ptx has no effect",
    ),
    # lowering, and LLVM's optimizer
    "a lowering whose edit LLVM's optimizer may undo is charged with it, and not named": (
        LLIR_ONLY, passes("llir", ONE, ZERO, UNDEF),
        [LOWERING, CODEGEN], ("llir", None), "P differs in address arithmetic alone",
    ),
    "LLVM's optimizer is charged, and its pass is not looked for": (
        LLIR_ONLY, passes("llir", ONE, lowered("llvm.one"), lowered("llvm.one")),
        [CODEGEN], ("llir", None), "LLVM's optimizer: the IR that enters it is the same",
    ),
    "a stage that makes head's output of base's text is the cause": (
        GIVEN,
        [*TTGIR_DIFFERS,
         ("base", "llir", TWO, {"output": llvm(1), "through": states(("Q", TWO), (END, TWO))}),
         ("head", "llir", TWO, {"output": llvm(2), "through": states(("Q", TWO), (END, FOUR))})],
        [TTGIR, LOWERING], ("llir", "Q"), "the edit of P has no effect: head's llir stage makes the same of base's",
    ),
    **{
        f"without effect is all before the last such stage: {note}": (
            TO_CUBIN,
            [*passes("llir", ONE, lowered("nvvm.barrier0"), lowered("nvvm.fence")),
             ("base", "ptx", llvm(1), {"output": PTX}), ("head", "ptx", llvm(1), {"output": PTX.replace("16", "18")}),
             ("head", "cubin", PTX, {"output": made})],
            [LOWERING, CODEGEN, PTXAS], origin, note,
        )
        for made, origin, note in (
            (OTHER_CUBIN, ("sass", None), "the edit of P has no effect: head's cubin stage makes the same"),
            (THIRD_CUBIN, ("llir", "P"), ""),
        )
    },
    # spelling
    "a stage that is only spelled differently is no origin": (
        ({"ttir": ONE, "ttgir": SIZED, "llir": llvm(1)}, {"ttir": ONE, "ttgir": UNSIZED, "llir": llvm(2)}),
        [("base", "llir", SIZED, passes("llir", SIZED, lowered("llvm.one"), "")[0][3]),
         ("head", "llir", UNSIZED, passes("llir", SIZED, "", lowered("llvm.two"))[1][3])],
        [LOWERING], ("llir", "P"), "ttgir differs only in how it is printed",
    ),
    "what differs in nothing but its spelling keeps its stage": (
        ({"ttir": ONE, "ttgir": SIZED}, {"ttir": ONE, "ttgir": UNSIZED}), [], [], ("ttgir", None), "",
    ),
    # AMD
    "another assembly is not charged to linking as well": (
        ({"llir": llvm(1), "amdgcn": ASSEMBLY, "hsaco": HSACO},
         {"llir": llvm(1), "amdgcn": ASSEMBLY.replace("s_endpgm", "s_nop 0\n\ts_endpgm"), "hsaco": OTHER_HSACO}),
        [(side, "amdgcn", llvm(1), {}) for side in ("base", "head")], [CODEGEN], ("amdgcn", None), "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "replays", "charged", "origin", "note"), CHARGED.values(), ids=CHARGED)
def test_what_is_charged(replayer: FakeReplayer, texts, replays, charged, origin, note) -> None:
    for side, stage, of, made in replays:
        replayer.makes(side, stage, of, **made)
    changes: dict[str, Any] = {}
    if "hsaco" in texts[0]:
        changes = {"stages": {"amdgcn": StageStatus.CHANGED}, "origin": runs.origin("amdgcn")}
        changes["case_id"] = "matmul/tma:fp16@gfx942"
    found = attribute(replayer, replayer.case(*texts, **changes))
    assert list(found.origin.charged) == charged
    assert (found.origin.stage, found.origin.pass_name) == origin
    assert note in found.origin.note if note else not found.origin.note
    assert found.edit is None or (
        found.step and found.edit.ir == ("mlir" if origin[0] == "llir" else "ttgir")
    )
    assert not any(replay.dump is Dump.LLVM for replay in replayer.replays)


def test_the_pass_that_began_it_is_kept_with_what_enters_and_leaves_it(replayer: FakeReplayer) -> None:
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
def test_a_side_that_does_not_make_the_same_of_its_own_text_is_suspect(
    replayer: FakeReplayer, again: str
) -> None:
    for side, stage, of, made in TTGIR_DIFFERS:
        replayer.makes(side, stage, of, **{**made, "output": {"base": again, "head": THREE}[side]})
    assert attribute(replayer, replayer.case(*TTGIR_ONLY)).suspect is (again == FOUR)
    assert all(replay.randomized for replay in replayer.replays)


@pytest.fixture
def changed(replayer: FakeReplayer) -> Case:
    for side, stage, of, made in TTGIR_DIFFERS:
        replayer.makes(side, stage, of, **made)
    return replayer.case(*TTGIR_ONLY)


def test_what_was_found_is_kept_but_not_what_there_was_no_time_for(
    replayer: FakeReplayer, changed: Case
) -> None:
    known = dict(replayer.answers)
    replayer.makes("head", "ttgir", ONE, error="no result in time", transient=True)
    found = attribute(replayer, changed)
    assert (found.transient, found.origin.pass_name) == (True, None)
    replayer.answers = known
    found = attribute(replayer, changed)
    assert (found.transient, found.origin.pass_name) == (False, "P")
    count, other = len(replayer.replays), "other/name:fp16@sm_90"
    assert attribute(replayer, replace(changed, id=other)) == replace(found, case_id=other)
    assert len(replayer.replays) == count
    assert found.step is not None
    replayer.store.object_path(found.step.leaving.base).unlink()
    assert attribute(replayer, changed) == found
    assert replayer.store.get(found.step.leaving.base) == TWO.encode(), "texts that are gone are made again"


def test_an_artifact_that_is_gone_is_not_the_same(replayer: FakeReplayer, changed: Case) -> None:
    for side in ("base", "head"):
        replayer.makes(side, "llir", TWO, f"{llvm(1)}; in other words\n")
    case = replayer.case(*GIVEN)
    replayer.store.object_path(case.artifacts.base["llir"].digest).unlink()
    assert attribute(replayer, case).origin.charged == (TTGIR, INSEPARABLE)


# which cases, and those of which a side does not compile


def test_only_changed_code_that_both_sides_have_is_attributed(changed: Case) -> None:
    found = {verdict for verdict in Verdict if is_attributed(replace(changed, verdict=verdict))}
    assert found == {Verdict.CHANGED, Verdict.ABSORBED, Verdict.BROKEN, Verdict.FIXED}
    assert not is_attributed(replace(changed, origin=None))
    assert not is_attributed(replace(changed, findings=runs.findings("not-compared:ttir,asm")))


@pytest.mark.parametrize(
    ("verdict", "stage", "side"),
    [(Verdict.BROKEN, "ttgir", "head"), (Verdict.FIXED, "ttgir", "base"), (Verdict.BROKEN, "cubin", None)],
)
def test_what_broke_or_was_fixed_names_the_pass_that_failed(
    replayer: FakeReplayer, verdict: Verdict, stage: str, side: str | None
) -> None:
    """What failed outside of passes is not run again."""
    if side:
        replayer.makes(side, stage, ONE, error="it died", failed_in="TritonGPUPipeline")
    error = "Assertion x > 0 (Pipeliner.cpp:12) (the compiler died of SIGABRT)"
    changes: dict[str, Any] = {"origin": runs.origin(stage), "error": f"head: {error}"}
    case = replayer.case({"ttir": ONE}, {"ttir": ONE}, verdict=verdict, **changes)
    found = attributed(case, attribute(replayer, case))
    rows = [(row.side.toolchain.spec, row.dump) for row in replayer.replays]
    assert rows == ([(side, Dump.NAMES)] if side else [])
    assert found.origin and found.origin.pass_name == ("TritonGPUPipeline" if side else None)
    if side == "head":
        assert found.error == f"head: TritonGPUPipeline: {error}"
        assert attributed(found, attribute(replayer, case)) == found, "it is said once"
