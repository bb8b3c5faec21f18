"""A lit test is made with a pass that is a function of its text, and checked by what stands for FileCheck."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff import process
from irdiff.attribute import lit_test
from irdiff.attribute.attribution import CaseToReplay, ResponsiblePass
from irdiff.attribute.lit_test import LitTest, PassRunner
from irdiff.errors import IrdiffError
from irdiff.model import Sides
from irdiff.store import Store
from tests.unit.attribute.conftest import Bench

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
Pass = Callable[[str], str | None]


def unchanged(text: str) -> str | None:
    return text


def fencing(text: str) -> str | None:
    """Puts a fence before what is marked."""
    return text.replace("    ttg.marked", "    ttng.fence\n    ttg.marked", 1)


def parses(text: str) -> bool:
    """Whether each block that a branch names is there, once."""
    names = [
        line.split(":")[0].split("(")[0].strip() for line in text.splitlines() if line.strip()[:1] == "^"
    ]
    branched = [
        word.strip(",") for line in text.splitlines() if "cf." in line for word in line.split() if "^" in word
    ]
    return len(names) == len(set(names)) and set(branched) <= set(names)


STEP = ResponsiblePass(
    name="TheFences", argument="the-pass", options=None, entering=Sides(base="0" * 64, head="0" * 64),
    leaving=Sides(base="0" * 64, head="0" * 64),
)  # fmt: skip


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
    told: list[str] = field(default_factory=list)

    def outputs(self, texts: Sequence[str]) -> list[Sides[str | None]]:
        return [
            Sides(base=self.base(text), head=self.head(text)) if parses(text) else Sides(base=None, head=None)
            for text in texts
        ]

    def written(self, entering: str = ENTERING) -> LitTest:
        runner: Any = self
        return lit_test.written(self.subject, STEP, entering, runner, self.holds, self.told.append)


@pytest.fixture
def lit(bench: Bench) -> Lit:
    return Lit(bench.subject(bench.case({"ttir": "x"}, {"ttir": "y"}, renamed_from="old/name:fp16@sm_90")))


def ir(made: LitTest) -> list[str]:
    """The part of a test that is no comment."""
    return [line for line in made.text.splitlines() if line and not line.startswith("//")]


def test_what_the_edit_does_not_need_is_left_out(lit: Lit) -> None:
    made = lit.written()
    body = ["  tt.func public @k(%1: i32) {", "    ttg.marked %1 : i32", "    tt.return", "  }"]
    assert ir(made) == ["module {", *body, "}"]
    assert made.text.startswith(
        "// RUN: triton-opt %s --pass-pipeline='builtin.module(the-pass{a=1})' | FileCheck %s\n"
    )
    assert "// TheFences: matmul/tma:fp16@sm_90, base -> head." in made.text
    assert "// CHECK-LABEL: @k(" in made.text
    assert "ttng.fence" in made.text
    assert "6 of 9 lines of IR" in made.summary
    assert "holds on head and fails on base" in made.summary
    assert lit.told == ["running TheFences alone", "making the IR smaller: 9 lines"]


def test_branches_that_the_edit_does_not_need_are_straightened(lit: Lit) -> None:
    made = lit.written(BRANCHES)
    assert not any("cf." in line or "^" in line for line in ir(made))
    assert any("ttg.marked" in line for line in ir(made))


@pytest.mark.parametrize(
    ("base", "head", "stays"),
    [
        (unchanged, lambda text: fencing(text) if "arith.addi" in text else text, "arith.addi"),
        (lambda text: text if "tt.print" in text else None, fencing, "tt.print"),
        (
            lambda text: text if "loc(" in text else None,
            lambda text: fencing(text) if "loc(" in text else None,
            "loc(",
        ),
    ],
    ids=["the pass does something else without it", "a side refuses it", "needs its locations"],
)
def test_a_smaller_text_that_shows_something_else_is_not_taken(
    lit: Lit, base: Pass, head: Pass, stays: str
) -> None:
    lit.base, lit.head = base, head
    assert any(stays in line for line in ir(lit.written()))


@pytest.mark.parametrize("head", [unchanged, lambda text: "not IR"], ids=["the same", "no IR"])
def test_a_pass_that_makes_no_edit_alone_has_no_test(lit: Lit, head: Pass) -> None:
    lit.head = head
    with pytest.raises(IrdiffError, match="TheFences, run alone"):
        lit.written()


def test_the_reduction_ends_in_time(lit: Lit, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lit_test, "MAX_REDUCTION_S", 0.0)
    made = lit.written()
    assert any("tt.print" in line for line in ir(made)), "nothing was left out"
    assert "ttng.fence" in made.text


@pytest.mark.parametrize(
    ("pipelines", "command"),
    [
        ({"head": None, "base": "any(base-pass)"}, "builtin.module(base-pass)"),
        ({"head": None, "base": None}, "builtin.module(the-pass)"),
        ({"head": "builtin.module(x(any(y)))"}, "builtin.module(x(builtin.module(y)))"),
    ],
)
def test_the_pipeline_is_that_of_the_side_that_has_the_pass(
    lit: Lit, pipelines: dict[str, str | None], command: str
) -> None:
    lit.pipelines = pipelines
    assert f"--pass-pipeline='{command}'" in lit.written().text


# CHECK lines


@pytest.mark.parametrize(
    ("holds", "summary"),
    [
        (None, "not checked"),
        (
            lambda checks, text: "ttng.fence" in text or not any("tt.return" in row for row in checks),
            "holds on head and fails on base",
        ),
    ],
    ids=["without FileCheck", "where fewer lines tell nothing apart"],
)
def test_every_line_is_checked_for(lit: Lit, holds: Any, summary: str) -> None:
    lit.holds = holds
    made = lit.written()
    assert summary in made.summary
    assert made.text.count("// CHECK-NEXT: ") == len(ir(made)) - 1


@pytest.mark.parametrize("answer", [True, False], ids=["hold on both", "hold on neither"])
def test_lines_that_do_not_tell_the_sides_apart_are_not_written(lit: Lit, answer: bool) -> None:
    lit.holds = lambda checks, text: answer
    with pytest.raises(IrdiffError, match="no CHECK lines tell head from base"):
        lit.written()


def test_filecheck_is_that_of_head_where_it_brings_one(
    tmp_path: Path, lit: Lit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(name: str) -> str:
        program = tmp_path / name / "lib/python3.11/site-packages/triton/FileCheck"
        program.parent.mkdir(parents=True)
        program.touch()
        return str(program)

    def run(command: Sequence[Path], *, env: Mapping[str, str], timeout_s: float) -> str:
        program, test, _, output = command
        ran.append((str(program), test.read_text(), output.read_text()))
        if "wrong" in output.read_text():
            raise process.CommandFailed([str(program)], 1, "", "expected string not found")
        return ""

    def holds(checks: Sequence[str], text: str) -> bool:
        found = lit_test._filecheck(sides, config)
        assert found is not None
        return found(checks, text)

    ran: list[tuple[str, str, str]] = []
    monkeypatch.setattr(process, "run", run)
    config: Any = SimpleNamespace(store=tmp_path / "store", compiler_environment={"A": "b"})
    sides = lit.subject.sides.map(
        lambda side: replace(
            side, toolchain=replace(side.toolchain, path=str(tmp_path / side.toolchain.spec))
        )
    )
    assert lit_test._filecheck(sides, config) is None
    base = install("base")
    assert holds(["CHECK: a", "CHECK-NEXT: b"], "right")
    assert not holds(["CHECK: a"], "wrong")
    assert ran[0] == (base, "// CHECK: a\n// CHECK-NEXT: b\n", "right")
    head = install("head")
    assert holds([], "right")
    assert ran[-1][0] == head


# what a worker is told


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"outcome": "compiled", "pipeline": "any(p)"}, ["made\n", None]),
        ({"outcome": "compiled", "pipeline": None}, ["one\n", "two\n"]),
        (None, ["made\n", None]),
    ],
    ids=["refuses one text", "a side without the pass gives back its input", "died on the way"],
)
def test_both_sides_run_the_pass_on_all_texts_at_once(
    tmp_path: Path, lit: Lit, result: Mapping[str, Any] | None, expected: list[str | None]
) -> None:
    asked = {}

    def ask(toolchain: Any, _: Any, row: Mapping[str, Any], folder: Path) -> None:
        texts = [Path(name).read_text() for name in row["inputs"]]
        asked[toolchain.spec] = (row["op"], row["launch"], row["argument"], row["stage"], texts)
        if result is not None:
            (folder / "result.json").write_text(json.dumps(result))
        (folder / "output.0").write_text("made loc(unknown)\n")

    requests: Any = SimpleNamespace(ask=ask)
    runner = PassRunner(lit.subject, "ttgir", STEP, requests, Store(tmp_path))
    texts = ["one loc(unknown)\n", "two\n"]
    assert runner.outputs(texts) == [Sides(base=row, head=row) for row in expected]
    assert asked["base"] == ("one_pass", "old/name:fp16", "the-pass", "ttgir", texts)
    assert asked["head"] == ("one_pass", "matmul/tma:fp16", "the-pass", "ttgir", texts)
    assert runner.pipelines == dict.fromkeys(asked, result and result["pipeline"])


def test_a_pass_whose_text_is_gone_is_reported(tmp_path: Path, lit: Lit) -> None:
    config: Any = SimpleNamespace(store=tmp_path)
    with pytest.raises(IrdiffError, match="is gone from the store"):
        lit_test.generate(lit.subject, STEP, config, lit.told.append)
