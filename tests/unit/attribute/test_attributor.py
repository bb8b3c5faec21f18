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
from irdiff.model import Case, Component, Origin, StageStatus, Verdict
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.attribute.conftest import Bench, Texts, states
from tests.unit.no_llvm import no_llvm


def mlir(*operations: str, function: str = "tt.func public", end: str = "tt.return") -> str:
    body = "".join(f"    {line}\n" for line in (*operations, end))
    return f"module {{\n  {function} @k() {{\n{body}  }}\n}}\n"


def lowered(*operations: str) -> str:
    return mlir(*operations, function="llvm.func", end="llvm.return")


def llvm(value: int) -> str:
    return f"define i32 @k() {{\n  ret i32 {value}\n}}\n"


def binaries(stage: str, target: str, section: str) -> tuple[bytes, bytes, bytes]:
    """One, another, and a third."""
    first = of_stage(stage, release="3.9.0", target=target)[0].content
    return first, *(rebuilt(first, content(section, lambda old, n=n: n + old[1:])) for n in (b"\1", b"\2"))  # type: ignore[misc]


ONE, TWO, THREE, FOUR = (mlir(f"ttg.op{name}") for name in ("one", "two", "three", "four"))
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN, OTHER_CUBIN, THIRD_CUBIN = binaries("cubin", "sm_90", ".text.")
HSACO, OTHER_HSACO, _ = binaries("hsaco", "gfx942", ".text")
ASSEMBLY = of_stage("amdgcn", release="3.9.0", target="gfx942")[0].text
SIZED = mlir("%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")
UNSIZED = SIZED.replace(", allocation.size = 8 : i32", "")
AMD = "matmul/tma:fp16@gfx942"

FRONTEND, TTIR, TTGIR = Component.FRONTEND, Component.TTIR_PASSES, Component.TTGIR_PASSES
LOWERING, CODEGEN, PTXAS = Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS
INSEPARABLE = Component.NOT_SEPARABLE


def attribute(bench: Bench, case: Case, **of_head: Any) -> Attribution:
    replayer: Any = bench
    return Attributor(ArtifactComparator(bench.store, no_llvm), replayer).attribute(
        bench.subject(case, **of_head)
    )


def passes(stage: str, of: str, base: str, head: str) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Both sides' passes of a stage on one text."""
    return [
        (side, stage, of, {"output": made, "final": made, "through": states(("P", of), (END, made))})
        for side, made in (("base", base), ("head", head))
    ]


TTGIR_DIFFERS = passes("ttgir", ONE, TWO, THREE)
GIVEN = ({"ttir": ONE, "ttgir": TWO, "llir": llvm(1)}, {"ttir": ONE, "ttgir": THREE, "llir": llvm(2)})
"""Another TTGIR, and another LLVM IR."""
LLIR_ONLY = ({"ttgir": ONE, "llir": llvm(1)}, {"ttgir": ONE, "llir": llvm(2)})
SAME_END = {"final": lowered("llvm.one")}
O2, O3 = {"settings": {"opt": ["-O2"]}}, {"settings": {"opt": ["-O3"]}}


