"""Counts edits, and orders the groups of a report.

For compilers each change group is an edit. If one compiler compiles two revisions of kernels, edits are those
of the source: groups whose launches compile a common changed file show the same edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from irdiff.model import Case, ChangeGroup, Run
from irdiff.report import phrases
from irdiff.words import counted, first_few

_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class DistinctEdit:
    groups: tuple[ChangeGroup, ...]
    files: tuple[str, ...]
    """Changed files that launches of its groups compile; none for an edit of a compiler."""

    @property
    def words(self) -> str:
        """`edit of rms_norm.py, swiglu.py: 7 groups, 16 cases`; empty for an edit of a compiler."""
        if not self.files:
            return ""
        names = first_few([PurePosixPath(path).name for path in self.files], _SHOWN)
        cases = sum(len(group.members) for group in self.groups)
        groups = f"{len(self.groups)} groups, " if len(self.groups) > 1 else ""
        return f"edit of {names}: {groups}{counted(cases, 'case')}"


def of(run: Run) -> list[DistinctEdit]:
    """Keeps the run's order of gravest groups, but puts edits first that may compute something else."""
    cases = {case.id: case for case in run.cases}
    edits: list[DistinctEdit] = []
    for group in sorted(run.groups, key=lambda group: not phrases.is_loud(group)):
        files = _compiled(run, group, cases)
        same = [edit for edit in edits if files & {*edit.files}]
        groups = (*(each for edit in same for each in edit.groups), group)
        files = files.union(*(edit.files for edit in same))
        joined = DistinctEdit(groups=groups, files=tuple(sorted(files)))
        place = edits.index(same[0]) if same else len(edits)
        edits = [edit for edit in edits if edit not in same]
        edits.insert(place, joined)
    return edits


def gravest_first(edits: Sequence[DistinctEdit], gravity: Mapping[str, float]) -> list[DistinctEdit]:
    """Orders by measurements of the cases, and else keeps the order."""

    def gravest(group: ChangeGroup) -> float:
        return max((gravity.get(case_id, 0.0) for case_id in group.members), default=0.0)

    ordered = [replace(edit, groups=tuple(sorted(edit.groups, key=gravest, reverse=True))) for edit in edits]
    return sorted(ordered, key=lambda edit: gravest(edit.groups[0]), reverse=True)


def ordered_groups(run: Run) -> list[ChangeGroup]:
    return [group for edit in of(run) for group in edit.groups]


def _compiled(run: Run, group: ChangeGroup, cases: Mapping[str, Case]) -> set[str]:
    """Returns changed files that the group's launches compile; none if the compilers differ."""
    if run.reach is None or not phrases.of_kernels(run):
        return set()
    keys = {key or "" for name in group.members if name in cases for key in cases[name].launches}
    sources = {path for key in keys if key in run.launches for path in run.launches[key].sources}
    return {file.path for file in run.reach.files if file.path in sources}
