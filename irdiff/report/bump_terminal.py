"""The report of a bump as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from irdiff.model import Run
from irdiff.report import bump, escape, tables
from irdiff.report.bump import Bump, BumpPart, Distribution
from irdiff.report.tables import Column

_MAX_OUTLIERS = 15
_MAX_FAMILIES = 40
_DISTRIBUTION = (
    "target", "measure", "better", "same", "worse", "least", "5 %", "median", "95 %", "greatest",
)  # fmt: skip


def lines(run: Run) -> Iterator[Text]:
    found = bump.of_run(run)
    if not found.targets:
        return
    yield from tables.heading("distributions: better / same / worse, and how far (relative change)")
    rows: list[list[str]] = []
    for part in (*found.targets, *([found.whole] if len(found.targets) > 1 else [])):
        rows += [_row(part, one) for one in part.distributions]
    yield from _aligned(_DISTRIBUTION, rows)
    yield Text()
    yield from (Text(line) for line in map(quiet_words, found.targets))
    yield from _tails(found)
    yield from _families(found)
    yield from _outliers(found)


def quiet_words(part: BumpPart) -> str:
    """How many of the changed cases moved in nothing that counts."""
    return (
        f"{part.name}: {part.changed} of {part.compared} compared cases changed; in {part.quiet} of these "
        "only scheduling or register names moved"
    )


def _row(part: BumpPart, one: Distribution) -> list[str]:
    name = one.measure.name + ("" if not one.unknown else f" ({one.unknown} unknown)")
    far = [f"{value:+.1%}" if value else "0" for value in one.quantiles] or ["-"] * 5
    return [escape.terminal(part.name), name, str(one.better), str(one.same), str(one.worse), *far]


def _aligned(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    columns = [Column(name=name, right=place >= 2) for place, name in enumerate(names)]
    return tables.lines(columns, [[Text(cell) for cell in row] for row in rows], None)


def _tails(found: Bump) -> Iterator[Text]:
    if any(one.worst or one.best for one in found.whole.distributions):
        yield from tables.heading("tails, by name")
    for one in found.whole.distributions:
        for word, style, changes in (("worst", "red", one.worst), ("best", "green", one.best)):
            for change in changes:
                yield Text.assemble(
                    (f"{one.measure.name} {word}".ljust(20), style),
                    f"{escape.terminal(change.case_id)}  {change.words}",
                )


def _families(found: Bump) -> Iterator[Text]:
    if not found.families:
        return
    yield from tables.heading("by family and target: better / same / worse")
    names = ["family", "target", *(measure.name for measure in bump.MEASURES)]
    rows: list[list[str]] = []
    for part in found.families[:_MAX_FAMILIES]:
        family, _, target = part.name.rpartition(" ")
        counts = [f"{one.better}/{one.same}/{one.worse}" for one in part.distributions]
        rows.append([escape.terminal(family), escape.terminal(target), *counts])
    yield from _aligned(names, rows)
    if len(found.families) > _MAX_FAMILIES:
        yield Text(
            f"… and {len(found.families) - _MAX_FAMILIES} more: all are in the HTML report", style="dim"
        )


def _outliers(found: Bump) -> Iterator[Text]:
    if found.outliers:
        yield from tables.heading(f"outliers: {len(found.outliers)}")
    for row in found.outliers[:_MAX_OUTLIERS]:
        style = "red" if row.worse else "green"
        yield Text.assemble((escape.terminal(row.case_id), style), "  ", "; ".join(row.why))
    if len(found.outliers) > _MAX_OUTLIERS:
        yield Text(
            f"… and {len(found.outliers) - _MAX_OUTLIERS} more: all are in the HTML report", style="dim"
        )
