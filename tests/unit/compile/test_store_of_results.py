"""Compilations made again, and what of a damaged store is not taken."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture.catalogs import Wanted
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import Artifact, Failed, Failure, FailureKind, Launch, Toolchain
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

ENDED = EndedChild(signal=0, timed_out=False, worker_died=False)


@dataclass
class FakeRequests:
    """A worker that leaves the artifacts it was told to, and a result unless it dies."""

    leaves: Mapping[str, bytes] = field(default_factory=lambda: {"ttir": b"t", "ptx": b"p", "cubin": b"c"})
    result: dict[str, Any] = field(default_factory=dict)
    dies: bool = False
    environment_digest: str = "c"
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    randomized: list[bool] = field(default_factory=list)

    def ask(
        self, _: Toolchain, beside: object, row: Mapping[str, Any], folder: Path, *, randomized: bool = False
    ) -> EndedChild:
        self.rows.append(row)
        self.randomized.append(randomized)
        for name, content in self.leaves.items():
            (folder / name).write_bytes(content)
        if not self.dies:
            self._leave_result(folder)
        return ENDED

    def _leave_result(self, folder: Path) -> None:
        plain = {
            "outcome": "compiled",
            "artifacts": list(self.leaves),
            "times_s": {"ttir": 0.5},
            "cpu_s": {"ttir": 0.25},
            "metadata": {"num_warps": 4},
            "handed": {"symbol": "k", "packed": [4, 1]},
            "assembler_flags": None,
            "assembler_log": "registers",
            "notes": ["no-linker"],
            "launches": [],
            "failures": [],
        }
        (folder / "result.json").write_text(json.dumps({**plain, **self.result}))

    def failure(self, ended: EndedChild, result: object, folder: Path) -> Failure:
        return Failure(kind=FailureKind.ERROR, stage="ttgir", message="why", signal=None, stderr="")


@dataclass
class Bench:
    requests: FakeRequests
    store: Store
    build: Any
    launch: Launch
    root: Path
    wanted: Wanted = field(default_factory=Wanted)

    def compiler(self, *, reuse: bool = True) -> WorkerCompiler:
        given: Any = self.requests
        return WorkerCompiler(given, self.store, self.wanted, reuse=reuse)

    @property
    def given(self) -> tuple[Toolchain, Corpus, Launch, Any]:
        corpus = Corpus(root=self.root, workloads=("a/b",), digest="d")
        return self.build.side("one").toolchain, corpus, self.launch, self.build.target()

    def compile(self, *, fresh: bool = False, reuse: bool = True) -> Any:
        return self.compiler(reuse=reuse).compile(*self.given, fresh=fresh)

    def recompile(self, attempt: int = 0, *, fresh: bool = False) -> Any:
        return self.compiler().recompile(*self.given, attempt=attempt, fresh=fresh)

    def asked(self, ask: Callable[[], object]) -> int:
        before = len(self.requests.rows)
        ask()
        return len(self.requests.rows) - before

    def damage(self, artifact: Artifact) -> None:
        self.store.object_path(artifact.digest).unlink()


@pytest.fixture
def bench(tmp_path: Path, build: Any, launch: Launch) -> Bench:
    return Bench(FakeRequests(), Store(tmp_path / "store"), build, launch, tmp_path)


# again, in another process


def test_each_attempt_is_made_once_with_addresses_randomized(bench: Bench) -> None:
    assert [bench.asked(lambda n=n: bench.recompile(n)) for n in (0, 1, 0, 1)] == [1, 1, 0, 0]
    assert bench.requests.randomized == [True, True]
    assert bench.asked(lambda: bench.recompile(0, fresh=True)) == 1


def test_a_compilation_is_not_taken_for_an_attempt(bench: Bench) -> None:
    bench.compile()
    assert bench.asked(bench.recompile) == 1
    assert bench.requests.randomized == [False, True]


# what assemblers made


def test_what_an_assembler_made_is_taken_unless_nothing_that_was_kept_is_trusted(bench: Bench) -> None:
    bench.compile()
    toolchain = bench.given[0]
    (row,) = bench.requests.rows
    assert row["assembled"] == str(bench.store.assembled)
    assert row["programs"] == dict(toolchain.programs)
    bench.compile(fresh=True)
    bench.compile(reuse=False)
    bench.recompile()
    assert len(bench.requests.rows) == 4
    assert not any("assembled" in row for row in bench.requests.rows[1:])


# what is not taken


def test_a_result_with_a_lost_artifact_counts_as_absent(bench: Bench) -> None:
    compiled = bench.compile()
    bench.damage(compiled.artifacts["ttir"])
    assert bench.asked(bench.compile) == 1
    assert bench.compile() == compiled


def test_a_damaged_record_counts_as_absent(bench: Bench) -> None:
    compiled = bench.compile()
    (path,) = bench.store.root.glob("records-*.sqlite3")
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        changed = connection.execute("UPDATE records SET value = substr(value, 2) WHERE kind = 'compiled'")
        assert changed.rowcount == 1
    assert bench.asked(bench.compile) == 1
    assert bench.compile() == compiled


def test_who_trusts_nothing_writes_what_is_there_anew(bench: Bench) -> None:
    compiled = bench.compile()
    path = bench.store.object_path(compiled.artifacts["ttir"].digest)
    path.write_bytes(b"damaged, and not empty")
    assert bench.asked(bench.compile) == 0
    assert bench.asked(lambda: bench.compile(fresh=True)) == 1
    assert bench.store.get(compiled.artifacts["ttir"].digest) == b"t"


def test_what_was_taken_from_the_store_is_counted(bench: Bench) -> None:
    bench.compile()
    compiler = bench.compiler()
    for taken in (1, 2):
        compiler.compile(*bench.given)
        assert compiler.taken_from_store == taken
    without = bench.compiler(reuse=False)
    without.compile(*bench.given)
    assert without.taken_from_store == 0


def test_the_dead_leave_what_they_had_finished(bench: Bench) -> None:
    bench.requests.dies = True
    bench.requests.leaves = {"ttir": b"t", "notes.txt": b"no stage"}
    made = bench.compile()
    assert isinstance(made, Failed)
    assert set(made.artifacts) == {"ttir"}
    assert made.stage_times_s == {}


# captures


def test_a_host_is_asked_to_capture_what_was_captured(bench: Bench) -> None:
    """A frontend that dies is left out of the capture, and then of every request for the same workload."""
    toolchain, corpus, launch, target = bench.given
    compiler = bench.compiler()
    assert compiler.selection(toolchain, corpus, "a/b", target).frontend
    bench.requests.dies = True
    compiler.catalog(toolchain, corpus, "a/b", target)
    assert not compiler.selection(toolchain, corpus, "a/b", target).frontend
    bench.requests.dies = False
    compiler.compile(toolchain, corpus, launch, target)
    assert bench.requests.rows[-1]["select"]["frontend"] is False
    assert compiler.selection(toolchain, corpus, "a/other", target).frontend
    elsewhere = replace(corpus, root=corpus.root / "of the other side")
    assert compiler.selection(toolchain, elsewhere, "a/b", target).frontend
