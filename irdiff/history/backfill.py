"""Builds a series from its beginning: each version is compiled once, and compared with the one before it.

Each result is in the history before the next step begins, so a stopped backfill continues where it was. A
version that cannot be installed or built is a gap: its neighbours are compared with each other.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from irdiff import pipeline
from irdiff.comparison import Comparison
from irdiff.compile import selecting
from irdiff.config import Config
from irdiff.errors import NothingComparedError, ToolchainError
from irdiff.history import add, database, inventory
from irdiff.history.inventory import Inventory
from irdiff.history.versions import Point
from irdiff.model import Options, Run, Sides, Target
from irdiff.parallel import Report
from irdiff.resolve.sides import Side, SideOptions, resolve_sides
from irdiff.words import counted


@dataclass(frozen=True, kw_only=True)
class Backfilled:
    measured: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]
    already_there: int
    """Counts versions and pairs."""
    gaps: tuple[str, ...]
    """Versions that could not be installed, each with its reason."""


@dataclass(frozen=True, kw_only=True)
class Backfill:
    config: Config
    targets: tuple[Target, ...]
    sides: SideOptions
    options: Options
    corpus: str
    """The digest of the kernels; empty if each version has its own."""
    compiler: str
    """The digest of the compiler that the user chose for all versions; empty if each has its own."""
    file: Path
    runs: Path
    say: Callable[[str], None]
    progress: Callable[[], AbstractContextManager[Report]]

    @property
    def selection(self) -> str:
        chosen = self.options
        return add.selection_key(self.targets, chosen.tiers, chosen.cases, self.corpus, self.compiler)

    def run(self, points: Sequence[Point]) -> Backfilled:
        """Takes the oldest point first."""
        measured: list[str] = []
        compared: list[tuple[str, str]] = []
        gaps: list[str] = []
        already_there = 0
        sides: dict[str, Side] = {}

        def side(point: Point) -> Side:
            if point.name not in sides:
                sides[point.name] = self.resolve(point.spec)
            return sides[point.name]

        before: Point | None = None
        for number, point in enumerate(points, 1):
            try:
                if self._is_there("inventories WHERE version = ?", point.name):
                    already_there += 1
                else:
                    self.say(f"{point.label} ({number}/{len(points)}): compiling")
                    self._measure(point, side(point))
                    measured.append(point.name)
                if before is None:
                    pass
                elif self._is_there("runs WHERE base = ? AND head = ?", before.name, point.name):
                    already_there += 1
                else:
                    self.say(f"{before.label} -> {point.label}: comparing")
                    self._compare(before, point, Sides(base=side(before), head=side(point)))
                    compared.append((before.name, point.name))
            except (ToolchainError, NothingComparedError) as error:
                gaps.append(f"{point.label}: {error.what.splitlines()[0]}")
                self.say(f"ATTENTION: {gaps[-1]}")
                continue
            if before is not None:
                sides.pop(before.name, None)
            before = point
        return Backfilled(
            measured=tuple(measured), compared=tuple(compared), already_there=already_there, gaps=tuple(gaps)
        )

    def _is_there(self, place: str, *names: str) -> bool:
        if not self.file.is_file():
            return False
        with database.reading(self.file) as history:
            query = f"SELECT count(*) FROM {place} AND selection = ?"  # noqa: S608 - a place is this module's own
            return bool(history.value(query, [*names, self.selection]))

    def _measure(self, point: Point, side: Side) -> None:
        inventory = self.measure(side)
        with database.writing(self.file) as history:
            add.add_inventory(history, point.version(side), self.selection, inventory)
        self.say(
            f"{point.label}: {counted(len(inventory.cases), 'case')}, {inventory.compiled} compiled now, "
            f"{inventory.wall_s:.0f} s wall, {inventory.cpu_s:.0f} s CPU"
        )

    def _compare(self, base: Point, head: Point, sides: Sides[Side]) -> None:
        folder = self.runs / f"{_file_name(base)}..{_file_name(head)}-{self.selection[:8]}"
        run = self.compare(sides, folder)
        named = Sides(base=base.version(sides.base), head=head.version(sides.head))
        with database.writing(self.file) as history:
            add.add_run(history, run, folder, named, self.selection)
        self.say(f"{base.label} -> {head.label}: {run.duration_s:.0f} s")

    # with compilers

    def resolve(self, spec: str) -> Side:
        """Raises ToolchainError."""
        return resolve_sides(spec, spec, self.sides, self.config).base

    def whole_names(self, newest_first: Sequence[Point]) -> tuple[str, ...]:
        """Expands the patterns with the newest version, because it has the most launches."""
        patterns = self.options.cases
        for point in newest_first if patterns else ():
            with contextlib.suppress(ToolchainError), self.progress() as report:
                sides = [self.resolve(point.spec)]
                return selecting.flat(selecting.of_sides(patterns, sides, self.targets, self.config, report))
        return patterns

    def measure(self, side: Side) -> Inventory:
        with self.progress() as report:
            return inventory.take(side, self.targets, self.options, self.config, report)

    def compare(self, sides: Sides[Side], folder: Path) -> Run:
        comparison = Comparison(
            sides=sides,
            targets=self.targets,
            options=self.options,
            command=tuple(sys.argv[1:]),
            expanded_patterns={pattern: (pattern,) for pattern in self.options.cases},
        )
        with self.progress() as report:
            return pipeline.compare(comparison, self.config, folder, report)[0]


def _file_name(point: Point) -> str:
    return "".join(letter if letter.isalnum() or letter in "._+-" else "-" for letter in point.label)[:60]
