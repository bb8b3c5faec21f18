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
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Compiled, Failed, Failure, FailureKind, Launch, Outcome, Target, Toolchain
from irdiff.resolve.corpus import Corpus, Packages
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

TARGET = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
ENDED = EndedChild(signal=0, timed_out=False, worker_died=False)


def toolchain(digest: str) -> Toolchain:
    return Toolchain(
        spec=digest,
        version="9",
        digest=digest,
        path="/t",
        python="/t/bin/python",
        root="/t/triton",
        runtime={},
        programs={"/t/ptxas": "p"},
        notes=(),
    )


class FakeRequests:
    """A worker whose every compilation gives one text."""

    environment_digest = "c"

    def __init__(self) -> None:
        self.from_outside: list[str] = []
        self.transient = False
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
                    "handed": {"symbol": "k", "packed": [4, 1]},
                    "from_outside": self.from_outside,
                    "transient": self.transient,
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
        digest: str = "one", *, reuse: bool = True, launch: Launch = default, corpus: Corpus = corpus
    ) -> Outcome:
        given: Any = requests
        compiler = WorkerCompiler(given, store, Wanted(), reuse=reuse)
        return compiler.compile(toolchain(digest), corpus, launch, TARGET)

    return call


def test_equal_inputs_under_equal_toolchains_are_compiled_once(
    compile_case: Any, requests: FakeRequests, launch: Launch
) -> None:
    first = compile_case()
    assert compile_case(launch=replace(launch, id="a/b:other")) == first
    assert isinstance(first, Compiled)
    assert first.assembler is not None and first.assembler.digest == "p"
    assert first.handed == {"symbol": "k", "packed": [4, 1]}
    assert len(requests.asked) == 1


@pytest.mark.parametrize("what", ["toolchain", "input", "environment", "packages", "no reuse"])
def test_anything_else_is_compiled(
    compile_case: Any, requests: FakeRequests, launch: Launch, tmp_path: Path, what: str
) -> None:
    """`environment_digest` is of the worker's own code and the environment that it runs in."""
    compile_case()
    if what == "environment":
        requests.environment_digest = "other"
    given: dict[str, Any] = {
        "toolchain": {"digest": "two"},
        "input": {"launch": replace(launch, digest="of another launch")},
        "packages": {"corpus": with_packages(tmp_path)},
        "no reuse": {"reuse": False},
    }.get(what, {})
    compile_case(**given)
    assert len(requests.asked) == 2
    compile_case(**given)
    assert len(requests.asked) == (3 if what == "no reuse" else 2)


def with_packages(root: Path) -> Corpus:
    beside = Packages(site=root, imports=("torch",), kernels=(), torch_compile=True, digest="torch")
    return Corpus(root=root, workloads=("a/b",), digest="d", packages={"a": beside})


def test_stages_that_import_from_outside_are_not_kept(compile_case: Any, requests: FakeRequests) -> None:
    """No digest holds what they imported."""
    requests.from_outside = ["plugin"]
    compile_case()
    compile_case()
    assert len(requests.asked) == 2
    requests.failure_kind = FailureKind.ERROR
    compile_case()
    compile_case()
    assert len(requests.asked) == 4


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
        assert isinstance(compile_case(), Failed)
    assert len(requests.asked) == asked


def test_a_failure_that_may_be_cured_is_not_kept(compile_case: Any, requests: FakeRequests) -> None:
    requests.failure_kind, requests.transient = FailureKind.ERROR, True
    assert compile_case().transient
    requests.failure_kind = None
    assert isinstance(compile_case(), Compiled)


def test_a_crash_is_kept(compile_case: Any, requests: FakeRequests) -> None:
    requests.dies = True
    compile_case()
    compile_case()
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
        return compiler.compile(toolchain("one"), corpus, other, TARGET)

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(one, range(4)))
    assert len(requests.asked) == 1
    assert outcomes == [outcomes[0]] * 4
    assert compiler.taken_from_store == 3
