"""Breakages in projects whose kernels are a pack, with the text of an issue for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.compare import statistics
from irdiff.model import Case, Run, Verdict
from irdiff.report import commands, error_clusters, families
from irdiff.resolve import packs
from irdiff.words import counted, first_few

_KERNELS = 8


@dataclass(frozen=True, kw_only=True)
class BrokenProject:
    name: str
    """With its version: `fla-core 0.5.0`."""
    cases: tuple[Case, ...]
    smallest: Case
    """The case with the least code at base."""
    title: str
    issue: str
    """Markdown to be pasted."""


@dataclass(frozen=True, kw_only=True)
class BrokenCause:
    title: str
    """`broke in 3 projects: "Block pointers have been removed" (36 launches of fla-core 0.5.0)`"""
    projects: tuple[BrokenProject, ...]


def broken(run: Run) -> list[BrokenCause]:
    """Groups by error, the one with the most launches first; empty if no pack was compared."""
    packages = packs.projects(run.head.note)
    broken = [
        case
        for case in run.cases
        if case.verdict is Verdict.BROKEN and families.of(case.workload) in packages
    ]
    return [_cause(run, packages, shared.words, shared.cases) for shared in error_clusters.errors(broken)]


def _cause(run: Run, packages: dict[str, tuple[str, str]], words: str, cases: Sequence[Case]) -> BrokenCause:
    by_pack: dict[str, list[Case]] = {}
    for case in cases:
        by_pack.setdefault(families.of(case.workload), []).append(case)
    projects = [_project(run, " ".join(packages[pack]), words, broken) for pack, broken in by_pack.items()]
    projects.sort(key=lambda project: (-len(project.cases), project.name))
    launches = ", ".join(f"{counted(len(project.cases), 'launch')} of {project.name}" for project in projects)
    return BrokenCause(
        title=f'broke in {counted(len(projects), "project")}: "{words}" ({launches})',
        projects=tuple(projects),
    )


def _project(run: Run, name: str, words: str, cases: Sequence[Case]) -> BrokenProject:
    smallest = min(cases, key=_size)
    kernels = sorted({case.kernel for case in cases})
    failure = smallest.failures.head
    again = commands.again(run, smallest)
    issue = [
        f"Triton {run.head.version} does not compile {counted(len(cases), 'launch')} of {name} "
        f"({first_few(kernels, _KERNELS)}). Triton {run.base.version} does.",
        *(("```", *failure.stderr.splitlines()[-12:], failure.message, "```") if failure else (words,)),
        f"The smallest of them: `{smallest.id}`. irdiff shows it without a GPU:" if again else "",
        *(("```sh", again, "```") if again else ()),
    ]
    return BrokenProject(
        name=name,
        cases=tuple(cases),
        smallest=smallest,
        title=f"{first_few(kernels, 1)} does not compile with Triton {run.head.version}",
        issue="\n".join(filter(None, issue)),
    )


def _size(case: Case) -> tuple[float, str]:
    size = case.facts.base.get(next(iter(statistics.facts_of("code size"))))
    return (float(size) if isinstance(size, int | float) else float("inf"), case.id)
