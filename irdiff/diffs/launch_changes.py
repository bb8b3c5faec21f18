"""Lists what differs in the launch of a case: specialization, options, metadata. Reads `run.json` alone.

These are nested values whose keys come and go between releases, so deepdiff compares them. An option that
only one release knows is reported as such: whether it matters is for the code to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from irdiff.model import Case, Run, Verdict

MAX_VALUE = 80
_SHOWN_ELSEWHERE = frozenset({"hash", "triton_version", "name"})
"""Digests and versions differ in every case of two releases; the name is that of the kernel."""
_PARTS = ("signature", "constexprs", "attributes", "options")
_ABSENT = "not known"


@dataclass(frozen=True, kw_only=True, order=True)
class LaunchChange:
    path: str
    """`options.num_warps`, `metadata.target.arch`, …"""
    base: str
    head: str

    @property
    def is_known_to_both(self) -> bool:
        return _ABSENT not in (self.base, self.head)

    def __str__(self) -> str:
        if self.base == _ABSENT:
            return f"{self.path} = {self.head}: only head has it"
        if self.head == _ABSENT:
            return f"{self.path} = {self.base}: only base has it"
        return f"{self.path}: {self.base} → {self.head}"


def of_case(case: Case, run: Run) -> tuple[LaunchChange, ...]:
    """The changes by path. Empty where a side has no launch."""
    ours, theirs = _facts(case, run, "base"), _facts(case, run, "head")
    if not ours or not theirs:
        return ()
    base = {part: _unlike(values, theirs[part]) for part, values in ours.items()}
    head = {part: _unlike(values, ours[part]) for part, values in theirs.items()}
    return between(base, head)


def _unlike(values: Mapping[str, object], others: Mapping[str, object]) -> dict[str, object]:
    """Without what the other side has too, which is most of it."""
    return {name: value for name, value in values.items() if name not in others or others[name] != value}


def between(base: Mapping[str, object], head: Mapping[str, object]) -> tuple[LaunchChange, ...]:
    """Every single value in which two nested mappings differ, by path."""
    return _between(json.dumps(base, sort_keys=True), json.dumps(head, sort_keys=True))


@lru_cache(maxsize=4096)
def _between(base: str, head: str) -> tuple[LaunchChange, ...]:
    """Takes two JSON texts; cached, since most cases of a run differ alike and deepdiff is slow."""
    from deepdiff import DeepDiff

    # down to the single values, however few keys two mappings have in common
    different = DeepDiff(json.loads(base), json.loads(head), view="tree", threshold_to_diff_deeper=0)
    differing = (
        (".".join(map(str, level.path(output_format="list"))), _text(level.t1), _text(level.t2))
        for levels in different.values()
        for level in levels
    )
    return tuple(LaunchChange(path=path, base=ours, head=theirs) for path, ours, theirs in sorted(differing))


def chosen(change: LaunchChange) -> bool:
    """True if a program or its author chose the values, and both sides have one."""
    return change.is_known_to_both and not change.path.startswith("metadata")


def of_run(run: Run) -> list[tuple[LaunchChange, int]]:
    """The changes over all changed cases with the number of cases that have each, the most frequent first."""
    counts = Counter(
        change for case in run.cases if case.verdict is Verdict.CHANGED for change in of_case(case, run)
    )
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))


def _facts(case: Case, run: Run, side: str) -> dict[str, Mapping[str, object]]:
    launch = run.launches.get(case.launches.of(side) or "")
    if launch is None:
        return {}
    parts: dict[str, Mapping[str, object]] = {part: getattr(launch, part) for part in _PARTS}
    shown = _SHOWN_ELSEWHERE | launch.options.keys()
    if case.metadata.base and case.metadata.head:
        metadata = case.metadata.of(side)
        parts["metadata"] = {name: value for name, value in metadata.items() if name not in shown}
    return parts


def _text(value: object) -> str:
    if type(value).__name__ == "NotPresent":
        return _ABSENT
    text = value if isinstance(value, str) and value else repr(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
