"""A lit test is made with a pass that is a function of its text, and checked by what stands for FileCheck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from irdiff.attribute import lit_test
from irdiff.attribute.attribution import CaseToReplay, ResponsiblePass
from irdiff.attribute.lit_test import LitTest
from irdiff.errors import IrdiffError
from irdiff.model import Sides
from tests.unit.attribute.conftest import FakeReplayer

ENTERING = """#loc = loc("k.py":1:0)
module {
  tt.func public @k(%a: i32 loc("a"(#loc)), %b: i32 loc("b"(#loc))) {
    %0 = arith.addi %a, %b : i32 loc(#loc)
    %1 = arith.muli %0, %b : i32 loc(#loc)
    ttg.marked %1 : i32 loc(#loc)
    tt.print "x" : %0 : i32 loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""
BRANCHES = """module {
  tt.func public @k(%c: i1, %a: i32) {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:  // pred: ^bb0
    ttg.marked %a : i32
    cf.br ^bb2
  ^bb2:  // 2 preds: ^bb0, ^bb1
    tt.return
  }
}
"""
GONE = Sides(base="0" * 64, head="0" * 64)
STEP = ResponsiblePass(name="TheFences", argument="the-pass", options=None, entering=GONE, leaving=GONE)
Pass = Callable[[str], str | None]


def unchanged(text: str) -> str | None:
    return text


def fencing(text: str) -> str:
    """Puts a fence before what is marked."""
    return text.replace("    ttg.marked", "    ttng.fence\n    ttg.marked", 1)


def parses(text: str) -> bool:
    """Whether each block that a branch names is there, once."""
    lines = [line.strip() for line in text.splitlines()]
    names = [line.split(":")[0].split("(")[0] for line in lines if line.startswith("^")]
    branched = {word.strip(",") for line in lines if "cf." in line for word in line.split() if "^" in word}
    return len(names) == len(set(names)) and branched <= set(names)


def mentions_fence(checks: Sequence[str], text: str) -> bool:
    """As FileCheck would here: a fence that is checked for is there."""
    return any("ttng.fence" in line for line in checks) <= ("ttng.fence" in text)


@dataclass
class Lit:
    """Both sides' pass, and what FileCheck says."""

    subject: CaseToReplay
    base: Pass = unchanged
    head: Pass = fencing
    holds: lit_test.Holds | None = mentions_fence
    pipelines: dict[str, str | None] = field(default_factory=lambda: {"head": "any(the-pass{a=1})"})

    def outputs(self, texts: Sequence[str]) -> list[Sides[str | None]]:
        refused: Sides[str | None] = Sides(base=None, head=None)
        return [Sides(base=self.base(row), head=self.head(row)) if parses(row) else refused for row in texts]

    def written(self, entering: str = ENTERING) -> LitTest:
        runner: Any = self
        return lit_test.written(self.subject, STEP, entering, runner, self.holds, print)

    def ir(self, entering: str = ENTERING) -> list[str]:
        """The part of the test that is no comment."""
        return [line for line in self.written(entering).text.splitlines() if line and line[:2] != "//"]


@pytest.fixture
def lit(replayer: FakeReplayer) -> Lit:
    case = replayer.case({"ttir": "x"}, {"ttir": "y"}, renamed_from="old/name:fp16@sm_90")
    return Lit(replayer.subject(case))


def test_what_the_edit_does_not_need_is_left_out(lit: Lit) -> None:
    body = ["  tt.func public @k(%1: i32) {", "    ttg.marked %1 : i32", "    tt.return", "  }"]
    assert lit.ir() == ["module {", *body, "}"]
    made = lit.written()
    command = "// RUN: triton-opt %s --pass-pipeline='builtin.module(the-pass{a=1})' | FileCheck %s\n"
    assert made.text.startswith(command)
    for words in ("// TheFences: matmul/tma:fp16@sm_90, base -> head.", "// CHECK-LABEL: @k(", "ttng.fence"):
        assert words in made.text
    assert "6 of 9 lines of IR" in made.summary and "holds on head and fails on base" in made.summary
    straight = lit.ir(BRANCHES)
    assert not any("cf." in line or "^" in line for line in straight)
    assert any("ttg.marked" in line for line in straight)


@pytest.mark.parametrize(
    ("base", "head", "stays"),
    [
        (unchanged, lambda text: fencing(text) if "arith.addi" in text else text, "arith.addi"),
        (lambda text: text if "tt.print" in text else None, fencing, "tt.print"),
        (*(lambda text, f=f: f(text) if "loc(" in text else None for f in (unchanged, fencing)), "loc("),
    ],
    ids=["the pass does something else without it", "a side refuses it", "needs its locations"],
)
def test_a_smaller_text_that_shows_something_else_is_not_taken(lit: Lit, base, head, stays: str) -> None:
    lit.base, lit.head = base, head
    assert any(stays in line for line in lit.ir())


@pytest.mark.parametrize(
    ("changes", "mistake"),
    [
        ({"head": unchanged}, "TheFences, run alone"),
        ({"head": lambda _: "not IR"}, "TheFences, run alone"),
        ({"holds": lambda *_: True}, "no CHECK lines tell head from base"),
        ({"holds": lambda *_: False}, "no CHECK lines tell head from base"),
    ],
)
def test_what_does_not_tell_the_sides_apart_is_no_test(lit: Lit, changes: Any, mistake: str) -> None:
    for name, value in changes.items():
        setattr(lit, name, value)
    with pytest.raises(IrdiffError, match=mistake):
        lit.written()
