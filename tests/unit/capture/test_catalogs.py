"""Launches are traced each time, but for those of a corpus that is all known by its content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.capture import catalogs
from irdiff.capture.catalogs import Capturer, Catalog, Selection, Wanted
from irdiff.model import Argument, Failure, FailureKind, Launch, Target, Toolchain
from irdiff.resolve.corpus import Corpus
from irdiff.store import Store
from irdiff.worker_client.workers import EndedChild

ENDED = EndedChild(signal=0, timed_out=False, worker_died=False)
TOOLCHAIN = Toolchain(
    spec="t",
    version="9",
    digest="t",
    path="/t",
    python="/t/bin/python",
    root="/t/triton",
    runtime={},
    programs={},
    notes=(),
)


class FakeRequests:
    """A worker that answers with what it was told to."""

    environment_digest = "c"

    def __init__(self) -> None:
        self.result: Mapping[str, Any] | None = {}
        self.asked: list[Mapping[str, Any]] = []

    def ask(self, toolchain: Toolchain, beside: object, row: Mapping[str, Any], folder: Path) -> EndedChild:
        self.asked.append(row)
        if self.result is not None:
            (folder / "result.json").write_text(json.dumps(self.result))
        return ENDED

    def failure(self, ended: EndedChild, result: Mapping[str, Any] | None, folder: Path) -> Failure:
        kind = FailureKind(result["outcome"]) if result else FailureKind.CRASH
        return Failure(kind=kind, stage="capture", message="why", signal=None, stderr="")


class Bench:
    def __init__(self, tmp_path: Path, launch: Launch) -> None:
        self.root = tmp_path / "corpus"
        (self.root / "a").mkdir(parents=True)
        (self.root / "a" / "b.py").write_text("BLOCK = 1\n")
        self.requests = FakeRequests()
        self.store = Store(tmp_path / "store")
        self.launch = launch
        self.selection = Selection(tiers=("gate",), labels=())
        self.says(launches=[self.row()])

    def row(self) -> dict[str, Any]:
        """What a worker says of the launch, the text of what is launched in its place."""
        return {**json.loads(json.dumps(asdict(self.launch))), "launched": "call 1"}

    def says(self, outcome: str = "captured", **more: Any) -> None:
        self.requests.result = {"outcome": outcome, "failures": [], **more}

    def catalog(
        self, *, toolchain: str = "t", corpus: str = "d", self_contained: bool = True, reuse: bool = True
    ) -> Catalog:
        requests: Any = self.requests
        asked = replace(TOOLCHAIN, digest=toolchain)
        target = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
        kernels = Corpus(root=self.root, workloads=("a/b",), digest=corpus, self_contained=self_contained)
        capturer = Capturer(requests, self.store, reuse=reuse)
        return capturer.catalog(asked, kernels, "a/b", target, self.selection)

    def asked(self, **more: Any) -> int:
        before = len(self.requests.asked)
        self.catalog(**more)
        return len(self.requests.asked) - before


@pytest.fixture
def bench(tmp_path: Path, launch: Launch) -> Bench:
    return Bench(tmp_path, launch)


def test_launches_are_traced_each_time(bench: Bench) -> None:
    """A workload may read anything: nobody knows when what it launched would not be launched again."""
    assert bench.catalog(self_contained=False).launches == (bench.launch,)
    assert bench.asked(self_contained=False) == 1
    bench.says(launches=[])
    assert bench.catalog(self_contained=False).launches == ()


def test_those_of_a_corpus_that_imports_nothing_else_are_kept(bench: Bench) -> None:
    first = bench.catalog()
    assert first.launches == (bench.launch,)
    assert bench.asked() == 0
    assert bench.catalog() == first


@pytest.mark.parametrize(
    "another", [{"corpus": "edited"}, {"toolchain": "edited"}, {"reuse": False}, {"self_contained": False}]
)
def test_another_corpus_or_toolchain_or_no_reuse_captures_anew(bench: Bench, another: dict[str, Any]) -> None:
    bench.catalog()
    assert bench.asked(**another) == 1
    assert bench.asked() == 0, "the earlier one is found again"


def test_another_selection_or_other_conditions_capture_anew(bench: Bench) -> None:
    bench.catalog()
    bench.selection = Selection(tiers=(), labels=())
    assert bench.asked() == 1
    bench.requests.environment_digest = "other code of the worker"
    assert bench.asked() == 1


@pytest.mark.parametrize(
    "said",
    [
        {"outcome": "error", "message": "No module named 'torch'", "transient": True},
        {"outcome": "memory", "message": "out of memory"},
        {
            "outcome": "captured",
            "launches": [],
            "failures": [{"id": "a/b:c", "expected": True, "message": "m", "transient": True}],
        },
    ],
    ids=["workload", "memory", "launch"],
)
def test_what_may_be_cured_is_not_kept(bench: Bench, said: dict[str, Any]) -> None:
    bench.says(**said)
    assert len(bench.catalog().failures) == 1
    bench.says(launches=[bench.row()])
    assert bench.catalog().launches == (bench.launch,)


def test_an_error_of_the_workload_itself_is_kept(bench: Bench) -> None:
    bench.says(outcome="error", message="ZeroDivisionError", transient=False)
    assert bench.catalog().failures[0].id == "a/b:*"
    assert bench.asked() == 0


def test_a_frontend_that_dies_is_left_to_the_cases(bench: Bench) -> None:
    """Each launch has a child of its own to die in then."""
    bench.requests.result = None
    found = bench.catalog()
    assert [row["select"]["frontend"] for row in bench.requests.asked] == [True, False]
    assert found.failures[0].failure.kind is FailureKind.CRASH
    assert not found.selection.frontend


@pytest.mark.parametrize("other_fails", [False, True])
def test_launches_of_one_name_are_a_failure(bench: Bench, other_fails: bool) -> None:
    """A label `a` of two kernels, and a label `a/k`: one of two launches would be dropped, edited or not."""
    one = {**bench.row(), "id": "a/b:a/k", "label": "a"}
    other = {**bench.row(), "id": "a/b:a/j", "label": "a"}
    second = {**one, "label": "a/k", "expected": False}
    failed = {"id": "a/b:a/k", "expected": True, "message": "no such option"}
    bench.says(
        launches=[one, other] if other_fails else [one, other, second], failures=[failed] * other_fails
    )
    found = bench.catalog()
    assert [row.id for row in found.launches] == ["a/b:a/j"]
    (failure,) = found.failures
    assert (failure.id, failure.expected, failure.failure.message) == (
        "a/b:a/k",
        True,
        "2 launches have this name and none is compared: rename one of the labels 'a', 'a/k'",
    )
    assert bench.catalog() == found, "from the store, too"


def test_what_is_wanted_of_a_workload() -> None:
    target = Target(name="sm_90", backend="cuda", arch=90, warp_size=32, title="", facts={}, sources={})
    wanted = Wanted(tiers=("gate",), cases=("a/b:fp16-*@sm_90", "a/b:x@gfx942", "c"))
    assert wanted.selection("a/b", target) == Selection(tiers=("gate",), labels=("fp16-*",))
    assert wanted.selection("c/d", target).labels == ()
    assert Wanted(cases=("a/b:x", "a/b")).selection("a/b", target).labels == ()


def test_launches_share_what_they_have_in_common_and_nothing_that_is_only_equal(launch: Launch) -> None:
    def argument(value: object) -> Argument:
        return Argument(
            name="n", kind="scalar", type="i32", value=value, dtype=None, shape=None, strides=None,  # type: ignore[arg-type]
            storage_offset=None, alias=None, fill=None, block_shape=None,
        )  # fmt: skip

    def captured(*values: object) -> Launch:
        given = replace(launch, arguments=tuple(map(argument, values)), options={"num_warps": "4"})
        found = catalogs._sharing(given)
        assert found == given
        return found

    one, other = captured(1, True, 0.0), captured(1.0, 1, -0.0)
    assert one.options is other.options
    assert one.arguments[0] is other.arguments[1]
    assert [repr(row.value) for row in (*one.arguments, *other.arguments)] == [
        "1", "True", "0.0", "1.0", "1", "-0.0",
    ]  # fmt: skip
