"""What a worker is told to run again, what is read of the folder that it leaves, and what is kept of it."""

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
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump, Replay, Replayed, Replayer, settings_change
from irdiff.capture.catalogs import Wanted
from irdiff.compile.worker_compiler import WorkerCompiler
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
class Bench:
    """Stands for requests to workers: leaves the files that it is told to."""

    store: Store
    replay: Replay
    files: dict[str, str | bytes] = field(default_factory=dict)
    ended: EndedChild = field(
        default_factory=lambda: EndedChild(signal=0, timed_out=False, worker_died=False)
    )
    asked: list[Mapping[str, Any]] = field(default_factory=list)
    timeout_s: float = 300.0
    reuse: bool = True
    environment_digest: str = "environment"

    @property
    def config(self) -> Any:
        return SimpleNamespace(limits=SimpleNamespace(timeout_s=self.timeout_s))

    def ask(
        self, _: Any, beside: Any, row: Mapping[str, Any], folder: Path, *, randomized: bool
    ) -> EndedChild:
        content = Path(row["input"]).read_bytes()
        self.asked.append({**row, "content": content, "beside": beside, "randomized": randomized})
        for name, made in self.files.items():
            (folder / name).write_bytes(made if isinstance(made, bytes) else made.encode())
        return self.ended

    def reports(self, outcome: str = "compiled", **more: Any) -> None:
        row = {"outcome": outcome, "message": "", "settings": {}, "assembler_flags": None, **more}
        self.files["result.json"] = json.dumps(row)

    def run(self, **changes: Any) -> Replayed:
        requests: Any = self
        compiler = WorkerCompiler(requests, self.store, Wanted(tiers=("gate",)), reuse=self.reuse)
        return Replayer(compiler).run(replace(self.replay, **changes))


@pytest.fixture
def bench(tmp_path: Path, build: Any) -> Bench:
    store = Store(tmp_path)
    replay = Replay(
        side=build.side(), launch=build.launch("matmul/tma:fp16@sm_90"), target=build.target(), stage="ttgir",
        input_stage="ttir", input_digest=store.put(b"entering"), metadata={"num_warps": 4},
    )  # fmt: skip
    made = Bench(store, replay, files={"ttgir": "made"})
    made.reports()
    return made


def test_a_stage_is_run_on_the_text_as_the_launch_was_captured(bench: Bench) -> None:
    assert bench.run() == Replayed(output=bench.store.put(b"made"), settings={})
    (row,) = bench.asked
    assert (row["op"], row["launch"], row["root"]) == ("replay", "matmul/tma:fp16", "/corpus")
    assert (row["stage"], row["input_stage"], row["content"]) == ("ttgir", "ttir", b"entering")
    assert (row["select"]["tiers"], row["metadata"], row["target"]["name"]) == (
        ("gate",),
        {"num_warps": 4},
        "sm_90",
    )


def test_what_a_replay_made_is_a_value_of_the_cache(bench: Bench) -> None:
    """Whoever asks: attribution runs a stage with its passes printed, a recheck needs its output alone."""
    bench.files |= {"passes": LOG}
    first = bench.run(dump=Dump.ALL, randomized=True)
    assert bench.run(randomized=True) == replace(first, states=())
    assert len(bench.asked) == 1
    for change in ({}, {"randomized": True, "attempt": 1}, {"metadata": {}}, {"dump": Dump.ALL}):
        bench.run(**change)
    assert len(bench.asked) == 5
    bench.reuse = False
    bench.run(randomized=True)
    bench.run(randomized=True, launch=replace(bench.replay.launch, digest=None))
    assert len(bench.asked) == 7


def test_an_output_that_is_gone_is_made_again(bench: Bench) -> None:
    first = bench.run()
    assert first.output is not None
    bench.store.object_path(first.output).unlink()
    assert bench.run() == first
    assert bench.store.get(first.output) == b"made"


def test_what_an_assembler_made_before_serves_swaps_and_no_recheck(bench: Bench) -> None:
    bench.run()
    assert bench.asked[0]["assembled"] == str(bench.store.assembled)
    assert bench.asked[0]["programs"] == dict(bench.replay.side.toolchain.programs)
    bench.run(randomized=True)
    bench.reuse = False
    bench.run()
    assert not any("assembled" in row for row in bench.asked[1:])
    assert [row["randomized"] for row in bench.asked] == [False, True, False]


@pytest.mark.parametrize(("limit", "given"), [(300.0, replayer.MAX_REPLAY_S), (7.0, 7.0)])
def test_a_replay_takes_no_longer_than_a_compilation_may(bench: Bench, limit: float, given: float) -> None:
    bench.timeout_s = limit
    bench.run()
    assert bench.asked[0]["timeout_s"] == given
    assert "cpu_s" not in bench.asked[0], "what the compilation took is not known"


def test_a_stage_gets_some_times_the_processor_time_that_it_took(bench: Bench) -> None:
    bench.files = {"stderr": "error: something"}
    bench.ended = replace(bench.ended, signal=signal.SIGXCPU)
    assert bench.run(compile_s=0.6).error == "no result in time"
    assert bench.asked[0]["cpu_s"] == 22


