"""When several processes of one machine share a comparison, and what they are asked."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.cluster import own_processes
from irdiff.comparison import Comparison
from irdiff.model import DEFAULT_OPTIONS, Sides
from irdiff.resolve.corpus import Corpus
from tests.unit import runs

WORKLOADS = tuple(f"f/w{number}" for number in range(16))


def comparison(*, self_contained=True, workloads=WORKLOADS, **options):
    corpus = Corpus(root=Path("/corpus"), workloads=workloads, digest="c", self_contained=self_contained)
    sides = Sides(base=runs.side("base", corpus=corpus), head=runs.side("head", corpus=corpus))
    asked = replace(DEFAULT_OPTIONS, recheck=True, use_cache=True, **options)
    return Comparison(sides=sides, targets=(runs.target("sm_90"),), options=asked, command=())


@pytest.fixture
def shared(monkeypatch, tmp_path):
    """How many processes share a comparison, and what they are asked; nothing where one does it all."""

    def share(asked, jobs=16, **changes):
        given = []

        def fill(part, config, processes, report):
            given.append((processes.workers(), part.options.recheck))
            return ("1 of 16 batches",)

        monkeypatch.setattr(own_processes.batches, "fill", fill)
        config = replace(configuration.load(cache=tmp_path, jobs=jobs), **changes)
        notes = own_processes.fill(asked, config, lambda _: None)
        assert notes == (("1 of 16 batches",) if given else ())
        return given

    return share


def test_a_large_machine_shares_a_large_comparison_with_its_determinism_check(shared):
    assert shared(comparison()) == [(12, True)]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(comparison(self_contained=False), id="each-would-run-the-program-again"),
        pytest.param(comparison(workloads=WORKLOADS[:15]), id="few-batches"),
        pytest.param(comparison(shard=(1, 2)), id="a-shard"),
    ],
)
def test_one_process_does_it_all(shared, asked):
    assert shared(asked) == []


def test_one_process_does_it_all_on_a_small_machine_and_where_results_are_not_kept(shared):
    asked = comparison()
    assert shared(asked, jobs=4) == []
    assert shared(replace(asked, options=replace(asked.options, use_cache=False))) == []
    bucket = configuration.SharedStoreConfig(url="s3://bucket", mode=configuration.StoreMode.READ)
    assert shared(asked, shared_store=bucket) == []
