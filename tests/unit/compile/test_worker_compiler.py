"""What results are filed under, which are not kept, and what of a damaged store is not taken."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from irdiff.capture.catalogs import Wanted
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Compiled, Failed, Failure, FailureKind, Launch, Outcome, Toolchain
from irdiff.resolve.corpus import Corpus, Packages
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

RESULT = {
    "outcome": "compiled",
    "times_s": {"ttir": 0.5},
    "cpu_s": {"ttir": 0.25},
    "metadata": {"num_warps": 4, "name": "k"},
    "handed": {"symbol": "k", "packed": [4, 1]},
    "assembler_flags": ["/t/ptxas", "-v"],
    "assembler_log": "registers",
    "notes": ["no-linker"],
    "launches": [],
    "failures": [],
}


class FakeRequests:
    """A worker that leaves the artifacts it is given, and a result unless it dies."""

    environment_digest = "c"

    def __init__(self) -> None:
        self.leaves = {"ttir": b"t", "ptx": b"p"}
        self.result: dict[str, Any] = {}
        self.failure_kind, self.stage = FailureKind.CRASH, "ttgir"
        self.dies = False
        self.rows: list[Mapping[str, Any]] = []
        self.randomized: list[bool] = []

    def ask(
        self, _: Toolchain, beside: object, row: Mapping[str, Any], folder: Path, *, randomized: bool = False
    ) -> EndedChild:
        self.rows.append(row)
        self.randomized.append(randomized)
        for name, content in self.leaves.items():
            (folder / name).write_bytes(content)
        if not self.dies:
            result = {**RESULT, "artifacts": list(self.leaves), **self.result}
            (folder / "result.json").write_text(json.dumps(result))
        return EndedChild(signal=0, timed_out=False, worker_died=False)

    def failure(self, ended: EndedChild, result: object, folder: Path) -> Failure:
        return Failure(kind=self.failure_kind, stage=self.stage, message="why", signal=None, stderr="")


class Cases:
    """One case, compiled as often as somebody asks."""

    def __init__(self, folder: Path, build: Any, launch: Launch) -> None:
        self.requests, self.store, self.launch = FakeRequests(), Store(folder / "store"), launch
        self.corpus = Corpus(root=folder, workloads=("a/b",), digest="d")
        self.toolchain: Toolchain = replace(build.side("one").toolchain, programs={"/t/ptxas": "p"})
        self.target = build.target()

    def compiler(self, *, reuse: bool = True) -> WorkerCompiler:
        given: Any = self.requests
        return WorkerCompiler(given, self.store, Wanted(), reuse=reuse)

    def compile(self, *, fresh: bool = False, reuse: bool = True) -> Any:
        compiler = self.compiler(reuse=reuse)
        return compiler.compile(self.toolchain, self.corpus, self.launch, self.target, fresh=fresh)

    def recompile(self, attempt: int = 0, *, fresh: bool = False) -> Any:
        given = (self.toolchain, self.corpus, self.launch, self.target)
        return self.compiler().recompile(*given, attempt=attempt, fresh=fresh)

    def asked(self, ask: Callable[[], object]) -> int:
        before = len(self.requests.rows)
        ask()
        return len(self.requests.rows) - before


@pytest.fixture
def cases(tmp_path: Path, build: Any, launch: Launch) -> Cases:
    return Cases(tmp_path, build, launch)


def test_equal_inputs_under_equal_toolchains_are_compiled_once(cases: Cases) -> None:
    first = cases.compile()
    assert isinstance(first, Compiled) and set(first.artifacts) == {"ttir", "ptx"}
    assert first.assembler is not None
    assert (first.assembler.digest, first.assembler.flags) == ("p", ("-v",))
    assert (first.handed, first.metadata) == (RESULT["handed"], RESULT["metadata"])
    cases.launch = replace(cases.launch, id="a/b:other")
    compiler = cases.compiler()
    for taken in (1, 2):
        again = compiler.compile(cases.toolchain, cases.corpus, cases.launch, cases.target)
        assert (again, compiler.taken_from_store) == (first, taken)
    assert len(cases.requests.rows) == 1


@pytest.mark.parametrize("what", ["toolchain", "input", "environment", "packages", "no reuse"])
def test_anything_else_is_compiled(cases: Cases, tmp_path: Path, what: str) -> None:
    """`environment_digest` is of the worker's own code and the environment that it runs in."""
    cases.compile()
    packages = Packages(site=tmp_path, imports=(), kernels=(), torch_compile=True, digest="torch")
    if what == "toolchain":
        cases.toolchain = replace(cases.toolchain, digest="two")
    elif what == "input":
        cases.launch = replace(cases.launch, digest="of another launch")
    elif what == "packages":
        cases.corpus = replace(cases.corpus, packages={"a": packages})
    elif what == "environment":
        cases.requests.environment_digest = "other"
    reuse = what != "no reuse"
    assert cases.asked(lambda: cases.compile(reuse=reuse)) == 1
    assert cases.asked(lambda: cases.compile(reuse=reuse)) == (0 if reuse else 1)


