"""Which changed cases are asked again, and what a side is asked to settle whether it agrees with itself."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from irdiff.attribute.attribution import CaseToReplay
from irdiff.attribute.replayer import Replayed
from irdiff.capture.catalog import NOTHING
from irdiff.compare.artifact_comparator import ArtifactComparator
from irdiff.determinism.determinism_check import (
    Answer,
    Answers,
    Depth,
    Recompiler,
    Rounds,
    UnstableAssemblers,
)
from irdiff.model import Artifact, CaptureFailure, FailureKind, Outcome, Sides, StageStatus, Verdict
from irdiff.store import Store
from tests.unit import runs
from tests.unit.compiled import CUBIN, DEBUG_CUBIN, OTHER_CUBIN, OTHER_PTX, PTX, no_llvm

SOURCE, TTIR, TTGIR = (f"module {{\n  tt.func @k() {{\n    tt.{n}\n    tt.return\n  }}\n}}\n" for n in "abc")
BASE = {"source": SOURCE, "ttir": TTIR, "ptx": PTX, "cubin": CUBIN}
HEAD = {"source": SOURCE, "ttir": TTIR, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}
CASE = "a/b:c@sm_90"
MADE = {"base": BASE, "head": HEAD}
PTXAS = {"head": "cubin"}
AGREES = Answers(disagreeing={}, unanswered=())


@dataclass
class Stages:
    """Each side's stage makes the outputs set here, one for each attempt, else its artifact."""

    store: Store
    outputs: dict[tuple[str, str], list[Any]] = field(default_factory=dict)
    whole: dict[str, Outcome] = field(default_factory=dict)
    """What a whole compilation of a side gives; `… again` the second time."""
    late: tuple[str, str] | None = None
    """A side and a stage whose time runs out."""
    reuse: bool = True
    again: dict[str, Any] = field(default_factory=dict)
    """Of a side, the fields of what it captures when its workload runs again."""
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

    def compile(self, asked, *_, attempt):
        side = asked.toolchain.spec
        found = self.whole.get(f"{side} again") if f"{side} compiled" in self.asked else None
        self.asked.append(f"{side} compiled")
        return found or self.whole.get(side) or self.compiled(MADE[side])

    def captured_again(self, asked, workload, target):
        side = asked.toolchain.spec
        self.asked.append(f"{side} captured")
        return replace(NOTHING, **self.again.get(side, {"launches": (runs.launch(CASE, side),)}))

    def compiled(self, texts):
        return runs.compiled(runs.kept(self.store, texts))

    def ask(self, depth=Depth.WHOLE, base=BASE, head=HEAD, stage="ptx", passed_on=()):
        artifacts = Sides(base=runs.kept(self.store, base), head=runs.kept(self.store, head))
        case = runs.case(CASE, Verdict.CHANGED, origin=runs.origin(stage), artifacts=artifacts)
        subject = CaseToReplay(
            case=case,
            sides=Sides(base=runs.side("base"), head=runs.side("head")),
            launches=Sides(base=runs.launch(case.id, "base"), head=runs.launch(case.id, "head")),
            target=runs.target(),
        )
        recompiler = Recompiler(self, self, ArtifactComparator(self.store, no_llvm))
        return recompiler.ask(subject, depth, passed_on)


@pytest.fixture
def stages(tmp_path):
    return Stages(Store(tmp_path))


def test_each_stage_from_the_first_changed_one_on_is_run_on_what_entered_it(stages):
    """Another binary of the same code is agreement."""
    stages.outputs["base", "cubin"] = [DEBUG_CUBIN]
    assert stages.ask() == AGREES
    rows = ("base ptx of ttir", "base cubin of ptx", "head ptx of ttir", "head cubin of ptx")
    assert sorted(stages.asked) == sorted(rows)


def test_a_stage_that_passes_a_difference_on_needs_no_second_run(stages):
    """Attribution has run it with randomized addresses, on the other side's input."""
    texts = [{**made, "ttir": text} for made, text in ((BASE, TTIR), (HEAD, TTGIR))]
    stages.outputs |= {("head", "ttir"): [TTGIR], ("head", "ptx"): [PTX, PTX, PTX]}
    assert stages.ask(base=texts[0], head=texts[1], stage="ttir", passed_on=("ptx",)) == AGREES
    assert {row for row in stages.asked if " of " in row} == {
        f"{side} {stage}" for side in MADE for stage in ("ttir of source", "cubin of ptx")
    }


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
    assert stages.ask() == replace(AGREES, disagreeing={"head": "ptx"} if disagrees else {})
    assert "head compiled" in stages.asked and "base compiled" not in stages.asked


@pytest.mark.parametrize("other", [{**BASE, "ptx": OTHER_PTX, "cubin": OTHER_CUBIN}, None])
def test_a_whole_compilation_that_makes_other_code_or_none_disagrees(stages, other):
    stages.outputs["base", "ptx"] = [OTHER_PTX] * 3
    stages.whole["base"] = stages.compiled(other) if other else runs.failed()
    assert stages.ask().disagreeing == {"base": "ptx" if other else "ttgir"}


