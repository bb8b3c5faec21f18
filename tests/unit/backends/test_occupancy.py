"""Blocks a multiprocessor at the edges of the units that hardware allocates in."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.backends import occupancy
from irdiff.resolve import targets
from tests.unit.golden import golden

TARGETS = targets.load_all([Path(__file__).parents[3] / "targets"])
HOPPER = TARGETS["sm_90"]


# of NVIDIA: answers of the CUDA driver on an H200; of AMD: by the documents that the module names
@pytest.mark.parametrize("row", golden("occupancy")["kernel"], ids=str)
def test_blocks_and_what_limits_them(row):
    found = occupancy.facts(row["facts"], TARGETS[row["target"]])
    number = found.get("blocks_per_multiprocessor", found.get("workgroups_per_compute_unit"))
    assert (number, found["occupancy_limit"]) == (row["blocks"], row["limit"])


@pytest.mark.parametrize("facts", [{}, {"registers": 0, "warps": 4}, {"registers": "many", "warps": 4}])
def test_what_is_not_known_gives_no_occupancy(facts):
    assert occupancy.facts(facts, HOPPER) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, facts={})) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, backend="npu")) == {}
