from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff.backends.stages import BY_SUFFIX, COMPARED, ORDER, WITHOUT_TEXT, in_stage_order
from irdiff.cli import options, run_argument, screen
from irdiff.cli.run_argument import OpenedRun
from irdiff.compare.line_alignment import MARK_LEGEND, Kind
from irdiff.config import Config
from irdiff.diffs import disassembly, stage_diff
from irdiff.diffs.stage_diff import DiffLine, StageDiff
from irdiff.errors import RunFolderError, UsageError
from irdiff.findings import Finding, FindingKind
from irdiff.model import Case, Launch, Run, StageStatus
from irdiff.report import commands, escape, phrases
from irdiff.run import run_folder
from irdiff.stages import Stage
from irdiff.texts import canonicalize, equivalent, is_known
from irdiff.words import counted


@click.command("diff")
@run_argument.argument()
@run_argument.case_or_none_argument
@click.option("--stage", help="The stage to show; default: the first one that changed.")
@click.option("--raw", is_flag=True, help="Show the lines as the compiler printed them; default: canonical.")
@click.option("--side-by-side", "-y", is_flag=True, help="Show base on the left and head on the right.")
@options.context_option
@click.option("--width", type=click.IntRange(min=46), help="For --side-by-side; default: the terminal's.")
@click.option("--pager/--no-pager", default=True, help="Use PAGER for what is longer than the terminal.")
@options.configured
def diff_command(
    *,
    run: str,
    case: str | None,
    stage: str | None,
    raw: bool,
    side_by_side: bool,
    context: int,
    width: int | None,
    pager: bool,
    config: Config,
) -> None:
    """Show what changed in one CASE of RUN, stage by stage; without CASE, in Triton's own runtime.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. CASE is an
    id, a part that only one id has, or a change group (2, g:b140) for its smallest example. Lines that
    only moved, or only compute addresses, come last. Lines that differ only in the numbers of values count as
    equal. Names in lines of base are replaced by those of head where irdiff matched the values. A name with
    a prime (%r1') has no match at head. `--stage sass` disassembles machine code with the
    nvdisasm of an installed toolchain.
    """
    console = Console()
    view = View(context=context, raw=raw, side_by_side=side_by_side, width=width or console.width)
    with run_argument.opened(run, config) as opened:
        if case is None:
            screen.print_lines(console, _runtime(opened.run), with_pager=pager)
            return
        chosen = run_argument.find_case(opened.run, case)
        name = stage or _first_stage(chosen)
        findings: Sequence[Finding] = ()
        if name in WITHOUT_TEXT:
            texts = disassembly.disassembled(opened.folder, chosen, config)
            diff = stage_diff.compare(name, texts.base, texts.head)
            findings = equivalent(name, texts.base, texts.head).findings
        else:
            diff = _read(opened, chosen, name)
        screen.print_lines(console, _lines(opened, chosen, diff, view, findings), with_pager=pager)


def lines_or_reason(diff: StageDiff, view: View, stage: str, folder: Path, case: Case) -> Iterator[Text]:
    """Yields the lines of a diff, or why it has none."""
    shown = lines(diff, view)
    first = next(shown, None)
    yield Text(escape.terminal(_without_difference(stage, folder, case))) if first is None else first
    yield from shown


def _without_difference(stage: str, folder: Path, case: Case) -> str:
    if stage in WITHOUT_TEXT:
        return disassembly.without_difference(folder, case)
    order = Finding(FindingKind.CALLED_IN_ANOTHER_ORDER)
    if stage == Stage.LAUNCH and order in case.findings:
        return order.words
    return "no line differs, except in the numbers of values"


def _runtime(run: Run) -> Iterator[Text]:
    if not run.runtime:
        yield Text("Triton's files that run at a launch are the same on both sides; name a CASE for its code")
    for edit in run.runtime:
        yield Text(escape.terminal(edit.path), style="bold")
        yield from (Text(escape.terminal(line), style=color_of(line)) for line in edit.diff)


def _first_stage(case: Case) -> str:
    if case.origin:
        return case.origin.stage
    changed = [name for name, status in in_stage_order(case.stages) if status is StageStatus.CHANGED]
    if not changed:
        reason = f": {escape.terminal(case.error)}" if case.error else ""
        raise UsageError(
            f"{escape.terminal(case.id)} is {case.verdict.value}, no stage of it changed{reason}",
            hint="name a stage with --stage to see it anyway",
        )
    return changed[0]