def test_what_ran_out_of_time_is_no_answer_and_is_asked_again(stages):
    stages.outputs["head", "ptx"] = [None] * 3
    stages.whole["head"] = runs.failed(FailureKind.TIMEOUT)
    assert stages.ask() == replace(AGREES, unanswered=("head",))
    del stages.whole["head"]
    stages.late = ("head", "ptx")
    assert stages.ask() == replace(AGREES, unanswered=("head",))
    stages.late = None
    assert stages.ask() == AGREES


def test_agreement_is_kept_and_nothing_else(stages):
    stages.outputs["head", "cubin"] = [CUBIN, OTHER_CUBIN, CUBIN]
    for _ in range(2):
        stages.asked.clear()
        assert stages.ask().disagreeing == {"head": "cubin"} and stages.asked
    del stages.outputs["head", "cubin"]
    for asks in (True, False):
        stages.asked.clear()
        assert stages.ask() == AGREES and bool(stages.asked) == asks
    stages.reuse = False
    assert stages.ask() == AGREES and stages.asked


@pytest.mark.parametrize("stage", ["launch", "ttir"], ids=["what is launched", "what the frontend makes"])
def test_what_no_stage_makes_is_compiled_whole(stages, stage):
    stages.ask(base={**BASE, "source": TTGIR, "ttir": TTGIR}, stage=stage)
    assert sorted(stages.asked) == ["base compiled", "head compiled"]


def test_what_is_launched_is_captured_again(stages):
    launch = runs.launch(CASE, "head")
    address = replace(launch, launched=Artifact(stage="launch", digest="a" * 64, size_bytes=6))
    failure = CaptureFailure(id="a/b:*", expected=True, failure=runs.failed(FailureKind.TIMEOUT).failure)
    for again, expected in (
        ({"launches": (launch,)}, AGREES),
        ({"launches": (address,)}, replace(AGREES, disagreeing={"head": "launch"})),
        ({"launches": (replace(launch, digest="d" * 64),)}, replace(AGREES, disagreeing={"head": "launch"})),
        ({"launches": (replace(launch, digest=None),), "undigested": "it died"}, AGREES),
        ({}, replace(AGREES, disagreeing={"head": "launch"})),
        ({"failures": (failure,)}, replace(AGREES, unanswered=("head",))),
    ):
        stages.again["head"] = again
        assert stages.ask(Depth.CAPTURE) == expected


def test_a_compilation_whose_artifacts_are_damaged_is_made_again(stages):
    stages.outputs["head", "ptx"] = [None] * 3
    broken = stages.compiled({**HEAD, "cubin": DEBUG_CUBIN})
    stages.store.object_path(broken.artifacts["cubin"].digest).unlink()
    stages.whole = {"head": broken, "head again": stages.compiled(HEAD)}
    assert stages.ask() == AGREES


def test_an_assembler_is_asked_alone_where_there_is_one(stages):
    stages.outputs["head", "cubin"] = [CUBIN, OTHER_CUBIN, CUBIN]
    assert stages.ask(Depth.ASSEMBLER).disagreeing == {"head": "cubin"}
    assert {row.partition(" ")[2] for row in stages.asked} == {"cubin of ptx", "compiled"}
    assert stages.asked.count("base cubin of ptx") == 1
    count, texts = len(stages.asked), {"source": SOURCE, "ttir": TTIR}
    assert stages.ask(Depth.ASSEMBLER, texts, texts, "ttir") == AGREES
    assert len(stages.asked) == count


IDS = tuple(f"a/w:{n}@sm_90" for n in range(4))
OTHERS = tuple(f"a/w:{n}@sm_100" for n in range(3))
FIRST, *REST = (runs.case(case_id, Verdict.CHANGED) for case_id in (*IDS, *OTHERS))
ONE = runs.group("one", *IDS)
WHOLE, ASSEMBLER = Depth.WHOLE, Depth.ASSEMBLER
BY_GROUP = [(IDS[0], WHOLE), (OTHERS[1], WHOLE)]
"""One case of each group."""


@dataclass
class Questions:
    """Cases in two groups, and what a side says of itself when it is asked."""

    store: Store
    says: dict[tuple[str, Depth], tuple[str, ...]] = field(default_factory=dict)
    silent: tuple[str, Depth] | None = None
    """Where head does not answer."""
    asked: list[tuple[str, Depth]] = field(default_factory=list)

    def unstable(self, ptxas="p"):
        side = runs.side()
        side = replace(side, toolchain=replace(side.toolchain, programs={"/t/ptxas": ptxas}))
        return UnstableAssemblers(self.store, Sides(base=side, head=side))

    def run(self, cases=(FIRST, *REST), groups=(), suspected=""):
        two = runs.group("two", *OTHERS, representative=OTHERS[1])
        rounds = Rounds(
            [*cases], tuple(groups) or (ONE, two), self.unstable(), (suspected,) if suspected else ()
        )
        rounds.run(self.ask)
        return rounds

    def ask(self, questions):
        rows = [(question.case_id, question.depth) for question in questions]
        self.asked += rows
        answers = [
            Answers(disagreeing=self.says.get(row, {}), unanswered=("head",) if row == self.silent else ())
            for row in rows
        ]
        return [Answer(question=row, sides=sides) for row, sides in zip(questions, answers, strict=True)]