@pytest.mark.parametrize(
    ("texts", "replays", "charged", "origin", "note"),
    [
        pytest.param(
            ({"source": ONE, "ttir": THREE}, {"source": TWO, "ttir": FOUR}),
            [("head", "ttir", ONE, {"output": THREE})],
            [FRONTEND], ("ttir", None), "",
            id="another source is the frontend's, and what passes it on is innocent",
        ),
        pytest.param(
            ({"source": TWO, "ttir": ONE, "ttgir": THREE}, {"source": THREE, "ttir": ONE, "ttgir": FOUR}),
            passes("ttgir", ONE, THREE, FOUR),
            [TTGIR], ("ttgir", "P"), "",
            id="another source that the first passes make the same is not at fault",
        ),
        pytest.param(
            ({"ttir": ONE, "ttgir": THREE}, {"ttir": TWO, "ttgir": FOUR}),
            [("head", "ttgir", ONE, {"output": THREE})],
            [INSEPARABLE], ("ttir", None), "before 3.3",
            id="without a source the frontend is not told from the first passes",
        ),
        pytest.param(
            ({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}),
            [*TTGIR_DIFFERS[:1], ("head", "ttgir", ONE, {"error": "it needs more"})],
            [TTGIR], ("ttgir", None), "head cannot run the stage alone: it needs more",
            id="a stage that cannot be run alone is charged with a note",
        ),
        pytest.param(
            ({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}),
            [
                *TTGIR_DIFFERS[:1],
                ("head", "ttgir", ONE, {"through": states(("P", ONE), ("New", TWO), (END, THREE))}),
            ],
            [TTGIR], ("ttgir", "New"), "New: New added",
            id="a pass of one side only says so",
        ),
        pytest.param(
            (
                {"source": ONE, "ttir": TWO, "glir": FOUR, "ttgir": TWO},
                {"source": ONE, "ttir": THREE, "glir": FOUR, "ttgir": THREE},
            ),
            [
                *[(side, stage, of, {**more, "through": states(("First", of), (END, more["output"]))})
                  for side, stage, of, more in passes("ttir", ONE, TWO, THREE)],
                *passes("ttgir", FOUR, TWO, THREE),
            ],
            [TTIR, TTGIR], ("ttir", "First"), "",
            id="a later stage that differs on the same input does not take the name",
        ),
        pytest.param(
            ({"llir": llvm(1), "ptx": PTX}, {"llir": llvm(1), "ptx": OTHER_PTX}),
            [("base", "ptx", llvm(1), {"output": PTX, **O2}),
             ("head", "ptx", llvm(1), {"output": OTHER_PTX, **O3})],
            [CODEGEN], ("ptx", None), "opt: -O2 → -O3",
            id="a generator that is given the same, and called differently",
        ),
        pytest.param(
            ({"ptx": PTX, "cubin": CUBIN}, {"ptx": PTX, "cubin": OTHER_CUBIN}),
            [("base", "cubin", PTX, {"output": CUBIN}), ("head", "cubin", PTX, {"output": OTHER_CUBIN})],
            [PTXAS], ("sass", None), "",
            id="an assembler that is given the same",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": "; a comment\n" + llvm(1)})],
            [TTGIR], ("ttgir", "P"), "",
            id="a stage that makes of base's text what base made is innocent",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": llvm(3), "final": lowered("llvm.one")}),
             ("base", "llir", TWO, {"output": llvm(1), "final": lowered("llvm.two")})],
            [TTGIR, LOWERING], ("ttgir", "P"), "",
            id="a stage that makes something else of it is charged too",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": llvm(3), **SAME_END, **O3}),
             ("base", "llir", TWO, {"output": llvm(1), **SAME_END, **O2})],
            [TTGIR, CODEGEN], ("ttgir", "P"), "opt: -O2 → -O3",
            id="where the lowering ends the same it is LLVM's optimizer",
        ),
        *(
            pytest.param(
                GIVEN,
                [*TTGIR_DIFFERS, ("head", "llir", TWO, {"output": llvm(3)}), ("base", "llir", TWO, own)],
                [TTGIR, INSEPARABLE], ("ttgir", "P"), "base's own stage makes something else",
                id=f"a side that does not repeat itself alone: {own}",
            )
            for own in ({"output": llvm(9)}, {"error": "no"})
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"error": "unknown attribute"}),
             ("base", "llir", THREE, {"output": llvm(2)})],
            [TTGIR], ("ttgir", "P"), "",
            id="where head does not take base's text base is tried on head's",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"error": "unknown attribute"}),
             ("base", "llir", THREE, {"output": llvm(8), **SAME_END, **O2}),
             ("head", "llir", THREE, {"output": llvm(2), **SAME_END, **O3})],
            [TTGIR, CODEGEN], ("ttgir", "P"), "opt: -O2 → -O3",
            id="and is compared with head's own",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS, ("head", "llir", TWO, {"error": "unknown attribute"}),
             ("base", "llir", THREE, {"error": "unknown operation"})],
            [TTGIR, INSEPARABLE], ("ttgir", "P"),
            "head does not take base's ttgir (unknown attribute), nor base head's (unknown operation)",
            id="where neither takes the other's text nothing is separable",
        ),
        *(
            pytest.param(
                ({"ptx": PTX, "cubin": CUBIN}, {"ptx": OTHER_PTX, "cubin": OTHER_CUBIN}),
                [("head", "cubin", PTX, {"output": rebuilt(made, content(".debug_line", lambda old: old + b"x"))})],
                charged, (stage, None), note,
                id=f"head's assembler on base's text: {charged}",
            )
            for made, charged, stage, note in (
                (CUBIN, [], "ptx", ""), (OTHER_CUBIN, [PTXAS], "sass", "what differs in ptx has no effect"),
            )
        ),
        pytest.param(
            LLIR_ONLY, passes("llir", ONE, lowered("llvm.one"), lowered("llvm.two")),
            [LOWERING], ("llir", "P"), "",
            id="the lowering pass that began it",
        ),
        pytest.param(
            LLIR_ONLY, passes("llir", ONE, lowered("%0 = llvm.mlir.zero : i32"), lowered("%0 = llvm.mlir.undef : i32")),
            [LOWERING, CODEGEN], ("llir", None), "P differs in address arithmetic alone",
            id="a lowering whose edit LLVM's optimizer may undo is charged with it, and not named",
        ),
        pytest.param(
            LLIR_ONLY, passes("llir", ONE, lowered("llvm.one"), lowered("llvm.one")),
            [CODEGEN], ("llir", None), "LLVM's optimizer: the IR that enters it is the same",
            id="LLVM's optimizer is charged, and its pass is not looked for",
        ),
        pytest.param(
            GIVEN,
            [*TTGIR_DIFFERS,
             ("base", "llir", TWO, {"output": llvm(1), "through": states(("Q", TWO), (END, TWO))}),
             ("head", "llir", TWO, {"output": llvm(2), "through": states(("Q", TWO), (END, FOUR))})],
            [TTGIR, LOWERING], ("llir", "Q"),
            "the edit of P has no effect: head's llir stage makes the same of base's",
            id="a stage that makes head's output of base's text is the cause",
        ),
        *(
            pytest.param(
                ({"ttgir": ONE, "llir": llvm(1), "ptx": PTX, "cubin": CUBIN},
                 {"ttgir": ONE, "llir": llvm(2), "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}),
                [*passes("llir", ONE, lowered("nvvm.barrier0"), lowered("nvvm.fence")),
                 ("base", "ptx", llvm(1), {"output": PTX}),
                 ("head", "ptx", llvm(1), {"output": PTX.replace("16", "18")}),
                 ("head", "cubin", PTX, {"output": made})],
                [LOWERING, CODEGEN, PTXAS], origin, note,
                id=f"without effect is all before the last such stage: {note}",
            )
            for made, origin, note in (
                (OTHER_CUBIN, ("sass", None), "the edit of P has no effect: head's cubin stage makes the same"),
                (THIRD_CUBIN, ("llir", "P"), ""),
            )
        ),
        pytest.param(
            ({"ttir": ONE, "ttgir": SIZED, "llir": llvm(1)}, {"ttir": ONE, "ttgir": UNSIZED, "llir": llvm(2)}),
            [("base", "llir", SIZED, passes("llir", SIZED, lowered("llvm.one"), "")[0][3]),
             ("head", "llir", UNSIZED, passes("llir", SIZED, "", lowered("llvm.two"))[1][3])],
            [LOWERING], ("llir", "P"), "ttgir differs only in how it is printed",
            id="a stage that is only spelled differently is no origin",
        ),
        pytest.param(
            ({"ttir": ONE, "ttgir": SIZED}, {"ttir": ONE, "ttgir": UNSIZED}), [],
            [], ("ttgir", None), "",
            id="what differs in nothing but its spelling keeps its stage",
        ),
        pytest.param(
            ({"amdgcn": ASSEMBLY, "hsaco": HSACO}, {"amdgcn": ASSEMBLY, "hsaco": OTHER_HSACO}),
            [("base", "hsaco", ASSEMBLY, {"output": HSACO}), ("head", "hsaco", ASSEMBLY, {"output": OTHER_HSACO})],
            [PTXAS], ("amdgcn", None), "",
            id="the same assembly and another binary is linking",
        ),
        pytest.param(
            ({"llir": llvm(1), "amdgcn": ASSEMBLY, "hsaco": HSACO},
             {"llir": llvm(1), "amdgcn": ASSEMBLY.replace("s_endpgm", "s_nop 0\n\ts_endpgm"), "hsaco": OTHER_HSACO}),
            [(side, "amdgcn", llvm(1), {}) for side in ("base", "head")],
            [CODEGEN], ("amdgcn", None), "",
            id="another assembly is not charged to linking as well",
        ),
    ],
)  # fmt: skip
def test_what_is_charged(
    bench: Bench,
    texts: tuple[Texts, Texts],
    replays: list[Any],
    charged: list[Component],
    origin: tuple[str, str | None],
    note: str,
) -> None:
    for side, stage, of, made in replays:
        bench.makes(side, stage, of, **made)
    changes: dict[str, Any] = {}
    if "hsaco" in texts[0]:
        first = Origin(stage="amdgcn", pass_name=None, masked=(), charged=(), note="")
        changes = {"case_id": AMD, "stages": {"amdgcn": StageStatus.CHANGED}, "origin": first}
    found = attribute(bench, bench.case(*texts, **changes))
    assert list(found.origin.charged) == charged
    assert (found.origin.stage, found.origin.pass_name) == origin
    assert note in found.origin.note if note else not found.origin.note
    if found.step is None:
        assert found.edit is None
    elif found.edit is not None:
        assert found.edit.ir == ("mlir" if origin[0] == "llir" else "ttgir")
    assert not any(replay.dump is Dump.LLVM for replay in bench.replays)


