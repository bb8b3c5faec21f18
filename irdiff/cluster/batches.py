"""A comparison in parts that other machines can work on: all cases of one workload for one target.

A part is a whole comparison, of both sides, with the options of the one that it is of. What it makes is kept
under the same keys, so the comparison that follows on the first machine finds it, and is right whatever of it
is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import case_ids
from irdiff.config import Limits
from irdiff.pipeline import Comparison
from irdiff.resolve.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a machine is told. It travels pickled, between machines that trust each other."""

    name: str
    comparison: str
    """Of which it is a part: a name that no other one has."""
    asked: Comparison
    cache: Path
    """The folder of the one who asks."""
    token: str | None
    """A file of that folder, where machines are to work in it; None where a shared store is between them."""
    store_url: str | None
    limits: Limits


@dataclass(frozen=True, kw_only=True)
class Worked:
    """What came of a batch: nothing but counts and words."""

    name: str
    cases: int
    refused: str
    """Why the machine could not work on it."""
    wall_s: float

    @property
    def id(self) -> str:
        return self.name


def parts(asked: Comparison) -> list[tuple[str, Comparison]]:
    """Named as `workload@target`; those of long files first.

    A batch that takes long must not begin last, when the other machines have nothing left to do. What it will
    take is not known before its launches are; a long file has more of them, and larger kernels.
    """
    names = {name for side in asked.sides for name in side.corpus.workloads}
    longest_first = sorted(names, key=lambda name: (-_size_bytes(asked, name), name))
    rows = case_ids.places(asked.options.cases, longest_first, asked.targets)
    return [(f"{name}@{target.name}", _part(asked, name, target.name)) for name, target in rows]


def _size_bytes(asked: Comparison, workload: str) -> int:
    """Of the file of a workload, that of the longer side."""
    files = [side.corpus.root / f"{workload}.py" for side in asked.sides]
    return max((file.stat().st_size for file in files if file.is_file()), default=0)


def _part(asked: Comparison, workload: str, target: str) -> Comparison:
    def only(corpus: Corpus) -> Corpus:
        return replace(corpus, workloads=tuple(name for name in corpus.workloads if name == workload))

    return replace(
        asked,
        sides=asked.sides.map(lambda side: replace(side, corpus=only(side.corpus))),
        targets=tuple(row for row in asked.targets if row.name == target),
    )
