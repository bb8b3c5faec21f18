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
from irdiff.attribute.attribution import ResponsiblePass
from irdiff.attribute.lit_test import LitTest, Means, PassOutputs, WorkerPassRunner
from irdiff.errors import IrdiffError
from irdiff.model import Case, Run, Sides, Verdict
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

CASE = "matmul/tma:fp16@sm_90"
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
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if "ttg.marked" in line:
            lines.insert(number, "    ttng.fence")
            break
    return "\n".join(lines) + "\n"


@dataclass
class FakeRunner:
    base: Pass = unchanged
    head: Pass = fencing
    pipelines: dict[str, str | None] = field(default_factory=lambda: {"head": "any(the-pass{a=1})"})
    asked: list[str] = field(default_factory=list)

    def outputs(self, texts: Sequence[str]) -> list[PassOutputs]:
        self.asked += texts
        return [PassOutputs(base=self.base(text), head=self.head(text)) for text in texts]


STEP = ResponsiblePass(
    name="TheFences",
    argument="the-pass",
    options=None,
    entering=Sides(base="0" * 64, head="0" * 64),
    leaving=Sides(base="0" * 64, head="0" * 64),
)


def mentions_fence(checks: Sequence[str], text: str) -> bool:
    """As FileCheck would here: a fence that is checked for is there."""
    return any("ttng.fence" in line for line in checks) <= ("ttng.fence" in text)


@dataclass
class Bench:
    run: Run
    case: Case
    runner: FakeRunner = field(default_factory=FakeRunner)
    holds: lit_test.Holds | None = mentions_fence
    told: list[str] = field(default_factory=list)

    def written(self, entering: str = ENTERING) -> LitTest:
        means = Means(runner=self.runner, holds=self.holds, tell=self.told.append)
        return lit_test.written(self.run, self.case, STEP, entering, means)


@pytest.fixture
def bench(build: Any) -> Bench:
    case = build.case(CASE, Verdict.CHANGED)
    return Bench(run=build.run(case), case=case)


def ir(text: str) -> list[str]:
    """The part of a test that is no comment."""
    return [line for line in text.splitlines() if line and not line.startswith("//")]


def test_what_the_edit_does_not_need_is_left_out(bench: Bench) -> None:
    made = bench.written()
    assert ir(made.text) == [
        "module {",
        "  tt.func public @k(%1: i32) {",
        "    ttg.marked %1 : i32",
        "    tt.return",
        "  }",
        "}",
    ]
    assert made.text.startswith(
        "// RUN: triton-opt %s --pass-pipeline='builtin.module(the-pass{a=1})' | FileCheck %s\n"
    )
    assert f"// TheFences: {CASE}, triton==3.8.0 -> triton==3.9.0." in made.text
    assert "// CHECK-LABEL: @k(" in made.text
    assert "ttng.fence" in made.text
    assert "6 of 9 lines of IR" in made.summary
    assert "holds on head and fails on base" in made.summary
    assert bench.told == ["running TheFences alone", "making the IR smaller: 9 lines"]


def test_branches_that_the_edit_does_not_need_are_straightened(bench: Bench) -> None:
    made = bench.written(BRANCHES)
    assert not any("cf." in line for line in ir(made.text))
    assert any("ttg.marked" in line for line in ir(made.text))


def test_a_smaller_text_on_which_the_pass_does_something_else_is_not_taken(bench: Bench) -> None:
    """Without the addition it does not fence at all, so that the addition stays."""
    bench.runner.head = lambda text: fencing(text) if "arith.addi" in text else text
    assert any("arith.addi" in line for line in ir(bench.written().text))


def test_a_smaller_text_that_a_side_refuses_is_not_taken(bench: Bench) -> None:
    bench.runner.base = lambda text: text if "tt.print" in text else None
    assert any("tt.print" in line for line in ir(bench.written().text))


def test_an_output_that_is_no_ir_is_no_edit(bench: Bench) -> None:
    bench.runner.head = lambda text: "not IR"
    with pytest.raises(IrdiffError, match="does the same on both sides"):
        bench.written()


