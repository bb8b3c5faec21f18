"""A cluster that loses, refuses or forgets batches, and the notes of that. The comparison itself follows."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.cluster import batches
from irdiff.cluster.batches import Batch, parts
from irdiff.comparison import Comparison
from irdiff.model import DEFAULT_OPTIONS, Sides
from irdiff.resolve import corpus as corpora
from tests.unit import runs

NAMES = ["f/one@sm_90", "f/one@gfx942", "f/two@sm_90", "f/two@gfx942"]


@dataclass
class FakeCluster:
    """Refuses batches with a reason, or forgets them (None), by name; works on the others."""

    answers: dict[str, str | None] = field(default_factory=dict)
    own_jobs = None
    batches: list[Batch] = field(default_factory=list)

    def work(self, _, batches):
        assert all(Path(batch.token or "").exists() for batch in batches)
        self.batches += batches
        for batch in batches:
            answer = self.answers.get(batch.name, "")
            if answer is not None:
                yield [answer]

    def workers(self):
        return 3


@pytest.fixture
def config(tmp_path):
    return configuration.load(cache=tmp_path / "cache")


@pytest.fixture
def asked(tmp_path):
    (tmp_path / "corpus" / "f").mkdir(parents=True)
    for name in ("one", "two"):
        (tmp_path / "corpus" / "f" / f"{name}.py").write_text("LAUNCHES = {}\n")
    corpus = corpora.load(tmp_path / "corpus")
    sides = Sides(base=runs.side("base", corpus=corpus), head=runs.side("head", corpus=corpus))
    targets = (runs.target("sm_90"), runs.target("gfx942"))
    return Comparison(sides=sides, targets=targets, options=DEFAULT_OPTIONS, command=())


@pytest.mark.parametrize(
    ("answers", "notes"),
    [
        ({}, ()),
        (
            {NAMES[0]: "another toolchain on this machine", NAMES[2]: None},
            ("2 of 4", "another toolchain on this machine"),
        ),
        (dict.fromkeys(NAMES), ("4 of 4", "nothing came back")),
    ],
)
def test_what_does_not_come_back_is_noted(asked, config, answers, notes):
    cluster, shown = FakeCluster(answers), []
    found = batches.fill(asked, config, cluster, shown.append)
    assert len(found) == bool(notes) and all(words in found[0] for words in notes)
    assert [batch.name for batch in cluster.batches] == NAMES
    assert len(shown) == sum(answers.get(name, "") is not None for name in NAMES)
    assert list(config.cache.iterdir()) == [], "the token is gone"


def test_a_machine_refuses_what_is_not_the_same_here(asked, config, tmp_path, monkeypatch):
    known = {side.toolchain.spec: side.toolchain for side in asked.sides}
    filled = []
    monkeypatch.setattr(batches.pipeline, "fill", lambda *given: filled.append(given))
    monkeypatch.setattr(batches.toolchains, "resolve", lambda spec, _: known[spec])
    (tmp_path / "token").touch()
    name, part = parts(asked)[0]
    places = {"cache": config.cache, "token": str(tmp_path / "token"), "store_url": None}
    batch = Batch(name=name, comparison="first", part=part, limits=config.limits, **places)
    workload = asked.sides.base.corpus.root / "f" / "one.py"
    assert "not the same folder" in batches.work(replace(batch, token="/nowhere"))
    workload.write_text("LAUNCHES = {1: 2}\n")
    assert "other workloads" in batches.work(batch)
    workload.write_text("LAUNCHES = {}\n")
    known["head"] = known["base"] = replace(known["base"], digest="0" * 64)
    for _ in range(2):
        assert "another toolchain on this machine" in batches.work(batch)
    far = replace(batch, token=None, store_url="s3://bucket/path")
    assert "IRDIFF_STORE is not s3://bucket/path" in batches.work(far)
    assert filled == []
