"""Whether a side agrees with itself, with a compiler and a replayer that have their answers ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.attribute.replayer import Replay, Replayed
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.model import (
    Artifact,
    Case,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Origin,
    Outcome,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.recheck.rechecker import Rechecker, RecheckInput
from irdiff.store import Store
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.no_llvm import no_llvm

PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\1" + old[1:]))
DEBUG_CUBIN = rebuilt(CUBIN, content(".debug_line", lambda old: old + b"more"))
SOURCE, TTIR, TTGIR = (f"module {{\n  tt.func @k() {{\n    tt.{n}\n    tt.return\n  }}\n}}\n" for n in "abc")
BASE: Mapping[str, str | bytes] = {"source": SOURCE, "ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
HEAD: Mapping[str, str | bytes] = {"source": SOURCE, "ttir": TTIR, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
MADE: dict[str, Mapping[str, str | bytes]] = {"base": BASE, "head": HEAD}


@dataclass
class Fakes:
    """Both protocols: a side's stage makes the outputs it was told to one after another, else its artifact."""

    store: Store
    outputs: dict[tuple[str, str], list[str | bytes | None]] = field(default_factory=dict)
    whole: dict[str, Outcome] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    late: tuple[str, str] | None = None
    """A side and a stage whose time runs out."""

    def run(self, replay: Replay) -> Replayed:
        assert replay.randomized
        side = replay.side.toolchain.spec
        self.asked.append(f"{side} {replay.stage} of {replay.input_stage}")
        is_late = (side, replay.stage) == self.late
        told = [None] if is_late else self.outputs.get((side, replay.stage), [])
        made = told.pop(0) if told else MADE[side][replay.stage]
        output = made.encode() if isinstance(made, str) else made
        return Replayed(
            output=output, error="" if output else "no", states=(), final=None, settings={}, failed_in=None,
            may_be_cured=is_late,
        )  # fmt: skip

    def recompile(self, toolchain: Any, *_: Any, attempt: int, fresh: bool = False) -> Outcome:
        self.asked.append(f"{toolchain.spec} compiled{' fresh' if fresh else ''}")
        return self.whole.get(toolchain.spec) or self.compiled(MADE[toolchain.spec])

    def compiled(self, texts: Mapping[str, str | bytes]) -> Compiled:
        return Compiled(
            handed={}, artifacts=self.keep(texts), metadata={}, stage_times_s={}, stage_cpu_s={}, assembler=None,
            assembler_log="", notes=(),
        )  # fmt: skip

    def keep(self, texts: Mapping[str, str | bytes]) -> dict[str, Artifact]:
        found = {}
        for stage, text in texts.items():
            made = text.encode() if isinstance(text, str) else text
            found[stage] = Artifact(stage=stage, digest=self.store.put(made), size_bytes=len(made))
        return found


@dataclass
class Bench:
    build: Any
    fakes: Fakes
    again: Sides[Mapping[str, bool]] = field(default_factory=lambda: Sides(base={}, head={}))

    def case(self, base: Mapping[str, str | bytes] = BASE, stage: str = "ptx", **changes: Any) -> Case:
        case: Case = self.build.case(
            "a/b:c@sm_90",
            Verdict.CHANGED,
            stages={"ttir": StageStatus.IDENTICAL, "ptx": StageStatus.CHANGED, "sass": StageStatus.CHANGED},
            origin=Origin(stage=stage, pass_name=None, masked=(), charged=(), note=""),
            artifacts=Sides(base=self.fakes.keep(base), head=self.fakes.keep(HEAD)),
        )
        return replace(case, **changes)

    def wanted(self, case: Case | None = None) -> RecheckInput:
        case = case or self.case()
        launches = Sides(base=self.build.launch(case.id, "base"), head=self.build.launch(case.id, "head"))
        return RecheckInput(case=case, launches=launches, target=self.build.target(), again=self.again)

    def rechecker(self) -> Rechecker:
        fakes: Any = self.fakes
        sides = Sides(base=self.build.side("base"), head=self.build.side("head"))
        return Rechecker(fakes, fakes, ArtifactComparator(self.fakes.store, no_llvm), sides)

    def disagreeing(self, case: Case | None = None) -> tuple[str, ...]:
        return self.rechecker().whole(self.wanted(case)).disagreeing


def failed(kind: FailureKind) -> Failed:
    return Failed(
        failure=Failure(kind=kind, stage="ptx", message="no", signal=None, stderr=""),
        transient=kind is FailureKind.TIMEOUT,
        artifacts={},
        stage_times_s={},
    )


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(build, Fakes(Store(tmp_path)))


def test_each_stage_from_the_first_changed_one_on_is_run_on_what_entered_it(bench: Bench) -> None:
    assert bench.disagreeing() == ()
    for side in ("base", "head"):
        asked = [row for row in bench.fakes.asked if row.startswith(side)]
        assert asked == [f"{side} ptx of ttir", f"{side} cubin of ptx"]


