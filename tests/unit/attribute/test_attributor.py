"""What each changed stage is charged to, with a replayer that has its answers ready."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.attribute import attribution, attributor
from irdiff.attribute.attribution import Attribution, AttributionInput, attribution_input
from irdiff.attribute.attributor import Attributor
from irdiff.attribute.passes import END, State
from irdiff.attribute.replayer import Dump, Replay, Replayed
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.model import Artifact, Case, Component, Origin, Sides, StageStatus, Verdict
from irdiff.store import Store
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.no_llvm import no_llvm

IDENTICAL, EQUIVALENT, CHANGED, ABSENT = StageStatus
CASE = "matmul/tma:fp16@sm_90"


def mlir(*operations: str) -> str:
    body = "".join(f"    {line}\n" for line in operations)
    return f"module {{\n  tt.func public @k() {{\n{body}    tt.return\n  }}\n}}\n"


def lowered(*operations: str) -> str:
    """On the way to LLVM IR."""
    body = "".join(f"    {line}\n" for line in operations)
    return f"module {{\n  llvm.func @k() {{\n{body}    llvm.return\n  }}\n}}\n"


def llvm(value: int) -> str:
    return f"define i32 @k() {{\n  ret i32 {value}\n}}\n"


ONE, TWO, THREE, FOUR = (mlir(f"ttg.op{name}") for name in ("one", "two", "three", "four"))
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\1" + old[1:]))


def states(*rows: tuple[str, str]) -> list[State]:
    return [State.of(name, name.lower(), "", text.encode()) for name, text in rows]


@dataclass
class FakeReplayer:
    """Runs a stage on a text as it was told to, and remembers what it was asked."""

    store: Store
    answers: dict[tuple[str, str, str], Replayed] = field(default_factory=dict)
    asked: list[tuple[str, str, str, Dump]] = field(default_factory=list)
    replays: list[Replay] = field(default_factory=list)

    def run(self, replay: Replay) -> Replayed:
        text = self.store.get(replay.input_digest)
        assert text is not None
        side = replay.side.toolchain.spec
        self.asked.append((side, replay.stage, text.decode(), replay.dump))
        self.replays.append(replay)
        return self.answers[side, replay.stage, text.decode()]

    def makes(
        self,
        side: str,
        stage: str,
        of: str,
        output: str | bytes = "",
        *,
        error: str = "",
        through: Sequence[State] = (),
        final: str = "",
        settings: Mapping[str, Sequence[str]] | None = None,
        failed_in: str | None = None,
    ) -> None:
        made = output if isinstance(output, bytes) else output.encode()
        self.answers[side, stage, of] = Replayed(
            output=None if error else made,
            error=error,
            states=through,
            final=State.of(END, "", None, final.encode()) if final else None,
            settings=settings or {},
            failed_in=failed_in,
        )


@dataclass
class Bench:
    build: Any
    store: Store
    replayer: FakeReplayer
    versions: dict[str, str] = field(default_factory=lambda: {"base": "3.8.0", "head": "3.9.0"})
    tool: Any = None
    """What stands in for the compiler of head."""

    def artifacts(self, texts: Mapping[str, str | bytes]) -> dict[str, Artifact]:
        found = {}
        for stage, text in texts.items():
            made = text if isinstance(text, bytes) else text.encode()
            found[stage] = Artifact(stage=stage, digest=self.store.put(made), size_bytes=len(made))
        return found

    def case(
        self,
        base: Mapping[str, str | bytes],
        head: Mapping[str, str | bytes],
        *,
        case_id: str = CASE,
        **changes: Any,
    ) -> Case:
        """With the statuses of stages that follow from their bytes; the source has none."""
        stages = {
            {"cubin": "sass"}.get(name, name): IDENTICAL if base[name] == head[name] else CHANGED
            for name in base
            if name not in ("source", "hsaco")
        }
        first = next((name for name, status in stages.items() if status is CHANGED), "ttgir")
        made = self.build.case(
            case_id,
            Verdict.CHANGED,
            stages=stages,
            origin=Origin(stage=first, pass_name=None, masked=(), charged=(), note=""),
            artifacts=Sides(base=self.artifacts(base), head=self.artifacts(head)),
            metadata=Sides(base={"of": "base"}, head={"of": "head"}),
        )
        return replace(made, **changes)

    def attribute(self, case: Case) -> Attribution:
        subject = attribution_input(case, self.build.target(case.target))
        assert isinstance(subject, AttributionInput)
        sides = Sides(
            base=self.build.side("base", self.versions["base"]),
            head=replace(self.build.side("head", self.versions["head"]), substitute=self.tool),
        )
        return Attributor(ArtifactComparator(self.store, no_llvm), self.replayer, sides).attribute(subject)

    def origin(
        self, base: Mapping[str, str | bytes], head: Mapping[str, str | bytes], **changes: Any
    ) -> Origin:
        return self.attribute(self.case(base, head, **changes)).origin


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    store = Store(tmp_path)
    return Bench(build, store, FakeReplayer(store))


# what enters the first stage


def test_another_source_is_charged_to_the_frontend_and_what_passes_it_on_is_not(bench: Bench) -> None:
    bench.replayer.makes("head", "ttir", of=ONE, output=THREE)
    found = bench.origin({"source": ONE, "ttir": THREE}, {"source": TWO, "ttir": FOUR})
    assert found.charged == (Component.FRONTEND,)
    assert found.stage == "ttir"


def test_another_source_that_the_first_passes_make_the_same_is_not_at_fault(bench: Bench) -> None:
    bench.replayer.makes("base", "ttgir", of=ONE, through=states(("P", ONE), (END, THREE)))
    bench.replayer.makes("head", "ttgir", of=ONE, through=states(("P", ONE), (END, FOUR)))
    found = bench.origin(
        {"source": TWO, "ttir": ONE, "ttgir": THREE}, {"source": THREE, "ttir": ONE, "ttgir": FOUR}
    )
    assert found.charged == (Component.TTGIR_PASSES,)


def test_without_a_source_the_frontend_is_not_told_from_the_first_passes(bench: Bench) -> None:
    bench.replayer.makes("head", "ttgir", of=ONE, output=THREE)
    found = bench.origin({"ttir": ONE, "ttgir": THREE}, {"ttir": TWO, "ttgir": FOUR})
    assert found.charged == (Component.NOT_SEPARABLE,)
    assert "before 3.3" in found.note


def test_another_specialization_is_charged_before_anything_that_follows_from_it(bench: Bench) -> None:
    bench.replayer.makes("head", "ttir", of=ONE, output=THREE)
    told = bench.build.findings("specialization-differs:signature")
    found = bench.origin({"source": ONE, "ttir": THREE}, {"source": TWO, "ttir": FOUR}, findings=told)
    assert found.charged == (Component.SPECIALIZATION,)
    assert "signature" in found.note


# a stage that is given the same


def test_the_pass_that_began_it_is_named_and_kept(bench: Bench) -> None:
    entering, leaving = mlir("ttg.a"), (mlir("ttg.b"), mlir("ttg.c"))
    bench.replayer.makes(
        "base", "ttgir", of=ONE, through=states(("First", ONE), ("Second", entering), (END, leaving[0]))
    )
    bench.replayer.makes(
        "head", "ttgir", of=ONE, through=states(("First", ONE), ("Second", entering), (END, leaving[1]))
    )
    found = bench.attribute(bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}))
    assert found.origin.charged == (Component.TTGIR_PASSES,)
    assert (found.origin.stage, found.origin.pass_name) == ("ttgir", "Second")
    assert found.step is not None
    assert (found.step.name, found.step.argument) == ("Second", "second")
    kept = [bench.store.get(digest) for digest in (*found.step.entering, *found.step.leaving)]
    assert kept == [entering.encode(), entering.encode(), leaving[0].encode(), leaving[1].encode()]
    assert found.edit is not None
    assert (found.edit.ir, found.edit.base, found.edit.head) == ("ttgir", *found.step.leaving)
    assert [row[3] for row in bench.replayer.asked] == [Dump.ALL, Dump.ALL]


def test_a_replay_is_of_the_sides_own_launch_text_and_notes(bench: Bench) -> None:
    for side in ("base", "head"):
        bench.replayer.makes(side, "ttgir", of=ONE, through=states(("P", ONE), (END, side)))
    case = bench.case(
        {"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}, renamed_from="old/name:fp16@sm_90"
    )
    bench.attribute(case)
    rows = [(row.launch_id, row.input_stage, row.metadata) for row in bench.replayer.replays]
    assert sorted(rows) == [
        ("matmul/tma:fp16", "ttir", {"of": "head"}),
        ("old/name:fp16", "ttir", {"of": "base"}),
    ]


def test_the_second_pass_that_differs_is_not_blamed_for_the_first(bench: Bench) -> None:
    """The stage after the first changed one may differ on the same input too; the first has the name."""
    bench.replayer.makes("base", "ttir", of=ONE, through=states(("First", ONE), (END, TWO)))
    bench.replayer.makes("head", "ttir", of=ONE, through=states(("First", ONE), (END, THREE)))
    for side, last in (("base", TWO), ("head", THREE)):
        bench.replayer.makes(side, "ttgir", of=FOUR, through=states(("Later", FOUR), (END, last)))
    found = bench.attribute(
        bench.case(
            {"source": ONE, "ttir": TWO, "glir": FOUR, "ttgir": TWO},
            {"source": ONE, "ttir": THREE, "glir": FOUR, "ttgir": THREE},
        )
    )
    assert found.origin.charged == (Component.TTIR_PASSES, Component.TTGIR_PASSES)
    assert found.origin.pass_name == "First"


def test_a_stage_that_cannot_be_run_alone_is_charged_with_a_note(bench: Bench) -> None:
    bench.replayer.makes("base", "ttgir", of=ONE, output=TWO)
    bench.replayer.makes("head", "ttgir", of=ONE, error="it needs more")
    found = bench.attribute(bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}))
    assert found.origin.charged == (Component.TTGIR_PASSES,)
    assert "head cannot run the stage alone: it needs more" in found.origin.note
    assert (found.origin.pass_name, found.step, found.edit) == (None, None, None)


def test_a_healed_difference_is_told_beside_the_pass(bench: Bench) -> None:
    for side, early, last in (("base", TWO, TWO), ("head", THREE, THREE)):
        rows = states(("Early", ONE), ("Mid", early), ("Late", FOUR), (END, last))
        bench.replayer.makes(side, "ttgir", of=ONE, through=rows)
    found = bench.origin({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE})
    assert (found.pass_name, found.masked) == ("Late", ("Early",))


def test_a_pass_of_one_side_only_says_so(bench: Bench) -> None:
    bench.replayer.makes("base", "ttgir", of=ONE, through=states(("P", ONE), (END, TWO)))
    bench.replayer.makes("head", "ttgir", of=ONE, through=states(("P", ONE), ("New", TWO), (END, THREE)))
    found = bench.origin({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE})
    assert (found.pass_name, found.note) == ("New", "New: New added")


@pytest.mark.parametrize(
    ("settings", "note"),
    [({}, ""), ({"codegen": ["--fast"]}, "codegen: (none) → --fast")],
)
def test_a_generator_of_code_that_is_given_the_same(
    bench: Bench, settings: Mapping[str, Sequence[str]], note: str
) -> None:
    """What it was called with is looked at, and no IR between passes."""
    text = llvm(1)
    bench.replayer.makes("base", "ptx", of=text, output=PTX, settings={"codegen": []})
    bench.replayer.makes("head", "ptx", of=text, output=OTHER_PTX, settings=settings)
    found = bench.origin({"llir": text, "ptx": PTX}, {"llir": text, "ptx": OTHER_PTX})
    assert (found.charged, found.note) == ((Component.LLVM_CODEGEN,), note)
    assert {row[3] for row in bench.replayer.asked} == {Dump.NONE}


def test_a_tool_that_is_given_the_same_is_not_run_again(bench: Bench) -> None:
    """Of its call nothing is recorded, and a recheck asks one case of each group."""
    bench.tool, text = object(), llvm(1)
    found = bench.origin({"llir": text, "ptx": PTX}, {"llir": text, "ptx": OTHER_PTX})
    assert (found.charged, found.note) == ((Component.LLVM_CODEGEN,), "")
    assert bench.replayer.asked == []


def test_an_assembler_that_is_given_the_same(bench: Bench) -> None:
    for side, made in (("base", CUBIN), ("head", OTHER_CUBIN)):
        bench.replayer.makes(side, "cubin", of=PTX, output=made)
    found = bench.origin({"ptx": PTX, "cubin": CUBIN}, {"ptx": PTX, "cubin": OTHER_CUBIN})
    assert (found.charged, found.stage) == ((Component.PTXAS,), "sass")


# a stage that is given something else: one side's stage on the other side's text


def own_passes(bench: Bench, stage: str, of: str, base: str, head: str) -> None:
    for side, made in (("base", base), ("head", head)):
        bench.replayer.makes(side, stage, of=of, output=made, through=states(("P", of), (END, made)))


DIFFERING = ({"ttir": ONE, "ttgir": TWO, "llir": llvm(1)}, {"ttir": ONE, "ttgir": THREE, "llir": llvm(2)})


def test_a_stage_that_makes_of_bases_text_what_base_made_is_innocent(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(1))
    assert bench.origin(*DIFFERING).charged == (Component.TTGIR_PASSES,)


def test_the_same_but_for_what_the_normalizers_drop_is_innocent(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output="; a comment\n" + llvm(1))
    assert bench.origin(*DIFFERING).charged == (Component.TTGIR_PASSES,)


def test_a_stage_that_makes_something_else_of_it_is_charged_too(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(3))
    bench.replayer.makes("base", "llir", of=TWO, output=llvm(1))
    found = bench.origin(*DIFFERING)
    assert found.charged == (Component.TTGIR_PASSES, Component.LLVM_LOWERING)
    assert Dump.FINAL in {row[3] for row in bench.replayer.asked}


def test_where_the_lowering_ends_the_same_it_is_llvms_optimizer(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    last = lowered("llvm.one")
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(3), final=last, settings={"opt": ["-O3"]})
    bench.replayer.makes("base", "llir", of=TWO, output=llvm(1), final=last, settings={"opt": ["-O2"]})
    found = bench.origin(*DIFFERING)
    assert found.charged == (Component.TTGIR_PASSES, Component.LLVM_CODEGEN)
    assert found.note.endswith("opt: -O2 → -O3"), "base's is on the left, though head's stage ran first"


def test_where_the_lowering_ends_otherwise_it_is_the_lowering(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(3), final=lowered("llvm.one"))
    bench.replayer.makes("base", "llir", of=TWO, output=llvm(1), final=lowered("llvm.two"))
    assert bench.origin(*DIFFERING).charged == (Component.TTGIR_PASSES, Component.LLVM_LOWERING)


@pytest.mark.parametrize("own", [{"output": llvm(9)}, {"error": "no"}], ids=["otherwise", "not at all"])
def test_a_side_that_does_not_repeat_itself_alone_is_not_separable(bench: Bench, own: dict[str, str]) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(3))
    bench.replayer.makes("base", "llir", of=TWO, **own)
    found = bench.origin(*DIFFERING)
    assert found.charged == (Component.TTGIR_PASSES, Component.NOT_SEPARABLE)
    assert "base's own stage makes something else" in found.note


def test_where_head_does_not_take_bases_text_base_is_tried_on_heads(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, error="unknown attribute")
    bench.replayer.makes("base", "llir", of=THREE, output=llvm(2))
    assert bench.origin(*DIFFERING).charged == (Component.TTGIR_PASSES,)
    settings = {"settings": {"opt": ["-O2"]}, "final": lowered("llvm.one")}
    bench.replayer.makes("base", "llir", of=THREE, output=llvm(8), **settings)
    settings = {"settings": {"opt": ["-O3"]}, "final": lowered("llvm.one")}
    bench.replayer.makes("head", "llir", of=THREE, output=llvm(2), **settings)
    found = bench.origin(*DIFFERING, verdict=Verdict.ABSORBED)
    assert found.charged == (Component.TTGIR_PASSES, Component.LLVM_CODEGEN)
    assert found.note.endswith("opt: -O2 → -O3")


def test_where_neither_takes_the_others_text_nothing_is_separable(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, error="unknown attribute")
    bench.replayer.makes("base", "llir", of=THREE, error="unknown operation")
    found = bench.origin(*DIFFERING)
    assert found.charged == (Component.TTGIR_PASSES, Component.NOT_SEPARABLE)
    assert "head does not take base's ttgir (unknown attribute)" in found.note
    assert "nor base head's (unknown operation)" in found.note


@pytest.mark.parametrize(("made", "charged"), [(CUBIN, ()), (OTHER_CUBIN, (Component.PTXAS,))])
def test_heads_assembler_on_bases_text(bench: Bench, made: bytes, charged: tuple[Component, ...]) -> None:
    """An assembler repeats itself: its own side is not asked for that."""
    debug = rebuilt(made, content(".debug_line", lambda old: old + b"more"))
    bench.replayer.makes("head", "cubin", of=PTX, output=debug)
    texts = {"ptx": PTX, "cubin": CUBIN}, {"ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
    assert bench.origin(*texts).charged == charged
    assert len(bench.replayer.asked) == 1


# LLVM's own passes


def lowering(bench: Bench, base: str, head: str, *llvm_states: Sequence[State]) -> None:
    """Passes that end the same, or not; then those of LLVM."""
    for side, last, more in zip(("base", "head"), (base, head), llvm_states or ((), ()), strict=True):
        through = [*states(("Convert", ONE)), *states((END, last))]
        bench.replayer.makes(side, "llir", of=ONE, final=last, through=[*through, *more])


def test_the_lowering_pass_that_began_it_is_shown_as_what_it_makes(bench: Bench) -> None:
    lowering(bench, lowered("llvm.one"), lowered("llvm.two"))
    found = bench.attribute(bench.case({"ttgir": ONE, "llir": llvm(1)}, {"ttgir": ONE, "llir": llvm(2)}))
    assert (found.origin.charged, found.origin.pass_name) == ((Component.LLVM_LOWERING,), "Convert")
    assert found.edit is not None
    assert found.edit.ir == "mlir"


class LlvmBench:
    """Both lowerings end the same; what LLVM is told to print differs after its pass `instcombine`."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.asked: list[str] = []
        plain = bench.replayer.run
        last = lowered("llvm.one")

        def run(replay: Replay) -> Replayed:
            if replay.dump is not Dump.LLVM:
                return plain(replay)
            self.asked.append(replay.side.toolchain.spec)
            ends = {"base": "b", "head": "h"}[replay.side.toolchain.spec]
            return replace(plain(replay), states=states(("sroa", "x"), ("instcombine", "y"), (END, ends)))

        bench.replayer.run = run  # type: ignore[method-assign]
        lowering(bench, last, last)

    def origin(self, size_bytes: int = 10) -> Origin:
        case = self.bench.case({"ttgir": ONE, "llir": llvm(1)}, {"ttgir": ONE, "llir": llvm(2)})
        larger = {**case.artifacts.head, "llir": replace(case.artifacts.head["llir"], size_bytes=size_bytes)}
        return self.bench.attribute(
            replace(case, artifacts=Sides(base=case.artifacts.base, head=larger))
        ).origin