def test_another_specialization_is_charged_before_anything_that_follows_from_it(bench: Bench) -> None:
    bench.makes("head", "ttir", ONE, THREE)
    rows = bench.build.findings("specialization-differs:signature")
    case = bench.case({"source": ONE, "ttir": THREE}, {"source": TWO, "ttir": FOUR}, findings=rows)
    found = attribute(bench, case).origin
    assert found.charged == (Component.SPECIALIZATION,)
    assert "signature" in found.note


def test_the_pass_that_began_it_is_kept_with_what_enters_and_leaves_it(bench: Bench) -> None:
    entering, leaving = mlir("ttg.a"), (mlir("ttg.b"), mlir("ttg.c"))
    for side, early, last in zip(("base", "head"), (TWO, THREE), leaving, strict=True):
        through = states(("Early", ONE), ("Mid", early), ("Late", entering), (END, last))
        bench.makes(side, "ttgir", ONE, through=through)
    case = bench.case(
        {"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}, renamed_from="old/w:a@sm_90"
    )
    found = attribute(bench, case)
    assert (found.origin.pass_name, found.origin.masked) == ("Late", ("Early",))
    assert found.step is not None
    assert (found.step.name, found.step.argument) == ("Late", "late")
    kept = [bench.store.get(digest) for digest in (*found.step.entering, *found.step.leaving)]
    assert kept == [entering.encode(), entering.encode(), leaving[0].encode(), leaving[1].encode()]
    assert found.edit is not None
    assert (found.edit.ir, found.edit.base, found.edit.head) == ("ttgir", *found.step.leaving)
    rows = sorted((row.launch.id, row.input_stage, str(row.metadata["of"])) for row in bench.replays)
    assert rows == [("matmul/tma:fp16", "ttir", "head"), ("old/w:a", "ttir", "base")]


def test_a_tool_that_is_given_the_same_is_not_run_again(bench: Bench) -> None:
    case = bench.case({"llir": llvm(1), "ptx": PTX}, {"llir": llvm(1), "ptx": OTHER_PTX})
    assert attribute(bench, case, substitute=object()).origin.charged == (CODEGEN,)
    assert bench.replays == []


@pytest.mark.parametrize("again", [TWO, FOUR])
def test_a_side_that_does_not_make_the_same_of_its_own_text_is_suspect(bench: Bench, again: str) -> None:
    for side, stage, of, made in TTGIR_DIFFERS:
        bench.makes(side, stage, of, **{**made, "output": {"base": again, "head": THREE}[side]})
    found = attribute(bench, bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}))
    assert found.suspect is (again == FOUR)
    assert all(replay.randomized for replay in bench.replays)


