"""What a worker is asked to run again, what is read of the folder that it leaves, and what is kept of it."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.attribute import replayer as module
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump, Replay, Replayed, Replayer, settings_change
from irdiff.capture.catalogs import Wanted
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.resolve.corpus import Packages
from irdiff.store import Store
from tests.unit import runs
from tests.unit.requests import COMPILED, FakeRequests

LOG = (
    "// -----// IR Dump Before Inline: inline{a=1} ('builtin.module' operation) //----- //\nmodule { one }\n"
    "// -----// IR Dump Before CSE: cse ('builtin.module' operation) //----- //\nmodule { two }\n"
)
LLVM_LOG = (
    "; *** IR Dump After sroa on k ***\ndefine void @k() {\n  ret void\n}\n"
    "; *** IR Dump After gvn on k ***\ndefine void @k() {\n  unreachable\n}\n"
)


@dataclass
class Stage:
    """A stage that can be run again, by a worker that leaves files."""

    store: Store
    requests: FakeRequests
    replay: Replay
    reuse: bool = True

    def run(self, **changes: Any) -> Replayed:
        given: Any = self.requests
        compiler = WorkerCompiler(given, self.store, Wanted(tiers=("gate",)), reuse=self.reuse)
        return Replayer(compiler).run(replace(self.replay, **changes))


@pytest.fixture
def stage(tmp_path: Path, requests: FakeRequests) -> Stage:
    requests.files = {"ttgir": "made"}
    store = Store(tmp_path)
    names = {"stage": "ttgir", "input_stage": "ttir", "input_digest": store.put(b"entering")}
    places: Any = {
        "side": runs.side(),
        "launch": runs.launch("matmul/tma:fp16@sm_90"),
        "target": runs.target(),
    }
    replay = Replay(metadata={"num_warps": 4}, **places, **names)
    return Stage(store, requests, replay)


def test_a_stage_is_run_on_the_text_as_the_launch_was_captured(stage: Stage) -> None:
    packages = Packages(site=Path("/s"), imports=(), kernels=(), torch_compile=False, digest="")
    corpus = replace(stage.replay.side.corpus, packages={"matmul": packages})
    side = replace(stage.replay.side, corpus=corpus)
    assert stage.run(side=side) == Replayed(output=stage.store.put(b"made"), settings={})
    (row,) = stage.requests.rows
    wanted = {"op": "replay", "launch": "matmul/tma:fp16", "root": "/corpus", "content": b"entering"}
    wanted |= {"stage": "ttgir", "input_stage": "ttir", "metadata": {"num_warps": 4}}
    assert wanted.items() <= row.items()
    assert (row["select"]["tiers"], row["target"]["name"]) == (("gate",), "sm_90")
    assert row["beside"].packages is packages


def test_what_a_replay_made_is_a_value_of_the_cache(stage: Stage) -> None:
    """Whoever asks: attribution runs a stage with its passes printed, a recheck needs its output alone."""
    rows = stage.requests.rows
    stage.requests.files |= {"passes": LOG}
    first = stage.run(dump=Dump.ALL, randomized=True)
    assert stage.run(randomized=True) == replace(first, states=())
    assert len(rows) == 1
    for change in ({}, {"randomized": True, "attempt": 1}, {"metadata": {}}, {"dump": Dump.ALL}):
        stage.run(**change)
    assert len(rows) == 5
    stage.reuse = False
    stage.run(randomized=True)
    stage.run(randomized=True, launch=replace(stage.replay.launch, digest=None))
    assert len(rows) == 7
    assert first.output is not None
    stage.reuse = True
    stage.store.object_path(first.output).unlink()
    assert stage.run().output == first.output
    assert stage.store.get(first.output) == b"made", "an output that is gone is made again"


def test_what_an_assembler_made_before_serves_swaps_and_no_recheck(stage: Stage) -> None:
    stage.run()
    stage.run(randomized=True)
    stage.reuse = False
    stage.run()
    first, *others = stage.requests.rows
    assert first["assembled"] == str(stage.store.assembled)
    assert first["programs"] == dict(stage.replay.side.toolchain.programs)
    assert not any("assembled" in row for row in others)
    assert [row["randomized"] for row in others] == [True, False]


def test_a_replay_takes_no_longer_than_a_compilation_may(stage: Stage) -> None:
    stage.requests.files, stage.requests.result = {"stderr": "error: something"}, None
    stage.requests.ended = replace(stage.requests.ended, signal=signal.SIGXCPU)
    stage.run(metadata={})
    stage.requests.timeout_s = 7.0
    assert stage.run(compile_s=0.6).error == "no result in time"
    first, second = stage.requests.rows
    assert (first["timeout_s"], "cpu_s" in first) == (module.MAX_REPLAY_S, False)
    assert (second["timeout_s"], second["cpu_s"]) == (7.0, 22), "some times what the compilation took"


def test_a_text_that_is_gone_is_reported_without_asking(stage: Stage) -> None:
    assert stage.run(input_digest="0" * 64).error == "the ttir artifact is gone from the store"
    assert stage.requests.rows == []


# why there is nothing


@pytest.mark.parametrize(
    ("ended", "transient"),
    [({}, False), ({"signal": 24}, False), ({"timed_out": True}, True), ({"worker_died": True}, True)],
)
def test_what_this_machine_had_no_time_for_is_not_kept(stage: Stage, ended: Any, transient: bool) -> None:
    """A stage that takes many times the processor time of its compilation would do so again."""
    stage.requests.files, stage.requests.result = {}, None
    stage.requests.ended = replace(stage.requests.ended, **ended)
    found = stage.run()
    assert found.error and found.transient is transient
    stage.run()
    assert len(stage.requests.rows) == (2 if transient else 1)


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
@pytest.mark.parametrize("result", [None, {**COMPILED, "outcome": "error"}])
def test_the_line_that_says_why(stage: Stage, stderr: str | None, why: str, result: Any) -> None:
    stage.requests.files = {} if stderr is None else {"stderr": stderr}
    stage.requests.result = result
    found = stage.run(dump=Dump.ALL)
    assert (found.output, found.error, found.states, found.failed_in) == (None, why, (), None)
    stage.requests.files["stderr"] = LOG + "python: Assertion `x' failed.\n"
    assert stage.run(dump=Dump.NAMES).failed_in == "CSE", "the last that printed its name"


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
    stage: Stage, monkeypatch: pytest.MonkeyPatch, files: Any, dump: Dump, names: list[str], final: str | None
) -> None:
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 500)
    stage.requests.files |= files
    found = stage.run(dump=dump)
    assert [state.name for state in found.states] == names
    assert (found.final and found.final.text) == final


def test_flags_are_kept_by_their_names_and_only_what_one_side_is_called_with_is_noted(stage: Stage) -> None:
    flags = ["/t/bin/ptxas-blackwell", "-v", "-O1"]
    stage.requests.result = {**COMPILED, "settings": {"opt": ["-O3"]}, "assembler_flags": flags}
    assert stage.run().settings == {"opt": ["-O3"], "ptxas-blackwell": ["-v", "-O1"]}
    for base, head, change in (
        ({"ptxas": ["-v"]}, {"ptxas": ["-v"]}, ""),
        ({"ptxas": ["-v"]}, {"ptxas": ["-v", "--opt-level 1"]}, "ptxas: (none) → --opt-level 1"),
        ({"a": ["1"], "b": ["1"]}, {"a": ["2"], "b": ["3"]}, "a: 1 → 2, b: 1 → 3"),
        ({"a": ["1"]}, {"b": ["1"]}, ""),
    ):
        ours, theirs = (Replayed(output=None, settings=settings) for settings in (base, head))
        assert settings_change(ours, theirs) == change