def _read(opened: OpenedRun, case: Case, stage: str) -> StageDiff:
    if stage == "launch":
        launches = (opened.run.launches.get(digest or "") for digest in case.launches)
        return stage_diff.of_lines(stage, *(_launch(opened.folder, launch) for launch in launches))
    diff = stage_diff.read(opened.folder, case, stage)
    if isinstance(diff, str):
        stages = ", ".join(name for name, _ in in_stage_order(case.stages))
        raise RunFolderError(
            f"{escape.terminal(case.id)}: {escape.terminal(diff)}",
            hint=f"name another stage ({escape.terminal(stages)}) with --stage, or compare again",
        )
    return diff


def _launch(folder: Path, launch: Launch | None) -> list[str]:
    """Lists the launch and the compiler's input, one value a line."""
    if launch is None:
        return []
    text = run_folder.artifact(folder, launch.launched.digest) or b""
    kinds = ("type", "constexpr", "attribute", "option")
    parts = (launch.signature, launch.constexprs, launch.attributes, launch.options)
    settings = [
        f"  {kind} {name} = {value}"
        for kind, part in zip(kinds, parts, strict=True)
        for name, value in part.items()
    ]
    return [*text.decode(errors="replace").splitlines(), "compiled with", *settings]


def _lines(
    opened: OpenedRun, case: Case, diff: StageDiff, view: View, findings: Sequence[Finding]
) -> Iterator[Text]:
    def line(text: str, style: str = "") -> Text:
        return Text(escape.terminal(text), style=style)

    pass_name = case.origin.pass_name if case.origin and case.origin.stage == diff.stage else None
    yield line(f"{case.id}  {diff.stage}" + (f"  first in {pass_name}" if pass_name else ""), "bold")
    yield line(f"--- base {phrases.side(opened.run.base)}", "red")
    yield line(f"+++ head {phrases.side(opened.run.head)}", "green")
    yield from lines_or_reason(diff, view, diff.stage, opened.folder, case)
    yield line(counts(diff), "dim")
    for name, status in in_stage_order(case.stages):
        if status is StageStatus.CHANGED and name != diff.stage:
            yield line(f"also changed: {commands.diff(opened.call, case.id, '--stage', name)}", "dim")
    yield from (line(finding.words) for finding in findings)


# canonical text

_READ = [name for name in ORDER if any(name in stages[1:] for stages in COMPARED.values())]
MAX_FILE_BYTES = 512 << 20


@click.command("normalize")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--ir", help=f"The IR: {', '.join(_READ)}; default: by the file's suffix.")
@click.option("--numbers", is_flag=True, help="Begin each line with its line number in FILE.")
def normalize_command(*, file: Path, ir: str | None, numbers: bool) -> None:
    """Print FILE in canonical form, which is what comparisons see."""
    suffix = file.suffix.lower()
    name = ir or BY_SUFFIX.get(suffix) or suffix.lstrip(".")
    if not name:
        raise UsageError(f"{file}: its suffix does not say which IR it holds", hint="name it: --ir ttgir")
    if not is_known(name):
        raise UsageError(
            f"{file}: irdiff does not read IR of the kind {name}",
            hint=f"name the kind of IR: --ir {'|'.join(_READ)}",
        )
    if file.stat().st_size > MAX_FILE_BYTES:
        raise UsageError(
            f"{file} is larger than {MAX_FILE_BYTES >> 20} MiB, the most that irdiff reads",
            hint="name a file with the IR of one kernel",
        )
    text = file.read_bytes().decode("utf-8", errors="surrogateescape")
    if not text.strip():
        raise UsageError(f"{file} is empty", hint="name a file that a compiler finished")
    canonical = canonicalize(name, text)
    numbered = zip(canonical.numbers, canonical.lines, strict=True)
    click.echo("\n".join(f"{number:6} {line}" if numbers else line for number, line in numbered))


# the diff as lines: unified or side by side, raw line numbers at the margin, changed parts marked


_OF_BASE = re.compile(r"[%$#!][\w.$]+'")
_STYLE = {Kind.REMOVED: "red", Kind.ADDED: "green", Kind.RENAMED: "yellow", Kind.SAME: ""}
_LAYOUT = Console()
_MARK = {Kind.REMOVED: "bold reverse", Kind.ADDED: "bold reverse", Kind.RENAMED: "underline", Kind.SAME: ""}


