"""A series from its beginning: each version compiled once, each compared with the one before it.

Each result is in the history before the next step begins, so a stopped backfill continues where it
was. A version that cannot be had or built is a gap: its neighbours are compared with each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from irdiff.capture.catalogs import Wanted
from irdiff.errors import NothingComparedError, ToolchainError
from irdiff.history import add, database
from irdiff.history.inventory import Inventory
from irdiff.history.versions import Point
from irdiff.model import Run, Sides, Target
from irdiff.resolve.sides import Side


class Steps(Protocol):
    """What a backfill is done with: the pipeline, handed in."""

    def resolve(self, spec: str) -> Side:
        """Raises ToolchainError for a version that cannot be had."""
        ...

    def measure(self, side: Side) -> Inventory: ...

    def compare(self, sides: Sides[Side], folder: Path) -> Run: ...

    def say(self, text: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What of each version counts, and where everything goes."""

    targets: tuple[Target, ...]
    wanted: Wanted
    corpus: str
    """The digest of the kernels; empty where each version has its own."""
    compiler: str
    """The digest of the compiler that somebody chose for all versions; empty where each has its own."""
    file: Path
    runs: Path
    """Where the folders of the runs go."""

    @property
    def selection(self) -> str:
        wanted = self.wanted
        return add.selection_key(self.targets, wanted.tiers, wanted.cases, self.corpus, self.compiler)


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    """What was done."""

    measured: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]
    known: int
    """Versions and pairs that the history had."""
    gaps: tuple[str, ...]
    """Versions that could not be had, each with why."""


def backfill(points: Sequence[Point], choice: Choice, steps: Steps) -> Backfilled:
    """Brings a series into the history. Points are in their order, the oldest first."""
    measured: list[str] = []
    compared: list[tuple[str, str]] = []
    gaps: list[str] = []
    known = 0
    sides: dict[str, Side] = {}

    def side(point: Point) -> Side:
        if point.name not in sides:
            sides[point.name] = steps.resolve(point.spec)
        return sides[point.name]

    before: Point | None = None
    for number, point in enumerate(points, 1):
        try:
            if _is_known(choice, "inventories WHERE version = ?", point.name):
                known += 1
            else:
                steps.say(f"{point.label} ({number}/{len(points)}): compiling")
                _measure(point, side(point), choice, steps)
                measured.append(point.name)
            if before is None:
                pass
            elif _is_known(choice, "runs WHERE base = ? AND head = ?", before.name, point.name):
                known += 1
            else:
                steps.say(f"{before.label} -> {point.label}: comparing")
                _compare(before, point, Sides(base=side(before), head=side(point)), choice, steps)
                compared.append((before.name, point.name))
        except (ToolchainError, NothingComparedError) as error:
            gaps.append(f"{point.label}: {error.what.splitlines()[0]}")
            steps.say(f"ATTENTION: {gaps[-1]}")
            continue
        if before is not None:
            sides.pop(before.name, None)
        before = point
    return Backfilled(measured=tuple(measured), compared=tuple(compared), known=known, gaps=tuple(gaps))


def _is_known(choice: Choice, place: str, *names: str) -> bool:
    if not choice.file.is_file():
        return False
    with database.reading(choice.file) as history:
        query = f"SELECT count(*) FROM {place} AND selection = ?"  # noqa: S608 - a place is this module's own
        return bool(history.value(query, [*names, choice.selection]))


def _measure(point: Point, side: Side, choice: Choice, steps: Steps) -> None:
    found = steps.measure(side)
    with database.writing(choice.file) as history:
        add.add_inventory(history, point.version(side), choice.selection, found)
    steps.say(
        f"{point.label}: {len(found.cases)} cases, {found.compiled} compiled now, "
        f"{found.wall_s:.0f} s wall, {found.cpu_s:.0f} s CPU"
    )


def _compare(base: Point, head: Point, sides: Sides[Side], choice: Choice, steps: Steps) -> None:
    folder = choice.runs / f"{_file_name(base)}..{_file_name(head)}-{choice.selection[:8]}"
    run = steps.compare(sides, folder)
    named = Sides(base=base.version(sides.base), head=head.version(sides.head))
    with database.writing(choice.file) as history:
        add.add_run(history, run, folder, named, choice.selection)
    steps.say(f"{base.label} -> {head.label}: {run.duration_s:.0f} s")


def _file_name(point: Point) -> str:
    return "".join(letter if letter.isalnum() or letter in "._+-" else "-" for letter in point.label)[:60]