@pytest.fixture
def questions(tmp_path):
    return Questions(Store(tmp_path))


def test_one_of_each_group_speaks_for_the_others(questions):
    rounds = questions.run()
    assert (questions.asked, rounds.disagreeing()) == (BY_GROUP, {})
    assert rounds.notes()[0].startswith("determinism check: 2 of 7 changed cases")
    questions.run([replace(FIRST, verdict=Verdict.IR_ONLY), *REST])
    assert questions.asked[2] == (IDS[1], WHOLE), "one whose code did not change speaks for nobody"


@pytest.mark.parametrize(
    ("says", "suspected"),
    [({IDS[0]: PTXAS, IDS[2]: {**PTXAS, "base": "ptx"}}, ""), ({IDS[3]: PTXAS}, IDS[3])],
    ids=["disagrees", "attribution could not make it again"],
)
def test_a_group_with_a_doubtful_member_is_asked_whole(questions, says, suspected):
    questions.says = {(case_id, WHOLE): sides for case_id, sides in says.items()}
    assert questions.run(suspected=suspected).disagreeing() == says
    assert {row for row in questions.asked if row[1] is WHOLE} == {
        *((case_id, WHOLE) for case_id in IDS), (OTHERS[1], WHOLE)
    }  # fmt: skip


def test_a_case_whose_launch_differs_is_captured_again_and_compiled_where_it_was(questions):
    launches = {"stages": {"launch": StageStatus.CHANGED}}
    alone = {**launches, "findings": runs.findings("not-compiled:same-input")}
    questions.says[IDS[1], Depth.CAPTURE] = {"head": "launch"}
    cases = [replace(FIRST, **launches), replace(REST[0], **alone), *REST[1:4]]
    rounds = questions.run(cases, [runs.group("one", IDS[0]), runs.group("two", IDS[1])])
    assert questions.asked == [(IDS[0], Depth.CAPTURE), (IDS[0], WHOLE), (IDS[1], Depth.CAPTURE)]
    assert rounds.disagreeing() == {IDS[1]: {"head": "launch"}}
    assert "were compiled or captured again" in rounds.notes()[0]


def test_an_assembler_that_disagrees_with_itself_is_asked_of_every_case_of_its_target(questions):
    questions.says = {(OTHERS[1], depth): PTXAS for depth in (WHOLE, ASSEMBLER)}
    questions.says[OTHERS[2], ASSEMBLER] = {"base": "cubin"}
    alone = runs.case("b/w:alone@sm_100", Verdict.CHANGED)
    groups = (ONE, runs.group("two", OTHERS[1]), runs.group("three", OTHERS[0], OTHERS[2], alone.id))
    rounds = questions.run([FIRST, *REST, alone], groups)
    assembled = {case_id for case_id, depth in questions.asked if depth is ASSEMBLER}
    assert assembled >= {OTHERS[1], OTHERS[2], alone.id}
    assert not assembled & set(IDS)
    assert rounds.disagreeing() == {OTHERS[1]: PTXAS, OTHERS[2]: {"base": "cubin"}}


def test_an_assembler_seen_to_disagree_before_is_asked_of_every_case(questions):
    """In an earlier run, or while these were compared."""
    questions.unstable().add("sm_100")
    questions.run()
    assert set(questions.asked) == {*BY_GROUP, (OTHERS[0], ASSEMBLER), (OTHERS[2], ASSEMBLER)}
    assert "sm_100" not in questions.unstable("another ptxas")
    findings = runs.findings("assembler-sets-intersect")
    questions.run([FIRST, *REST, runs.case("b/w:same@sm_90", Verdict.UNCHANGED, findings=findings)])
    assert {(case_id, ASSEMBLER) for case_id in IDS[1:]} <= set(questions.asked)


def test_a_case_that_does_not_answer_is_named_and_raises_no_doubt(questions):
    questions.silent = (IDS[0], WHOLE)
    rounds = questions.run()
    assert (rounds.disagreeing(), questions.asked) == ({}, BY_GROUP)
    assert [note for note in rounds.notes() if "could not check" in note and IDS[0] in note]
    assert rounds.notes()[0].startswith("determinism check: 1 of 7 changed cases was compiled again")
    assert rounds.unanswered() == dict.fromkeys(IDS, ("head",)), "nobody else spoke for its group"
    rounds = questions.run(suspected=IDS[1])
    assert rounds.unanswered() == {IDS[0]: ("head",)}