@dataclass(frozen=True, kw_only=True)
class View:
    context: int
    raw: bool
    side_by_side: bool
    width: int


def lines(diff: StageDiff, view: View) -> Iterator[Text]:
    """Yields nothing if nothing differs."""
    telling, others = diff.telling_first(view.context)
    shown: list[str] = []
    for title, hunks in (("", telling), (stage_diff.OTHERS if telling else "", others)):
        if title and hunks:
            yield Text(f"\n{title}", style="bold")
        for before, hunk in itertools.pairwise([range(0), *hunks]):
            if hunk.start > before.stop:
                yield _gap(diff, range(before.stop, hunk.start))
            hunk_lines = [diff.line(index) for index in hunk]
            shown += [line.text for line in hunk_lines]
            yield from _side_by_side(hunk_lines, view) if view.side_by_side else _unified(hunk_lines, view)
        if hunks and hunks[-1].stop < len(diff.rows):
            yield _gap(diff, range(hunks[-1].stop, len(diff.rows)))
    if not view.raw:
        yield from _legend(diff, "\n".join(shown))


def is_marked(text: str) -> bool:
    """True if a line has a name with a number of base."""
    return bool(_OF_BASE.search(text))


def color_of(line: str) -> str:
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def counts(diff: StageDiff) -> str:
    """`13 lines removed, 9 added; 227 in other registers`."""
    removed = diff.count(Kind.REMOVED)
    words = f"{counted(removed, 'line')} removed, {diff.count(Kind.ADDED)} added"
    renamed = diff.count(Kind.RENAMED)
    return words + (f"; {renamed} in other registers" if renamed else "")


def _gap(diff: StageDiff, left_out: range) -> Text:
    return Text(f"{'':13}{diff.left_out(left_out)}", style="dim")


def _unified(lines: Sequence[DiffLine], view: View) -> Iterator[Text]:
    for line in lines:
        text = Text(f"{_number(line.base_number)} {_number(line.head_number)} ", style="dim")
        text.append(f"{line.kind.value} ", style=_STYLE[line.kind])
        yield text.append_text(_content(line, view))


def _number(number: int) -> str:
    return f"{number:>5}" if number else " " * 5


def _content(line: DiffLine, view: View) -> Text:
    if view.raw and line.raw:
        return Text(line.raw, style=_STYLE[line.kind])
    text = Text(line.text, style=_STYLE[line.kind])
    for start, end in line.marks:
        text.stylize(_MARK[line.kind], start, end)
    return text


def _side_by_side(lines: Sequence[DiffLine], view: View) -> Iterator[Text]:
    """Prints a block of removed lines next to the block of added lines that follows it."""
    for is_edit, run in groupby(lines, lambda line: line.kind in (Kind.REMOVED, Kind.ADDED)):
        same_kind = list(run)
        if not is_edit:
            pairs: Iterable[tuple[DiffLine | None, DiffLine | None]] = zip(same_kind, same_kind, strict=True)
        else:
            removed = [each for each in same_kind if each.kind is Kind.REMOVED]
            pairs = zip_longest(removed, [each for each in same_kind if each.kind is Kind.ADDED])
        for left, right in pairs:
            yield from _pair(left, right, view)


def _pair(left: DiffLine | None, right: DiffLine | None, view: View) -> Iterator[Text]:
    """Prints both lines in full: a line that is longer than half of the width continues below."""
    width = max(20, (view.width - 3) // 2 - 6)
    texts = [_content(line, view) if line else Text() for line in (left, right)]
    halves = [text.wrap(_LAYOUT, width, overflow="fold") for text in texts]
    numbers = [_number(left.base_number if left else 0), _number(right.head_number if right else 0)]
    for ours, theirs in zip_longest(*halves, fillvalue=Text()):
        text = Text.assemble((f"{numbers[0]} ", "dim"), ours, " " * (width - ours.cell_len), (" │ ", "dim"))
        yield text.append(f"{numbers[1]} ", style="dim").append_text(theirs)
        numbers = [_number(0)] * 2


def _legend(diff: StageDiff, text: str) -> Iterator[Text]:
    if is_marked(text):
        yield Text(f"\n{MARK_LEGEND}", style="dim")
    used = [(short, full) for short, full in diff.legend if short in text]
    if used:
        yield Text("\nshort names", style="dim")
    for short, full in used:
        yield Text(f"  {short} = {full}", style="dim")
