"""Launches of kernels that were renamed or moved, matched between base and head. Pure.

First launches whose source, with all it calls, is the same (a moved kernel); then kernels whose own text is
alike once the kernel's name is set aside (a renamed one, perhaps edited a little). A kernel is matched
as a whole, then its launches by label and specialization.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from irdiff.capture.numbered import specialization
from irdiff.model import Launch, Pair

LIKENESS = 0.85
"""Least share of lines that two kernels must have in common to be one. Git's default for a renamed file is
0.5; kernels of a family share their loads, masks and stores, so more is asked."""

KIN_LIKENESS = 0.5
"""The same where the workload, the kernel's name or its file stayed."""

_COMMENT = re.compile(r"#[^\n]*")
_MAX_PAIRS = 20_000

Source = Callable[[Launch], str]
"""The text of a launch's kernel function on its own side; empty where it cannot be found."""


def join(pairs: Sequence[Pair], base_source: Source, head_source: Source) -> list[Pair]:
    """The same pairs, those of a renamed kernel joined under the id they have at head."""
    removed = [pair.base for pair in pairs if isinstance(pair.base, Launch) and pair.head is None]
    added = [pair.head for pair in pairs if isinstance(pair.head, Launch) and pair.base is None]
    found = match(removed, added, base_source, head_source)
    by_place = {(pair.launch_id, pair.target.name): pair for pair in pairs}
    joined, gone = [], set()
    for before, after in found.items():
        for old in (pair for pair in pairs if _is_only_at_base(pair, before)):
            new = by_place.get((after, old.target.name))
            if new is not None and new.base is None:
                joined.append(replace(new, base=old.base))
                gone.update({old.id, new.id})
    rest = [pair for pair in pairs if pair.id not in gone]
    return sorted([*rest, *joined], key=lambda pair: pair.id)


def _is_only_at_base(pair: Pair, launch_id: str) -> bool:
    return isinstance(pair.base, Launch) and pair.base.id == launch_id and pair.head is None


def match(
    removed: Sequence[Launch], added: Sequence[Launch], base_source: Source, head_source: Source
) -> dict[str, str]:
    """Id at base → id at head. Ids that are on both sides must not be among `removed` or `added`."""
    old, new = _by_kernel(removed), _by_kernel(added)
    pairs = _same_source(old, new)
    rest_old = {key: rows for key, rows in old.items() if key not in pairs}
    rest_new = {key: rows for key, rows in new.items() if key not in pairs.values()}
    pairs.update(_alike(rest_old, rest_new, base_source, head_source))
    found: dict[str, str] = {}
    for before, after in pairs.items():
        found.update(_launches(old[before], new[after]))
    return found


_Kernel = tuple[str, str]


def _by_kernel(launches: Iterable[Launch]) -> dict[_Kernel, list[Launch]]:
    rows: dict[_Kernel, list[Launch]] = defaultdict(list)
    for launch in sorted(launches, key=lambda row: (row.id, row.target)):
        rows[launch.workload, launch.kernel].append(launch)
    return dict(rows)


def _same_source(
    old: Mapping[_Kernel, list[Launch]], new: Mapping[_Kernel, list[Launch]]
) -> dict[_Kernel, _Kernel]:
    pairs: dict[_Kernel, _Kernel] = {}
    free = dict(new)
    for key, rows in old.items():
        digests = {row.source_digest for row in rows}
        same = [other for other, theirs in free.items() if digests & {row.source_digest for row in theirs}]
        if same:
            best = max(same, key=lambda other: (other[1] == key[1], _name_likeness(key, other)))
            pairs[key] = best
            del free[best]
    return pairs


def _alike(
    old: Mapping[_Kernel, list[Launch]],
    new: Mapping[_Kernel, list[Launch]],
    base_source: Source,
    head_source: Source,
) -> dict[_Kernel, _Kernel]:
    """Pairs from the most alike down."""
    if len(old) * len(new) > _MAX_PAIRS:
        return {}
    before = {key: _lines(base_source(rows[0]), key[1]) for key, rows in old.items()}
    after = {key: _lines(head_source(rows[0]), key[1]) for key, rows in new.items()}
    scored = []
    for key, ours in before.items():
        for other, theirs in after.items():
            kin = _are_kin(old[key][0], new[other][0])
            likeness = _likeness(ours, theirs)
            if likeness >= (KIN_LIKENESS if kin else LIKENESS):
                scored.append((likeness, _name_likeness(key, other), key, other))
    pairs: dict[_Kernel, _Kernel] = {}
    taken: set[_Kernel] = set()
    for _, _, key, other in sorted(scored, reverse=True):
        if key not in pairs and other not in taken:
            pairs[key] = other
            taken.add(other)
    return pairs


def _are_kin(ours: Launch, theirs: Launch) -> bool:
    return (
        ours.workload == theirs.workload
        or ours.kernel == theirs.kernel
        or ours.source_path == theirs.source_path
    )


def _lines(source: str, kernel: str) -> list[str]:
    """Without comments, and without the kernel's own name."""
    name = re.compile(rf"\b{re.escape(kernel)}\b")
    text = name.sub("KERNEL", _COMMENT.sub("", source))
    return [line.strip() for line in text.splitlines() if line.strip()]


def _likeness(ours: list[str], theirs: list[str]) -> float:
    if not ours or not theirs:
        return 0.0
    matcher = difflib.SequenceMatcher(None, ours, theirs, autojunk=False)
    if matcher.real_quick_ratio() < KIN_LIKENESS or matcher.quick_ratio() < KIN_LIKENESS:
        return 0.0
    return matcher.ratio()


def _name_likeness(key: _Kernel, other: _Kernel) -> float:
    return difflib.SequenceMatcher(None, "/".join(key), "/".join(other)).ratio()


def _launches(old: Sequence[Launch], new: Sequence[Launch]) -> dict[str, str]:
    """Launches of one kernel: by label first, then by what was specialized, then in order."""
    found: dict[str, str] = {}
    ours = {launch.id: launch for launch in reversed(old)}
    theirs = {launch.id: launch for launch in reversed(new)}
    keys: tuple[Callable[[Launch], object], ...] = (
        lambda row: (row.label, specialization(row)),
        lambda row: row.label,
        specialization,
    )
    for key in keys:
        free = {other: launch for other, launch in theirs.items() if other not in found.values()}
        for name in sorted(set(ours) - set(found)):
            same = sorted(other for other, launch in free.items() if key(launch) == key(ours[name]))
            if same:
                found[name] = same[0]
                del free[same[0]]
    return found