def test_llvms_pass_is_named_where_the_lowering_ends_the_same(bench: Bench) -> None:
    found = LlvmBench(bench).origin()
    assert (found.charged, found.pass_name) == ((Component.LLVM_CODEGEN,), "instcombine")


@pytest.mark.parametrize(
    ("size", "version"),
    [(attributor.MAX_LLVM_TEXT_BYTES + 1, "3.9.0"), (10, "3.6.0"), (10, "2.9.9"), (10, "main")],
)
def test_llvms_passes_are_not_printed_where_that_takes_minutes(bench: Bench, size: int, version: str) -> None:
    bench.versions["base"] = version
    made = LlvmBench(bench)
    found = made.origin(size)
    assert (found.charged, found.pass_name, made.asked) == ((Component.LLVM_CODEGEN,), None, [])


@pytest.mark.parametrize("version", ["3.7.0", "4.0.0", "10.1"])
def test_llvms_passes_are_printed_from_3_7_on(bench: Bench, version: str) -> None:
    bench.versions["base"] = version
    made = LlvmBench(bench)
    made.origin(attributor.MAX_LLVM_TEXT_BYTES)
    assert sorted(made.asked) == ["base", "head"]


def test_an_edit_that_llvm_takes_back_is_healed_and_what_llvm_does_after_it_is_the_cause(
    bench: Bench,
) -> None:
    """A lowering that computes an address otherwise, which `sroa` makes the same."""
    made = LlvmBench(bench)
    lowering(bench, lowered("%0 = llvm.mlir.zero : i32"), lowered("%0 = llvm.mlir.undef : i32"))
    found = made.origin()
    assert (found.charged, found.pass_name) == ((Component.LLVM_CODEGEN,), "instcombine")
    assert found.masked == ("Convert",)
    assert "LLVM's optimizer makes the same of what Convert lowers otherwise" in found.note