def test_what_attribution_ran_again_is_not_run_a_third_time(bench: Bench) -> None:
    bench.again = Sides(base={"ptx": True, "cubin": True}, head={"ptx": True})
    assert bench.disagreeing() == ()
    assert bench.fakes.asked == ["head cubin of ptx"]


def test_an_answer_is_kept(bench: Bench) -> None:
    bench.fakes.whole["head"] = bench.fakes.compiled({**HEAD, "cubin": CUBIN})
    bench.fakes.outputs["head", "cubin"] = [CUBIN]
    assert bench.disagreeing() == ("head",)
    bench.fakes.asked.clear()
    assert bench.disagreeing() == ("head",)
    assert bench.fakes.asked == []


def test_another_binary_of_the_same_code_is_agreement(bench: Bench) -> None:
    bench.fakes.outputs["base", "cubin"] = [DEBUG_CUBIN]
    assert bench.disagreeing() == ()
    assert not any("compiled" in row for row in bench.fakes.asked)


def test_a_stage_that_always_makes_another_thing_alone_is_settled_by_a_whole_compilation(
    bench: Bench,
) -> None:
    bench.fakes.outputs["head", "ptx"] = [PTX] * 3
    assert bench.disagreeing() == ()
    assert "head compiled" in bench.fakes.asked


def test_a_stage_that_cannot_be_run_alone_is_settled_by_a_whole_compilation(bench: Bench) -> None:
    bench.fakes.outputs["base", "ptx"] = bench.fakes.outputs["head", "ptx"] = [None] * 6
    bench.fakes.whole["head"] = failed(FailureKind.ERROR)
    assert bench.disagreeing() == ("head",)
    assert {"base compiled", "head compiled"} <= set(bench.fakes.asked)


@pytest.mark.parametrize("outputs", [[PTX, OTHER_PTX, OTHER_PTX], [PTX, PTX, OTHER_PTX]])
def test_a_stage_that_makes_one_thing_and_then_another_disagrees(bench: Bench, outputs: list[Any]) -> None:
    """Whatever a whole compilation says: it may have been lucky."""
    bench.again = Sides(base={}, head={"ptx": False})
    bench.fakes.outputs["head", "ptx"] = outputs[1:]
    assert bench.disagreeing() == ("head",)


def test_a_whole_compilation_that_makes_other_code_disagrees(bench: Bench) -> None:
    bench.fakes.outputs["base", "ptx"] = [OTHER_PTX] * 3
    bench.fakes.whole["base"] = bench.fakes.compiled({**BASE, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN})
    assert bench.disagreeing() == ("base",)


def test_a_compilation_that_ran_out_of_time_is_no_answer_and_is_asked_again(bench: Bench) -> None:
    bench.fakes.outputs["head", "ptx"] = [None] * 6
    bench.fakes.whole["head"] = failed(FailureKind.TIMEOUT)
    answers = bench.rechecker().whole(bench.wanted())
    assert (answers.disagreeing, answers.unanswered) == ((), ("head",))
    del bench.fakes.whole["head"]
    bench.fakes.outputs["head", "ptx"] = [OTHER_PTX]
    answers = bench.rechecker().whole(bench.wanted())
    assert (answers.disagreeing, answers.unanswered) == ((), ())


def test_a_stage_that_ran_out_of_time_is_no_answer(bench: Bench) -> None:
    bench.fakes.late = ("head", "ptx")
    answers = bench.rechecker().whole(bench.wanted())
    assert (answers.disagreeing, answers.unanswered) == ((), ("head",))


@pytest.mark.parametrize("stage", ["launch", "ttir"], ids=["what is launched", "what the frontend makes"])
def test_what_no_stage_makes_is_compiled_whole(bench: Bench, stage: str) -> None:
    bench.disagreeing(bench.case(base={**BASE, "source": TTGIR, "ttir": TTGIR}, stage=stage))
    assert sorted(bench.fakes.asked) == ["base compiled", "head compiled"]


def test_an_assembler_is_asked_alone(bench: Bench) -> None:
    bench.fakes.outputs["head", "cubin"] = [CUBIN, OTHER_CUBIN, CUBIN]
    assert bench.rechecker().assemblers(bench.wanted()).disagreeing == ("head",)
    assert {row.partition(" ")[2] for row in bench.fakes.asked} == {"cubin of ptx", "compiled"}
    assert bench.fakes.asked.count("base cubin of ptx") == 1


def test_a_backend_without_an_assembler_is_not_asked_for_it(bench: Bench) -> None:
    texts = {"source": SOURCE, "ttir": TTIR}
    case = bench.case(
        stage="ttir", artifacts=Sides(base=bench.fakes.keep(texts), head=bench.fakes.keep(texts))
    )
    assert bench.rechecker().assemblers(bench.wanted(case)).disagreeing == ()
    assert bench.fakes.asked == []
