"""The diffs of an HTML report, within a share of the page's size."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from irdiff.backends.stages import WITHOUT_TEXT, in_stage_order
from irdiff.compare.line_alignment import Kind
from irdiff.diffs import stage_diff
from irdiff.diffs.stage_diff import DiffLine, StageDiff
from irdiff.model import Case, StageStatus
from irdiff.report import commands, escape

PAGE_BYTES = 8_000_000
"""The size of all diffs together: 15 MB without the tables of 2,000 cases, with a margin."""
ENTRY_BYTES = 100_000
MEMBER_BYTES = 24_000
"""For a case that is not the example of its group."""
MAX_MEMBERS = 200
"""The most cases beside the examples whose diffs the page holds: each takes time to align."""
_CONTEXT = 10
"""How many lines around a change a reader can unfold. Three are shown at once."""
_NO_LINES = "no line differs, except in the numbers of values and in the order or the names of definitions"
_MAX_LEGEND = 60
_MAX_LEGEND_CHARACTERS = 300


def entry(folder: Path, case: Case, limit_bytes: int, *, call: str = commands.UNNAMED) -> dict[str, Any]:
    """Gives the first changed stage the largest share of the size."""
    stages = []
    left = limit_bytes
    for name, status in in_stage_order(case.stages):
        stage_entry: dict[str, Any] = {"stage": escape.clean(name), "status": status.value}
        if status is StageStatus.CHANGED:
            shown = _stage(folder, case, name, left * 6 // 10)
            left -= len(json.dumps(shown))
            shown["command"] = commands.diff(call, case.id, "--stage", name)
            stage_entry.update(shown)
        stages.append(stage_entry)
    return {"case": escape.clean(case.id), "stages": stages}


def of_members(
    folder: Path, cases: Sequence[Case], limit_bytes: int, *, call: str = commands.UNNAMED
) -> dict[str, dict[str, Any]]:
    """Returns by id as many as fit, without the examples of groups."""
    entries: dict[str, dict[str, Any]] = {}
    for case in cases[:MAX_MEMBERS]:
        if limit_bytes < MEMBER_BYTES:
            break
        entries[case.id] = entry(folder, case, MEMBER_BYTES, call=call)
        limit_bytes -= len(json.dumps(entries[case.id]))
    return entries


def _stage(folder: Path, case: Case, name: str, limit_bytes: int) -> dict[str, Any]:
    if name in WITHOUT_TEXT:
        return {"note": "machine code is disassembled on request"}
    diff = stage_diff.read(folder, case, name)
    if isinstance(diff, str):
        return {"note": escape.clean(diff)}
    diff_lines, left_out = _rows(diff, limit_bytes)
    shown: dict[str, Any] = {
        "counts": [diff.count(Kind.REMOVED), diff.count(Kind.ADDED), diff.count(Kind.RENAMED)],
        "rows": diff_lines,
        "legend": _legend(diff, diff_lines),
    }
    if left_out:
        shown["left_out"] = left_out
    if not diff_lines:
        shown["note"] = _NO_LINES if diff.rows else "both texts are empty"
    return shown


def _rows(diff: StageDiff, limit_bytes: int) -> tuple[list[list[Any]], int]:
    """Returns the lines near changes, telling ones first, and how many changes are left out. A line `["…",
    text]` says what is left out, or what follows.
    """
    telling, others = diff.telling_first(_CONTEXT)
    kinds = diff.changed()
    diff_lines: list[list[Any]] = []
    size = shown = 0
    for title, hunks in (("", telling), (stage_diff.OTHERS if telling else "", others)):
        if title and hunks:
            diff_lines.append(["…", title])
        for before, hunk in itertools.pairwise([range(0), *hunks]):
            if hunk.start > before.stop:
                diff_lines.append(["…", diff.left_out(range(before.stop, hunk.start))])
            for index in hunk:
                line = _row(diff.line(index))
                size += len(json.dumps(line))
                if size > limit_bytes:
                    return diff_lines, sum(line.kind in kinds for line in diff.rows) - shown
                diff_lines.append(line)
                shown += diff.rows[index].kind in kinds
        if hunks and hunks[-1].stop < len(diff.rows):
            diff_lines.append(["…", diff.left_out(range(hunks[-1].stop, len(diff.rows)))])
    return diff_lines, 0


def _row(line: DiffLine) -> list[Any]:
    """`[kind, base number, head number, canonical, marks, raw]`; empty fields at the end are dropped."""
    marks = [position for mark in line.marks for position in mark]
    raw = "" if line.raw == line.text else line.raw
    cells: list[Any] = [line.kind.value, line.base_number, line.head_number, line.text]
    if marks or raw:
        cells.append(marks)
    if raw:
        cells.append(raw)
    return cells


def _legend(diff: StageDiff, diff_lines: list[list[Any]]) -> list[list[str]]:
    text = "\n".join(legend_row[3] for legend_row in diff_lines if legend_row[0] != "…")
    used = [(short, full) for short, full in diff.legend if re.search(rf"{re.escape(short)}(?!\d)", text)]
    return [[short, full[:_MAX_LEGEND_CHARACTERS]] for short, full in used[:_MAX_LEGEND]]
