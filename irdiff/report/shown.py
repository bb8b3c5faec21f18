"""How a report names the run for its reader, and what it leaves out because an earlier run had it."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from irdiff.compare import cases
from irdiff.model import Case, Run, Verdict
from irdiff.report import commands, escape, group_names, headline
from irdiff.report.distinct_edits import DistinctEdit
from irdiff.report.group_names import NamedGroup
from irdiff.report.moved import Movement
from irdiff.words import counted

_JOB = re.compile(r"https://[\w.-]+/([\w.-]+/[\w.-]+)/actions/runs/(\d+)")
_ARTIFACT = "irdiff-run"
"""The name under which the workflows keep a run."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    call: str = commands.UNNAMED
    """The name of the run in commands."""
    fetch: str = ""
    """A command that first downloads the run; empty if the reader has it."""
    next_step: str = ""
    """Markdown: where the page is, and how to request a GPU; may be empty."""
    whole: Run | None = None
    """The run that numbers the groups, if only a part of it is shown."""
    first: str = ""
    hidden: str = ""
    """Part of the headline: no report hides in silence."""
    compile_times: tuple[Movement, ...] = ()
    """By target, from a history that has the run's head."""
    gate: tuple[str, ...] = ()
    """The gate's answer line by line, its headline first; empty without a policy."""
    is_bump: bool = False

    def groups(self, run: Run, edits: Sequence[DistinctEdit]) -> list[NamedGroup]:
        by_id = {group.id: group for group in run.groups}
        groups = group_names.named(self.whole or run, None if self.whole else edits)
        return [replace(each, group=by_id[each.group.id]) for each in groups if each.group.id in by_id]

    def headline(self, run: Run, edits: Sequence[DistinctEdit] | None = None, timed: str = "") -> str:
        return " ".join(self.sentences(run, edits, timed))

    def sentences(
        self, run: Run, edits: Sequence[DistinctEdit] | None = None, timed: str = ""
    ) -> Sequence[str]:
        """The sentences of the headline."""
        is_shown = run.cases or not self.hidden
        whole = headline.sentences_of(run, edits, timed) if is_shown else ["nothing."]
        first, *others = whole or [""]
        return self.first + first, *others, *([f"{self.hidden}."] if self.hidden else [])


PLAIN = Shown()


def of_job(page: str | None, time_label: str | None = None) -> Shown:
    """For a reader who only has the address of the job's page. time_label: the label that requests a GPU;
    None if nothing is to be timed.
    """
    steps = [f"[the page with all diffs]({escape.url(page)}) is an artifact of the job"] if page else []
    steps += [f"the label {escape.code(time_label)} times what changed on a GPU"] if time_label else []
    next_step = f"**Next:** {'; '.join(steps)}." if steps else ""
    job = _JOB.match(page or "")
    if not job:
        return Shown(next_step=next_step)
    words = ["gh", "run", "download", job[2], "--repo", job[1], "--name", _ARTIFACT, "--dir", _ARTIFACT]
    return Shown(call=_ARTIFACT, fetch=shlex.join(words), next_step=next_step)


def news(run: Run, baseline: Sequence[Case], groups: int, *, call: str, since: str) -> Shown:
    """Leaves out the cases of `baseline`, and so many groups, which the run `since` has."""
    counts = Counter(case.verdict for case in baseline)
    ended = [
        f"{counts[verdict]} {verdict}" for verdict in (Verdict.BROKEN, Verdict.FAILING) if counts[verdict]
    ]
    blind = sum(map(cases.not_compared, baseline))
    parts = [*ended, *([f"{blind} not compared"] if blind else [])]
    parts += [f"all of {counted(groups, 'group')}"] if groups else []
    among = f", among them {', '.join(parts)}" if parts else ""
    hidden = f"Left out, because {since} has them, too: {counted(len(baseline), 'case')}{among}"
    return Shown(call=call, whole=run, first=f"new since {since}: ", hidden=hidden)