def test_a_side_on_the_others_text_runs_as_what_was_compared(bench: Bench) -> None:
    bench.makes("head", "ttgir", ONE, THREE)
    attribute(bench, bench.case({"ttir": ONE, "ttgir": THREE}, {"ttir": TWO, "ttgir": FOUR}))
    assert [replay.randomized for replay in bench.replays] == [False]


# the cache


@pytest.fixture
def changed(bench: Bench) -> Case:
    for side, stage, of, made in TTGIR_DIFFERS:
        bench.makes(side, stage, of, **made)
    return bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE})


def test_what_was_found_is_not_looked_for_again(bench: Bench, changed: Case) -> None:
    first = attribute(bench, changed)
    count, other = len(bench.replays), "other/name:fp16@sm_90"
    assert attribute(bench, replace(changed, id=other)) == replace(first, case_id=other)
    assert len(bench.replays) == count
    attribute(bench, replace(changed, verdict=Verdict.ABSORBED))
    assert len(bench.replays) == 2 * count


def test_what_there_was_no_time_for_is_looked_for_again(bench: Bench, changed: Case) -> None:
    known = dict(bench.answers)
    bench.makes("head", "ttgir", ONE, error="no result in time", transient=True)
    found = attribute(bench, changed)
    assert (found.transient, found.origin.pass_name) == (True, None)
    bench.answers = known
    again = attribute(bench, changed)
    assert (again.transient, again.origin.pass_name) == (False, "P")


