"""Every launch of a corpus against what its workload says of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.capture.catalogs import NOTHING, Catalog
from irdiff.compile import corpus_check
from irdiff.compile.corpus_check import Checked, CorpusCheck
from irdiff.model import (
    CaptureFailure,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Outcome,
    Target,
    Toolchain,
)
from irdiff.parallel import Progress
from irdiff.resolve.corpus import Corpus

FAILURE = Failure(kind=FailureKind.ERROR, stage="ttgir", message="why", signal=None, stderr="")
COMPILED = Compiled(
    handed={}, artifacts={}, metadata={}, stage_times_s={"ttir": 0.25, "ttgir": 0.5}, stage_cpu_s={}, assembler=None,
    assembler_log="", notes=(),
)  # fmt: skip


@dataclass
class FakeCompiler:
    launch: Launch
    refused: set[str] = field(default_factory=set)
    fails: set[tuple[str, str]] = field(default_factory=set)
    expected: bool = True
    captured: list[tuple[str, str]] = field(default_factory=list)

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        self.captured.append((workload, target.name))
        names = [f"{workload}:{label}" for label in ("one", "two")]
        launches = [
            replace(self.launch, id=name, workload=workload) for name in names if name not in self.refused
        ]
        failures = [
            CaptureFailure(id=name, expected=self.expected, failure=FAILURE)
            for name in names
            if name in self.refused
        ]
        return replace(NOTHING, launches=tuple(launches), failures=tuple(failures))

    def compile(self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target) -> Outcome:
        if (launch.id, target.name) in self.fails:
            return Failed(failure=FAILURE, transient=False, artifacts={}, stage_times_s={"ttir": 0.25})
        return COMPILED


@dataclass
class Bench:
    compiler: FakeCompiler
    build: Any
    cases: tuple[str, ...] = ()
    told: list[Progress] = field(default_factory=list)

    @property
    def corpus(self) -> Corpus:
        return Corpus(root=Path("/c"), workloads=("a/b", "x/y"), digest="")

    def check(self) -> CorpusCheck:
        return CorpusCheck(
            compiler=self.compiler,
            toolchain=self.build.side().toolchain,
            corpus=self.corpus,
            targets=[self.build.target("sm_90"), self.build.target("gfx942")],
            cases=self.cases,
            jobs=2,
            report=self.told.append,
        )


@pytest.fixture
def bench(build: Any, launch: Launch) -> Bench:
    return Bench(FakeCompiler(launch), build)


def test_every_launch_is_compiled_for_every_target(bench: Bench) -> None:
    rows = bench.check().checked()
    assert [row.id for row in rows] == [
        f"{workload}:{label}@{target}"
        for workload in ("a/b", "x/y")
        for label in ("one", "two")
        for target in ("gfx942", "sm_90")
    ]
    assert {(row.compiled, row.message, row.compile_s, row.surprising) for row in rows} == {
        (True, "", 0.75, False)
    }
    assert {progress.phase for progress in bench.told} == {"capture", "check"}


def test_a_launch_that_fails_on_one_target_is_a_surprise_there(bench: Bench) -> None:
    bench.compiler.fails = {("a/b:one", "sm_90")}
    (row,) = [row for row in bench.check().checked() if row.surprising]
    assert (row.id, row.target, row.message, row.compile_s) == ("a/b:one@sm_90", "sm_90", "why", 0.25)


@pytest.mark.parametrize("expected", [True, False])
def test_a_launch_that_the_frontend_refuses_did_not_compile(bench: Bench, expected: bool) -> None:
    bench.compiler.refused, bench.compiler.expected = {"x/y:two"}, expected
    rows = [row for row in bench.check().checked() if not row.compiled]
    assert [(row.id, row.message, row.compile_s, row.surprising) for row in rows] == [
        (f"x/y:two@{target}", "why", 0.0, expected) for target in ("gfx942", "sm_90")
    ]


def test_a_launch_that_compiles_although_it_should_not_is_a_surprise(bench: Bench) -> None:
    bench.compiler.launch = replace(bench.compiler.launch, expected=False)
    assert all(row.surprising for row in bench.check().checked())


def test_only_what_the_patterns_select_is_captured_and_checked(bench: Bench) -> None:
    bench.cases = ("a/b:two@gfx*",)
    assert [row.id for row in bench.check().checked()] == ["a/b:two@gfx942"]
    assert {workload for workload, _ in bench.compiler.captured} == {"a/b"}


def test_the_commands_open_a_compiler_and_close_its_workers(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Launches are captured without their input digests, which nothing needs that only lists them."""
    opened: list[tuple[bool, bool]] = []
    closed: list[bool] = []
    config: Any = SimpleNamespace(store=tmp_path, jobs=1)
    bench.compiler.refused = {"a/b:one"}

    def compiler(requests: object, store: object, wanted: Any, *, reuse: bool) -> FakeCompiler:
        opened.append((wanted.frontend, reuse))
        return bench.compiler

    monkeypatch.setattr(corpus_check, "WorkerCompiler", compiler)
    monkeypatch.setattr(corpus_check, "Requests", lambda *_: None)
    monkeypatch.setattr(corpus_check, "Workers", lambda _: SimpleNamespace(close=lambda: closed.append(True)))
    given = (
        bench.build.side().toolchain,
        bench.corpus,
        [bench.build.target()],
        ["a/b"],
        config,
        bench.told.append,
    )
    assert [launch.id for launch in corpus_check.captured(*given)] == ["a/b:two"]
    rows = corpus_check.check(*given)
    assert all(isinstance(row, Checked) for row in rows)
    assert [(row.id, row.compiled) for row in rows] == [("a/b:one@sm_90", False), ("a/b:two@sm_90", True)]
    assert opened == [(False, True), (True, True)]
    assert closed == [True, True]
