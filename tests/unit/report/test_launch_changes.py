from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from irdiff.diffs import launch_changes
from irdiff.model import Artifact, Case, Launch, Run, Sides, Verdict
from irdiff.report import html, markdown
from tests.unit.report.runs import make_case, make_run


def launch(digest: str, **options: str) -> Launch:
    return Launch(
        id="matmul/w:x",
        workload="matmul/w",
        label="x",
        kernel="k",
        target="sm_90",
        digest=digest,
        source_digest="",
        sources=(),
        source_path="",
        arguments=(),
        signature={"x": "*fp16"},
        constexprs={"BLOCK": "128"},
        attributes={},
        options={"num_warps": "4", **options},
        grid=None,
        launched=Artifact(stage="launch", digest="", size_bytes=0),
        places=(1,),
        tier="gate",
        expected=True,
        flops=None,
        min_bytes=None,
        tolerance=None,
    )


def launched(case: Case, base: Launch, head: Launch, *metadata: dict[str, object]) -> Case:
    sides = metadata or ({}, {})
    return replace(
        case,
        launches=Sides(base=base.key, head=head.key),
        metadata=Sides(base=sides[0], head=sides[1]),
    )


def run_of(case: Case, *launches: Launch) -> Run:
    return replace(make_run((case,)), launches={row.key: row for row in launches})


def test_nested_values_and_options_of_one_side() -> None:
    base, head = launch("a"), replace(launch("b", clc="False", wgp="1"), constexprs={"BLOCK": "256"})
    metadata = (
        {"target": {"backend": "cuda", "arch": 90}, "shared": 0, "hash": "1", "num_warps": 4},
        {"target": {"backend": "cuda", "arch": 91}, "shared": 0, "hash": "2", "num_warps": 8},
    )
    case = launched(make_case(0, Verdict.CHANGED), base, head, *metadata)
    found = launch_changes.of_case(case, run_of(case, base, head))
    assert [str(row) for row in found] == [
        "constexprs.BLOCK: 128 → 256",
        "metadata.target.arch: 90 → 91",
        "options.clc: not there → False",
        "options.wgp: not there → 1",
    ]


def test_equal_launches_and_missing_ones_have_none() -> None:
    case = launched(make_case(0, Verdict.CHANGED), launch("a"), launch("b"))
    assert launch_changes.of_case(case, run_of(case, launch("a"), launch("b"))) == ()
    assert launch_changes.of_case(case, run_of(case, launch("a"))) == ()


def test_a_run_counts_its_changed_cases() -> None:
    base, head = launch("a"), launch("b", clc="False")
    cases = [
        launched(make_case(n, verdict), base, head)
        for n, verdict in enumerate((Verdict.CHANGED, Verdict.CHANGED, Verdict.UNCHANGED))
    ]
    run = replace(make_run(tuple(cases)), launches={row.key: row for row in (base, head)})
    assert [(str(change), n) for change, n in launch_changes.of_run(run)] == [
        ("options.clc: not there → False", 2)
    ]
    assert "`options.clc: not there → False` in 2 changed cases" in markdown.render(run, Path("nowhere"))
    page = html.render(run, Path("nowhere"))
    assert "<code>options.clc</code></th><td><code>not there</code></td><td><code>False</code></td>" in page
    assert page == html.render(run, Path("nowhere"))


def test_long_values_are_cut() -> None:
    base, head = launch("a"), launch("b", flags="x" * 500)
    case = launched(make_case(0, Verdict.CHANGED), base, head)
    (change,) = launch_changes.of_case(case, run_of(case, base, head))
    assert len(change.head) == launch_changes.MAX_VALUE