@pytest.mark.parametrize(
    ("result", "kind", "stage", "is_kept"),
    [
        ({"outcome": "error"}, FailureKind.ERROR, "ttgir", True),
        (None, FailureKind.CRASH, "llir", True),
        (None, FailureKind.TIMEOUT, "llir", False),
        (None, FailureKind.MEMORY, "llir", False),
        ({"outcome": "error"}, FailureKind.ERROR, "capture", False),
        ({"outcome": "error", "transient": True}, FailureKind.ERROR, "ttgir", False),
        # no digest holds what the stages imported
        ({"from_outside": ["plugin"]}, None, "", False),
        ({"outcome": "error", "from_outside": ["plugin"]}, FailureKind.ERROR, "ttgir", False),
    ],
)
def test_which_outcomes_are_kept(
    cases: Cases, result: dict[str, Any] | None, kind: FailureKind, stage: str, is_kept: bool
) -> None:
    cases.requests.dies, cases.requests.result = result is None, result or {}
    cases.requests.failure_kind, cases.requests.stage = kind, stage
    assert isinstance(cases.compile(), Failed if kind else Compiled)
    assert cases.asked(cases.compile) == (0 if is_kept else 1)


def test_a_launch_without_a_digest_is_compiled_each_time(cases: Cases) -> None:
    """A program has replaced a function of the compiler: nobody knows by which."""
    cases.launch = replace(cases.launch, digest=None)
    assert [cases.asked(cases.compile) for _ in range(2)] == [1, 1]


def test_launches_of_one_input_digest_are_compiled_once_at_the_same_moment_too(cases: Cases) -> None:
    compiler, begun = cases.compiler(), Barrier(4)

    def one(number: int) -> Outcome:
        other = replace(cases.launch, id=f"c/d:{number}", workload="c/d")
        begun.wait()
        return compiler.compile(cases.toolchain, cases.corpus, other, cases.target)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, range(4)))
    assert (len(cases.requests.rows), compiler.taken_from_store) == (1, 3)
    assert outcomes == [outcomes[0]] * 4


def test_each_attempt_is_made_once_with_addresses_randomized(cases: Cases) -> None:
    cases.compile()
    assert [cases.asked(lambda n=n: cases.recompile(n)) for n in (0, 1, 0, 1)] == [1, 1, 0, 0]
    assert cases.asked(lambda: cases.recompile(0, fresh=True)) == 1
    assert cases.requests.randomized == [False, True, True, True]


def test_an_assemblers_result_is_taken_unless_nothing_that_was_kept_is_trusted(cases: Cases) -> None:
    cases.compile()
    (row,) = cases.requests.rows
    assert (row["assembled"], row["programs"]) == (str(cases.store.assembled), {"/t/ptxas": "p"})
    cases.compile(fresh=True)
    cases.compile(reuse=False)
    cases.recompile()
    assert len(cases.requests.rows) == 4
    assert not any("assembled" in row for row in cases.requests.rows[1:])


def test_what_is_damaged_is_made_again(cases: Cases) -> None:
    compiled = cases.compile()
    cases.store.object_path(compiled.artifacts["ttir"].digest).unlink()
    assert cases.asked(cases.compile) == 1
    (path,) = cases.store.root.glob("records-*.sqlite3")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        changed = connection.execute("UPDATE records SET value = substr(value, 2) WHERE kind = 'compiled'")
        assert changed.rowcount == 1
    assert cases.asked(cases.compile) == 1
    cases.store.object_path(compiled.artifacts["ttir"].digest).write_bytes(b"damaged, and not empty")
    assert cases.asked(cases.compile) == 0, "who trusts nothing asks for it:"
    assert cases.asked(lambda: cases.compile(fresh=True)) == 1
    assert cases.store.get(compiled.artifacts["ttir"].digest) == b"t"
    assert cases.compile() == compiled


def test_the_dead_leave_what_they_had_finished(cases: Cases) -> None:
    cases.requests.dies = True
    cases.requests.leaves = {"ttir": b"t", "notes.txt": b"no stage"}
    made = cases.compile()
    assert (set(made.artifacts), made.stage_times_s) == ({"ttir"}, {})


def test_a_host_is_asked_to_capture_what_was_captured(cases: Cases) -> None:
    """A frontend that dies is left out of the capture, and then of every request for the same workload."""
    compiler = cases.compiler()

    def has_frontend(corpus: Corpus, workload: str = "a/b") -> bool:
        return compiler.selection(cases.toolchain, corpus, workload, cases.target).frontend

    assert has_frontend(cases.corpus)
    cases.requests.dies = True
    compiler.catalog(cases.toolchain, cases.corpus, "a/b", cases.target)
    cases.requests.dies = False
    compiler.compile(cases.toolchain, cases.corpus, cases.launch, cases.target)
    assert cases.requests.rows[-1]["select"]["frontend"] is False
    elsewhere = replace(cases.corpus, root=cases.corpus.root / "of the other side")
    assert has_frontend(cases.corpus, "a/other") and has_frontend(elsewhere)
    assert not has_frontend(cases.corpus)
