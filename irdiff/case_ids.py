"""Names of cases, and the one grammar by which people select them. Pure.

    family/workload:label@target             a case
    family/workload:label/kernel#2@target    the second launch of a kernel, where one label launches several

A pattern is such a name of which parts may be left out: `matmul` is a family or a workload, `:fp16-4096` a
label, `@sm_90` a target, `matmul/pointer:fp16-*@gfx9*` all three. Globs work in each part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from irdiff.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class CaseId:
    """The name of a case, or of a launch: one without a target."""

    workload: str
    label: str
    """With `/kernel` and `#n` behind it where the label launches several."""
    target: str

    @property
    def family(self) -> str:
        return self.workload.partition("/")[0]

    @property
    def entry(self) -> str:
        """The label in the workload's own table."""
        return re.split("[/#]", self.label, maxsplit=1)[0]

    def __str__(self) -> str:
        return f"{self.workload}:{self.label}" + (f"@{self.target}" if self.target else "")


def parse(name: str) -> CaseId:
    launch, _, target = name.partition("@")
    workload, _, label = launch.partition(":")
    return CaseId(workload=workload, label=label, target=target)


def selects(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns means the case of that name; no pattern at all means every case."""
    return not patterns or any(_selects(pattern, name) for pattern in patterns)


def _selects(pattern: str, name: str) -> bool:
    wanted, case = parse(pattern), parse(name)
    return (
        _is_workload(case.workload, wanted.workload)
        and any(fnmatchcase(label, wanted.label or "*") for label in (case.label, case.entry))
        and fnmatchcase(case.target, wanted.target or "*")
    )


def workloads(patterns: Sequence[str], names: Iterable[str]) -> tuple[str, ...]:
    """The workloads of which the patterns may mean a case."""
    wanted = [parse(pattern) for pattern in patterns]
    return tuple(
        name for name in names if not wanted or any(_is_workload(name, row.workload) for row in wanted)
    )


def labels(patterns: Sequence[str], workload: str, target: str) -> tuple[str, ...]:
    """Globs of labels by which patterns may mean cases of a workload; none where all are meant."""
    rows = [parse(pattern) for pattern in patterns]
    found = {
        row.label or "*"
        for row in rows
        if _is_workload(workload, row.workload) and fnmatchcase(target, row.target or "*")
    }
    return () if "*" in found else tuple(sorted(found))


def _is_workload(name: str, pattern: str) -> bool:
    """`matmul` and `matmul/` mean the family, `matmul/pointer` and `pointer` one workload."""
    family, _, own = name.partition("/")
    part = pattern.rstrip("/")
    return not part or any(fnmatchcase(text, part) for text in (name, family, own))


# patterns as users type them


def completed(patterns: Sequence[str], workloads: Iterable[str]) -> tuple[str, ...]:
    """The patterns with whole names of workloads: a part of a name stands for every workload that has it.

    A name or a glob that fits a workload is taken as it is. Raises UsageError for one that fits none, with
    the names that come near: a comparison that leaves out what was asked for must not look like one.
    """
    known = tuple(dict.fromkeys(workloads))
    return tuple(dict.fromkeys(full for pattern in patterns for full in _completed(pattern, known)))


def _completed(pattern: str, known: Sequence[str]) -> list[str]:
    wanted = parse(pattern)
    if any(_is_workload(name, wanted.workload) for name in known):
        return [pattern]
    rest = pattern[len(wanted.workload) :]
    within = [name for name in known if wanted.workload in name]
    if within:
        return [name + rest for name in within]
    raise UsageError(
        f"--case {pattern!r}: no workload is called {wanted.workload!r}", hint=_near(wanted.workload, known)
    )


def _near(text: str, known: Sequence[str]) -> str:
    parts = dict.fromkeys(part for name in known for part in (name, *name.split("/", 1)))
    near = get_close_matches(text, list(parts), n=3)
    listed = "`irdiff corpus list` lists them"
    return f"did you mean {', '.join(near)}? {listed}" if near else listed


def may_select(patterns: Sequence[str], target: str) -> bool:
    """Whether one of the patterns may mean a case of the target; no pattern at all means every case."""
    return not patterns or any(fnmatchcase(target, parse(pattern).target or "*") for pattern in patterns)


def unmatched(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """The patterns that mean none of the cases."""
    found = list(names)
    return [pattern for pattern in patterns if not any(_selects(pattern, name) for name in found)]
