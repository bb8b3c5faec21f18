"""Binaries made later, compilations made again, and what of a damaged store is not taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture.catalogs import Wanted
from irdiff.compile.compiler import WorkerCompiler
from irdiff.model import Artifact, Compiled, Failed, Failure, FailureKind, Launch, Toolchain
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

ENDED = EndedChild(signal=0, timed_out=False, worker_died=False)


@dataclass
class FakeRequests:
    """A worker that leaves the artifacts it was told to, by operation, and a result unless it dies."""

    leaves: dict[str, Mapping[str, bytes]] = field(
        default_factory=lambda: {"compile": {"ttir": b"t", "ptx": b"p"}, "assemble": {"cubin": b"c"}}
    )
    after_binary: tuple[str, ...] = ()
    result: dict[str, Any] = field(default_factory=dict)
    dies: bool = False
    conditions: str = "c"
    places: Mapping[str, str] = field(default_factory=dict)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    randomized: list[bool] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)

    def ask(
        self, _: Toolchain, beside: object, row: Mapping[str, Any], folder: Path, *, randomized: bool = False
    ) -> EndedChild:
        self.rows.append(row)
        self.randomized.append(randomized)
        if "input" in row:
            self.inputs.append(Path(row["input"]).read_bytes())
        made = self.leaves.get(row["op"], {})
        stopped = () if row.get("assemble", True) else ("cubin", *self.after_binary)
        for name, content in made.items():
            if name not in stopped:
                (folder / name).write_bytes(content)
        if not self.dies:
            goes_on = bool(stopped and self.after_binary)
            self._leave_result(row["op"], folder, [name for name in made if name not in stopped], goes_on)
        return ENDED

    def _leave_result(self, operation: str, folder: Path, artifacts: list[str], goes_on: bool) -> None:
        plain = {
            "outcome": "compiled",
            "artifacts": artifacts,
            "times_s": {operation: 0.5},
            "cpu_s": {operation: 0.25},
            "metadata": {operation: 1},
            "assembler_flags": None,
            "assembler_log": operation,
            "notes": [operation],
            "entered": [f"triton/backends/nvidia/{operation}.py"],
            "goes_on": goes_on,
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

    def compile(self, *, assemble: bool = False, fresh: bool = False) -> Any:
        return self.compiler().compile(*self.given, assemble=assemble, fresh=fresh)

    def assemble(self, compiled: Compiled) -> Any:
        return self.compiler().assemble(*self.given, compiled)

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


# binaries


def test_a_binary_is_made_of_the_text_and_joins_what_was_there(bench: Bench) -> None:
    compiled = bench.compile()
    made = bench.assemble(compiled)
    assert bench.requests.inputs == [b"p"]
    row = bench.requests.rows[-1]
    assert (row["op"], row["stage"], row["metadata"]) == ("assemble", "cubin", {"compile": 1})
    assert set(made.artifacts) == {"ttir", "ptx", "cubin"}
    assert made.metadata == {"compile": 1, "assemble": 1}
    assert made.stage_times_s == {"compile": 0.5, "assemble": 0.5}
    assert made.stage_cpu_s == {"compile": 0.25, "assemble": 0.25}
    assert (made.notes, made.assembler_log) == (("compile",), "assemble")
    assert made.entered == ("triton/backends/nvidia/compile.py", "triton/backends/nvidia/assemble.py")
    assert bench.asked(lambda: bench.compile(assemble=True)) == 0
    assert bench.compile(assemble=True) == made


@pytest.mark.parametrize("texts", [{"cubin": b"c", "ptx": b"p"}, {"amdgcn": b"a", "hsaco": b"h"}])
def test_what_has_a_binary_or_needs_none_is_not_assembled(bench: Bench, texts: Mapping[str, bytes]) -> None:
    bench.requests.leaves["compile"] = texts
    compiled = bench.compile(assemble=True)
    assert bench.asked(lambda: bench.assemble(compiled)) == 0
    assert bench.assemble(compiled) is compiled


def test_a_text_that_is_gone_is_compiled_again_with_its_binary(bench: Bench) -> None:
    compiled = bench.compile()
    bench.damage(compiled.artifacts["ptx"])
    bench.requests.leaves["compile"] = {"ttir": b"t", "ptx": b"p", "cubin": b"c"}
    made = bench.assemble(compiled)
    assert bench.requests.rows[-1]["op"] == "compile"
    assert set(made.artifacts) == {"ttir", "ptx", "cubin"}
    assert bench.store.get(made.artifacts["ptx"].digest) == b"p"


def test_an_assembler_that_fails_leaves_the_texts_that_there_are(bench: Bench) -> None:
    compiled = bench.compile()
    bench.requests.leaves["assemble"] = {}
    bench.requests.result = {"outcome": "error", "curable": False, "times_s": {"cubin": 9.0}}
    made = bench.assemble(compiled)
    assert isinstance(made, Failed)
    assert set(made.artifacts) == {"ttir", "ptx"}
    assert made.stage_times_s == compiled.stage_times_s
    assert bench.asked(lambda: bench.compile(assemble=True)) == 0
    assert isinstance(bench.compile(assemble=True), Failed)


# again, in another process


def test_each_attempt_is_made_once_with_addresses_randomized(bench: Bench) -> None:
    bench.requests.leaves["compile"] = {"ptx": b"p", "cubin": b"c"}
    assert [bench.asked(lambda n=n: bench.recompile(n)) for n in (0, 1, 0, 1)] == [1, 1, 0, 0]
    assert bench.requests.randomized == [True, True]
    assert bench.asked(lambda: bench.recompile(0, fresh=True)) == 1
    assert bench.requests.rows[-1]["assemble"] is True


def test_a_compilation_is_not_taken_for_an_attempt(bench: Bench) -> None:
    bench.requests.leaves["compile"] = {"ptx": b"p", "cubin": b"c"}
    bench.compile(assemble=True)
    assert bench.asked(bench.recompile) == 1
    assert bench.requests.randomized == [False, True]


# what is not taken


def test_a_text_without_its_binary_is_not_taken_where_one_is_wanted(bench: Bench) -> None:
    bench.compile()
    assert bench.asked(bench.compile) == 0
    assert bench.requests.rows[-1]["assemble"] is False
    assert bench.asked(lambda: bench.compile(assemble=True)) == 1
    assert bench.requests.rows[-1]["assemble"] is True


def test_what_is_made_after_the_binary_is_compared_too(bench: Bench) -> None:
    """The first one stops, says that more was to come, and is made whole; others are not stopped any more."""
    bench.requests.leaves["compile"] = {"ptx": b"p", "cubin": b"c", "launcher_src": b"l"}
    bench.requests.after_binary = ("launcher_src",)
    compiler = bench.compiler()
    toolchain, corpus, launch, target = bench.given
    made = [
        compiler.compile(toolchain, corpus, each, target, assemble=False)
        for each in (launch, replace(launch, digest="other"))
    ]
    assert [row["assemble"] for row in bench.requests.rows] == [False, True, True]
    assert all("launcher_src" in one.artifacts and "cubin" in one.artifacts for one in made)
    assert bench.asked(bench.compile) == 0


def test_a_failure_has_no_binary_to_wait_for(bench: Bench) -> None:
    bench.requests.leaves["compile"] = {"ptx": b"p"}
    bench.requests.result = {"outcome": "error"}
    bench.compile()
    assert bench.asked(lambda: bench.compile(assemble=True)) == 0


def test_a_result_with_a_lost_artifact_counts_as_absent(bench: Bench) -> None:
    compiled = bench.compile()
    bench.damage(compiled.artifacts["ttir"])
    assert bench.asked(bench.compile) == 1
    assert bench.compile() == compiled


def test_who_trusts_nothing_writes_what_is_there_anew(bench: Bench) -> None:
    compiled = bench.compile()
    path = bench.store.object_path(compiled.artifacts["ttir"].digest)
    path.write_bytes(b"damaged, and not empty")
    assert bench.asked(bench.compile) == 0
    assert bench.asked(lambda: bench.compile(fresh=True)) == 1
    assert bench.store.get(compiled.artifacts["ttir"].digest) == b"t"


def _kept_as(bench: Bench, *, reuse: bool = True) -> str | None:
    toolchain, _, launch, target = bench.given
    return bench.compiler(reuse=reuse).kept_as(toolchain, launch, target)


def test_a_result_is_known_by_all_that_its_record_says(bench: Bench) -> None:
    assert _kept_as(bench) is None
    compiled = bench.compile()
    first = _kept_as(bench)
    toolchain, _, launch, target = bench.given
    assert first
    assert bench.compiler().kept_artifacts(toolchain, launch, target) == {
        stage: row.digest for stage, row in compiled.artifacts.items()
    }
    bench.assemble(compiled)
    assert _kept_as(bench) not in (None, first), "it has a binary now"
    assert _kept_as(bench, reuse=False) is None


def test_a_result_of_the_whole_toolchain_is_known_too(bench: Bench) -> None:
    bench.requests.result = {"entered": ["triton/language/core.py"]}
    bench.compile()
    assert _kept_as(bench)


def test_without_an_input_digest_nothing_is_kept(bench: Bench) -> None:
    bench.launch = replace(bench.launch, digest=None)
    bench.compile()
    assert _kept_as(bench) is None


def test_what_was_taken_from_the_store_is_counted(bench: Bench) -> None:
    bench.compile()
    compiler = bench.compiler()
    for taken in (1, 2):
        compiler.compile(*bench.given, assemble=False)
        assert compiler.taken_from_store == taken
    without = bench.compiler(reuse=False)
    without.compile(*bench.given, assemble=False)
    assert without.taken_from_store == 0


def test_the_dead_leave_what_they_had_finished(bench: Bench) -> None:
    bench.requests.dies = True
    bench.requests.leaves["compile"] = {"ttir": b"t", "notes.txt": b"no stage"}
    made = bench.compile()
    assert isinstance(made, Failed)
    assert set(made.artifacts) == {"ttir"}
    assert (made.entered, made.stage_times_s) == (None, {})


def test_another_file_that_stages_enter_is_added_to_those_that_are_known(bench: Bench) -> None:
    toolchain, _, _, target = bench.given
    for number, file in enumerate(
        ("triton/runtime/jit.py", "triton/runtime/autotuner.py", "triton/runtime/autotuner.py")
    ):
        bench.requests.result = {"entered": [file]}
        bench.launch = replace(bench.launch, digest=str(number))
        bench.compile()
    assert bench.compiler().entered_frontend(toolchain, target) == [
        "triton/runtime/autotuner.py",
        "triton/runtime/jit.py",
    ]


def test_before_any_compilation_nothing_is_known_of_the_layers(bench: Bench) -> None:
    toolchain, _, launch, target = bench.given
    assert not bench.compiler().keeps_below_frontend(toolchain, launch, target)
    assert bench.compiler().entered_frontend(toolchain, target) == []


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
    compiler.compile(toolchain, corpus, launch, target, assemble=False)
    assert bench.requests.rows[-1]["select"]["frontend"] is False
    assert compiler.selection(toolchain, corpus, "a/other", target).frontend
    elsewhere = replace(corpus, root=corpus.root / "of the other side")
    assert compiler.selection(toolchain, elsewhere, "a/b", target).frontend