def test_a_workload_of_packages_is_run_beside_them(bench: Bench) -> None:
    packages = Packages(site=Path("/s"), imports=(), kernels=(), torch_compile=False, digest="")
    corpus = replace(bench.replay.side.corpus, packages={"matmul": packages})
    bench.run(side=replace(bench.replay.side, corpus=corpus))
    assert bench.asked[0]["beside"].packages is packages


def test_a_text_that_is_gone_is_reported_without_asking(bench: Bench) -> None:
    assert bench.run(input_digest="0" * 64).error == "the ttir artifact is gone from the store"
    assert bench.asked == []


# why there is nothing


@pytest.mark.parametrize(
    ("ended", "transient"),
    [({}, False), ({"signal": 24}, False), ({"timed_out": True}, True), ({"worker_died": True}, True)],
)
def test_what_this_machine_had_no_time_for_is_not_kept(
    bench: Bench, ended: dict[str, Any], transient: bool
) -> None:
    """A stage that takes many times the processor time of its compilation would do so again."""
    bench.files, bench.ended = {}, replace(bench.ended, **ended)
    found = bench.run()
    assert found.error
    assert found.transient is transient
    bench.run()
    assert len(bench.asked) == (2 if transient else 1)


@pytest.mark.parametrize(
    ("stderr", "why"),
    [
        (None, "it died without a word"),
        ("\n  first  \n last \n", "last"),
        ("input:3:1: error: unknown attribute\nmore", "unknown attribute"),
        ("first\nLLVM ERROR: out of registers\nmore", "LLVM ERROR: out of registers"),
        ("error: " + "x" * 400, "x" * 300),
    ],
)
@pytest.mark.parametrize("result", [None, "error"])
def test_the_line_that_says_why(bench: Bench, stderr: str | None, why: str, result: str | None) -> None:
    bench.files = {} if stderr is None else {"stderr": stderr}
    if result:
        bench.reports(result, message="an exception")
    found = bench.run(dump=Dump.ALL)
    assert (found.output, found.error, found.states) == (None, why, ())


def test_the_pass_that_was_running_is_the_last_that_printed_its_name(bench: Bench) -> None:
    bench.files["stderr"] = LOG + "python: Assertion `x' failed.\n"
    bench.reports(outcome="error", message="PassManager::run failed")
    assert bench.run(dump=Dump.NAMES).failed_in == "CSE"
    assert bench.run().failed_in is None


# what is read


@pytest.mark.parametrize(
    ("files", "dump", "names", "final"),
    [
        ({"passes": LOG, "passes.after": "end"}, Dump.ALL, ["Inline", "CSE", END], "end"),
        ({"passes": LOG, "passes.after": "end"}, Dump.FINAL, [], "end"),
        ({"stderr": LOG}, Dump.ALL, ["Inline", "CSE"], None),
        ({"passes": LOG, "stderr": LLVM_LOG}, Dump.LLVM, ["gvn", END], None),
        ({"passes": LOG + "\n" * 400, "passes.after": "m" * 600}, Dump.ALL, [], None),
    ],
    ids=["all", "final", "a release that knows no file for passes", "LLVM's", "too long a log"],
)
def test_the_states_between_passes_are_read_for_who_asks_for_them(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, files: Any, dump: Dump, names: list[str], final: str | None
) -> None:
    monkeypatch.setattr(replayer, "MAX_LOG_BYTES", 500)
    bench.files |= files
    found = bench.run(dump=dump)
    assert [state.name for state in found.states] == names
    assert (found.final and found.final.text) == final


def test_flags_of_llvm_and_of_the_assembler_are_kept_by_their_names(bench: Bench) -> None:
    bench.reports(settings={"opt": ["-O3"]}, assembler_flags=["/t/bin/ptxas-blackwell", "-v", "-O1"])
    assert bench.run().settings == {"opt": ["-O3"], "ptxas-blackwell": ["-v", "-O1"]}


@pytest.mark.parametrize(
    ("base", "head", "change"),
    [
        ({"ptxas": ["-v"]}, {"ptxas": ["-v"]}, ""),
        ({"ptxas": ["-v"]}, {"ptxas": ["-v", "--opt-level 1"]}, "ptxas: (none) → --opt-level 1"),
        ({"ptxas": ["-v -g"]}, {"ptxas": ["-v"]}, "ptxas: -g → (none)"),
        ({"a": ["1"], "b": ["1"]}, {"a": ["2"], "b": ["3"]}, "a: 1 → 2, b: 1 → 3"),
        ({"a": ["1"]}, {"b": ["1"]}, ""),
    ],
)
def test_only_what_one_side_is_called_with_is_noted(base: Any, head: Any, change: str) -> None:
    ours, theirs = (Replayed(output=None, settings=settings) for settings in (base, head))
    assert settings_change(ours, theirs) == change
