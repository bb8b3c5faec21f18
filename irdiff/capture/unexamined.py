"""Says what the sides have, or may have, that no case covers, for the top of a report."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from irdiff.capture import notices
from irdiff.capture.pairing import CapturedWorkload
from irdiff.model import Sides
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.words import counted, first_few

_SHOWN = 3


def of_sides(sides: Sides[Side], captured: Sequence[CapturedWorkload]) -> tuple[str, ...]:
    """Returns all clauses, in full: somebody may accept them one by one."""
    corpora = sides.map(lambda side: side.corpus)
    return (
        *_unseen_launches(captured),
        *_borrowed(corpora, captured),
        *_pointers(corpora, captured),
        *_absent_submodules(corpora, captured),
        *_ignored(corpora, captured),
        *_pins(sides),
        *_dropped_targets(sides, captured),
    )


def merged(launches: Sequence[str]) -> Iterator[str]:
    """Returns a note on launches at base whose calls another launch makes at head: its kernel was compared
    once.
    """
    if launches:
        is_one = len(launches) == 1
        share, own = ("shares", "it is no case of its") if is_one else ("share", "they are no cases of their")
        words = f"at head {counted(len(launches), 'launch')} {share} the compiled kernel of another"
        yield f"{words}, so {own} own: {first_few(launches, _SHOWN)}"


def _unseen_launches(captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """`bench/run.py:12 starts another Python process: what that launches was not compared`."""
    catalogs = (catalog for each in captured for catalog in each.catalogs)
    yield from notices.at_lines((each for catalog in catalogs for each in catalog.uncompared), sys.maxsize)


def _borrowed(corpora: Sides[Corpus], captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """Covers kernels in workloads that one side has from the other: they are the same on both sides."""
    for side, other in (("base", "head"), ("head", "base")):
        folder = corpora.of(side).borrowed_workloads
        launches = (launch for each in captured for launch in each.catalogs.of(side).launches)
        files = (source for launch in launches for source in launch.sources)
        if folder and any(source.startswith(f"{folder}/") for source in files):
            yield f"{side} has no {folder}/ and took that of {other}: kernels in it were not compared"


def _pointers(corpora: Sides[Corpus], captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """Covers pointers that differ, and those that a workload read instead of the content."""
    base, head = (corpus.pointers for corpus in corpora)
    differing = {path for path, _ in base.items() ^ head.items()}
    read = {path for of_workload in captured for catalog in of_workload.catalogs for path in catalog.read}
    for name in sorted(differing | (read & (base.keys() | head.keys()))):
        yield f"the content of {name} was not compared: a pointer of git-lfs stands for it"


def _absent_submodules(corpora: Sides[Corpus], captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """Covers submodules whose commit differs, or in which a program looked for a file."""
    base, head = (corpus.absent_submodules for corpus in corpora)
    differing = {path for path, _ in base.items() ^ head.items()}
    places = {
        place.lstrip("/")
        for of_workload in captured
        for catalog in of_workload.catalogs
        for place in catalog.missing
    }
    wanted = {path for path in {*base, *head} if any(f"{place}/".startswith(f"{path}/") for place in places)}
    for name in sorted(differing | wanted):
        yield f"{name} was not compared: this submodule is not there (git submodule update --init)"


def _ignored(corpora: Sides[Corpus], captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """Covers files that programs looked for, and that only the working tree has."""
    missing = {
        name
        for of_workload in captured
        for corpus, catalog in corpora.zip(of_workload.catalogs)
        for place in (catalog.missing if corpus.ignored else ())
        if corpus.ignored and (name := corpus.ignored.at(place))
    }
    for name in sorted(missing):
        yield f"programs looked for {name}, which git ignores: no side had it"


def _pins(sides: Sides[Side]) -> Iterator[str]:
    if pins := sides.head.unfollowed_pins:
        yield f"the pin of {'; '.join(pins)} differs and was not followed"


def _dropped_targets(sides: Sides[Side], captured: Sequence[CapturedWorkload]) -> Iterator[str]:
    """Covers targets that are compared no longer, unless the user named them."""
    compared = {of_workload.target.name for of_workload in captured}
    if names := [name for name in sides.head.dropped_targets if name not in compared]:
        what, was = ("target", "it was") if len(names) == 1 else ("targets", "they were")
        yield f"head's irdiff.toml no longer names the {what} {first_few(names, _SHOWN)}: {was} not compared"
