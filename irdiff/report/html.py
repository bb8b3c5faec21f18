"""The HTML report: one file that needs no network, no server and no permission.

Templates: `reports/report.html.j2`, `report.css`, `report.js`. Tables and groups are in the page as HTML
and can be read and searched without its script; the script filters, sorts and draws the diffs, which lie
in the page as JSON and are parsed when a group is opened. The page's own policy (CSP) allows its one
script and its one sheet by digest and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Case, Run, StageStatus, Verdict
from irdiff.report import (
    charts,
    error_clusters,
    families,
    html_diffs,
    phrases,
    templates,
    view,
)
from irdiff.report.families import Share
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingSummary
from irdiff.stages import in_stage_order

MAX_ENTRIES = 400
"""The most groups that are shown with diffs. The rest are rows of the table of cases."""
MAX_CASE_ROWS = 2_000
"""Cases that stand in the page as rows of a table. Of more a script draws what is looked for."""
_OPEN_GROUPS = 8
"""Groups that are listed at once. The others are behind one more click."""
MAX_MATRIX_ROWS = 500
_LIMITS = replace(view.WHOLE, groups=MAX_ENTRIES, unfolded=0, rows=400, notes=400)
_STATUS_SIGN = {
    StageStatus.IDENTICAL: "·",
    StageStatus.EQUIVALENT: "=",
    StageStatus.CHANGED: "≠",
    StageStatus.ABSENT: "",
}


def render(run: Run, folder: Path, timing: TimingSummary | None = None, *, as_: Shown = PLAIN) -> str:
    """The page. Diffs are read from the artifacts of `folder`. Where one is missing, the page says so."""
    sheet, script = _asset("report.css"), _asset("report.js")
    shown = view.of(run, GroupDiffs(folder, run), timing, _LIMITS, as_=as_)
    share = min(html_diffs.ENTRY_BYTES, html_diffs.PAGE_BYTES // max(1, len(shown.groups)))
    diffs = [html_diffs.entry(folder, row.smallest, share, call=as_.call) for row in shown.groups]
    rows = _case_rows(run, {name: row.number for row in shown.groups for name in row.group.members})
    kernels = families.table(run, lambda case: " ".join(dict.fromkeys((case.workload, case.kernel))))
    return (
        templates.html()
        .get_template("report.html.j2")
        .render(
            digest=_digest,
            sheet=sheet,
            script=script,
            view=shown,
            legend=Share(run.cases).parts,
            kernels=view.listed(kernels, MAX_MATRIX_ROWS),
            bar=charts.stacked_bar,
            number=phrases.number,
            forest=charts.Forest(timing.rows) if timing else None,
            diffs=diffs,
            open_groups=_OPEN_GROUPS,
            cases=rows,
            most_cases=MAX_CASE_ROWS,
        )
    )


def _asset(name: str) -> Markup:
    return Markup((templates.folder() / name).read_text("utf-8"))  # noqa: S704 - a file of irdiff's own


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


# the table of cases


def _case_rows(run: Run, number_of: Mapping[str, int]) -> list[list[Any]]:
    """What broke first, and the rest in the order of `view.VERDICTS` and of their groups."""

    def place(case: Case) -> tuple[int, int, str]:
        return view.VERDICTS.index(case.verdict), number_of.get(case.id, MAX_ENTRIES + 1), case.id

    return [_case_row(case, number_of.get(case.id)) for case in sorted(run.cases, key=place)]


def _case_row(case: Case, number: int | None) -> list[Any]:
    """The cells, as the page's script takes them, and the colour."""
    signs = ((name, _STATUS_SIGN[status]) for name, status in in_stage_order(case.stages))
    return [
        case.id,
        case.verdict.value,
        error_clusters.unstable_words(case),
        phrases.place(case.origin.stage, case.origin.pass_name) if case.origin else "",
        " ".join(name + sign for name, sign in signs if sign),
        phrases.moved(case, limit=4) if case.verdict is Verdict.CHANGED else case.error or "",
        number,
        families.css_class(case),
    ]
