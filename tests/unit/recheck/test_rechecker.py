"""What a side is asked to settle whether it agrees with itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from irdiff.attribute.attribution import CaseToReplay
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
    Verdict,
)
from irdiff.recheck.rechecker import Answers, Depth, Rechecker
from irdiff.store import Store
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit.no_llvm import no_llvm

Texts = Mapping[str, str | bytes]
PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\1" + old[1:]))
DEBUG_CUBIN = rebuilt(CUBIN, content(".debug_line", lambda old: old + b"more"))
SOURCE, TTIR, TTGIR = (f"module {{\n  tt.func @k() {{\n    tt.{n}\n    tt.return\n  }}\n}}\n" for n in "abc")
BASE: Texts = {"source": SOURCE, "ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
HEAD: Texts = {"source": SOURCE, "ttir": TTIR, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
MADE: dict[str, Texts] = {"base": BASE, "head": HEAD}


@dataclass
class Bench:
    """A side's stage makes the outputs it is told to, one for each attempt, else its artifact."""

    build: Any
    store: Store
    outputs: dict[tuple[str, str], list[str | bytes | None]] = field(default_factory=dict)
    whole: dict[str, Outcome] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    late: tuple[str, str] | None = None
    """A side and a stage whose time runs out."""

    def run(self, replay: Replay) -> Replayed:
        assert replay.randomized
        side, stage = replay.side.toolchain.spec, replay.stage
        self.asked.append(f"{side} {stage} of {replay.input_stage}")
        made = dict(enumerate(self.outputs.get((side, stage), ()))).get(replay.attempt, MADE[side][stage])
        transient = (side, stage) == self.late
        if made is None or transient:
            return Replayed(output=None, error="no", settings={}, transient=transient)
        return Replayed(output=self.store.put(made.encode() if isinstance(made, str) else made), settings={})

    def recompile(self, toolchain: Any, *_: Any, attempt: int, fresh: bool = False) -> Outcome:
        self.asked.append(f"{toolchain.spec} compiled")
        return self.whole.get(toolchain.spec) or self.compiled(MADE[toolchain.spec])

    def compiled(self, texts: Texts) -> Compiled:
        return Compiled(
            handed={}, artifacts=self.keep(texts), metadata={}, stage_times_s={}, stage_cpu_s={}, assembler=None,
            assembler_log="", notes=(),
        )  # fmt: skip

    def keep(self, texts: Texts) -> dict[str, Artifact]:
        digests = {s: self.store.put(t.encode() if isinstance(t, str) else t) for s, t in texts.items()}
        return {s: Artifact(stage=s, digest=digest, size_bytes=1) for s, digest in digests.items()}

    def ask(
        self, depth: Depth = Depth.WHOLE, *, base: Texts = BASE, head: Texts = HEAD, stage: str = "ptx"
    ) -> Answers:
        case: Case = self.build.case(
            "a/b:c@sm_90",
            Verdict.CHANGED,
            origin=Origin(stage=stage, pass_name=None, masked=(), charged=(), note=""),
            artifacts=Sides(base=self.keep(base), head=self.keep(head)),
        )
        subject = CaseToReplay(
            case=case,
            sides=Sides(base=self.build.side("base"), head=self.build.side("head")),
            launches=Sides(base=self.build.launch(case.id, "base"), head=self.build.launch(case.id, "head")),
            target=self.build.target(),
        )
        fakes: Any = self
        return Rechecker(fakes, fakes, ArtifactComparator(self.store, no_llvm)).ask(subject, depth)


def failed(kind: FailureKind) -> Failed:
    failure = Failure(kind=kind, stage="ptx", message="no", signal=None, stderr="")
    transient = kind is FailureKind.TIMEOUT
    return Failed(failure=failure, transient=transient, artifacts={}, stage_times_s={})


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(build, Store(tmp_path))


def test_each_stage_from_the_first_changed_one_on_is_run_on_what_entered_it(bench: Bench) -> None:
    assert bench.ask() == Answers(disagreeing=(), unanswered=())
    for side in ("base", "head"):
        asked = [row for row in bench.asked if row.startswith(side)]
        assert asked == [f"{side} ptx of ttir", f"{side} cubin of ptx"]


