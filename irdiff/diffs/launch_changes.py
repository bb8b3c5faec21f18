"""What differs in the launch of a case: specialization, options, metadata. It is read from `run.json` alone.

These are nested values whose keys come and go between releases. An option that only one release knows is
reported as such: whether it matters is for the code to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from irdiff.model import Case, Run, Verdict

MAX_VALUE = 80
_SHOWN_ELSEWHERE = frozenset({"hash", "triton_version", "name"})
"""Digests and versions differ in every case of two releases; the name is that of the kernel."""
_PARTS = ("signature", "constexprs", "attributes", "options")
_ABSENT = "not there"


@dataclass(frozen=True, kw_only=True, order=True)
class LaunchChange:
    path: str
    """`options.num_warps`, `metadata.target.arch`, …"""
    base: str
    head: str

    def __str__(self) -> str:
        return f"{self.path}: {self.base} → {self.head}"


def of_case(case: Case, run: Run) -> tuple[LaunchChange, ...]:
    """The changes by path. Empty where a side has no launch."""
    ours, theirs = _facts(case, run, "base"), _facts(case, run, "head")
    return between(ours, theirs) if ours and theirs else ()


def between(base: Mapping[str, object], head: Mapping[str, object]) -> tuple[LaunchChange, ...]:
    """Every single value in which two nested mappings differ, by path."""
    return tuple(
        LaunchChange(path=path, base=ours, head=theirs) for path, ours, theirs in sorted(_changes(base, head))
    )


def _changes(base: object, head: object, path: str = "") -> Iterator[tuple[str, str, str]]:
    if base == head:
        return
    ours, theirs = _parts(base), _parts(head)
    if ours is None or theirs is None:
        yield path, _text(base), _text(head)
        return
    for name in ours.keys() | theirs.keys():
        inner = f"{path}.{name}" if path else name
        if name in ours and name in theirs:
            yield from _changes(ours[name], theirs[name], inner)
        else:
            left, right = (_text(side[name]) if name in side else _ABSENT for side in (ours, theirs))
            yield inner, left, right


def _parts(value: object) -> Mapping[str, object] | None:
    """The values inside a mapping or a list; None for a single value."""
    if isinstance(value, (list, tuple)):
        return {str(index): item for index, item in enumerate(value)}
    return value if isinstance(value, Mapping) else None


def chosen(change: LaunchChange) -> bool:
    """Whether it is something that a program or its author chose, and that both sides know."""
    return not change.path.startswith("metadata") and _ABSENT not in (change.base, change.head)


def of_run(run: Run) -> list[tuple[LaunchChange, int]]:
    """The changes over all changed cases with the number of cases that have each, the most frequent first."""
    counts = Counter(
        change for case in run.cases if case.verdict is Verdict.CHANGED for change in of_case(case, run)
    )
    return sorted(counts.items(), key=lambda row: (-row[1], row[0]))


def _facts(case: Case, run: Run, side: str) -> dict[str, Mapping[str, object]]:
    launch = run.launches.get(case.launches.of(side) or "")
    if launch is None:
        return {}
    found: dict[str, Mapping[str, object]] = {part: getattr(launch, part) for part in _PARTS}
    known = _SHOWN_ELSEWHERE | launch.options.keys()
    if case.metadata.base and case.metadata.head:
        metadata = case.metadata.of(side)
        found["metadata"] = {name: value for name, value in metadata.items() if name not in known}
    return found


def _text(value: object) -> str:
    text = value if isinstance(value, str) and value else repr(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
