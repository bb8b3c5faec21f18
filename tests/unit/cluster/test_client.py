"""A cluster that loses, refuses or forgets batches, and what is said of it. The comparison itself follows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from irdiff import config as configuration
from irdiff.cluster import client, on_worker
from irdiff.cluster.batches import Batch, Worked, parts
from irdiff.config import Config, SharedStoreConfig, StoreMode
from irdiff.errors import NothingComparedError, UsageError
from irdiff.model import DEFAULT_OPTIONS, Sides, Toolchain
from irdiff.parallel import Progress
from irdiff.pipeline import Comparison
from irdiff.resolve import corpus as corpora


@dataclass
class FakeCluster:
    """Refuses or forgets batches as it was told, by name; a batch that it was told nothing of is worked on."""

    answers: dict[str, str | None] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    seen: list[bool] = field(default_factory=list)

    def work(self, work: Callable[[Batch], Worked], batches: Sequence[Batch]) -> Iterator[list[Worked]]:
        assert work is on_worker.work
        self.batches += batches
        self.seen += [Path(batch.token).exists() for batch in batches if batch.token]
        for batch in batches:
            answer = self.answers.get(batch.name, "")
            if answer is not None:
                yield [Worked(name=batch.name, cases=1, refused=answer, wall_s=0.1)]

    def workers(self) -> int:
        return 3


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return configuration.load(cache=tmp_path / "cache")


@pytest.fixture
def asked(tmp_path: Path, build: Any) -> Comparison:
    for name in ("f/one.py", "f/two.py"):
        path = tmp_path / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("LAUNCHES = {}\n")
    corpus = corpora.load(tmp_path / "corpus")
    sides = Sides(base=build.side("base", corpus=corpus), head=build.side("head", corpus=corpus))
    targets = (build.target("sm_90"), build.target("gfx942"))
    return Comparison(sides=sides, targets=targets, options=DEFAULT_OPTIONS, command=())


def quiet(_: Progress) -> None:
    """No progress."""


NAMES = ["f/one@sm_90", "f/one@gfx942", "f/two@sm_90", "f/two@gfx942"]


def test_a_part_is_one_workload_for_one_target_under_the_same_digests(asked: Comparison) -> None:
    found = dict(parts(asked))
    assert list(found) == NAMES
    part = found["f/two@gfx942"]
    assert [target.name for target in part.targets] == ["gfx942"]
    assert part.sides.map(lambda side: side.corpus.workloads) == Sides(base=("f/two",), head=("f/two",))
    assert part.sides.base.corpus.digest == asked.sides.base.corpus.digest
    assert part.options == asked.options


def test_only_parts_that_are_asked_for(asked: Comparison) -> None:
    asked = replace(asked, options=replace(DEFAULT_OPTIONS, cases=("f/two",)))
    assert [name for name, _ in parts(asked)] == NAMES[2:]


def test_parts_of_long_files_come_first_and_of_lost_ones_last(asked: Comparison) -> None:
    root = asked.sides.base.corpus.root
    (root / "f" / "two.py").write_text("LAUNCHES = {}  # more\n")
    assert [name for name, _ in parts(asked)] == NAMES[2:] + NAMES[:2]
    (root / "f" / "two.py").unlink()
    assert [name for name, _ in parts(asked)] == NAMES


def test_all_that_comes_back_needs_no_note(asked: Comparison, config: Config) -> None:
    told: list[Progress] = []
    cluster = FakeCluster()
    assert client.fill(asked, config, cluster, told.append) == ()
    assert [batch.name for batch in cluster.batches] == NAMES
    assert (told[-1].done, told[-1].total, told[-1].detail) == (4, 4, "3 workers")
    assert all(cluster.seen)
    assert list(config.cache.iterdir()) == []  # the token is gone


def test_what_does_not_come_back_is_told_and_made_here(asked: Comparison, config: Config) -> None:
    answers = {NAMES[0]: "another toolchain here", NAMES[2]: None}
    (note,) = client.fill(asked, config, FakeCluster({**answers}), quiet)
    assert note == "cluster: 2 of 4 batches were made here instead: another toolchain here"
    (note,) = client.fill(asked, config, FakeCluster(dict.fromkeys(NAMES)), quiet)
    assert note == "cluster: 4 of 4 batches were made here instead: nothing came back for 900 s"


def test_shards_are_for_machines_that_know_nothing_of_each_other(asked: Comparison, config: Config) -> None:
    asked = replace(asked, options=replace(DEFAULT_OPTIONS, shard=(1, 2)))
    with pytest.raises(UsageError, match="exclude each other"):
        client.fill(asked, config, FakeCluster(), quiet)


# on a machine


@pytest.fixture
def batch(asked: Comparison, config: Config, tmp_path: Path) -> Batch:
    token = tmp_path / "token"
    token.touch()
    name, part = parts(asked)[0]
    return Batch(
        name=name,
        comparison="first",
        asked=part,
        cache=config.cache,
        token=str(token),
        store_url=None,
        limits=config.limits,
    )


@dataclass
class FakeMachine:
    """Toolchains are found as they are; nothing is compiled."""

    opened: list[tuple[Config, Any]] = field(default_factory=list)
    """The configuration of each comparison, and its processes that stay."""
    filled: list[tuple[Comparison, Config]] = field(default_factory=list)
    """Parts, and what they were worked on with."""
    closed: list[Config] = field(default_factory=list)
    resolved: list[str] = field(default_factory=list)

    @contextmanager
    def open(self, _: Comparison, config: Config, report: Any, *, warm: Any) -> Iterator[Config]:
        self.opened.append((config, warm))
        yield config
        self.closed.append(config)

    def fill(self, part: Comparison, steps: Config) -> int:
        self.filled.append((part, steps))
        return 1


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, asked: Comparison) -> FakeMachine:
    known = {side.toolchain.spec: side.toolchain for side in asked.sides}
    made = FakeMachine()

    def resolve(spec: str, _: Config) -> Toolchain:
        made.resolved.append(spec)
        return known[spec]

    monkeypatch.setattr(on_worker.pipeline, "opened", made.open)
    monkeypatch.setattr(on_worker.pipeline, "fill", made.fill)
    monkeypatch.setattr(on_worker.toolchains, "resolve", resolve)
    monkeypatch.setattr(on_worker, "Workers", lambda _: object())
    monkeypatch.setattr(on_worker, "_warm", {})
    monkeypatch.setattr(on_worker, "_opened", [])
    return made


def test_a_machine_looks_once_at_what_the_batches_of_a_comparison_share(
    batch: Batch, asked: Comparison, machine: FakeMachine
) -> None:
    for name, part in parts(asked):
        worked = on_worker.work(replace(batch, name=name, asked=part))
        assert (worked.name, worked.cases, worked.refused) == (name, 1, "")
    assert [part for part, _ in machine.filled] == [part for _, part in parts(asked)]
    assert machine.resolved == [side.toolchain.spec for side in asked.sides]
    assert [config.cache for config, _ in machine.opened] == [batch.cache]


def test_another_comparison_is_looked_at_anew_by_processes_that_stay(
    batch: Batch, machine: FakeMachine
) -> None:
    for comparison in ("first", "second"):
        assert on_worker.work(replace(batch, comparison=comparison)).refused == ""
    (first, its), (second, theirs) = machine.opened
    assert its is theirs
    assert machine.closed == [first]
    assert machine.filled[1][1] is second
    assert len(machine.resolved) == 4


def test_a_machine_without_the_same_folder_refuses(batch: Batch, machine: FakeMachine) -> None:
    assert "not the same folder" in on_worker.work(replace(batch, token="/nowhere")).refused
    assert machine.filled == []


def test_a_machine_with_another_toolchain_refuses(
    batch: Batch, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, build: Any
) -> None:
    other = replace(build.side("base").toolchain, digest="0" * 64)
    monkeypatch.setattr(on_worker.toolchains, "resolve", lambda *_: other)
    for _ in range(2):
        assert "another toolchain here" in on_worker.work(batch).refused
    assert machine.filled == []


def test_a_machine_with_another_corpus_refuses(batch: Batch, machine: FakeMachine) -> None:
    root = batch.asked.sides.base.corpus.root
    (root / "f" / "one.py").write_text("LAUNCHES = {1: 2}\n")
    assert "another corpus" in on_worker.work(batch).refused


def test_a_shared_store_must_be_the_same_and_is_written(
    batch: Batch, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = replace(batch, token=None, store_url="s3://bucket/path")
    assert "IRDIFF_STORE is not s3://bucket/path" in on_worker.work(far).refused
    monkeypatch.setenv("IRDIFF_STORE", "s3://bucket/path")
    assert on_worker.work(far).refused == ""
    store: SharedStoreConfig = machine.opened[0][0].shared_store
    assert store.mode is StoreMode.WRITE


def test_a_part_of_which_nothing_can_be_compared_is_done(
    batch: Batch, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: Any, **__: Any) -> None:
        raise NothingComparedError("nothing was compared")

    monkeypatch.setattr(on_worker.pipeline, "fill", nothing)
    worked = on_worker.work(batch)
    assert (worked.cases, worked.refused) == (0, "")
