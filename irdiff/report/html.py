"""The HTML report: one file that needs no network, no server and no permission.

Tables and groups can be read and searched without the script, which filters, sorts and draws the diffs: JSON
in the page, parsed when a group is opened. The page's policy (CSP) allows its one script and its one sheet by
digest and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path

from markupsafe import Markup

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Run
from irdiff.report import case_table, charts, html_diffs, lists, phrases, templates, view
from irdiff.report.families import Share
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingSummary

MAX_ENTRIES = 400
"""The most groups that are shown with diffs. The others are only in the table of cases."""
MAX_CASE_ROWS = 2_000
"""The most cases in the HTML table. With more, a script draws the cases that match a search."""
_OPEN_GROUPS = 8
"""Groups that are listed at once. The others are behind one more click."""
_LIMITS = replace(lists.WHOLE, groups=MAX_ENTRIES, unfolded=0, others=400, notes=400)


def render(run: Run, folder: Path, timing: TimingSummary | None = None, *, as_: Shown = PLAIN) -> str:
    """Reads diffs from the artifacts of `folder`; the page says if one is missing."""
    sheet, script = _asset("report.css"), _asset("report.js")
    shown = view.of(run, GroupDiffs(folder, run), timing, _LIMITS, as_=as_)
    share = min(html_diffs.ENTRY_BYTES, html_diffs.PAGE_BYTES // max(1, len(shown.groups)))
    diffs = {
        f"diffs-{line.number}": html_diffs.entry(folder, line.smallest, share, call=as_.call)
        for line in shown.groups
    }
    diffs_of = {line.smallest.id: f"diffs-{line.number}" for line in shown.groups}
    cases = {case.id: case for case in run.cases}
    others = [cases[name] for line in shown.groups for name in line.group.members if name not in diffs_of]
    left = html_diffs.PAGE_BYTES - len(json.dumps(diffs))
    for number, (name, entry) in enumerate(
        html_diffs.of_members(folder, others, left, call=as_.call).items(), 1
    ):
        diffs[f"member-{number}"] = entry
        diffs_of[name] = f"member-{number}"
    return (
        templates.html()
        .get_template("report.html.j2")
        .render(
            digest=_digest,
            sheet=sheet,
            script=script,
            view=shown,
            legend=Share(run.cases).parts,
            bar=charts.stacked_bar,
            number=phrases.number,
            fact_name=phrases.fact_name,
            unit=phrases.unit,
            forest=charts.Forest(timing.rows) if timing else None,
            diffs=diffs,
            diffs_of=diffs_of,
            gate=as_.gate,
            call=as_.call,
            number_of={name: line.number for line in shown.groups for name in line.group.members},
            example_of={line.number: line.smallest.id for line in shown.groups},
            open_groups=_OPEN_GROUPS,
            cases=case_table.cells(run, shown.groups),
            most_cases=MAX_CASE_ROWS,
        )
    )


def _asset(name: str) -> Markup:
    return Markup((templates.folder() / name).read_text("utf-8"))  # noqa: S704 - a file of irdiff's own


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
