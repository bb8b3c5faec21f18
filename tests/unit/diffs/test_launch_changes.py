"""What a case is launched with at base and at head."""

from dataclasses import replace

from irdiff.diffs import launch_changes
from irdiff.model import Sides, Verdict
from tests.unit import runs

NAME = "matmul/w:x@sm_90"


def launched(base, head, *metadata):
    """A run of one changed case, by the parts of its launches and its metadata."""
    sides = Sides(base=runs.launch(NAME, "base", **base), head=runs.launch(NAME, **head))
    case = runs.case(NAME, Verdict.CHANGED, launches=sides.map(lambda side: side.key))
    if metadata:
        case = replace(case, metadata=Sides(base=metadata[0], head=metadata[1]))
    return runs.run(case, launches={side.key: side for side in sides})


def changes(run):
    return [str(row) for row in launch_changes.of_case(run.cases[0], run)]


def test_nested_values_and_options_of_one_side():
    base = {"options": {"num_warps": "4"}, "constexprs": {"BLOCK": "128"}}
    head = {"options": {"num_warps": "4", "clc": "x" * 500}, "constexprs": {"BLOCK": "256"}}
    metadata = (
        {"target": {"arch": 90, "dims": [1, 1]}, "shared": 0, "hash": "1", "num_warps": 4},
        {"target": {"arch": 91, "dims": [1, 2]}, "shared": 0, "hash": "2", "num_warps": 8},
    )
    run = launched(base, head, *metadata)
    assert changes(run) == [
        "constexprs.BLOCK: 128 → 256",
        "metadata.target.arch: 90 → 91",
        "metadata.target.dims.1: 1 → 2",
        f"options.clc: not there → {'x' * (launch_changes.MAX_VALUE - 1)}…",
    ]
    same = replace(run.cases[0], verdict=Verdict.UNCHANGED)
    counted = launch_changes.of_run(replace(run, cases=(*run.cases * 2, same)))
    assert [(str(change), count) for change, count in counted] == [(change, 2) for change in changes(run)]


def test_equal_launches_and_missing_ones_have_none():
    assert changes(launched({}, {})) == []
    run = launched({}, {"options": {"a": "1"}})
    assert changes(replace(run, launches=dict(list(run.launches.items())[:1]))) == []
