"""What is read of a stage that ran again, and what is kept of it."""

from dataclasses import dataclass, replace

import pytest

from irdiff.attribute import replayer as module
from irdiff.attribute.pass_states import END
from irdiff.attribute.replayer import Dump, Replay, Replayer
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EVERY_LAUNCH
from irdiff.store import Store
from tests.texts import text_of
from tests.unit import runs
from tests.unit.requests import FakeRequests

LOG = text_of("passes/mlir.log")
LLVM_LOG = text_of("passes/llvm.log")


@dataclass
class Stage:
    """A stage that can be run again, by a worker that leaves files."""

    store: Store
    requests: FakeRequests
    replay: Replay
    reuse: bool = True

    def run(self, **changes):
        compiler = WorkerCompiler(
            self.requests, self.store, replace(EVERY_LAUNCH, tiers=("gate",)), reuse=self.reuse
        )
        return Replayer(compiler).run(replace(self.replay, **changes))


@pytest.fixture
def stage(tmp_path, requests):
    requests.files = {"ttgir": "made"}
    store = Store(tmp_path)
    names = {"stage": "ttgir", "input_stage": "ttir", "input_digest": store.put(b"entering")}
    places = {"side": runs.side(), "launch": runs.launch("matmul/tma:fp16@sm_90"), "target": runs.target()}
    replay = Replay(metadata={"num_warps": 4}, **places, **names)
    return Stage(store, requests, replay)


def test_what_a_replay_made_is_a_value_of_the_cache(stage):
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


@pytest.mark.parametrize(
    ("ended", "transient"),
    [({}, False), ({"signal": 24}, False), ({"timed_out": True}, True), ({"worker_died": True}, True)],
)
def test_what_this_machine_had_no_time_for_is_not_kept(stage, ended, transient):
    """A stage that takes many times the processor time of its compilation would do so again."""
    stage.requests.files, stage.requests.result = {}, None
    stage.requests.ended = replace(stage.requests.ended, **ended)
    found = stage.run()
    assert found.error and found.transient is transient
    stage.run()
    assert len(stage.requests.rows) == (2 if transient else 1)


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
    stage, monkeypatch, files, dump, names, final
):
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 500)
    stage.requests.files |= files
    found = stage.run(dump=dump)
    assert [state.name for state in found.states] == names
    assert (found.final and found.final.text) == final
