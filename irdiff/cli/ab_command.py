"""`irdiff ab A B C…` compares several candidates with one base, and writes one Markdown document."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from irdiff import pipeline
from irdiff.cli import options, screen
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.comparison import Request, resolved
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import DEFAULT_OPTIONS, ChangeGroup, Run
from irdiff.report import distinct_edits, moved, templates
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
    compared = []
    for head in heads:
        with screen.status_line():
            arguments = Request(
                base=base,
                head=head,
                sides=checkout.side_options(selection),
                targets=selection.targets(config),
                options=chosen,
                command=tuple(sys.argv[1:]),
            )
            comparison = resolved(arguments, config, lambda _: None)
        with screen.progress() as report:
            run, folder = pipeline.compare(comparison, config, None, report)
        compared.append(Candidate(name=head, run=run, call=run_list.call_of(folder, config.runs)))
    options.write_output(out, render(base, compared))


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One head, compared with the base that all candidates share."""

    name: str
    run: Run
    call: str
    """The name by which other commands find the run."""

    @property
    def moved(self) -> str:
        """Counts for each statistic the cases in which it moved up and down."""
        counts: dict[str, list[int]] = {}
        for movement in moved.by_target(self.run):
            up_and_down = counts.setdefault(movement.statistic.name, [0, 0])
            up_and_down[0] += len(movement.up)
            up_and_down[1] += len(movement.down)
        words = [f"{name} {moved.counts(up, down)}" for name, (up, down) in counts.items()]
        return "; ".join(words) or "none moved"


def render(base: str, candidates: Sequence[Candidate]) -> str:
    """Labels the candidates B, C, …"""
    letters = {chr(ord("B") + number): candidate for number, candidate in enumerate(candidates)}
    template = templates.markdown().get_template("ab.md.j2")
    tables = {"groups": _groups(letters), "cases": _disagreements(candidates)}
    shown = {"shown_groups": _SHOWN_GROUPS, "shown_cases": _SHOWN_CASES}
    text = template.render(base=base, candidates=letters, **tables, **shown)
    return text.rstrip() + "\n"


def _groups(candidates: Mapping[str, Candidate]) -> list[dict[str, ChangeGroup]]:
    """Groups that only some candidates have come first."""
    by_id: dict[str, dict[str, ChangeGroup]] = {}
    for letter, candidate in candidates.items():
        for group in distinct_edits.ordered_groups(candidate.run):
            by_id.setdefault(group.id, {})[letter] = group

    def rank(holders: Mapping[str, ChangeGroup]) -> tuple[bool, int]:
        return len(holders) == len(candidates), -sum(len(group.members) for group in holders.values())

    return sorted(by_id.values(), key=rank)


def _disagreements(candidates: Sequence[Candidate]) -> list[tuple[str, list[str]]]:
    """Lists the cases whose verdicts differ between candidates."""
    verdicts = [{case.id: case.verdict.value for case in candidate.run.cases} for candidate in candidates]
    names = sorted({name for of in verdicts for name in of})
    by_case = [(name, [of.get(name, "–") for of in verdicts]) for name in names]
    return [(name, words) for name, words in by_case if len(set(words)) > 1]
