"""What results are filed under, and which are not kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from irdiff.capture.catalogs import Wanted
from irdiff.compile.compiler import WorkerCompiler
from irdiff.model import Compiled, Failed, Failure, FailureKind, Launch, Outcome, Target, Toolchain
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

TARGET = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
BELOW = ("triton/compiler/compiler.py", "triton/backends/nvidia/compiler.py")
ENDED = EndedChild(signal=0, timed_out=False, worker_died=False)


def toolchain(digest: str, below: str) -> Toolchain:
    return Toolchain(
        spec=digest,
        version="9",
        digest=digest,
        path="/t",
        python="/t/bin/python",
        below_frontend={"cuda": below},
        launchers={},
        programs={"/t/ptxas": "p"},
        notes=(),
    )


class FakeRequests:
    """A worker whose every compilation gives one text, and enters the files that it is told to."""

    conditions = "c"

    def __init__(self) -> None:
        self.entered: tuple[str, ...] = BELOW
        self.failure_kind: FailureKind | None = None
        self.stage = "ttgir"
        self.dies = False
        self.asked: list[Mapping[str, Any]] = []

    def ask(
        self, _: Toolchain, beside: object, row: Mapping[str, Any], folder: Path, **more: bool
    ) -> EndedChild:
        self.asked.append(row)
        if self.dies:
            return ENDED
        (folder / "ttgir").write_text("module {}")
        (folder / "result.json").write_text(
            json.dumps(
                {
                    "outcome": "error" if self.failure_kind else "compiled",
                    "artifacts": ["ttgir"],
                    "times_s": {"ttgir": 0.1},
                    "cpu_s": {"ttgir": 0.1},
                    "metadata": {"num_warps": 4},
                    "assembler_flags": ["/t/ptxas", "-v"],
                    "assembler_log": "",
                    "notes": [],
                    "entered": list(self.entered),
                    "goes_on": False,
                }
            )
        )
        return ENDED

    def failure(self, ended: EndedChild, result: object, folder: Path) -> Failure:
        kind = self.failure_kind or FailureKind.CRASH
        return Failure(kind=kind, stage=self.stage, message="why", signal=None, stderr="")


@pytest.fixture
def requests() -> FakeRequests:
    return FakeRequests()


@pytest.fixture
def compile_case(tmp_path: Path, requests: FakeRequests, launch: Launch) -> Any:
    store = Store(tmp_path)
    corpus = Corpus(root=tmp_path, workloads=("a/b",), digest="d")

    default = launch

    def call(
        digest: str = "one", below: str = "b", *, reuse: bool = True, launch: Launch = default
    ) -> tuple[Outcome, WorkerCompiler]:
        given: Any = requests
        compiler = WorkerCompiler(given, store, Wanted(), reuse=reuse)
        made = compiler.compile(toolchain(digest, below), corpus, launch, TARGET, assemble=False)
        return made, compiler

    return call


def test_a_toolchain_that_differs_above_the_stages_alone_compiles_nothing(
    compile_case: Any, requests: FakeRequests, launch: Launch
) -> None:
    first, _ = compile_case("one")
    second, compiler = compile_case("two")
    assert first == second
    assert isinstance(first, Compiled)
    assert first.assembler is not None and first.assembler.digest == "p"
    assert len(requests.asked) == 1
    assert compiler.keeps_below_frontend(toolchain("two", "b"), launch, TARGET)
    another = replace(launch, digest="of another launch")
    assert not compiler.keeps_below_frontend(toolchain("two", "b"), another, TARGET)
    compile_case("one", below="other")
    compile_case("one", reuse=False)
    assert len(requests.asked) == 3


@pytest.mark.parametrize(
    "entered",
    [
        (*BELOW, "triton/runtime/jit.py"),
        (*BELOW, "triton/backends/nvidia/driver.py"),
        (*BELOW, "triton/backends/amd/compiler.py"),
    ],
    ids=["frontend", "launcher", "another backend"],
)
def test_stages_that_enter_what_is_not_below_them_are_filed_by_the_whole_toolchain(
    compile_case: Any, requests: FakeRequests, launch: Launch, entered: tuple[str, ...]
) -> None:
    requests.entered = entered
    _, compiler = compile_case("one")
    assert not compiler.keeps_below_frontend(toolchain("one", "b"), launch, TARGET)
    assert compiler.entered_frontend(toolchain("one", "b"), TARGET)
    compile_case("two")
    assert len(requests.asked) == 2
    compile_case("one")
    compile_case("two")
    assert len(requests.asked) == 2


def test_a_launch_without_a_digest_is_compiled_each_time(
    compile_case: Any, requests: FakeRequests, launch: Launch
) -> None:
    for _ in range(2):
        compile_case("one", launch=replace(launch, digest=None))
    assert len(requests.asked) == 2


@pytest.mark.parametrize(
    ("kind", "stage", "asked"),
    [
        (FailureKind.ERROR, "ttgir", 1),
        (FailureKind.CRASH, "llir", 1),
        (FailureKind.TIMEOUT, "llir", 2),
        (FailureKind.MEMORY, "llir", 2),
        (FailureKind.ERROR, "capture", 2),
    ],
)
def test_failures_that_say_nothing_of_the_compiler_are_not_kept(
    compile_case: Any, requests: FakeRequests, kind: FailureKind, stage: str, asked: int
) -> None:
    requests.failure_kind, requests.stage = kind, stage
    for _ in range(2):
        made, _ = compile_case("one")
        assert isinstance(made, Failed)
    assert len(requests.asked) == asked


def test_a_crash_is_filed_by_the_whole_toolchain(compile_case: Any, requests: FakeRequests) -> None:
    """Nobody knows what the stages entered before it."""
    requests.dies = True
    compile_case("one")
    compile_case("one")
    assert len(requests.asked) == 1
    compile_case("two")
    assert len(requests.asked) == 2


def test_launches_of_one_input_digest_are_compiled_once_whatever_workload_they_are_of(
    tmp_path: Path, requests: FakeRequests, launch: Launch
) -> None:
    """At the same moment too: the second one waits for the first."""
    given: Any = requests
    compiler = WorkerCompiler(given, Store(tmp_path), Wanted(), reuse=True)
    corpus = Corpus(root=tmp_path, workloads=("a/b", "c/d"), digest="d")
    begun = Barrier(4)

    def one(number: int) -> Outcome:
        other = replace(launch, id=f"c/d:{number}", workload="c/d")
        begun.wait()
        return compiler.compile(toolchain("one", "b"), corpus, other, TARGET, assemble=False)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, range(4)))
    assert len(requests.asked) == 1
    assert outcomes == [outcomes[0]] * 4
    assert compiler.taken_from_store == 3
