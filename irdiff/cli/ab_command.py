"""`irdiff ab A B C…`: several candidates against one base, in one Markdown document."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from irdiff import pipeline
from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import DEFAULT_OPTIONS, ChangeGroup, Run, Verdict
from irdiff.report import escape, moved, phrases
from irdiff.report.templates import markdown_prose
from irdiff.run import run_list

_SHOWN_GROUPS = 30
_SHOWN_CASES = 40


@click.command("ab")
@click.argument("base", metavar="A")
@click.argument("heads", metavar="B C…", nargs=-1, required=True)
@options.checkout
@options.selection
@options.attribute_option
@click.option("--out", type=options.OUTPUT, default="-", help="Write the Markdown here; default: stdout.")
@options.limited
def ab_command(
    *,
    base: str,
    heads: tuple[str, ...],
    checkout: CheckoutArguments,
    selection: CaseArguments,
    attribute: bool,
    out: Path,
    config: Config,
) -> None:
    """Compare the candidates B, C … with one base A, in one report.

    Sides are written as for `irdiff compare`; owner/name@rev and a git URL with @rev name forks. The base is
    compiled once. Each comparison is a run of its own, for `irdiff report` and `irdiff time`.
    """
    if len({base, *heads}) != 1 + len(heads):
        raise UsageError(
            "the same side is given twice", hint="irdiff ab main owner/name@idea owner/name@other"
        )
    chosen = replace(DEFAULT_OPTIONS, cases=selection.cases, tiers=selection.tiers, attribute=attribute)
    found = []
    for head in heads:
        with screen.status_line() as say:
            arguments = pipeline.Arguments(
                base=base,
                head=head,
                sides=checkout.side_options(selection, say),
                targets=selection.targets(config),
                options=chosen,
                command=tuple(sys.argv[1:]),
            )
            asked = pipeline.resolved(arguments, config, lambda _: None)
        with screen.progress() as report:
            run, folder = pipeline.compare(asked, config, None, report)
        found.append(Candidate(name=head, run=run, call=run_list.call_of(folder, config.runs)))
    options.write_output(out, render(base, found))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One head, compared with the base that all have."""

    name: str
    run: Run
    call: str
    """What another command calls the run."""


def render(base: str, candidates: Sequence[Candidate]) -> str:
    """The document; the candidates have a letter each, from B on."""
    letters = {chr(ord("B") + number): row for number, row in enumerate(candidates)}
    runs = {letter: row.run for letter, row in letters.items()}
    overview = [
        (
            letter,
            escape.code(row.name),
            f"{row.run.summary.verdicts[Verdict.CHANGED]} of {row.run.summary.compared}",
            row.run.summary.verdicts[Verdict.BROKEN],
            row.run.summary.verdicts[Verdict.FIXED],
            len(row.run.groups),
            _moved_statistics(row.run),
            escape.code(row.call),
        )
        for letter, row in letters.items()
    ]
    titles = ("", "candidate", "changed", "broken", "fixed", "groups", "better and worse", "run")
    parts = [f"### A is {escape.code(base)}", "", *_table(titles, overview), *_groups(runs), *_cases(runs)]
    return "\n".join(parts).rstrip() + "\n"


def _table(titles: Sequence[str], rows: Sequence[Sequence[object]], limit: int | None = None) -> list[str]:
    lines = [" | ".join(map(str, row)) for row in (titles, ["---"] * len(titles), *rows[:limit])]
    left_out = len(rows[limit:]) if limit else 0
    return [*(f"| {line} |" for line in lines), *([f"and {left_out} more"] if left_out else []), ""]


def _moved_statistics(run: Run) -> str:
    """In how many cases each statistic got worse and better."""
    counts: dict[str, list[int]] = {}
    for row in moved.by_target(run):
        found = counts.setdefault(row.statistic.name, [0, 0])
        found[0] += len(row.worse)
        found[1] += len(row.better)
    words = [f"{name} {worse} worse, {better} better" for name, (worse, better) in counts.items()]
    return "; ".join(words) or "none moved"


def _groups(runs: Mapping[str, Run]) -> list[str]:
    """Change groups with the cases that each candidate has in them; what only some do comes first."""
    found: dict[str, dict[str, ChangeGroup]] = {}
    for letter, run in runs.items():
        for group in phrases.ordered_groups(run):
            found.setdefault(group.id, {})[letter] = group
    if not found:
        return []

    def rank(of: Mapping[str, ChangeGroup]) -> tuple[bool, int]:
        return len(of) == len(runs), -sum(len(group.members) for group in of.values())

    rows = []
    for of in sorted(found.values(), key=rank):
        group = next(iter(of.values()))
        counts = [len(of[letter].members) if letter in of else "" for letter in runs]
        rows.append((markdown_prose(group.title, 160), escape.markdown(group.severity), *counts))
    table = _table(("change group", "severity", *runs), rows, _SHOWN_GROUPS)
    return ["**Edits, by the cases that have them**", "", *table]


def _cases(runs: Mapping[str, Run]) -> list[str]:
    """Cases for which the candidates differ in their verdict."""
    verdicts = {letter: {case.id: case.verdict.value for case in run.cases} for letter, run in runs.items()}
    rows = []
    for name in sorted({name for of in verdicts.values() for name in of}):
        words = [of.get(name, "–") for of in verdicts.values()]
        if len(set(words)) > 1:
            rows.append((escape.code(name), *words))
    if not rows:
        return ["Every case has the same verdict with each candidate.", ""]
    table = _table(("case", *runs), rows, _SHOWN_CASES)
    return [f"**Cases that the candidates do not agree on** ({len(rows)})", "", *table]
