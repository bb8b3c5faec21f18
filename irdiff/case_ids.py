"""Names of cases, and the patterns that select them. Pure.

    family/workload:label@target             a case
    family/workload:label/kernel#2@target    the second launch of a kernel, if one label launches several
    family/workload:label/kernel#2-at-base@target    the same for base, if #2 of head is another launch

A pattern is such a name, with parts left out: `matmul` is a family or a workload, `:fp16-4096` a label,
`@sm_90` a target, and `matmul/pointer:fp16-*@gfx9*` has all three. Each part may be a glob, unless a case has
that very text: `n[1]` means the label `n[1]` if there is one, and else `n1`. A pattern that matches no case
in this way is read as words. Each word must occur in the name or in one of its parts: `fp16`, `pointer:fp16`,
`matmul fp16 gfx942`.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from irdiff.errors import UsageError
from irdiff.model import Target

PROGRAMS = "program"
"""The family of workloads that run a program of the repository."""
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, kw_only=True)
class CaseId:
    """The name of a case; without a target, that of a launch."""

    workload: str
    label: str
    """Followed by `/kernel` and `#n` if the label launches several kernels."""
    target: str

    @property
    def family(self) -> str:
        return self.workload.partition("/")[0]

    @property
    def entry(self) -> str:
        """The label in the table of the workload."""
        return re.split("[/#]", self.label, maxsplit=1)[0]

    def __str__(self) -> str:
        return f"{self.workload}:{self.label}" + (f"@{self.target}" if self.target else "")


def parse(name: str) -> CaseId:
    launch, _, target = name.partition("@")
    workload, _, label = launch.partition(":")
    return CaseId(workload=workload, label=label, target=target)


def is_program(workload: str) -> bool:
    """True for a workload that runs a program of the repository."""
    return parse(workload).family == PROGRAMS


def whole(workload: str) -> str:
    """Names all launches of a workload whose launches are not known: it does not load, or has no backend."""
    return f"{workload}:*"


def literally(patterns: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """Escapes each part of a pattern that one of the names has literally."""
    all_names = list(names)
    return tuple(_literally(pattern, all_names) for pattern in patterns)


def _literally(pattern: str, names: Iterable[str]) -> str:
    if not _GLOB.search(pattern):
        return pattern
    cases = list(map(parse, names))
    launch, at, target = pattern.partition("@")
    workload, colon, label = launch.partition(":")
    workloads = {part for case in cases for part in (case.workload, *case.workload.split("/", 1))}
    labels = {part for case in cases for part in (case.label, case.entry)}
    if workload.rstrip("/") in workloads:
        workload = glob.escape(workload)
    if label in labels:
        label = glob.escape(label)
    if target in {case.target for case in cases}:
        target = glob.escape(target)
    return f"{workload}{colon}{label}{at}{target}"


def typed(pattern: str) -> str:
    """Returns an escaped pattern as a user types it."""
    return re.sub(r"\[([*?\[])\]", r"\1", pattern)


def selects(patterns: Sequence[str], name: str) -> bool:
    """True if a pattern matches the case, or if there are no patterns."""
    return not patterns or any(_selects(pattern, name) for pattern in patterns)


def _selects(pattern: str, name: str) -> bool:
    wanted, case = parse(pattern), parse(name)
    return _is_place(case.workload, case.target, wanted) and any(
        fnmatchcase(label, wanted.label or "*") for label in (case.label, case.entry)
    )


def places(
    patterns: Sequence[str], workloads: Iterable[str], targets: Sequence[Target]
) -> list[tuple[str, Target]]:
    """Returns the (workload, target) pairs that may have a matching case, in the given order."""
    wanted = [parse(pattern) for pattern in patterns]
    return [
        (workload, target)
        for workload in workloads
        for target in targets
        if not wanted or any(_is_place(workload, target.name, row) for row in wanted)
    ]


def labels(patterns: Sequence[str], workload: str, target: str) -> tuple[str, ...]:
    """Returns globs of the labels that the patterns select in one of `places`; empty if they select all."""
    rows = [parse(pattern) for pattern in patterns]
    chosen = {entry.label or "*" for entry in rows if _is_place(workload, target, entry)}
    return () if "*" in chosen else tuple(sorted(chosen))


def _is_place(workload: str, target: str, wanted: CaseId) -> bool:
    return _is_workload(workload, wanted.workload) and fnmatchcase(target, wanted.target or "*")


def _is_workload(name: str, pattern: str) -> bool:
    """`matmul` and `matmul/` select the family, `matmul/pointer` and `pointer` one workload."""
    family, _, own = name.partition("/")
    part = pattern.rstrip("/")
    return not part or any(fnmatchcase(text, part) for text in (name, family, own))


# patterns as users type them


def meant(pattern: str, names: Iterable[str]) -> list[str]:
    """Returns the names that the pattern matches; if there are none, those that have its words."""
    known = list(names)
    literal = _literally(pattern, known)
    fitting = [name for name in known if _selects(literal, name)]
    return fitting or [name for name in known if all(_has(word, name) for word in _words(pattern, known))]


def _words(pattern: str, names: Sequence[str]) -> list[str]:
    """Escapes each word that a name has literally."""
    words = ((glob.escape(word), word) for word in pattern.split())
    return [next(word for word in forms if word == forms[-1] or _any_has(word, names)) for forms in words]


def _any_has(word: str, names: Sequence[str]) -> bool:
    return any(_has(word, name) for name in names)


def _has(word: str, name: str) -> bool:
    wanted, case = parse(word), parse(name)
    if not wanted.label and not wanted.target:
        return _is_within(word, name)
    where = case.workload if wanted.label else name.partition("@")[0]
    return (
        _is_within(wanted.workload, where)
        and _is_within(wanted.label, case.label)
        and _is_within(wanted.target, case.target)
    )


def _is_within(part: str, text: str) -> bool:
    return fnmatchcase(text, f"*{part}*")


LaunchesOf = Callable[[Sequence[str]], Iterable[str]]
"""Returns the names of all launches of some workloads."""


def completed(
    patterns: Sequence[str], workloads: Iterable[str], launches_of: LaunchesOf, targets: Sequence[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Maps each pattern, as typed, to patterns with whole names that select the same.

    Labels are known only after a workload has run. So if the names of workloads do not suffice, it calls
    `launches_of`, once for all patterns. Raises UsageError for a pattern that matches nothing, with the
    closest names: a comparison must not silently leave out what a user asked for.
    """
    known = tuple(dict.fromkeys(workloads))
    rows = {pattern: _by_workload(pattern, known) for pattern in patterns}
    every = frozenset[str]().union(*(asked for _, asked in rows.values()))
    launches = tuple(dict.fromkeys(launches_of([name for name in known if name in every]))) if every else ()
    completions = {}
    for pattern, (found, asked) in rows.items():
        theirs = [launch for launch in launches if parse(launch).workload in asked]
        completions[pattern] = found or _by_launch(pattern, known, theirs, targets)
    return completions


