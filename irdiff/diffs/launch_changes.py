"""What differs in the launch of a case: specialization, options, metadata. It is read from `run.json` alone.

These are nested values whose keys come and go between releases, so deepdiff compares them. An option that
only one release knows is told as such: whether it matters is for the code to say.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from irdiff.model import Case, Run, Verdict

MAX_VALUE = 80
_SAID_ELSEWHERE = frozenset({"hash", "triton_version", "name"})
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


def of_case(case: Case, run: Run) -> list[LaunchChange]:
    """The changes by path. Empty where a side has no launch."""
    ours, theirs = _facts(case, run, "base"), _facts(case, run, "head")
    if not ours or not theirs:
        return []
    equal = {
        (part, name)
        for part in ours
        for name, value in ours[part].items()
        if name in theirs[part] and theirs[part][name] == value
    }
    texts = (
        json.dumps(
            {
                part: {name: v for name, v in rows.items() if (part, name) not in equal}
                for part, rows in side.items()
            },
            sort_keys=True,
        )
        for side in (ours, theirs)
    )
    return list(between(*texts))


@lru_cache(maxsize=4096)
def between(base: str, head: str) -> tuple[LaunchChange, ...]:
    """The changes between two JSON texts of mappings.

    Cached: most cases of a run differ alike, and deepdiff is slow.
    """
    from deepdiff import DeepDiff

    # down to the single values, however few keys two mappings have in common
    different = DeepDiff(json.loads(base), json.loads(head), view="tree", threshold_to_diff_deeper=0)
    found = [
        LaunchChange(
            path=".".join(map(str, level.path(output_format="list"))),
            base=_text(level.t1),
            head=_text(level.t2),
        )
        for levels in different.values()
        for level in levels
    ]
    return tuple(sorted(found))


def chosen(change: LaunchChange) -> bool:
    """Whether it is something that a program or its author chose, and that both sides know."""
    return not change.path.startswith("metadata") and _ABSENT not in (change.base, change.head)


def of_run(run: Run) -> list[tuple[LaunchChange, int]]:
    """The changes over all changed cases with the number of cases that have each, the most frequent first."""
    counts = Counter(
        change for case in run.cases if case.verdict is Verdict.CHANGED for change in of_case(case, run)
    )
    return sorted(counts.items(), key=lambda row: (-row[1], row[0]))


def _facts(case: Case, run: Run, side: str) -> dict[str, Any]:
    launch = run.launches.get(case.launches.of(side) or "")
    if launch is None:
        return {}
    found: dict[str, Any] = {part: dict(getattr(launch, part)) for part in _PARTS}
    metadata: Mapping[str, object] = case.metadata.of(side)
    known = _SAID_ELSEWHERE | found["options"].keys()
    if case.metadata.base and case.metadata.head:
        found["metadata"] = {name: value for name, value in metadata.items() if name not in known}
    return found


def _text(value: object) -> str:
    if type(value).__name__ == "NotPresent":
        return _ABSENT
    text = value if isinstance(value, str) and value else repr(value)
    return text if len(text) <= MAX_VALUE else text[: MAX_VALUE - 1] + "…"
