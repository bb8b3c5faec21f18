"""Matches launches of renamed or moved kernels between base and head.

It first matches kernels whose source, with all callees, is the same: these moved. Then it matches kernels
whose own text is similar apart from the kernel's name: these were renamed, and perhaps edited a little. After
a kernel, it matches its launches, by label and specialization.

A workload or a label is matched with another one only if base alone has the former and head alone the latter.
All launches of a label at base are matched with launches of one label at head, and the other way around. A
launch that one of them drops and another gains is removed and added: both launch something else now.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from irdiff.capture import pairing
from irdiff.capture.pairing import Entry, specialization
from irdiff.model import Launch, Pair, Sides

LIKENESS = 0.85
"""The least share of lines that two kernels must have in common. Git's default for a renamed file is 0.5;
kernels of a family share their loads, masks and stores, so more is required.
"""

KIN_LIKENESS = 0.5
"""The least share of common lines if the workload, the kernel's name or its file stayed the same."""

_OF_KIN = ("workload", "kernel", "source_path")
_COMMENT = re.compile(r"#[^\n]*")
_MAX_PAIRS = 20_000

Source = Callable[[Launch], str]
"""The text of a launch's kernel on its own side; empty if it cannot be found."""


def join(
    pairs: Sequence[Pair], entries: Sides[frozenset[Entry]], base_source: Source, head_source: Source
) -> list[Pair]:
    """Joins the pairs of a renamed kernel under the id that they have at head. `entries`: of both sides."""
    removed = [pair.base for pair in pairs if isinstance(pair.base, Launch) and pair.head is None]
    added = [pair.head for pair in pairs if isinstance(pair.head, Launch) and pair.base is None]
    renamed = match(removed, added, entries, base_source, head_source)
    by_place = {(pair.launch_id, pair.target.name): pair for pair in pairs}
    joined, gone = [], set()
    for before, after in renamed.items():
        for old in pairs:
            is_gone = isinstance(old.base, Launch) and old.base.id == before and old.head is None
            new = by_place.get((after, old.target.name)) if is_gone else None
            if new is not None and new.base is None:
                joined.append(replace(new, base=old.base))
                gone.update({old.id, new.id})
    rest = [pair for pair in pairs if pair.id not in gone]
    return sorted([*rest, *joined], key=lambda pair: pair.id)


def match(
    removed: Sequence[Launch],
    added: Sequence[Launch],
    entries: Sides[frozenset[Entry]],
    base_source: Source,
    head_source: Source,
) -> dict[str, str]:
    """Maps ids at base to ids at head. No id may be on both sides."""
    alone = entries.base ^ entries.head
    in_both = {workload for workload, _ in entries.base} & {workload for workload, _ in entries.head}

    def may_be(key: _Kernel, other: _Kernel) -> bool:
        return key[0] == other[0] or in_both.isdisjoint((key[0], other[0]))

    old, new = _by_kernel(removed), _by_kernel(added)
    pairs = _same_source(old, new, may_be)
    rest_old = {key: launches for key, launches in old.items() if key not in pairs}
    rest_new = {key: launches for key, launches in new.items() if key not in pairs.values()}
    pairs.update(_alike(rest_old, rest_new, may_be, base_source, head_source))
    names: dict[str, str] = {}
    for before, after in pairs.items():
        # by label first, then by what was specialized
        names.update(
            pairing.greedily(
                _each_once(old[before]),
                _each_once(new[after]),
                lambda launch: (launch.label, specialization(launch)),
                lambda launch: launch.label,
                lambda launch: (launch.workload, launch.label) in alone and specialization(launch),
            )
        )
    entry_of = {launch.id: (launch.workload, launch.label) for launch in (*removed, *added)}
    return _from_one_entry_to_one(names, entry_of)


def _from_one_entry_to_one(names: Mapping[str, str], entry_of: Mapping[str, Entry]) -> dict[str, str]:
    """Leaves to each entry the one partner with which it shares the most launches."""
    shared = Counter((entry_of[before], entry_of[after]) for before, after in sorted(names.items()))
    partners: dict[Entry, Entry] = {}
    for (old, new), _ in shared.most_common():
        if old not in partners and new not in partners.values():
            partners[old] = new
    return {
        before: after for before, after in names.items() if partners.get(entry_of[before]) == entry_of[after]
    }


_Kernel = tuple[str, str]
_Kernels = Mapping[_Kernel, list[Launch]]
_MayBe = Callable[[_Kernel, _Kernel], bool]
"""True if a kernel of base may have become a kernel of head."""


def _by_kernel(launches: Iterable[Launch]) -> _Kernels:
    by_kernel: dict[_Kernel, list[Launch]] = defaultdict(list)
    for launch in sorted(launches, key=lambda each: (each.id, each.target)):
        by_kernel[launch.workload, launch.kernel].append(launch)
    return dict(by_kernel)


def _each_once(launches: Iterable[Launch]) -> list[Launch]:
    return list({launch.id: launch for launch in launches}.values())


def _same_source(old: _Kernels, new: _Kernels, may_be: _MayBe) -> dict[_Kernel, _Kernel]:
    pairs: dict[_Kernel, _Kernel] = {}
    for key, launches in old.items():
        digests = {launch.source_digest for launch in launches}
        same = [
            other
            for other, theirs in new.items()
            if may_be(key, other)
            and other not in pairs.values()
            and digests & {launch.source_digest for launch in theirs}
        ]
        if same:
            pairs[key] = max(same, key=lambda other: (other[1] == key[1], _name_likeness(key, other)))
    return pairs


def _alike(
    old: _Kernels, new: _Kernels, may_be: _MayBe, base_source: Source, head_source: Source
) -> dict[_Kernel, _Kernel]:
    """Pairs the most similar kernels first."""
    if len(old) * len(new) > _MAX_PAIRS:
        return {}
    before = {key: _lines(base_source(launches[0]), key[1]) for key, launches in old.items()}
    after = {key: _lines(head_source(launches[0]), key[1]) for key, launches in new.items()}
    scored = []
    for key, ours in before.items():
        for other, theirs in after.items():
            if not may_be(key, other):
                continue
            one, another = old[key][0], new[other][0]
            kin = any(getattr(one, name) == getattr(another, name) for name in _OF_KIN)
            similarity = _likeness(ours, theirs)
            if similarity >= (KIN_LIKENESS if kin else LIKENESS):
                scored.append((similarity, _name_likeness(key, other), key, other))
    pairs: dict[_Kernel, _Kernel] = {}
    for _, _, key, other in sorted(scored, reverse=True):
        if key not in pairs and other not in pairs.values():
            pairs[key] = other
    return pairs


def _lines(source: str, kernel: str) -> list[str]:
    """Omits comments, and the kernel's own name."""
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