def _by_workload(pattern: str, known: Sequence[str]) -> tuple[tuple[str, ...], Collection[str]]:
    """Returns (whole patterns, ()) if the names of workloads suffice; else ((), the workloads whose launches
    decide).
    """
    pattern = _literally(pattern, known)
    wanted = parse(pattern)
    fitting = [name for name in known if _is_workload(name, wanted.workload)]
    if fitting and (not wanted.label or ("[" not in wanted.label and _GLOB.search(wanted.label))):
        return (pattern,), ()
    within = fitting or [name for name in known if wanted.workload in name]
    if within and not wanted.label:
        return tuple(name + pattern[len(wanted.workload) :] for name in within), ()
    is_workload = "/" in wanted.workload  # a part of a label is not written so
    return (), frozenset(within or (() if is_workload else known))


def _by_launch(
    pattern: str, known: Sequence[str], launches: Sequence[str], targets: Sequence[str]
) -> tuple[str, ...]:
    """Completes a pattern by the launches of the workloads that it may select. Raises UsageError."""
    matching = meant(pattern, launches)
    if not matching:  # one of the words names a target
        matching = meant(pattern, [f"{launch}@{target}" for launch in launches for target in targets])
    if not matching:
        words, listed = near(pattern, [*known, *launches]), "`irdiff corpus list` lists them"
        hint = f"did you mean {', '.join(words)}? {listed}" if words else listed
        raise UsageError(f"--case {pattern!r} matches no case", hint=hint)
    literal = _literally(pattern, [*launches, *(f"{name}@{target}" for name in known for target in targets)])
    if any(_selects(literal, name) for name in matching):
        return (literal,)
    return tuple(map(_escaped, matching))


def _escaped(name: str) -> str:
    case = parse(name)
    workload, label, target = map(glob.escape, (case.workload, case.label, case.target))
    return str(CaseId(workload=workload, label=label, target=target))


def near(text: str, names: Iterable[str]) -> list[str]:
    """Returns up to three names, or parts of names, that are close to the text."""
    parts = dict.fromkeys(
        part
        for name in names
        for case in (parse(name),)
        for part in (
            name,
            case.workload,
            *case.workload.split("/", 1),
            case.label,
            *re.split("[-/#]", case.label),
            case.target,
        )
        if part
    )
    return get_close_matches(text, list(parts), n=3)


def may_select(patterns: Sequence[str], target: str) -> bool:
    """True if a pattern may match a case of the target, or if there are no patterns."""
    return not patterns or any(fnmatchcase(target, parse(pattern).target or "*") for pattern in patterns)


def unmatched(patterns: Sequence[str], names: Iterable[str]) -> list[str]:
    """Returns the patterns that match none of the cases."""
    found = list(names)
    return [pattern for pattern in patterns if not any(_selects(pattern, name) for name in found)]
