"""Checks bounds of a run, and that it agrees with itself, which a schema cannot do.

Nothing in a forged run proves that a kernel was really compiled, but a run whose counts, groups or digests
contradict its own cases is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from irdiff.compare import radius
from irdiff.errors import RunFolderError
from irdiff.model import Artifact, Case, EditedSource, Run, StageStatus, Verdict

MAX_VALUES = 24_000_000
"""Values in one `run.json`. A value costs some 100 bytes of memory, and a case has about 400 of them."""
MAX_CASES = 50_000
MAX_TARGETS = 100
MAX_EDITED = 100_000
MAX_NAME = 1_000
"""Characters of an id or a name."""
MAX_DEPTH = 32
MAX_NUMBER = 1e40
"""More than any count, size, time or fp32 scalar. Beyond it, sums and formats of a report mean nothing."""

DIGEST = re.compile(r"[0-9a-f]{64}")

_PLAIN = (str, int, float, type(None))
_AGAIN = "no irdiff writes such a run: copy the run folder again, or compare again"
_Refuse = Callable[[str], RunFolderError]


def check_values(text: bytes, path: Path) -> None:
    """Refuses a document that costs more memory than a run can need, before it is parsed."""
    if text.count(b",") + text.count(b"[") + text.count(b"{") > MAX_VALUES:
        raise RunFolderError(
            f"{path} has more than {MAX_VALUES:,} values, the most that irdiff reads",
            hint="compare in parts: irdiff compare … --shard 1/4",
        )


def check_document(document: object, path: Path) -> None:
    """Refuses numbers that are not finite or out of bounds, and too deep nesting."""
    values: list[Any] = [document]
    for _ in range(MAX_DEPTH):
        numbers = (value for value in values if isinstance(value, int | float))
        if not all(-MAX_NUMBER <= number <= MAX_NUMBER for number in numbers):  # NaN compares with nothing
            raise RunFolderError(
                f"{path} has a number that is not finite, or larger than {MAX_NUMBER:g}", hint=_AGAIN
            )
        lists = (value.values() if isinstance(value, dict) else value for value in values)
        values = [inner for part in lists if not isinstance(part, _PLAIN) for inner in part]
    if values:
        raise RunFolderError(f"{path} is nested deeper than {MAX_DEPTH} levels", hint=_AGAIN)


def check_run(run: Run, path: Path) -> None:
    """Raises RunFolderError if the run contradicts itself or is out of bounds."""

    def refuse(reason: str) -> RunFolderError:
        return RunFolderError(f"{path} is not a valid run: {reason}", hint="run `irdiff compare` again")

    _check_sizes(run, refuse)
    _check_cases(run, refuse)
    _check_groups(run, refuse)
    if run.edited and run.edited.identical and (run.cases or run.launches or run.groups):
        raise refuse("it is called one of the same compiler, and has cases")
    if run.summary != radius.summarize(run.cases, run.targets):
        raise refuse("its summary is not that of its cases")


def _check_sizes(run: Run, refuse: _Refuse) -> None:
    bounds = (
        ("cases", len(run.cases), MAX_CASES),
        ("launches", len(run.launches), 2 * MAX_CASES),
        ("groups", len(run.groups), MAX_CASES),
        ("targets", len(run.targets), MAX_TARGETS),
        ("edited files", len(run.edited.files) if run.edited else 0, MAX_EDITED),
        ("edited sources", len(_sources(run)), MAX_EDITED),
        ("edited lines", sum(len(source.lines) for source in _sources(run)), MAX_EDITED),
        ("files of the runtime", len(run.runtime), MAX_EDITED),
        ("lines of the runtime's diff", sum(len(edit.diff) for edit in run.runtime), MAX_EDITED),
        ("hunks", sum(len(source.hunks) for source in _sources(run)), MAX_EDITED),
    )
    for noun, count, limit in bounds:
        if count > limit:
            raise refuse(f"it has {count} {noun}, more than {limit}")
    for name in _names(run):
        if len(name) > MAX_NAME:
            raise refuse(f"the name {_shown(name)} has {len(name)} characters")


def _sources(run: Run) -> tuple[EditedSource, ...]:
    return run.edited_lines.sources if run.edited_lines else ()


def _names(run: Run) -> Iterator[str]:
    for target in run.targets:
        yield from (target.name, target.backend, str(target.arch), target.title)
    for case in run.cases:
        yield from (case.id, case.workload, case.kernel, case.target, case.tier, *case.stages)
        yield case.summary.severity if case.summary else ""
    for launch in run.launches.values():
        yield from (launch.id, launch.workload, launch.kernel, launch.label, launch.source_path)
    for group in run.groups:
        yield from (group.id, group.severity, group.origin_stage, group.pass_name or "")
    for file in run.edited.files if run.edited else ():
        yield from (file.path, *file.feeds)
    yield from (source.path for source in _sources(run))
    yield from (edit.path for edit in run.runtime)
    yield from (run.edited_lines.without_lines if run.edited_lines else ())


def _check_cases(run: Run, refuse: _Refuse) -> None:
    targets = [target.name for target in run.targets]
    if twice := _repeated(targets):
        raise refuse(f"target {_shown(twice)} is there twice")
    if twice := _repeated(case.id for case in run.cases):
        raise refuse(f"case {_shown(twice)} is there twice")
    for key, launch in run.launches.items():
        if key != launch.key:
            raise refuse(f"launch {_shown(key)} is not filed under the digest of what it says")
    for case in run.cases:
        if contradiction := _contradiction(case, frozenset(targets), run):
            raise refuse(f"case {_shown(case.id)} {contradiction}")


def _contradiction(case: Case, targets: frozenset[str], run: Run) -> str | None:
    digests = (case.launches.base, case.launches.head)
    artifacts = (*case.artifacts.base.items(), *case.artifacts.head.items())
    changed = StageStatus.CHANGED in case.stages.values()
    failed = case.failures.head is not None
    claims = {
        "is of a target that the run does not have": bool(case.id) and case.target in targets,
        "names a launch that the run does not have": all(key in run.launches for key in digests if key),
        "names an artifact by something that is not a digest": all(
            _is_whole(*artifact) for artifact in artifacts
        ),
        "has an edit that is not a digest": case.edit is None or bool(DIGEST.fullmatch(case.edit)),
        "is called unchanged and has a changed stage": not (case.verdict is Verdict.UNCHANGED and changed),
        "is called ir-only and has no changed stage": case.verdict is not Verdict.IR_ONLY or changed,
        "is called broken and says no failure": case.verdict is not Verdict.BROKEN or failed,
        "is called failing and says no failure": case.verdict is not Verdict.FAILING or failed,
    }
    return next((claim for claim, holds in claims.items() if not holds), None)


def _is_whole(stage: str, artifact: Artifact) -> bool:
    return artifact.stage == stage and artifact.size_bytes >= 0 and bool(DIGEST.fullmatch(artifact.digest))


def _check_groups(run: Run, refuse: _Refuse) -> None:
    groups = {group.id: group for group in run.groups}
    if len(groups) != len(run.groups):
        raise refuse("two groups have the same id")
    members: dict[str, list[str]] = {}
    for case in run.cases:
        if case.group is not None:
            members.setdefault(case.group, []).append(case.id)
    for group_id in members.keys() - groups.keys():
        raise refuse(f"group {_shown(group_id)} has cases and is not there")
    for group in run.groups:
        same = sorted(group.members) == sorted(members.get(group.id, []))
        if not same or group.representative not in group.members:
            raise refuse(f"the members of group {_shown(group.id)} are not the cases that name it")


def _repeated(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _shown(name: str) -> str:
    # repr: the name may hold terminal escapes
    return ascii(name[:120])
