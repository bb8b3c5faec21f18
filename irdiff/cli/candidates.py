"""Several candidates against one base, in one Markdown document: which does what the others do not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.model import Case, ChangeGroup, Run, Verdict
from irdiff.report import escape, moved, phrases
from irdiff.report.templates import markdown_prose

_SHOWN_GROUPS = 30
_SHOWN_CASES = 40


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One head, compared with the base that all have."""

    name: str
    run: Run
    place: str
    """What another command calls the run."""


def render(base: str, candidates: Sequence[Candidate]) -> str:
    """The document; the candidates have a letter each, from B on."""
    letters = {chr(ord("B") + number): row for number, row in enumerate(candidates)}
    parts = [
        f"### A is {escape.code(base)}",
        "",
        *_overview(letters),
        "",
        *_groups(letters),
        *_cases(letters),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _overview(letters: Mapping[str, Candidate]) -> list[str]:
    rows = [
        "| | candidate | changed | broken | fixed | groups | better and worse | run |",
        "|---|---|--:|--:|--:|--:|---|---|",
    ]
    for letter, row in letters.items():
        verdicts = row.run.summary.verdicts
        changed = f"{verdicts[Verdict.CHANGED]} of {row.run.summary.compared}"
        cells = (
            letter,
            escape.code(row.name),
            changed,
            str(verdicts[Verdict.BROKEN]),
            str(verdicts[Verdict.FIXED]),
            str(len(row.run.groups)),
            statistics_in_words(row.run),
            escape.code(row.place),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def statistics_in_words(run: Run) -> str:
    """In how many cases each statistic got worse and better."""
    counts: dict[str, list[int]] = {}
    for row in moved.by_target(run):
        found = counts.setdefault(row.statistic.name, [0, 0])
        found[0] += len(row.worse)
        found[1] += len(row.better)
    words = [f"{name} {worse} worse, {better} better" for name, (worse, better) in counts.items()]
    return "; ".join(words) or "none moved"


def _groups(letters: Mapping[str, Candidate]) -> list[str]:
    """Change groups with the cases that each candidate has in them; what only some do comes first."""
    counts: dict[str, dict[str, int]] = {}
    shown: dict[str, ChangeGroup] = {}
    for letter, row in letters.items():
        for group in phrases.ordered_groups(row.run):
            counts.setdefault(group.id, {})[letter] = len(group.members)
            shown.setdefault(group.id, group)
    order = sorted(counts, key=lambda name: (len(counts[name]) == len(letters), -sum(counts[name].values())))
    if not order:
        return []
    rows = [f"| change group | severity | {' | '.join(letters)} |", f"|---|---|{'--:|' * len(letters)}"]
    for name in order[:_SHOWN_GROUPS]:
        cells = " | ".join(str(counts[name].get(letter, "")) for letter in letters)
        group = shown[name]
        rows.append(f"| {markdown_prose(group.title, 160)} | {escape.markdown(group.severity)} | {cells} |")
    more = [f"and {len(order) - _SHOWN_GROUPS} more groups"] if len(order) > _SHOWN_GROUPS else []
    return ["**Edits, by the cases that have them**", "", *rows, *more, ""]


def _cases(letters: Mapping[str, Candidate]) -> list[str]:
    """Cases for which the candidates differ in their verdict."""
    cases: dict[str, dict[str, Case]] = {}
    for letter, row in letters.items():
        for case in row.run.cases:
            cases.setdefault(case.id, {})[letter] = case
    differing = [
        (name, rows)
        for name, rows in sorted(cases.items())
        if len({_word(rows.get(letter)) for letter in letters}) > 1
    ]
    if not differing:
        return ["Every case has the same verdict with each candidate.", ""]
    rows = [f"| case | {' | '.join(letters)} |", f"|---|{'---|' * len(letters)}"]
    for name, of_case in differing[:_SHOWN_CASES]:
        rows.append(
            f"| {escape.code(name)} | {' | '.join(_word(of_case.get(letter)) for letter in letters)} |"
        )
    more = [f"and {len(differing) - _SHOWN_CASES} more"] if len(differing) > _SHOWN_CASES else []
    return [f"**Cases that the candidates do not agree on** ({len(differing)})", "", *rows, *more, ""]


def _word(case: Case | None) -> str:
    return str(case.verdict) if case else "–"
