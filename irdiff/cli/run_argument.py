"""Reads the arguments RUN and CASE of commands. RUN is a folder, an archive, `last`, or a name that `irdiff
runs` lists. CASE is an id, a part of one, or a change group, which stands for its smallest example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irdiff import case_ids
from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Case, Run
from irdiff.report import escape, group_names
from irdiff.run import run_archive, run_folder, run_list

if TYPE_CHECKING:
    from irdiff.report.timing_summary import TimingSummary
    from irdiff.timing.results import TimingResults

_MAX_CANDIDATES = 20


@dataclass(frozen=True, kw_only=True)
class OpenedRun:
    """A run that a user named. Its properties raise RunFolderError."""

    folder: Path
    """The run folder, or its `run.json`. For an archive, a copy that is removed when the command ends."""
    call: str
    """The name by which other commands find it."""
    is_archive: bool

    @cached_property
    def run(self) -> Run:
        return run_folder.load(self.folder)

    @cached_property
    def timing(self) -> TimingResults | None:
        from irdiff.timing import timing_file

        return timing_file.load(self.folder if self.folder.is_dir() else self.folder.parent)

    @property
    def timing_summary(self) -> TimingSummary | None:
        from irdiff.report import timing_summary

        return timing_summary.of_results(self.timing) if self.timing else None


@contextmanager
def opened(text: str, config: Config | None = None) -> Iterator[OpenedRun]:
    """Raises RunFolderError."""
    runs = (config or configuration.load()).runs
    path = run_list.find(text, runs)
    with run_archive.opened(path) as folder:
        yield OpenedRun(folder=folder, call=run_list.call_of(path, runs), is_archive=folder != path)


def argument(name: str = "run", **settings: Any) -> Callable[[Any], Any]:
    return click.argument(name, **settings)


baseline_option = click.option(
    "--baseline",
    metavar="RUN",
    help="Show only findings that are not in this earlier run, and count the rest.",
)

# cases of a run


def find_case(run: Run, text: str) -> Case:
    """Raises UsageError if the text names no case or several, with the candidates."""
    cases = {case.id: case for case in run.cases}
    if text in cases:
        return cases[text]
    group = group_names.find(run, text)
    if group and group.representative in cases:
        return cases[group.representative]
    if text.startswith(group_names.PREFIX) or text.isdigit():
        raise group_names.unknown(run, text)
    matching = case_ids.meant(text, cases)
    if len(matching) == 1:
        return cases[matching[0]]
    shown = escape.terminal(text)
    if not matching:
        near = ", ".join(map(escape.terminal, case_ids.near(text, list(cases))))
        hint = f"did you mean {near}?" if near else "see: irdiff report RUN"
        raise UsageError(f"{shown!r} matches no case of the run", hint=hint)
    names = [escape.terminal(name) for name in matching[:_MAX_CANDIDATES]]
    names += [f"… and {len(matching) - len(names)} more"] if len(matching) > len(names) else []
    raise UsageError(
        f"{shown!r} means {len(matching)} cases:\n    " + "\n    ".join(names), hint="name one of them"
    )


case_argument = click.argument("case")
case_or_none_argument = click.argument("case", required=False)