def test_a_pass_that_does_the_same_alone_has_no_test(bench: Bench) -> None:
    bench.runner.head = unchanged
    with pytest.raises(IrdiffError, match="TheFences, run alone"):
        bench.written()
    assert len(bench.runner.asked) == 2


def test_a_text_that_needs_its_locations_keeps_them(bench: Bench) -> None:
    bench.runner.base = lambda text: text if "loc(" in text else None
    bench.runner.head = lambda text: fencing(text) if "loc(" in text else None
    assert any("loc(" in line for line in ir(bench.written().text))


def test_the_reduction_ends_in_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lit_test, "MAX_REDUCTION_S", 0.0)
    made = bench.written()
    assert any("tt.print" in line for line in ir(made.text)), "nothing was left out"
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
    bench: Bench, pipelines: dict[str, str | None], command: str
) -> None:
    bench.runner.pipelines = pipelines
    assert f"--pass-pipeline='{command}'" in bench.written().text


# CHECK lines


def test_without_filecheck_every_line_is_checked_for_and_nothing_is_said_to_hold(bench: Bench) -> None:
    bench.holds = None
    made = bench.written()
    assert "not checked" in made.summary
    assert made.text.count("// CHECK-NEXT: ") == len(ir(made.text)) - 1


def test_the_whole_function_is_checked_for_where_fewer_lines_tell_nothing_apart(bench: Bench) -> None:
    """Here lines that hold nothing of the edit's surroundings hold on both sides."""
    bench.holds = lambda checks, text: "ttng.fence" in text or not any("tt.return" in row for row in checks)
    made = bench.written()
    assert made.text.count("// CHECK-NEXT: ") == len(ir(made.text)) - 1
    assert "CHECK-NEXT: tt.return" in made.text


@pytest.mark.parametrize("answer", [True, False], ids=["hold on both", "hold on neither"])
def test_lines_that_do_not_tell_the_sides_apart_are_not_written(bench: Bench, answer: bool) -> None:
    bench.holds = lambda checks, text: answer
    with pytest.raises(IrdiffError, match="no CHECK lines tell head from base"):
        bench.written()


# FileCheck


@pytest.fixture
def sides(tmp_path: Path, build: Any) -> Sides[Any]:
    def of(name: str) -> Any:
        side = build.side(name)
        return replace(side, toolchain=replace(side.toolchain, path=str(tmp_path / name)))

    return Sides(base=of("base"), head=of("head"))


def install(folder: Path, name: str) -> Path:
    program = folder / name / "lib/python3.11/site-packages/triton/FileCheck"
    program.parent.mkdir(parents=True)
    program.touch()
    return program


