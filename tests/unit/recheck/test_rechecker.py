"""What a side is asked to settle whether it agrees with itself."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from irdiff.attribute.attribution import CaseToReplay
from irdiff.attribute.replayer import Replayed
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.model import FailureKind, Outcome, Sides, Verdict
from irdiff.recheck.rechecker import Answers, Depth, Rechecker
from irdiff.store import Store
from tests.elf_files import content, rebuilt
from tests.programs.mutation.artifacts import of_stage
from tests.unit import runs
from tests.unit.no_llvm import no_llvm

PTX = ".version 8.7\n.target sm_90a\n.visible .entry k()\n{\n\tmov.u32 \t%r1, 16;\n\tret;\n}\n"
OTHER_PTX = PTX.replace("16", "17")
CUBIN = of_stage("cubin", release="3.9.0", target="sm_90")[0].content
OTHER_CUBIN = rebuilt(CUBIN, content(".text.", lambda old: b"\1" + old[1:]))
DEBUG_CUBIN = rebuilt(CUBIN, content(".debug_line", lambda old: old + b"more"))
SOURCE, TTIR, TTGIR = (f"module {{\n  tt.func @k() {{\n    tt.{n}\n    tt.return\n  }}\n}}\n" for n in "abc")
BASE = {"source": SOURCE, "ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
HEAD = {"source": SOURCE, "ttir": TTIR, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
MADE = {"base": BASE, "head": HEAD}
AGREES = Answers(disagreeing=(), unanswered=())


@dataclass
class Stages:
    """Each side's stage makes the outputs set here, one for each attempt, else its artifact."""

    store: Store
    outputs: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    whole: dict[str, Outcome] = field(default_factory=dict)
    """What a whole compilation of a side gives; `… fresh` where nothing kept is taken."""
    late: tuple[str, str] | None = None
    """A side and a stage whose time runs out."""
    asked: list[str] = field(default_factory=list)

    def run(self, replay):
        assert replay.randomized
        side, stage = replay.side.toolchain.spec, replay.stage
        self.asked.append(f"{side} {stage} of {replay.input_stage}")
        made = dict(enumerate(self.outputs.get((side, stage), ()))).get(replay.attempt, MADE[side][stage])
        transient = (side, stage) == self.late
        if made is None or transient:
            return Replayed(output=None, error="no", settings={}, transient=transient)
        return Replayed(output=runs.kept(self.store, {stage: made})[stage].digest, settings={})

    def compile(self, asked, *_, attempt, fresh=False):
        side = asked.toolchain.spec
        self.asked.append(f"{side} compiled")
        found = self.whole.get(f"{side} fresh") if fresh else None
        return found or self.whole.get(side) or self.compiled(MADE[side])

    def compiled(self, texts):
        return runs.compiled(runs.kept(self.store, texts))

    def ask(self, depth=Depth.WHOLE, base=BASE, head=HEAD, stage="ptx"):
        artifacts = Sides(base=runs.kept(self.store, base), head=runs.kept(self.store, head))
        case = runs.case("a/b:c@sm_90", Verdict.CHANGED, origin=runs.origin(stage), artifacts=artifacts)
        subject = CaseToReplay(
            case=case,
            sides=Sides(base=runs.side("base"), head=runs.side("head")),
            launches=Sides(base=runs.launch(case.id, "base"), head=runs.launch(case.id, "head")),
            target=runs.target(),
        )
        return Rechecker(self, self, ArtifactComparator(self.store, no_llvm)).ask(subject, depth)


@pytest.fixture
def stages(tmp_path):
    return Stages(Store(tmp_path))


def test_each_stage_from_the_first_changed_one_on_is_run_on_what_entered_it(stages):
    """Another binary of the same code is agreement."""
    stages.outputs["base", "cubin"] = [DEBUG_CUBIN]
    assert stages.ask() == AGREES
    rows = ("base ptx of ttir", "base cubin of ptx", "head ptx of ttir", "head cubin of ptx")
    assert sorted(stages.asked) == sorted(rows)


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
    ids=["always another", "never runs alone", "lucky the second time", "the third time", "ran later", "at first"],
)  # fmt: skip
def test_a_stage_that_does_not_make_it_again_alone(stages, outputs, disagrees):
    """A whole compilation settles it, unless the stage makes one thing and then another: that one may have
    been lucky.
    """
    stages.outputs["head", "ptx"] = outputs
    assert stages.ask() == replace(AGREES, disagreeing=("head",) if disagrees else ())
    assert "head compiled" in stages.asked and "base compiled" not in stages.asked


@pytest.mark.parametrize("other", [{**BASE, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}, None])
def test_a_whole_compilation_that_makes_other_code_or_none_disagrees(stages, other):
    stages.outputs["base", "ptx"] = [OTHER_PTX] * 3
    stages.whole["base"] = stages.compiled(other) if other else runs.failed()
    assert stages.ask().disagreeing == ("base",)


def test_what_ran_out_of_time_is_no_answer_and_is_asked_again(stages):
    stages.outputs["head", "ptx"] = [None] * 3
    stages.whole["head"] = runs.failed(FailureKind.TIMEOUT)
    assert stages.ask() == replace(AGREES, unanswered=("head",))
    del stages.whole["head"]
    assert stages.ask() == AGREES
    stages.late = ("head", "ptx")
    assert stages.ask() == replace(AGREES, unanswered=("head",))


@pytest.mark.parametrize("stage", ["launch", "ttir"], ids=["what is launched", "what the frontend makes"])
def test_what_no_stage_makes_is_compiled_whole(stages, stage):
    stages.ask(base={**BASE, "source": TTGIR, "ttir": TTGIR}, stage=stage)
    assert sorted(stages.asked) == ["base compiled", "head compiled"]


def test_a_compilation_whose_artifacts_are_damaged_is_made_afresh(stages):
    stages.outputs["head", "ptx"] = [None] * 3
    broken = stages.compiled({**HEAD, "cubin": DEBUG_CUBIN})
    stages.store.object_path(broken.artifacts["cubin"].digest).unlink()
    stages.whole = {"head": broken, "head fresh": stages.compiled(HEAD)}
    assert stages.ask() == AGREES


def test_an_assembler_is_asked_alone_where_there_is_one(stages):
    stages.outputs["head", "cubin"] = [CUBIN, OTHER_CUBIN, CUBIN]
    assert stages.ask(Depth.ASSEMBLER).disagreeing == ("head",)
    assert {row.partition(" ")[2] for row in stages.asked} == {"cubin of ptx", "compiled"}
    assert stages.asked.count("base cubin of ptx") == 1
    count, texts = len(stages.asked), {"source": SOURCE, "ttir": TTIR}
    assert stages.ask(Depth.ASSEMBLER, texts, texts, "ttir") == AGREES
    assert len(stages.asked) == count
