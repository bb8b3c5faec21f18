"""Which changed cases are asked again, and what an answer leads to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.model import Case, Sides, Verdict
from irdiff.recheck.rechecker import Answers, Depth
from irdiff.recheck.rounds import Answer, Question, Rounds, UnstableAssemblers
from irdiff.store import Store

IDS = tuple(f"a/w:{n}@sm_90" for n in range(4))
OTHERS = tuple(f"a/w:{n}@sm_100" for n in range(3))
WHOLE, ASSEMBLER = Depth.WHOLE, Depth.ASSEMBLER


@dataclass
class Bench:
    """Cases in two groups, and what a side says of itself when it is asked."""

    build: Any
    store: Store
    says: dict[tuple[str, Depth], tuple[str, ...]] = field(default_factory=dict)
    silent: dict[tuple[str, Depth], tuple[str, ...]] = field(default_factory=dict)
    """As `says`: the sides that do not answer."""
    asked: list[tuple[str, Depth]] = field(default_factory=list)
    suspected: tuple[str, ...] = ()

    def unstable(self, ptxas: str = "p") -> UnstableAssemblers:
        side = self.build.side()
        toolchain = replace(side.toolchain, programs={"/t/ptxas": ptxas})
        side = replace(side, toolchain=toolchain)
        return UnstableAssemblers(self.store, Sides(base=side, head=side))

    def cases(self) -> list[Case]:
        return [self.build.case(case_id, Verdict.CHANGED) for case_id in (*IDS, *OTHERS)]

    def run(self, cases: Iterable[Case] | None = None) -> Rounds:
        groups = (self.build.group("one", *IDS), self.build.group("two", *OTHERS, representative=OTHERS[1]))
        rounds = Rounds.of(self.cases() if cases is None else cases, groups, self.unstable(), self.suspected)
        rounds.run(self.ask)
        return rounds

    def ask(self, questions: Sequence[Question]) -> list[Answer]:
        rows = [(question.case_id, question.depth) for question in questions]
        self.asked += rows
        return [
            Answer(
                question=question,
                sides=Answers(disagreeing=self.says.get(row, ()), unanswered=self.silent.get(row, ())),
            )
            for question, row in zip(questions, rows, strict=True)
        ]


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    return Bench(build, Store(tmp_path))


def test_one_of_each_group_speaks_for_the_others(bench: Bench) -> None:
    rounds = bench.run()
    assert bench.asked == [(IDS[0], WHOLE), (OTHERS[1], WHOLE)]
    assert rounds.disagreeing() == {}
    assert rounds.notes()[0].startswith("recheck: 2 of 7 changed cases")


def test_a_member_whose_code_did_not_change_speaks_for_nobody(bench: Bench) -> None:
    first, *rest = bench.cases()
    bench.run([replace(first, verdict=Verdict.ABSORBED), *rest])
    assert bench.asked[0] == (IDS[1], WHOLE)


def test_a_group_with_a_disagreeing_member_is_asked_whole(bench: Bench) -> None:
    bench.says = {(IDS[0], WHOLE): ("head",), (IDS[2], WHOLE): ("base", "head")}
    rounds = bench.run()
    assert {row for row in bench.asked if row[1] is WHOLE} == {*((i, WHOLE) for i in IDS), (OTHERS[1], WHOLE)}
    assert rounds.disagreeing() == {IDS[0]: ("head",), IDS[2]: ("base", "head")}


def test_a_case_that_attribution_could_not_make_again_is_asked_whole(bench: Bench) -> None:
    bench.suspected = (IDS[3],)
    bench.says = {(IDS[3], WHOLE): ("head",)}
    assert bench.run().disagreeing() == {IDS[3]: ("head",)}
    assert (IDS[2], WHOLE) in bench.asked  # and with it its group


def test_an_assembler_that_disagrees_with_itself_is_asked_of_every_case_of_its_target(bench: Bench) -> None:
    bench.says = {
        (OTHERS[1], WHOLE): ("head",), (OTHERS[1], ASSEMBLER): ("head",), (OTHERS[2], ASSEMBLER): ("base",),
    }  # fmt: skip
    cases = bench.cases()
    cases.append(bench.build.case("b/w:alone@sm_100", Verdict.CHANGED))
    groups = (
        bench.build.group("one", *IDS),
        bench.build.group("two", OTHERS[1]),
        bench.build.group("three", OTHERS[0], OTHERS[2], cases[-1].id),
    )
    rounds = Rounds.of(cases, groups, bench.unstable(), ())
    rounds.run(bench.ask)
    assembled = {case_id for case_id, depth in bench.asked if depth is ASSEMBLER}
    assert assembled >= {OTHERS[1], OTHERS[2], cases[-1].id}
    assert not assembled & set(IDS)
    assert rounds.disagreeing() == {OTHERS[1]: ("head",), OTHERS[2]: ("base",)}


def test_an_assembler_seen_to_disagree_in_an_earlier_run_is_asked_of_every_case(bench: Bench) -> None:
    bench.unstable().add("sm_100")
    bench.run()
    asked = set(bench.asked)
    assert asked == {(IDS[0], WHOLE), (OTHERS[1], WHOLE), (OTHERS[0], ASSEMBLER), (OTHERS[2], ASSEMBLER)}
    assert "sm_100" not in bench.unstable("another ptxas")


def test_what_was_seen_while_comparing_counts_as_well(bench: Bench) -> None:
    first, *rest = bench.cases()
    seen = bench.build.case(
        "b/w:same@sm_90", Verdict.UNCHANGED, findings=bench.build.findings("assembler-sets-intersect")
    )
    bench.run([first, *rest, seen])
    assert {(case_id, ASSEMBLER) for case_id in IDS[1:]} <= set(bench.asked)


def test_nothing_changed_asks_nothing(bench: Bench) -> None:
    assert bench.run([bench.build.case(IDS[0])]).notes() == ()
    assert bench.asked == []


def test_a_case_that_does_not_answer_is_named_and_raises_no_doubt(bench: Bench) -> None:
    bench.silent[IDS[0], WHOLE] = ("head",)
    rounds = bench.run()
    assert rounds.disagreeing() == {}
    assert [note for note in rounds.notes() if "did not answer" in note and IDS[0] in note]
    assert bench.asked == [(IDS[0], WHOLE), (OTHERS[1], WHOLE)]