def test_another_binary_of_the_same_code_is_agreement(bench: Bench) -> None:
    bench.outputs["base", "cubin"] = [DEBUG_CUBIN]
    assert bench.ask().disagreeing == ()
    assert not any("compiled" in row for row in bench.asked)


@pytest.mark.parametrize(
    ("outputs", "disagrees"),
    [
        ([PTX] * 3, False),
        ([None] * 3, False),
        ([PTX, OTHER_PTX, OTHER_PTX], True),
        ([PTX, PTX, OTHER_PTX], True),
        ([None, OTHER_PTX, OTHER_PTX], True),
        ([PTX, None, None], True),
    ],
    ids=["always another", "never runs alone", "lucky the second time", "lucky the third time", "ran later",
         "ran at first"],
)  # fmt: skip
def test_a_stage_that_does_not_make_it_again_alone(bench: Bench, outputs: list[Any], disagrees: bool) -> None:
    """A whole compilation settles it, unless the stage makes one thing and then another: that one may have
    been lucky.
    """
    bench.outputs["head", "ptx"] = outputs
    assert bench.ask() == Answers(disagreeing=("head",) if disagrees else (), unanswered=())
    assert "head compiled" in bench.asked
    assert "base compiled" not in bench.asked


@pytest.mark.parametrize("other", [{**BASE, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}, None])
def test_a_whole_compilation_that_makes_other_code_or_none_disagrees(
    bench: Bench, other: Texts | None
) -> None:
    bench.outputs["base", "ptx"] = [OTHER_PTX] * 3
    bench.whole["base"] = bench.compiled(other) if other else failed(FailureKind.ERROR)
    assert bench.ask().disagreeing == ("base",)


def test_a_compilation_that_ran_out_of_time_is_no_answer_and_is_asked_again(bench: Bench) -> None:
    bench.outputs["head", "ptx"] = [None] * 3
    bench.whole["head"] = failed(FailureKind.TIMEOUT)
    assert bench.ask() == Answers(disagreeing=(), unanswered=("head",))
    del bench.whole["head"]
    assert bench.ask() == Answers(disagreeing=(), unanswered=())


def test_a_stage_that_ran_out_of_time_is_no_answer(bench: Bench) -> None:
    bench.late = ("head", "ptx")
    assert bench.ask() == Answers(disagreeing=(), unanswered=("head",))


@pytest.mark.parametrize("stage", ["launch", "ttir"], ids=["what is launched", "what the frontend makes"])
def test_what_no_stage_makes_is_compiled_whole(bench: Bench, stage: str) -> None:
    bench.ask(base={**BASE, "source": TTGIR, "ttir": TTGIR}, stage=stage)
    assert sorted(bench.asked) == ["base compiled", "head compiled"]


def test_a_compilation_whose_artifacts_are_damaged_is_made_afresh(bench: Bench) -> None:
    bench.outputs["head", "ptx"] = [None] * 3
    broken = bench.compiled({**HEAD, "cubin": DEBUG_CUBIN})
    bench.store.object_path(broken.artifacts["cubin"].digest).unlink()
    bench.whole["head"] = broken
    recompile = bench.recompile
    bench.recompile = lambda *words, attempt, fresh=False: (  # type: ignore[method-assign]
        bench.compiled(HEAD) if fresh else recompile(*words, attempt=attempt)
    )
    assert bench.ask() == Answers(disagreeing=(), unanswered=())


def test_an_assembler_is_asked_alone(bench: Bench) -> None:
    bench.outputs["head", "cubin"] = [CUBIN, OTHER_CUBIN, CUBIN]
    assert bench.ask(Depth.ASSEMBLER).disagreeing == ("head",)
    assert {row.partition(" ")[2] for row in bench.asked} == {"cubin of ptx", "compiled"}
    assert bench.asked.count("base cubin of ptx") == 1


def test_a_backend_without_an_assembler_is_not_asked_for_it(bench: Bench) -> None:
    texts = {"source": SOURCE, "ttir": TTIR}
    assert bench.ask(Depth.ASSEMBLER, base=texts, head=texts, stage="ttir").disagreeing == ()
    assert bench.asked == []
