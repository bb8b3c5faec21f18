"""Launches are traced each time, but for those of a corpus that is all known by its content."""

import json
from dataclasses import asdict, replace

import pytest

from irdiff.capture.catalogs import Capturer
from irdiff.capture.selection import WorkloadSelection
from irdiff.model import FailureKind
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.store import Store
from tests.unit import runs
from tests.unit.golden import golden


class Captures:
    """One workload, captured by a worker that answers with what it is given."""

    def __init__(self, folder, launch, requests):
        self.root, self.store, self.launch, self.requests = folder, Store(folder / "store"), launch, requests
        self.selection = WorkloadSelection(tiers=("gate",), labels=())
        requests.files = {}
        # what a worker says of the launch, the text of what is launched in its place
        self.row = {**json.loads(json.dumps(asdict(launch))), "launched": "call 1"}
        self.answers(launches=[self.row])

    def answers(self, outcome="captured", **more):
        self.requests.result = {"outcome": outcome, "failures": [], **more}
        if outcome != "captured":
            self.requests.failed = FailureKind(outcome), "capture"

    def catalog(self, *, toolchain="t", corpus="d", self_contained=True, reuse=True):
        asked = replace(runs.side().toolchain, digest=toolchain)
        kernels = Corpus(root=self.root, workloads=("a/b",), digest=corpus, self_contained=self_contained)
        capturer = Capturer(self.requests, self.store, reuse=reuse)
        side = Side(toolchain=asked, corpus=kernels, note="")
        return capturer.catalog(side, "a/b", runs.target(), self.selection)

    def asked(self, **more):
        before = len(self.requests.rows)
        self.catalog(**more)
        return len(self.requests.rows) - before


@pytest.fixture
def captures(tmp_path, launch, requests):
    return Captures(tmp_path, launch, requests)


def test_those_of_a_corpus_that_imports_nothing_else_are_kept(captures):
    first = captures.catalog()
    assert first.launches == (captures.launch,)
    assert captures.asked() == 0 and captures.catalog() == first
    for another in ({"corpus": "e"}, {"toolchain": "e"}, {"reuse": False}, {"self_contained": False}):
        assert captures.asked(**another) == 1, "a workload may read anything"
    assert captures.asked() == 0, "the earlier one is found again"
    captures.selection = WorkloadSelection(tiers=(), labels=())
    assert captures.asked() == 1
    captures.requests.environment_digest = "other code of the worker"
    assert captures.asked() == 1


@pytest.mark.parametrize("row", golden("kept")["captured"], ids=str)
def test_what_may_be_cured_is_not_kept(captures, row):
    answer = row["answer"]
    captures.answers(**answer)
    (failure,) = captures.catalog().failures
    assert failure.id == ("a/b:c" if "launches" in answer else "a/b:*")
    captures.answers(launches=[captures.row])
    assert captures.catalog().launches == (() if row["kept"] else (captures.launch,))


def test_a_frontend_that_dies_is_left_to_the_cases(captures):
    """Each launch has a child of its own to die in then."""
    captures.requests.result = None
    found = captures.catalog()
    assert [row["select"]["frontend"] for row in captures.requests.rows] == [True, False]
    failure = found.failures[0].failure
    assert (failure.kind, failure.stage) == (FailureKind.CRASH, "capture"), "the program failed, not a kernel"
    assert (found.selection.frontend, found.undigested) == (False, "why")
    assert captures.asked() == 2, "not kept: the next time it may not die"
