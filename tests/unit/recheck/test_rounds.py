"""Which changed cases are asked again, and what an answer leads to."""

from dataclasses import dataclass, field, replace

import pytest

from irdiff.model import Sides, Verdict
from irdiff.recheck.rechecker import Answer, Answers, Depth, Rounds, UnstableAssemblers
from irdiff.store import Store
from tests.unit import runs

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
            Answers(disagreeing=self.says.get(row, ()), unanswered=("head",) if row == self.silent else ())
            for row in rows
        ]
        return [Answer(question=row, sides=sides) for row, sides in zip(questions, answers, strict=True)]


@pytest.fixture
def questions(tmp_path):
    return Questions(Store(tmp_path))


def test_one_of_each_group_speaks_for_the_others(questions):
    rounds = questions.run()
    assert (questions.asked, rounds.disagreeing()) == (BY_GROUP, {})
    assert rounds.notes()[0].startswith("recheck: 2 of 7 changed cases")
    questions.run([replace(FIRST, verdict=Verdict.ABSORBED), *REST])
    assert questions.asked[2] == (IDS[1], WHOLE), "one whose code did not change speaks for nobody"


@pytest.mark.parametrize(
    ("says", "suspected"),
    [({IDS[0]: ("head",), IDS[2]: ("base", "head")}, ""), ({IDS[3]: ("head",)}, IDS[3])],
    ids=["disagrees", "attribution could not make it again"],
)
def test_a_group_with_a_doubtful_member_is_asked_whole(questions, says, suspected):
    questions.says = {(case_id, WHOLE): sides for case_id, sides in says.items()}
    assert questions.run(suspected=suspected).disagreeing() == says
    assert {row for row in questions.asked if row[1] is WHOLE} == {
        *((case_id, WHOLE) for case_id in IDS), (OTHERS[1], WHOLE)
    }  # fmt: skip


def test_an_assembler_that_disagrees_with_itself_is_asked_of_every_case_of_its_target(questions):
    questions.says = {(OTHERS[1], depth): ("head",) for depth in (WHOLE, ASSEMBLER)}
    questions.says[OTHERS[2], ASSEMBLER] = ("base",)
    alone = runs.case("b/w:alone@sm_100", Verdict.CHANGED)
    groups = (ONE, runs.group("two", OTHERS[1]), runs.group("three", OTHERS[0], OTHERS[2], alone.id))
    rounds = questions.run([FIRST, *REST, alone], groups)
    assembled = {case_id for case_id, depth in questions.asked if depth is ASSEMBLER}
    assert assembled >= {OTHERS[1], OTHERS[2], alone.id}
    assert not assembled & set(IDS)
    assert rounds.disagreeing() == {OTHERS[1]: ("head",), OTHERS[2]: ("base",)}


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
    assert [note for note in rounds.notes() if "did not answer" in note and IDS[0] in note]
