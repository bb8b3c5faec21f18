"""What a report's first sentence says that no case covers."""

from types import SimpleNamespace

import pytest

from irdiff.capture import unexamined
from irdiff.model import Sides


def side(**corpus):
    fields = {"pointers": {}, "absent_submodules": {}, "ignored": None, "borrowed_workloads": ""}
    return SimpleNamespace(corpus=SimpleNamespace(**fields | corpus), unfollowed_pins=())


def captured(*sources):
    launches = [SimpleNamespace(sources=sources)]
    catalog = SimpleNamespace(launches=launches, uncompared=(), read=(), missing=())
    return SimpleNamespace(catalogs=Sides(base=catalog, head=catalog))


@pytest.mark.parametrize(("source", "is_said"), [("bench/rope.py", True), ("src/rope.py", False)])
def test_workloads_of_the_other_side_are_said_if_they_contain_kernels(source, is_said):
    sides = Sides(base=side(borrowed_workloads="bench"), head=side())
    clauses = unexamined.of_sides(sides, [captured(source)])
    assert clauses == (
        ("base has no bench/ and took that of head: kernels in it were not compared",) * is_said
    )
