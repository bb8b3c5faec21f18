"""What a case is launched with at base and at head."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from irdiff.diffs import launch_changes
from irdiff.model import Run, Sides, Verdict
from irdiff.report import html, markdown
from tests.unit import runs

NAME = "matmul/w:x@sm_90"


def launched(base: dict[str, Any], head: dict[str, Any], *metadata: dict[str, Any]) -> Run:
    """A run of one changed case, by the parts of its launches and its metadata."""
    sides = Sides(base=runs.launch(NAME, "base", **base), head=runs.launch(NAME, **head))
    case = runs.case(NAME, Verdict.CHANGED, launches=sides.map(lambda side: side.key))
    if metadata:
        case = replace(case, metadata=Sides(base=metadata[0], head=metadata[1]))
    return runs.run(case, launches={side.key: side for side in sides})


def changes(run: Run) -> list[str]:
    return [str(row) for row in launch_changes.of_case(run.cases[0], run)]


def test_nested_values_and_options_of_one_side() -> None:
    base = {"options": {"num_warps": "4"}, "constexprs": {"BLOCK": "128"}}
    head = {"options": {"num_warps": "4", "clc": "False", "wgp": "1"}, "constexprs": {"BLOCK": "256"}}
    metadata = (
        {"target": {"arch": 90, "dims": [1, 1]}, "shared": 0, "hash": "1", "num_warps": 4},
        {"target": {"arch": 91, "dims": [1, 2]}, "shared": 0, "hash": "2", "num_warps": 8},
    )
    assert changes(launched(base, head, *metadata)) == [
        "constexprs.BLOCK: 128 → 256",
        "metadata.target.arch: 90 → 91",
        "metadata.target.dims.1: 1 → 2",
        "options.clc: not there → False",
        "options.wgp: not there → 1",
    ]


def test_equal_launches_and_missing_ones_have_none() -> None:
    assert changes(launched({}, {})) == []
    run = launched({}, {"options": {"a": "1"}})
    assert changes(replace(run, launches=dict(list(run.launches.items())[:1]))) == []


def test_a_run_counts_its_changed_cases() -> None:
    run = launched({"options": {}}, {"options": {"clc": "False"}})
    run = replace(run, cases=(*run.cases * 2, replace(run.cases[0], verdict=Verdict.UNCHANGED)))
    ((change, count),) = launch_changes.of_run(run)
    assert (str(change), count) == ("options.clc: not there → False", 2)
    assert "`options.clc: not there → False` in 2 changed cases" in markdown.render(run, Path("nowhere"))
    page = html.render(run, Path("nowhere"))
    assert "<code>options.clc</code></th><td><code>not there</code></td><td><code>False</code></td>" in page


def test_long_values_are_cut() -> None:
    run = launched({}, {"options": {"flags": "x" * 500}})
    (change,) = launch_changes.of_case(run.cases[0], run)
    assert len(change.head) == launch_changes.MAX_VALUE