def test_a_step_whose_texts_are_gone_is_looked_for_again(bench: Bench, changed: Case) -> None:
    first = attribute(bench, changed)
    assert first.step is not None
    bench.store.object_path(first.step.leaving.base).unlink()
    assert attribute(bench, changed) == first
    assert bench.store.get(first.step.leaving.base) == TWO.encode()


def test_an_artifact_that_is_gone_is_not_the_same(bench: Bench) -> None:
    for side, stage, of, made in TTGIR_DIFFERS:
        bench.makes(side, stage, of, **made)
    for side in ("base", "head"):
        bench.makes(side, "llir", TWO, f"{llvm(1)}; in other words\n")
    case = bench.case(*GIVEN)
    bench.store.object_path(case.artifacts.base["llir"].digest).unlink()
    assert attribute(bench, case).origin.charged == (TTGIR, INSEPARABLE)


# which cases, and those of which a side does not compile


def test_only_changed_code_that_both_sides_have_is_attributed(bench: Bench) -> None:
    case = bench.case({"ttir": ONE}, {"ttir": TWO})
    told = {verdict for verdict in Verdict if is_attributed(replace(case, verdict=verdict))}
    assert told == {Verdict.CHANGED, Verdict.ABSORBED, Verdict.BROKEN, Verdict.FIXED}
    assert not is_attributed(replace(case, origin=None))
    assert not is_attributed(replace(case, findings=bench.build.findings("not-compared:ttir,asm")))


def failing(bench: Bench, verdict: Verdict, stage: str = "ttgir") -> Case:
    return bench.case(
        {"ttir": ONE}, {"ttir": ONE}, verdict=verdict,
        origin=Origin(stage=stage, pass_name=None, masked=(), charged=(), note=""),
        error="head: Assertion x > 0 (Pipeliner.cpp:12) (the compiler died of SIGABRT)",
    )  # fmt: skip


@pytest.mark.parametrize(("verdict", "side"), [(Verdict.BROKEN, "head"), (Verdict.FIXED, "base")])
def test_what_broke_or_was_fixed_names_the_pass_that_failed(
    bench: Bench, verdict: Verdict, side: str
) -> None:
    bench.makes(side, "ttgir", ONE, error="it died", failed_in="TritonGPUPipeline")
    case = failing(bench, verdict)
    found = attributed(case, attribute(bench, case))
    assert [(row.side.toolchain.spec, row.dump) for row in bench.replays] == [(side, Dump.NAMES)]
    assert found.origin is not None
    assert found.origin.pass_name == "TritonGPUPipeline"
    if side == "head":
        assert found.error == f"head: TritonGPUPipeline: {str(case.error).removeprefix('head: ')}"
        assert attributed(found, attribute(bench, case)) == found, "it is said once"


def test_what_failed_outside_of_passes_is_not_run_again(bench: Bench) -> None:
    assert attribute(bench, failing(bench, Verdict.BROKEN, "cubin")).origin.pass_name is None
    assert bench.replays == []