def test_an_edit_that_tells_something_is_not_followed_through_llvm(bench: Bench) -> None:
    made = LlvmBench(bench)
    lowering(bench, lowered("nvvm.barrier0"), lowered("nvvm.fence"))
    found = made.origin()
    assert (found.charged, found.pass_name) == ((Component.LLVM_LOWERING,), "Convert")
    assert made.asked == []


# what has no effect


def test_where_heads_stage_makes_heads_output_of_bases_text_it_is_the_cause(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("base", "llir", of=TWO, output=llvm(1), through=states(("Q", TWO), (END, TWO)))
    bench.replayer.makes("head", "llir", of=TWO, output=llvm(2), through=states(("Q", TWO), (END, FOUR)))
    found = bench.attribute(bench.case(*DIFFERING))
    assert (found.origin.stage, found.origin.pass_name) == ("llir", "Q")
    assert found.edit is not None
    assert found.edit.ir == "mlir"
    assert found.origin.note.startswith(
        "the edit of P has no effect: head's llir stage makes the same of base's"
    )


def test_without_effect_is_all_that_is_before_the_last_such_stage(bench: Bench) -> None:
    """Another LLVM IR, another PTX; and head's assembler makes head's code of base's PTX too."""
    base = {"ttgir": ONE, "llir": llvm(1), "ptx": PTX, "cubin": CUBIN}
    head = {"ttgir": ONE, "llir": llvm(2), "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
    lowering(bench, lowered("nvvm.barrier0"), lowered("nvvm.fence"))
    bench.replayer.makes("base", "ptx", of=llvm(1), output=PTX)
    bench.replayer.makes("head", "ptx", of=llvm(1), output=PTX.replace("16", "18"))
    bench.replayer.makes("head", "cubin", of=PTX, output=OTHER_CUBIN)
    found = bench.attribute(bench.case(base, head))
    assert (found.origin.stage, found.origin.pass_name, found.edit, found.step) == ("sass", None, None, None)
    assert found.origin.charged == (Component.LLVM_LOWERING, Component.LLVM_CODEGEN, Component.PTXAS)
    assert found.origin.note.startswith(
        "the edit of Convert has no effect: head's cubin stage makes the same"
    )
    bench.replayer.makes(
        "head", "cubin", of=PTX, output=rebuilt(CUBIN, content(".text.", lambda old: b"\2" + old[1:]))
    )
    other = bench.attribute(bench.case(base, {**head, "ptx": OTHER_PTX + "\n// again\n"}))
    assert (other.origin.stage, other.origin.pass_name) == ("llir", "Convert")


# what only looks different


SIZED = mlir("%0 = tt.histogram {allocation.offset = 0 : i32, allocation.size = 8 : i32} : i32")
UNSIZED = SIZED.replace(", allocation.size = 8 : i32", "")


def test_a_stage_that_is_only_printed_otherwise_is_no_origin(bench: Bench) -> None:
    own_passes(bench, "llir", SIZED, lowered("llvm.one"), lowered("llvm.two"))
    own_passes(bench, "llir", UNSIZED, lowered("llvm.one"), lowered("llvm.two"))
    found = bench.origin(
        {"ttir": ONE, "ttgir": SIZED, "llir": llvm(1)}, {"ttir": ONE, "ttgir": UNSIZED, "llir": llvm(2)}
    )
    assert found.stage == "llir"
    assert found.note.startswith("ttgir differs only in how it is printed")
    assert Component.TTGIR_PASSES not in found.charged


def test_what_differs_in_nothing_but_its_spelling_keeps_its_stage(bench: Bench) -> None:
    found = bench.origin({"ttir": ONE, "ttgir": SIZED}, {"ttir": ONE, "ttgir": UNSIZED})
    assert (found.stage, found.charged, found.note) == ("ttgir", (), "")


def test_the_stage_after_it_is_called_as_it_is_reported(bench: Bench) -> None:
    bench.replayer.makes("head", "cubin", of=UNSIZED, output=OTHER_CUBIN)
    bench.replayer.makes("base", "cubin", of=SIZED, output=CUBIN)
    found = bench.origin(
        {"ttir": ONE, "ttgir": SIZED, "cubin": CUBIN}, {"ttir": ONE, "ttgir": UNSIZED, "cubin": OTHER_CUBIN}
    )
    assert found.stage == "sass"


# AMD: the status of the assembly is that of the machine code


AMD = "matmul/tma:fp16@gfx942"
HSACO = of_stage("hsaco", release="3.9.0", target="gfx942")[0].content
OTHER_HSACO = rebuilt(HSACO, content(".text", lambda old: b"\1" + old[1:]))
ASSEMBLY = of_stage("amdgcn", release="3.9.0", target="gfx942")[0].text


def test_the_same_assembly_and_another_binary_is_linking(bench: Bench) -> None:
    for side, made in (("base", HSACO), ("head", OTHER_HSACO)):
        bench.replayer.makes(side, "hsaco", of=ASSEMBLY, output=made)
    case = bench.case(
        {"amdgcn": ASSEMBLY, "hsaco": HSACO}, {"amdgcn": ASSEMBLY, "hsaco": OTHER_HSACO}, case_id=AMD
    )
    changed = replace(case, stages={"amdgcn": CHANGED}, origin=replace(case.origin, stage="amdgcn"))
    assert bench.attribute(changed).origin.charged == (Component.PTXAS,)


def test_another_assembly_is_not_charged_to_linking_as_well(bench: Bench) -> None:
    other = ASSEMBLY.replace("s_endpgm", "s_nop 0\n\ts_endpgm")
    assert other != ASSEMBLY
    for side, made in (("base", ASSEMBLY), ("head", other)):
        bench.replayer.makes(side, "amdgcn", of=llvm(1), output=made)
    case = bench.case(
        {"llir": llvm(1), "amdgcn": ASSEMBLY, "hsaco": HSACO},
        {"llir": llvm(1), "amdgcn": other, "hsaco": OTHER_HSACO},
        case_id=AMD,
    )
    assert bench.attribute(case).origin.charged == (Component.LLVM_CODEGEN,)


# the store


def test_what_was_found_is_not_looked_for_again(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    texts = {"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}
    first = bench.attribute(bench.case(*texts))
    asked = len(bench.replayer.asked)
    other = "other/name:fp16@sm_90"
    assert bench.attribute(bench.case(*texts, case_id=other)) == replace(first, case_id=other, made=None)
    assert len(bench.replayer.asked) == asked
    bench.attribute(bench.case(*texts, verdict=Verdict.ABSORBED))
    assert len(bench.replayer.asked) == 2 * asked


def test_what_there_was_no_time_for_is_looked_for_again(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    known = dict(bench.replayer.answers)
    late = replace(known["head", "ttgir", ONE], output=None, error="no result in time", may_be_cured=True)
    bench.replayer.answers["head", "ttgir", ONE] = late
    texts = {"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}
    found = bench.attribute(bench.case(*texts))
    assert found.may_be_cured
    assert found.origin.pass_name is None
    bench.replayer.answers = known
    again = bench.attribute(bench.case(*texts))
    assert not again.may_be_cured
    assert again.origin.pass_name is not None


def test_a_step_whose_texts_are_gone_is_looked_for_again(bench: Bench) -> None:
    end = mlir("ttg.gone")
    bench.replayer.makes("base", "ttgir", of=ONE, through=states(("P", ONE), (END, end)))
    bench.replayer.makes("head", "ttgir", of=ONE, through=states(("P", ONE), (END, THREE)))
    case = bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": FOUR})
    first = bench.attribute(case)
    assert first.step is not None
    bench.store.object_path(first.step.leaving.base).unlink()
    assert bench.attribute(case) == first
    assert bench.store.get(first.step.leaving.base) == end.encode()


def test_an_artifact_that_is_gone_is_not_the_same(bench: Bench) -> None:
    own_passes(bench, "ttgir", ONE, TWO, THREE)
    bench.replayer.makes("head", "llir", of=TWO, output=f"{llvm(1)}; spelled otherwise\n")
    bench.replayer.makes("base", "llir", of=TWO, output=f"{llvm(1)}; spelled otherwise\n")
    case = bench.case(*DIFFERING)
    bench.store.object_path(case.artifacts.base["llir"].digest).unlink()
    found = bench.attribute(case).origin
    assert found.charged == (Component.TTGIR_PASSES, Component.NOT_SEPARABLE)


# which cases are asked about


def test_only_changed_code_that_both_sides_have_is_attributed(bench: Bench) -> None:
    case, target = bench.case({"ttir": ONE}, {"ttir": TWO}), bench.build.target()
    assert attribution_input(case, target) is not None
    assert attribution_input(replace(case, verdict=Verdict.ABSORBED), target) is not None
    failed = {Verdict.BROKEN, Verdict.FIXED}
    for verdict in failed:
        assert attribution_input(replace(case, verdict=verdict), target) is not None
    for verdict in set(Verdict) - {Verdict.CHANGED, Verdict.ABSORBED} - failed:
        assert attribution_input(replace(case, verdict=verdict), target) is None
    assert attribution_input(replace(case, origin=None), target) is None
    blind = bench.build.findings("not-compared:ttir,asm")
    assert attribution_input(replace(case, findings=blind), target) is None


def test_what_broke_names_the_pass_that_failed(bench: Bench) -> None:
    stopped = bench.case({"ttir": ONE}, {"ttir": ONE})
    case = replace(
        stopped,
        verdict=Verdict.BROKEN,
        origin=Origin(stage="ttgir", pass_name=None, masked=(), charged=(), note=""),
        error="head: Assertion x > 0 (Pipeliner.cpp:12) (the compiler died of SIGABRT)",
    )
    bench.replayer.makes("head", "ttgir", of=ONE, error="it died", failed_in="TritonGPUPipeline")
    found = bench.attribute(case)
    assert bench.replayer.asked == [("head", "ttgir", ONE, Dump.NAMES)]
    told = attribution.attributed(case, found)
    assert told.origin is not None
    assert told.origin.pass_name == "TritonGPUPipeline"
    assert told.error is not None
    assert told.error.startswith("head: TritonGPUPipeline: Assertion x > 0 (Pipeliner.cpp:12)")
    assert attribution.attributed(told, found) == told, "it is said once"


def test_what_was_fixed_is_run_again_at_base(bench: Bench) -> None:
    case = replace(
        bench.case({"ttir": ONE}, {"ttir": ONE, "ttgir": ONE}),
        verdict=Verdict.FIXED,
        origin=Origin(stage="ttgir", pass_name=None, masked=(), charged=(), note=""),
    )
    bench.replayer.makes("base", "ttgir", of=ONE, error="it died", failed_in="TritonGPUPipeline")
    assert bench.attribute(case).origin.pass_name == "TritonGPUPipeline"


def test_what_failed_outside_of_passes_is_not_run_again(bench: Bench) -> None:
    case = replace(
        bench.case({"ptx": PTX}, {"ptx": PTX}),
        verdict=Verdict.BROKEN,
        origin=Origin(stage="cubin", pass_name=None, masked=(), charged=(), note=""),
    )
    assert bench.attribute(case).origin.pass_name is None
    assert bench.replayer.asked == []


def test_each_side_is_asked_for_its_own_launch(bench: Bench) -> None:
    case = bench.case({"ttir": ONE}, {"ttir": TWO}, renamed_from="old/name:fp16@sm_90")
    subject = attribution_input(case, bench.build.target())
    assert subject is not None
    assert subject.launch_ids == Sides(base="old/name:fp16", head="matmul/tma:fp16")


# what is run again


def test_a_side_on_its_own_text_is_run_with_randomized_addresses_and_held_against_what_was_compared(
    bench: Bench,
) -> None:
    bench.replayer.makes("base", "ttgir", of=ONE, output=TWO, through=states(("P", ONE), (END, TWO)))
    bench.replayer.makes("head", "ttgir", of=ONE, output=FOUR, through=states(("P", ONE), (END, THREE)))
    found = bench.attribute(bench.case({"ttir": ONE, "ttgir": TWO}, {"ttir": ONE, "ttgir": THREE}))
    assert found.again == Sides(base={"ttgir": True}, head={"ttgir": False})
    assert all(replay.randomized for replay in bench.replayer.replays)


def test_a_side_on_the_others_text_is_run_as_what_was_compared(bench: Bench) -> None:
    bench.replayer.makes("head", "ttgir", of=ONE, output=THREE)
    found = bench.attribute(bench.case({"ttir": ONE, "ttgir": THREE}, {"ttir": TWO, "ttgir": FOUR}))
    assert found.again == Sides(base={}, head={})
    assert [replay.randomized for replay in bench.replayer.replays] == [False]
