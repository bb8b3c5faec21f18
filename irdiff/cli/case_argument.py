"""CASE, as `diff` and `explain` take it: an id, a part of one, or a change group for its smallest example."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from irdiff import case_ids
from irdiff.cli import run_argument
from irdiff.errors import IrdiffError, UsageError
from irdiff.model import Case, Run
from irdiff.report import escape, group_names
from irdiff.run import run_folder

_MAX_CANDIDATES = 20


def find(run: Run, text: str) -> Case:
    """The case that a text names. Raises UsageError with the candidates where it names none or several."""
    cases = {case.id: case for case in run.cases}
    group = None if text in cases else group_names.find(run, text)
    if group and group.representative in cases:
        return cases[group.representative]
    if text in cases:
        return cases[text]
    if text.startswith(group_names.PREFIX) or text.isdigit():
        raise group_names.unknown(run, text)
    found = [cases[name] for name in case_ids.meant(text, cases)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise _unknown(run, text)
    names = [escape.terminal(case.id) for case in found[:_MAX_CANDIDATES]]
    more = [f"… and {len(found) - len(names)} more"] if len(found) > len(names) else []
    raise UsageError(
        f"{escape.terminal(text)!r} means {len(found)} cases:\n    " + "\n    ".join([*names, *more]),
        hint="name one of them",
    )


def _unknown(run: Run, text: str) -> UsageError:
    near = case_ids.near(text, [case.id for case in run.cases])
    hint = f"did you mean {', '.join(map(escape.terminal, near))}?" if near else "see: irdiff report RUN"
    return UsageError(f"{escape.terminal(text)!r} means no case of the run", hint=hint)


def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The groups of the run that the command line names, with their titles, then its cases."""
    try:
        folder = run_argument.folder_of(context)
        run = run_folder.load(folder) if folder else None
    except IrdiffError:
        return []
    if run is None:
        return []
    groups = [
        CompletionItem(row.short, help=escape.terminal(row.group.title, limit=80))
        for row in group_names.named(run)
    ]
    rows = [*groups, *(CompletionItem(case.id) for case in run.cases)]
    return [row for row in rows if row.value.startswith(incomplete)]


argument = click.argument("case", shell_complete=complete)
