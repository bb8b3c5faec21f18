"""What broke, told by the projects whose kernels are a pack."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.model import Verdict
from irdiff.report import html, markdown, projects
from tests.unit import runs

NOTE = "packs fla (fla-core==0.5.0), liger (liger-kernel==0.8.5) beside torch==2.13.0+cpu"
BROKEN = [
    ("fla/a", "no pointers"),
    ("fla/b", "no pointers"),
    ("liger/a", "no pointers"),
    ("fla/c", "```\nother"),
]


@pytest.mark.parametrize("note", [NOTE, ""])
def test_causes_by_project(note, snapshot):
    cases = [
        runs.numbered(number, Verdict.BROKEN, workload=workload, error=error)
        for number, (workload, error) in enumerate(BROKEN)
    ]
    run = runs.run(*cases, runs.numbered(9, Verdict.CHANGED, workload="fla/a"))
    run = replace(run, head=replace(run.head, note=note))
    found = projects.broken(run)
    assert [(cause.title, *(part.issue for part in cause.projects)) for cause in found] == snapshot
    for text in (markdown.render(run, Path("nowhere")), html.render(run, Path("nowhere"))):
        assert text.count("An issue for") == sum(len(cause.projects) for cause in found)