def test_filecheck_is_that_of_head_where_it_brings_one(
    tmp_path: Path, sides: Sides[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(store=tmp_path / "store", compiler_environment={"A": "b"})
    assert lit_test._filecheck(sides, config) is None
    ran: list[tuple[str, str, str]] = []

    def run(command: Sequence[Path], *, env: Mapping[str, str], timeout_s: float) -> str:
        program, test, _, output = command
        assert env == {"A": "b"}
        ran.append((str(program), test.read_text(), output.read_text()))
        if "wrong" in output.read_text():
            raise process.CommandFailed([str(program)], 1, "", "expected string not found")
        return ""

    monkeypatch.setattr(process, "run", run)
    base = install(tmp_path, "base")
    holds = lit_test._filecheck(sides, config)
    assert holds is not None
    assert holds(["CHECK: a", "CHECK-NEXT: b"], "right")
    assert not holds(["CHECK: a"], "wrong")
    assert ran[0] == (str(base), "// CHECK: a\n// CHECK-NEXT: b\n", "right")
    head = install(tmp_path, "head")
    holds = lit_test._filecheck(sides, config)
    assert holds is not None
    assert holds([], "right")
    assert ran[-1][0] == str(head)


# what a worker is told


@dataclass
class FakeWorkers:
    """Stands for the pool and its workers: leaves an output for each input but the last."""

    result: Mapping[str, Any] | None
    asked: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    inputs: dict[str, list[str]] = field(default_factory=dict)

    def get(self, toolchain: Any, beside: Any) -> Any:
        def request(row: Mapping[str, Any]) -> EndedChild:
            folder = Path(row["folder"])
            self.asked[toolchain.spec] = row
            self.inputs[toolchain.spec] = [Path(name).read_text() for name in row["inputs"]]
            if self.result is not None:
                (folder / "result.json").write_text(json.dumps(self.result))
            for number in range(len(row["inputs"]) - 1):
                (folder / f"output.{number}").write_text("made loc(unknown)\n")
            return EndedChild(signal=0, timed_out=False, worker_died=False)

        return SimpleNamespace(request=request)


def runner(folder: Path, bench: Bench, sides: Sides[Any], workers: FakeWorkers) -> WorkerPassRunner:
    config: Any = SimpleNamespace(store=folder, limits=SimpleNamespace(memory_bytes=1 << 30))
    pool: Any = workers
    return WorkerPassRunner(bench.run, bench.case, sides, STEP, config, pool)


def test_both_sides_run_the_pass_on_all_texts_at_once(
    tmp_path: Path, bench: Bench, sides: Sides[Any]
) -> None:
    bench.case = replace(bench.case, renamed_from="old/name:fp16@sm_90")
    workers = FakeWorkers({"outcome": "compiled", "pipeline": "any(p)"})
    made = runner(tmp_path, bench, sides, workers)
    assert made.outputs(["one", "two"]) == [
        PassOutputs(base="made\n", head="made\n"),
        PassOutputs(base=None, head=None),
    ]
    assert workers.inputs == {"base": ["one", "two"], "head": ["one", "two"]}
    assert made.pipelines == {"base": "any(p)", "head": "any(p)"}
    rows = {
        name: (row["op"], row["launch"], row["argument"], row["stage"]) for name, row in workers.asked.items()
    }
    assert rows == {
        "base": ("one_pass", "old/name:fp16", "the-pass", "ttgir"),
        "head": ("one_pass", "matmul/tma:fp16", "the-pass", "ttgir"),
    }


def test_a_side_without_the_pass_gives_back_what_it_was_given(
    tmp_path: Path, bench: Bench, sides: Sides[Any]
) -> None:
    made = runner(tmp_path, bench, sides, FakeWorkers({"outcome": "compiled", "pipeline": None}))
    assert made.outputs(["text loc(unknown)\n"]) == [PassOutputs(base="text\n", head="text\n")]
    assert made.pipelines == {"base": None, "head": None}


@pytest.mark.parametrize("result", [None, {"outcome": "error"}])
def test_a_worker_that_left_no_output_refused_the_text(
    tmp_path: Path, bench: Bench, sides: Sides[Any], result: Mapping[str, Any] | None
) -> None:
    made = runner(tmp_path, bench, sides, FakeWorkers(result))
    assert made.outputs(["text"]) == [PassOutputs(base=None, head=None)]


# from a step of a run


def test_a_step_whose_text_is_gone_is_told(tmp_path: Path, bench: Bench, sides: Sides[Any]) -> None:
    config: Any = SimpleNamespace(store=tmp_path)
    with pytest.raises(IrdiffError, match="is gone from the store"):
        lit_test.generate(bench.run, bench.case, sides, STEP, config, bench.told.append)


def test_a_test_is_made_of_the_text_that_enters_the_step_at_head(
    tmp_path: Path, bench: Bench, sides: Sides[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config: Any = SimpleNamespace(store=tmp_path, cache=tmp_path)
    entering = Store(tmp_path).put(ENTERING.encode())
    step = replace(STEP, entering=Sides(base="0" * 64, head=entering))
    monkeypatch.setattr(lit_test, "WorkerPassRunner", lambda *_: bench.runner)
    made = lit_test.generate(bench.run, bench.case, sides, step, config, bench.told.append)
    assert "not checked" in made.summary
    assert bench.runner.asked[0].startswith("module {")
