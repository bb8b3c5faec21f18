"""Every launch of a corpus against what its workload says of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture.catalogs import NOTHING, Catalog
from irdiff.compile.corpus_check import Checked, CorpusCheck
from irdiff.model import CaptureFailure, Launch, Outcome, Target
from irdiff.resolve.corpus import Corpus
from tests.unit import runs

FAILED = replace(runs.failed(message="why"), stage_times_s={"ttir": 0.25})


@dataclass
class FakeCompiler:
    """Each workload has two launches; the frontend refuses some, and some do not compile for a target."""

    refused: str = ""
    fails: tuple[str, str] = ("", "")
    expected: bool = True
    captured: set[str] = field(default_factory=set)

    def catalog(self, _: object, __: object, workload: str, target: Target) -> Catalog:
        self.captured.add(workload)
        names = [f"{workload}:{label}" for label in ("one", "two")]
        return replace(
            NOTHING,
            launches=tuple(
                runs.launch(f"{name}@{target.name}", expected=self.expected)
                for name in names
                if name != self.refused
            ),
            failures=tuple(
                CaptureFailure(id=name, expected=self.expected, failure=FAILED.failure)
                for name in names
                if name == self.refused
            ),
        )

    def compile(self, _: object, __: object, launch: Launch, target: Target) -> Outcome:
        fails = (launch.id, target.name) == self.fails
        return FAILED if fails else runs.compiled(stage_times_s={"ttir": 0.25, "ttgir": 0.5})


def checked(compiler: FakeCompiler, *cases: str) -> list[Checked]:
    given: Any = compiler
    return CorpusCheck(
        compiler=given,
        toolchain=runs.side().toolchain,
        corpus=Corpus(root=Path("/c"), workloads=("a/b", "x/y"), digest=""),
        targets=[runs.target("sm_90"), runs.target("gfx942")],
        cases=cases,
        jobs=2,
        report=lambda _: None,
    ).checked()


def test_every_launch_is_compiled_for_every_target() -> None:
    rows = checked(FakeCompiler())
    names = [f"{workload}:{label}" for workload in ("a/b", "x/y") for label in ("one", "two")]
    assert [row.id for row in rows] == [
        f"{name}@{target}" for name in names for target in ("gfx942", "sm_90")
    ]
    found = {(row.compiled, row.message, row.compile_s, row.surprising) for row in rows}
    assert found == {(True, "", 0.75, False)}
    assert all(row.surprising for row in checked(FakeCompiler(expected=False))), "none should compile"


def test_a_launch_that_fails_on_one_target_is_a_surprise_there() -> None:
    (row,) = [row for row in checked(FakeCompiler(fails=("a/b:one", "sm_90"))) if row.surprising]
    assert (row.id, row.target, row.message, row.compile_s) == ("a/b:one@sm_90", "sm_90", "why", 0.25)


@pytest.mark.parametrize("expected", [True, False])
def test_a_launch_that_the_frontend_refuses_did_not_compile(expected: bool) -> None:
    rows = [row for row in checked(FakeCompiler(refused="x/y:two", expected=expected)) if not row.compiled]
    found = [(row.id, row.message, row.compile_s, row.surprising) for row in rows]
    assert found == [(f"x/y:two@{target}", "why", 0.0, expected) for target in ("gfx942", "sm_90")]


def test_only_what_the_patterns_select_is_captured_and_checked() -> None:
    compiler = FakeCompiler()
    assert [row.id for row in checked(compiler, "a/b:two@gfx*")] == ["a/b:two@gfx942"]
    assert compiler.captured == {"a/b"}
