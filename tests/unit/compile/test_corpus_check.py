"""Every launch of a corpus against what its workload says of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.capture.catalogs import NOTHING, Catalog, Wanted
from irdiff.compile import corpus_check
from irdiff.compile.corpus_check import Checked
from irdiff.model import CaptureFailure, Launch, Outcome, Target
from irdiff.parallel import Progress
from irdiff.resolve.corpus import Corpus
from tests.unit import runs

FAILED = replace(runs.failed(message="why"), stage_times_s={"ttir": 0.25})
COMPILED = runs.compiled(stage_times_s={"ttir": 0.25, "ttgir": 0.5})


class Check:
    """A corpus of two workloads with two labels each, for two targets; its compiler is made up."""

    def __init__(self, folder: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launch, self.folder = launch, folder
        self.expected = True
        self.refused: set[str] = set()
        self.fails: set[tuple[str, str]] = set()
        self.captured: set[str] = set()
        self.wanted: list[Wanted] = []
        self.reports: list[Progress] = []
        self.closed = 0
        monkeypatch.setattr(corpus_check, "Requests", lambda *_: None)
        monkeypatch.setattr(corpus_check, "Workers", lambda _: self)
        monkeypatch.setattr(corpus_check, "WorkerCompiler", self.open)

    def open(self, requests: object, store: object, wanted: Wanted, *, reuse: bool) -> Check:
        self.wanted.append(wanted)
        return self

    def close(self) -> None:
        self.closed += 1

    def catalog(self, toolchain: object, corpus: object, workload: str, target: Target) -> Catalog:
        self.captured.add(workload)
        names = [f"{workload}:{label}" for label in ("one", "two")]
        plain = replace(self.launch, workload=workload, expected=self.expected)
        launches = [replace(plain, id=name) for name in names if name not in self.refused]
        refused = [name for name in names if name in self.refused]
        failures = [
            CaptureFailure(id=name, expected=self.expected, failure=FAILED.failure) for name in refused
        ]
        return replace(NOTHING, launches=tuple(launches), failures=tuple(failures))

    def compile(self, toolchain: object, corpus: object, launch: Launch, target: Target) -> Outcome:
        return FAILED if (launch.id, target.name) in self.fails else COMPILED

    def given(self, *cases: str) -> Any:
        corpus = Corpus(root=Path("/c"), workloads=("a/b", "x/y"), digest="")
        targets = [runs.target("sm_90"), runs.target("gfx942")]
        config = SimpleNamespace(store=self.folder, jobs=2)
        return runs.side().toolchain, corpus, targets, cases, config, self.reports.append

    def rows(self, *cases: str) -> list[Checked]:
        return corpus_check.check(*self.given(*cases))


@pytest.fixture
def check(tmp_path: Path, launch: Launch, monkeypatch: pytest.MonkeyPatch) -> Check:
    return Check(tmp_path, launch, monkeypatch)


def test_every_launch_is_compiled_for_every_target(check: Check) -> None:
    rows = check.rows()
    names = [f"{workload}:{label}" for workload in ("a/b", "x/y") for label in ("one", "two")]
    assert [row.id for row in rows] == [f"{name}@{t}" for name in names for t in ("gfx942", "sm_90")]
    facts = {(row.compiled, row.message, row.compile_s, row.surprising) for row in rows}
    assert facts == {(True, "", 0.75, False)}
    assert {progress.phase for progress in check.reports} == {"capture", "check"}
    check.expected = False
    assert all(row.surprising for row in check.rows()), "it compiles although it should not"


def test_a_launch_that_fails_on_one_target_is_a_surprise_there(check: Check) -> None:
    check.fails = {("a/b:one", "sm_90")}
    (row,) = [row for row in check.rows() if row.surprising]
    assert (row.id, row.target, row.message, row.compile_s) == ("a/b:one@sm_90", "sm_90", "why", 0.25)


@pytest.mark.parametrize("expected", [True, False])
def test_a_launch_that_the_frontend_refuses_did_not_compile(check: Check, expected: bool) -> None:
    check.refused, check.expected = {"x/y:two"}, expected
    rows = [row for row in check.rows() if not row.compiled]
    assert [(row.id, row.message, row.compile_s, row.surprising) for row in rows] == [
        (f"x/y:two@{target}", "why", 0.0, expected) for target in ("gfx942", "sm_90")
    ]


def test_only_what_the_patterns_select_is_captured_and_checked(check: Check) -> None:
    assert [row.id for row in check.rows("a/b:two@gfx*")] == ["a/b:two@gfx942"]
    assert check.captured == {"a/b"}
