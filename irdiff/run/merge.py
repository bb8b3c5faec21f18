"""Joins the runs of shards (`irdiff compare --shard K/N`), or of several targets, to one run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from irdiff.capture import notices
from irdiff.compare import radius
from irdiff.errors import UsageError
from irdiff.group import report_classes, titles
from irdiff.model import (
    Case,
    ChangedFile,
    ChangeGroup,
    Component,
    EditedLines,
    EditedSource,
    Options,
    Reach,
    Run,
    Target,
)

T = TypeVar("T")
_ONE_COMPARISON = "merge only the shards, or targets, of one comparison"
_COUNTS_CASES = "determinism check: "
"""The beginning of a note that counts the cases of its run."""


def merge(runs: Sequence[Run], *, partial: bool = False) -> Run:
    """`partial` allows missing shards; a note then names them. Raises UsageError if the runs are not of one
    comparison.
    """
    if not runs:
        raise UsageError("there is nothing to merge", hint="name the runs of all shards")
    runs = sorted(runs, key=lambda run: (run.options.shard, run.command, run.created))
    first = runs[0]
    for run in runs[1:]:
        _check_same(first, run)
    missing = missing_shards(runs)
    cases, targets = _cases(runs), _targets(runs)
    if not cases and len(runs) > 1:
        raise UsageError("none of the runs has a case", hint="see the notes of each: irdiff report RUN")
    notes = [
        *dict.fromkeys(
            _of_its_shard(note, run) for run in runs for note in run.notes if not _is_of_one_part(note, runs)
        )
    ]
    if missing:
        if not partial:
            raise UsageError(missing, hint="give every shard of one comparison, or --partial")
        notes.append(missing)
    return replace(
        first,
        created=max(run.created for run in runs),
        command=without_shard(first.command),
        options=replace(_options(runs), shard=runs[-1].options.shard if missing else (1, 1)),
        cut_from="",
        targets=targets,
        environment=_environment(runs),
        summary=radius.summarize(cases, targets),
        cases=cases,
        launches=dict(sorted({key: each for run in runs for key, each in run.launches.items()}.items())),
        groups=_groups(runs, {case.id: case for case in cases}),
        reach=_reach([run.reach for run in runs if run.reach]),
        edited_lines=_edited_lines([run.edited_lines for run in runs if run.edited_lines]),
        runtime=tuple(
            same[0]
            for same in _by_key((each for run in runs for each in run.runtime), lambda each: each.path)
        ),
        notes=tuple(notes),
        unexamined=tuple(dict.fromkeys(clause for run in runs for clause in run.unexamined)),
        duration_s=round(sum(run.duration_s for run in runs), 3),
    )


def _of_its_shard(note: str, run: Run) -> str:
    """Prefixes the shard if the note counts cases of the shard alone."""
    shard, shards = run.options.shard
    return f"shard {shard}/{shards}: {note}" if shards > 1 and note.startswith(_COUNTS_CASES) else note


def _is_of_one_part(note: str, runs: Sequence[Run]) -> bool:
    """True if the note says that a pattern matches no case, but in another shard, or for another target, it
    does.
    """
    if not notices.is_unmatched(note):
        return False
    cases = {run.options.cases for run in runs if note in run.notes}
    return any(note not in run.notes for run in runs if run.options.cases in cases)


def _options(runs: Sequence[Run]) -> Options:
    """Returns what holds for all runs: a selection in one of them is none of the whole."""
    every = [run.options for run in runs]
    return replace(
        every[0],
        cases=_cases_of(runs),
        tiers=tuple(dict.fromkeys(tier for options in every for tier in options.tiers)),
        stages=tuple(dict.fromkeys(stage for options in every for stage in options.stages)),
        use_cache=any(options.use_cache for options in every),
        recheck=all(options.recheck for options in every),
        attribute=all(options.attribute for options in every),
        configs=min((options.configs for options in every if options.configs is not None), default=None),
    )


def _cases_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """Returns no pattern if every run has all cases of its targets."""
    chosen = {run.options.cases for run in runs}
    if len(chosen) == 1:
        return chosen.pop()
    patterns = [run.options.cases or tuple(f"@{target.name}" for target in run.targets) for run in runs]
    return tuple(dict.fromkeys(pattern for of_run in patterns for pattern in of_run))


def _check_same(first: Run, other: Run) -> None:
    for name in ("schema", "irdiff_version", "normalizer_version", "base", "head"):
        ours, theirs = getattr(first, name), getattr(other, name)
        if ours != theirs:
            shown = ("" if name in {"base", "head"} else f": {ours} and {theirs}")[:200]
            raise UsageError(f"the runs have different {name.replace('_', ' ')}{shown}", hint=_ONE_COMPARISON)


def _cases(runs: Sequence[Run]) -> tuple[Case, ...]:
    by_id: dict[str, Case] = {}
    for case in (case for run in runs for case in run.cases):
        if case.id in by_id:
            raise UsageError(f"case {case.id[:200]!a} is in two of the runs", hint="give each shard once")
        by_id[case.id] = case
    return tuple(by_id[case_id] for case_id in sorted(by_id))


def _targets(runs: Sequence[Run]) -> tuple[Target, ...]:
    by_name: dict[str, Target] = {}
    for target in (target for run in runs for target in run.targets):
        if by_name.setdefault(target.name, target) != target:
            raise UsageError(
                f"target {target.name[:100]!a} is not the same in all runs", hint=_ONE_COMPARISON
            )
    return tuple(by_name[name] for name in sorted(by_name))


def _environment(runs: Sequence[Run]) -> dict[str, str]:
    """Keeps differences between hosts side by side, because they may explain a difference."""
    names = sorted({name for run in runs for name in run.environment})
    values = {name: sorted({run.environment.get(name, "unset") for run in runs}) for name in names}
    return {name: " | ".join(values_of_name) for name, values_of_name in values.items()}


def _groups(runs: Sequence[Run], cases: Mapping[str, Case]) -> tuple[ChangeGroup, ...]:
    parts = _by_key((group for run in runs for group in run.groups), lambda group: group.id)
    groups = [_joined(same, cases) for same in parts]
    return tuple(sorted(groups, key=report_classes.order))


def _joined(parts: Sequence[ChangeGroup], cases: Mapping[str, Case]) -> ChangeGroup:
    """Joins the same edit of several shards. The gravest part ranks it, the shortest edit of the gravest
    shows it, and its title holds for all members.
    """
    if len(parts) == 1:
        return parts[0]
    gravest = max(map(report_classes.gravity, parts))
    as_grave = [part for part in parts if report_classes.gravity(part) == gravest]
    shortest = min(as_grave, key=lambda part: (len(part.edit), part.representative))
    count = sum(len(part.members) for part in parts)
    charged = {component for part in parts for component in part.charged}
    members = tuple(sorted(member for part in parts for member in part.members))
    causes = [(cases[member], summary.causes) for member in members if (summary := cases[member].summary)]
    return replace(
        shortest,
        title=titles.of_group(causes) if len(causes) == len(members) else shortest.title,
        charged=tuple(component for component in Component if component in charged),
        members=members,
        similarity=round(sum(part.similarity * len(part.members) for part in parts) / count, 4),
    )


def _reach(parts: Sequence[Reach]) -> Reach | None:
    """Each run counts its own cases. A function ran if one of the runs that read its file ran it."""
    if not parts:
        return None
    files = _by_key((file for part in parts for file in part.files), lambda file: file.path)
    return Reach(files=tuple(map(_changed_file, files)), read_by=sum(part.read_by for part in parts))


def _changed_file(same: Sequence[ChangedFile]) -> ChangedFile:
    idle = [file.not_run for file in same if file.read_by] or [file.not_run for file in same]
    return replace(
        same[0],
        compiled_by=sum(file.compiled_by for file in same),
        read_by=sum(file.read_by for file in same),
        not_run=tuple(name for name in idle[0] if all(name in names for names in idle)),
    )


def _edited_lines(parts: Sequence[EditedLines]) -> EditedLines | None:
    if not parts:
        return None
    sources = _by_key((source for part in parts for source in part.sources), lambda source: source.path)
    return replace(
        parts[0],
        sources=tuple(map(_edited_source, sources)),
        cases=sum(part.cases for part in parts),
        unmeasured=sum(part.unmeasured for part in parts),
        executed_by=sum(part.executed_by for part in parts),
        examples=max((part.examples for part in parts), key=len),
    )


def _edited_source(same: Sequence[EditedSource]) -> EditedSource:
    by_line = _by_key((line for source in same for line in source.lines), lambda line: line.number)
    return replace(
        same[0],
        lines=tuple(
            replace(same_line[0], cases=sum(line.cases for line in same_line)) for same_line in by_line
        ),
    )


def _by_key(values: Iterable[T], key: Callable[[T], object]) -> list[list[T]]:
    by_key: dict[object, list[T]] = {}
    for value in values:
        by_key.setdefault(key(value), []).append(value)
    return list(by_key.values())


# shards


def missing_shards(runs: Iterable[Run]) -> str:
    """Returns nothing if all are there.

    Shards that were cut from different lists of cases leave cases out too, because a workload may launch
    something else on another machine. Raises UsageError for shards of different totals, which overlap and
    leave gaps.
    """

    def cut(run: Run) -> object:
        return replace(run.options, shard=(1, 1)), tuple(target.name for target in run.targets)

    missing = []
    for parts in _by_key(runs, cut):
        shards = {run.options.shard for run in parts}
        totals = sorted({total for _, total in shards})
        if len(totals) > 1:
            raise UsageError(
                f"shards of 1/{totals[0]} and of 1/{totals[1]} are of two comparisons", hint=_ONE_COMPARISON
            )
        absent = sorted(set(range(1, totals[0] + 1)) - {number for number, _ in shards})
        if absent:
            missing.append(f"shards {', '.join(map(str, absent[:20]))} of {totals[0]} are missing")
        if len({run.cut_from for run in parts}) > 1:
            missing.append("cases are missing: the shards were cut from different lists of cases")
    return "; ".join(missing)


def without_shard(command: Sequence[str]) -> tuple[str, ...]:
    """Returns the command that a user would have typed for the whole."""
    pairs = zip(("", *command), command, strict=False)
    return tuple(
        word for before, word in pairs if "--shard" not in (before, word) and not word.startswith("--shard=")
    )
