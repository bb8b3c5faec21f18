"""What a report's first sentence says that no case covers."""

from types import SimpleNamespace

import pytest

from irdiff.capture import unexamined
from irdiff.model import Sides


def side(dropped_targets=(), **corpus):
    fields = {"pointers": {}, "absent_submodules": {}, "ignored": None, "borrowed_workloads": ""}
    return SimpleNamespace(
        corpus=SimpleNamespace(**fields | corpus), unfollowed_pins=(), dropped_targets=dropped_targets
    )


def captured(*sources):
    launches = [SimpleNamespace(sources=sources)]
    catalog = SimpleNamespace(launches=launches, uncompared=(), read=(), missing=())
    target = SimpleNamespace(name="sm_90")
    return SimpleNamespace(catalogs=Sides(base=catalog, head=catalog), target=target)


@pytest.mark.parametrize(("source", "is_said"), [("bench/rope.py", True), ("src/rope.py", False)])
def test_workloads_of_the_other_side_are_said_if_they_contain_kernels(source, is_said):
    sides = Sides(base=side(borrowed_workloads="bench"), head=side())
    clauses = unexamined.of_sides(sides, [captured(source)])
    assert clauses == (
        ("base has no bench/ and took that of head: kernels in it were not compared",) * is_said
    )


def test_targets_that_only_the_file_of_base_names_are_said_if_they_were_not_compared():
    sides = Sides(base=side(), head=side(dropped_targets=("sm_90", "gfx942")))
    clauses = unexamined.of_sides(sides, [captured("src/rope.py")])
    assert clauses == ("head's irdiff.toml no longer names the target gfx942: it was not compared",)


def test_each_line_has_a_clause_of_its_own_however_many_there_are():
    catalog = SimpleNamespace(
        launches=(), read=(), missing=(), uncompared=[(f"p{n}.py", n, "starts make") for n in range(9)]
    )
    of_workload = SimpleNamespace(
        catalogs=Sides(base=catalog, head=catalog), target=SimpleNamespace(name="sm_90")
    )
    clauses = unexamined.of_sides(Sides(base=side(), head=side()), [of_workload])
    assert clauses == tuple(f"p{n}.py:{n} starts make" for n in range(9))
