"""What a worker is told to run again, and what is read of the folder that it leaves."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff.attribute import replayer
from irdiff.attribute.passes import END
from irdiff.attribute.replayer import Dump, Replay, Replayed, WorkerReplayer, settings_change
from irdiff.capture.catalogs import Wanted
from irdiff.resolve.corpus import Packages
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

LOG = (
    "// -----// IR Dump Before Inline: inline{a=1} ('builtin.module' operation) //----- //\nmodule { one }\n"
    "// -----// IR Dump Before CSE: cse ('builtin.module' operation) //----- //\nmodule { two }\n"
)
LLVM_LOG = (
    "; *** IR Dump After sroa on k ***\ndefine void @k() {\n  ret void\n}\n"
    "; *** IR Dump After gvn on k ***\ndefine void @k() {\n  unreachable\n}\n"
)


@dataclass
class FakeWorkers:
    """Stands for the pool and for each of its workers: leaves the files that it was told to."""

    files: dict[str, str | bytes] = field(default_factory=dict)
    timed_out: bool = False
    worker_died: bool = False
    signal: int = 0
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    beside: list[Any] = field(default_factory=list)
    inputs: list[bytes] = field(default_factory=list)
    randomized: list[bool] = field(default_factory=list)

    def get(self, toolchain: Any, beside: Any = None, *, randomized: bool = False) -> FakeWorkers:
        self.beside.append(beside)
        self.randomized.append(randomized)
        return self

    def request(self, row: Mapping[str, Any]) -> EndedChild:
        self.asked.append(row)
        self.inputs.append(Path(row["input"]).read_bytes())
        for name, content in self.files.items():
            made = content if isinstance(content, bytes) else content.encode()
            (Path(row["folder"]) / name).write_bytes(made)
        return EndedChild(signal=self.signal, timed_out=self.timed_out, worker_died=self.worker_died)

    def says(self, outcome: str = "compiled", **more: Any) -> None:
        row = {"outcome": outcome, "message": "", "settings": {}, "assembler_flags": None, **more}
        self.files["result.json"] = json.dumps(row)


@dataclass
class Bench:
    store: Store
    workers: FakeWorkers
    replay: Replay
    timeout_s: float = 300.0
    reuse: bool = True

    def run(self, dump: Dump = Dump.NONE) -> Replayed:
        limits = SimpleNamespace(timeout_s=self.timeout_s, memory_bytes=1 << 30)
        config: Any = SimpleNamespace(limits=limits, jobs=2)
        workers: Any = self.workers
        wanted = Wanted(tiers=("gate",))
        replayer = WorkerReplayer(config, self.store, workers, wanted, reuse=self.reuse)
        return replayer.run(replace(self.replay, dump=dump))


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    store = Store(tmp_path)
    workers = FakeWorkers(files={"ttgir": "made"})
    workers.says()
    replay = Replay(
        side=build.side(),
        launch_id="matmul/tma:fp16",
        target=build.target(),
        stage="ttgir",
        input_stage="ttir",
        input_digest=store.put(b"entering"),
        metadata={"num_warps": 4},
        dump=Dump.NONE,
        randomized=False,
    )
    return Bench(store, workers, replay)


def test_a_stage_is_run_on_the_text_as_the_launch_was_captured(bench: Bench) -> None:
    assert bench.run() == Replayed(
        output=b"made", error="", states=(), final=None, settings={}, failed_in=None
    )
    (row,) = bench.workers.asked
    assert (row["op"], row["launch"], row["stage"], row["input_stage"]) == (
        "replay",
        "matmul/tma:fp16",
        "ttgir",
        "ttir",
    )
    assert (row["select"]["tiers"], row["metadata"], row["root"]) == (("gate",), {"num_warps": 4}, "/corpus")
    assert row["target"]["name"] == "sm_90"
    assert bench.workers.inputs == [b"entering"]
    assert not Path(row["folder"]).exists()


def test_what_an_assembler_made_before_is_taken_unless_it_is_asked_anew(bench: Bench) -> None:
    bench.run()
    (row,) = bench.workers.asked
    assert row["assembled"] == str(bench.store.assembled)
    assert row["programs"] == dict(bench.replay.side.toolchain.programs)
    bench.reuse = False
    bench.run()
    bench.reuse, bench.replay = True, replace(bench.replay, randomized=True)
    bench.run()
    assert not any("assembled" in row for row in bench.workers.asked[1:])


def test_it_runs_in_the_worker_of_the_addresses_that_are_asked_for(bench: Bench) -> None:
    bench.run()
    bench.replay = replace(bench.replay, randomized=True)
    bench.run()
    assert bench.workers.randomized == [False, True]


@pytest.mark.parametrize(("limit", "given"), [(300.0, replayer.MAX_REPLAY_S), (7.0, 7.0)])
def test_a_replay_takes_no_longer_than_a_compilation_may(bench: Bench, limit: float, given: float) -> None:
    bench.timeout_s = limit
    bench.run()
    assert bench.workers.asked[0]["timeout_s"] == given


def test_a_stage_gets_some_times_the_processor_time_that_it_took(bench: Bench) -> None:
    bench.run()
    assert "cpu_s" not in bench.workers.asked[0], "what it took is not known"
    bench.replay = replace(bench.replay, compile_s=0.6)
    bench.workers.files, bench.workers.signal = {"stderr": "error: something"}, signal.SIGXCPU
    assert bench.run().error == "no result in time"
    assert bench.workers.asked[1]["cpu_s"] == 22


def test_a_workload_of_packages_is_run_beside_them(bench: Bench) -> None:
    packages = Packages(site=Path("/s"), imports=(), kernels=(), torch_compile=False, digest="")
    corpus = replace(bench.replay.side.corpus, packages={"matmul": packages})
    bench.replay = replace(bench.replay, side=replace(bench.replay.side, corpus=corpus))
    bench.run()
    assert bench.workers.beside[0].packages is packages


def test_a_text_that_is_gone_is_told_without_asking(bench: Bench) -> None:
    bench.replay = replace(bench.replay, input_digest="0" * 64)
    found = bench.run()
    assert (found.output, found.error) == (None, "the ttir artifact is gone from the store")
    assert bench.workers.asked == []


# why there is nothing


def test_a_replay_that_took_too_long_says_so(bench: Bench) -> None:
    bench.workers.files, bench.workers.timed_out = {"stderr": "error: something"}, True
    assert bench.run().error == "no result in time"


@pytest.mark.parametrize(
    ("ended", "transient"),
    [({}, False), ({"signal": 24}, False), ({"timed_out": True}, True), ({"worker_died": True}, True)],
)
def test_what_this_machine_had_no_time_for_may_be_told_by_another_attempt(
    bench: Bench, ended: dict[str, Any], transient: bool
) -> None:
    """A stage that takes many times the processor time of its compilation would do so again."""
    bench.workers = replace(bench.workers, files={}, **ended)
    found = bench.run()
    assert found.error
    assert found.may_be_cured is transient


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        (None, "it died without a word"),
        ("", "it died without a word"),
        ("\n  first  \n last \n", "last"),
        ("input:3:1: error: unknown attribute\nmore", "unknown attribute"),
        ("first\nLLVM ERROR: out of registers\nmore", "LLVM ERROR: out of registers"),
        ("error: " + "x" * 400, "x" * 300),
    ],
)
@pytest.mark.parametrize("result", [None, "error"])
def test_the_line_that_says_why_is_told(
    bench: Bench, stderr: str | None, why: str, result: str | None
) -> None:
    bench.workers.files = {} if stderr is None else {"stderr": stderr}
    if result:
        bench.workers.says(result, message="an exception")
    found = bench.run(Dump.ALL)
    assert (found.output, found.error, found.states) == (None, why, ())


# what is read


def test_the_states_between_passes_are_read_for_who_asks_for_them(bench: Bench) -> None:
    bench.workers.files |= {"passes": LOG, "passes.after": "module { end }"}
    assert [(s.name, s.text) for s in bench.run(Dump.ALL).states] == [
        ("Inline", "module { one }"),
        ("CSE", "module { two }"),
        (END, "module { end }"),
    ]
    for dump in (Dump.NONE, Dump.FINAL):
        found = bench.run(dump)
        assert found.states == ()
        assert found.final is not None
        assert found.final.text == "module { end }"


def test_a_release_that_knows_no_file_for_them_prints_them(bench: Bench) -> None:
    bench.workers.files |= {"stderr": LOG}
    found = bench.run(Dump.ALL)
    assert [state.name for state in found.states] == ["Inline", "CSE"]
    assert found.final is None


def test_llvms_passes_are_read_from_what_it_printed(bench: Bench) -> None:
    bench.workers.files |= {"passes": LOG, "stderr": LLVM_LOG}
    assert [state.name for state in bench.run(Dump.LLVM).states] == ["gvn", END]


def test_a_log_that_is_too_long_is_not_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replayer, "MAX_LOG_BYTES", len(LOG))
    bench.workers.files |= {"passes": LOG, "passes.after": "m" * len(LOG)}
    assert len(bench.run(Dump.ALL).states) == 3
    bench.workers.files |= {"passes": LOG + "\n", "passes.after": "m" * (len(LOG) + 1)}
    found = bench.run(Dump.ALL)
    assert (found.states, found.final) == ((), None)


# what a stage was called with


def test_flags_of_llvm_and_of_the_assembler_are_kept_by_their_names(bench: Bench) -> None:
    bench.workers.says(settings={"opt": ["-O3"]}, assembler_flags=["/t/bin/ptxas-blackwell", "-v", "-O1"])
    assert bench.run().settings == {"opt": ["-O3"], "ptxas-blackwell": ["-v", "-O1"]}


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        ({"ptxas": ["-v"]}, {"ptxas": ["-v"]}, ""),
        ({"ptxas": ["-v"]}, {"ptxas": ["-v", "--opt-level 1"]}, "ptxas: (none) → --opt-level 1"),
        ({"ptxas": ["-v -g"]}, {"ptxas": ["-v"]}, "ptxas: -g → (none)"),
        ({"a": ["1"], "b": ["1"]}, {"a": ["2"], "b": ["3"]}, "a: 1 → 2, b: 1 → 3"),
        ({"a": ["1"]}, {"b": ["1"]}, ""),
    ],
)
def test_only_what_one_side_is_called_with_is_told(
    base: dict[str, list[str]], head: dict[str, list[str]], told: str
) -> None:
    ours, theirs = (
        Replayed(output=b"", error="", states=(), final=None, settings=settings, failed_in=None)
        for settings in (base, head)
    )
    assert settings_change(ours, theirs) == told


def test_the_pass_that_was_running_is_the_last_that_printed_its_name(bench: Bench) -> None:
    heading = "// -----// IR Dump Before {} ({}) ('builtin.module' operation) //----- //\nmodule {{}}\n"
    log = heading.format("TritonGPUCoalesce", "tritongpu-coalesce")
    log += heading.format("TritonGPUPipeline", "tritongpu-pipeline") + "python: Assertion `x' failed.\n"
    bench.workers.files["stderr"] = log
    bench.workers.says(outcome="error", message="PassManager::run failed")
    assert bench.run(Dump.NAMES).failed_in == "TritonGPUPipeline"
    assert bench.run(Dump.NONE).failed_in is None
