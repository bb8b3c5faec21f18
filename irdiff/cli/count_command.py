from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.text import Text

from irdiff import case_ids
from irdiff.backends.stages import WITHOUT_TEXT
from irdiff.cli import options, run_argument, screen
from irdiff.cli.run_argument import OpenedRun
from irdiff.config import Config
from irdiff.diffs import disassembly, pattern_counts, stage_diff
from irdiff.diffs.pattern_counts import Pattern, PatternCount
from irdiff.errors import NormalizeError, UsageError
from irdiff.model import Case, Run, Sides
from irdiff.report import escape
from irdiff.report.tables import Column
from irdiff.stages import Stage
from irdiff.words import counted

_DISASSEMBLED = " and ".join(f"`{stage}`" for stage in WITHOUT_TEXT)
_FIGURES = ("base", "head", "in loops, base", "in loops, head")


@dataclass(frozen=True, kw_only=True)
class _CountedStage:
    case: str
    kernel: str
    target: str
    stage: str
    counts: Sides[PatternCount]

    @property
    def differs(self) -> bool:
        return self.counts.base != self.counts.head


@click.command("count")
@click.argument("pattern")
@run_argument.argument()
@click.option(
    "--stage",
    "stages",
    multiple=True,
    help=f"Only in these stages; repeatable. {_DISASSEMBLED} disassembles.",
)
@options.case_option
@click.option("--regex", is_flag=True, help="PATTERN is a regular expression over canonical lines.")
@click.option("--markdown", is_flag=True, help="Print tables of Markdown, for a pull request.")
@options.json_option
@options.configured
def count_command(
    *,
    pattern: str,
    run: str,
    stages: Sequence[str],
    cases: Sequence[str],
    regex: bool,
    markdown: bool,
    json_path: Path | None,
    config: Config,
) -> None:
    """Count PATTERN in the code of base and head: in each changed case of RUN, stage by stage.

    PATTERN is an operation, which also stands for its longer forms (`wgmma` for `wgmma.mma_async`), or a glob
    (`ld.*.v4*`, `v_mfma*`).
    A column counts all lines, whether or not they are in a loop; another column counts those in loops. A run
    holds only the code of changed cases: in all others both sides are equal.
    """
    wanted = Pattern(words=pattern, expression=_expression(pattern) if regex else None)
    with run_argument.opened(run, config) as opened:
        chosen = [case for case in _with_code(opened.run) if case_ids.selects(cases, case.id)]
        counted_stages = [each for case in chosen for each in _counted(case, wanted, stages, opened, config)]
        notes = [_not_counted(opened.run, len(chosen))]
    if json_path:
        options.write_json(json_path, [asdict(each) for each in counted_stages])
    if not counted_stages:
        raise UsageError(
            f"{pattern} stands in none of the code of {counted(len(chosen), 'changed case')}",
            hint=f"--stage {next(iter(WITHOUT_TEXT))} counts in machine code; "
            "--regex takes a regular expression over whole lines",
        )
    _print(counted_stages, notes, markdown=markdown)


def _expression(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{pattern!r} is no regular expression: {error}",
            hint="without --regex it is an operation or a glob",
        ) from error


def _with_code(run: Run) -> Iterator[Case]:
    return (case for case in run.cases if case.artifacts.base and case.artifacts.head)


def _not_counted(run: Run, chosen: int) -> str:
    rest = len(run.cases) - chosen
    return (
        f"{counted(rest, 'other case')} of the run: not counted, the run does not hold their code"
        if rest
        else ""
    )


def _counted(
    case: Case, pattern: Pattern, stages: Sequence[str], opened: OpenedRun, config: Config
) -> Iterator[_CountedStage]:
    """Yields the stages in which either side has the pattern."""
    held = [name for name in case.artifacts.base if name in case.artifacts.head and name != Stage.LAUNCH]
    for stage in stages or held:
        texts = _texts(case, stage, opened, config)
        if texts is None:
            continue
        try:
            counts = Sides(base=pattern.count(stage, texts.base), head=pattern.count(stage, texts.head))
        except NormalizeError:
            continue
        if counts.base.total or counts.head.total:
            yield _CountedStage(
                case=case.id, kernel=case.kernel, target=case.target, stage=stage, counts=counts
            )


def _texts(case: Case, stage: str, opened: OpenedRun, config: Config) -> Sides[str] | None:
    if stage in WITHOUT_TEXT:
        is_there = all(WITHOUT_TEXT[stage].artifact in side for side in case.artifacts)
        return disassembly.disassembled(opened.folder, case, config) if is_there else None
    base, head = (stage_diff.read_text(opened.folder, case, side, stage) for side in ("base", "head"))
    return None if base is None or head is None else Sides(base=base, head=head)


# output


def _print(counted_stages: Sequence[_CountedStage], notes: Sequence[str], *, markdown: bool) -> None:
    by_stage: dict[tuple[str, str], list[_CountedStage]] = {}
    for stage in sorted(counted_stages, key=lambda stage: (stage.target, stage.stage)):
        by_stage.setdefault((stage.stage, stage.target), []).append(stage)
    whole = [
        [stage, target, str(len(here)), *_figures(_summed(here))]
        for (stage, target), here in by_stage.items()
    ]
    differing = sorted(filter(lambda stage: stage.differs, counted_stages), key=_by_difference)
    each = [[stage.case, stage.kernel, stage.stage, *_figures(stage.counts)] for stage in differing]
    tables = [
        (("stage", "target", "cases", *_FIGURES), whole),
        (("case", "kernel", "stage", *_FIGURES), each),
    ]
    for names, cells in tables:
        if cells:
            _print_markdown(names, cells) if markdown else _print_columns(names, cells)
            click.echo()
    if not each:
        click.echo("the same on both sides, in each case")
    for note in filter(None, notes):
        click.echo(note)


def _by_difference(stage: _CountedStage) -> tuple[int, str]:
    return -abs(stage.counts.head.total - stage.counts.base.total), stage.case


def _summed(stages: Sequence[_CountedStage]) -> Sides[PatternCount]:
    return Sides(
        base=pattern_counts.total(stage.counts.base for stage in stages),
        head=pattern_counts.total(stage.counts.head for stage in stages),
    )


def _figures(counts: Sides[PatternCount]) -> list[str]:
    base, head = counts
    return [str(figure) for figure in (base.total, head.total, base.in_loops, head.in_loops)]


def _print_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    columns = [Column(name=name, right=name in (*_FIGURES, "cases")) for name in names]
    screen.print_table(columns, [[Text(escape.terminal(cell)) for cell in row] for row in rows])


def _print_markdown(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    is_figure = [name in (*_FIGURES, "cases") for name in names]
    click.echo(f"| {' | '.join(names)} |")
    click.echo(f"|{'|'.join('--:' if figure else '---' for figure in is_figure)}|")
    for row in rows:
        click.echo(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |")
