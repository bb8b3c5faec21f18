from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff.attribute.attribution import Attribution
from irdiff.backends.stages import WITHOUT_TEXT, in_stage_order
from irdiff.cli import diff_command, options, run_argument, screen
from irdiff.cli.diff_command import View
from irdiff.cli.run_argument import OpenedRun
from irdiff.compare.cases import failed_program
from irdiff.compare.line_alignment import MARK_LEGEND, Kind
from irdiff.config import Config
from irdiff.diffs import disassembly, launch_changes, stage_diff
from irdiff.diffs.stage_diff import StageDiff
from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.explain import explanation
from irdiff.model import Case, Fact, Origin, Sides, StageStatus, Verdict
from irdiff.report import (
    commands,
    escape,
    expected_times,
    group_names,
    phrases,
    timing_summary,
    witnesses,
    work_table,
)
from irdiff.report.phrases import fact_name, facts_in_order, moved_facts, unit, unknown_facts
from irdiff.resolve.sides import Side
from irdiff.stages import Stage
from irdiff.store import Store
from irdiff.texts import canonicalize, equivalent, title
from irdiff.words import repeats_counted

_SAME = (StageStatus.IDENTICAL, StageStatus.EQUIVALENT)
_MAX_DIFF_LINES = 120
_MAX_SOURCE_LINES = 12
_RECORDED = (
    "a recorded workload calls the kernel as it was: record it again with irdiff capture, "
    "or compare with --program"
)


@click.command("explain")
@run_argument.argument()
@run_argument.case_argument
@options.context_option
@click.option(
    "--lit",
    "lit_path",
    is_flag=False,
    flag_value="",
    metavar="[FILE]",
    help="Instead, write a FileCheck test of the origin's pass to FILE. `--lit` without FILE writes "
    "test.mlir in the --save folder, or to stdout without --save.",
)
@click.option(
    "--save",
    "save_path",
    type=options.PATH,
    help="Write to this folder the files that the printed commands read.",
)
@click.option("--exec", "exec_side", type=click.Choice(["base", "head"]), help="Compile one side alone.")
@options.corpus_option
@options.configured
def explain_command(
    *,
    run: str,
    case: str,
    context: int,
    lit_path: str | None,
    save_path: Path | None,
    exec_side: str | None,
    corpus: Path | None,
    config: Config,
) -> None:
    """Say where the change of one CASE comes from, and what it does.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. CASE is an id,
    a part that only one id has, or a change group (2, g:b140) for its smallest example. Shows the stages, the
    pass where the difference begins, the lines that differ after it with the kernel's source lines, what a
    launch executes on both sides (instructions, memory accesses), figures of the binary such as registers,
    and commands that reproduce each side alone. If the run did not look for the pass, `explain` does, which
    needs the run's toolchains.
    """
    with run_argument.opened(run, config) as opened:
        story = CaseStory(
            console=Console(), opened=opened, case=run_argument.find_case(opened.run, case), context=context
        )
        if save_path:
            explanation.save(opened.folder, opened.run, story.case, save_path)
        if exec_side:
            click.echo(_alone(exec_side, save_path, story, corpus, config), nl=False)
            return
        sides, attribution = _attributed(story, corpus, config)
        if lit_path is None:
            story.show(attribution, sides, config, explanation.corpus_roots(opened.run, corpus, config))
            return
        default = save_path / "test.mlir" if save_path else Path("-")
        out = Path(lit_path) if lit_path else default
        options.check_output(out)
        _write_lit(out, story, sides, attribution, config)


def _alone(side: str, saved: Path | None, story: CaseStory, corpus: Path | None, config: Config) -> str:
    """Compiles one side alone, from the IR that enters the changed stage."""
    run, case = story.opened.run, story.case
    with screen.status_line(), tempfile.TemporaryDirectory(prefix="irdiff-") as name:
        python = explanation.sides_again(run, case, corpus, config).of(side).toolchain.python
        folder = saved or Path(name)
        if not saved:
            explanation.save(story.opened.folder, run, case, folder)
        alone = next(alone for alone in explanation.reproduction(run, case) if alone.side == side)
        if not (folder / alone.file).exists():
            raise RunFolderError(
                f"the run folder holds no {alone.file.partition('.')[2]} of {side}",
                hint="compare again, then explain the new run",
            )
        click.echo(escape.terminal(alone.command(python)), err=True)
        return alone.run(python, folder, config)


def _attributed(
    story: CaseStory, corpus: Path | None, config: Config
) -> tuple[Sides[Side] | None, Attribution | None]:
    run, case = story.opened.run, story.case
    try:
        with screen.status_line() as say:
            sides = explanation.sides_again(run, case, corpus, config)
            say(f"attributing {case.id}")
            return sides, explanation.attribute(run, story.opened.folder, case, sides, config)
    except IrdiffError as error:
        story.say(f"irdiff did not look for the pass: {error}", "yellow")
        return None, None


def _write_lit(
    path: Path, story: CaseStory, sides: Sides[Side] | None, attribution: Attribution | None, config: Config
) -> None:
    if sides is None or attribution is None or attribution.step is None:
        raise UsageError(
            f"{escape.terminal(story.case.id)}: the difference begins in no MLIR pass; nothing can be tested",
            hint="choose a case whose origin names a pass: irdiff report RUN",
        )
    from irdiff.explain import lit_test

    with screen.status_line() as say:
        subject = explanation.to_replay(story.opened.run, story.case, sides)
        test = lit_test.generate(subject, attribution.step, config, say)
    options.write_output(path, test.text)
    click.echo(test.summary, err=True)


@dataclass(frozen=True, kw_only=True)
class CaseStory:
    """Prints the stages, origin, IR diff, figures and commands of one case."""

    console: Console
    opened: OpenedRun
    case: Case
    context: int
    """Lines around a change."""

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(escape.terminal(text), style=style), soft_wrap=True)

    def section(self, title: str, lines: Iterable[str]) -> None:
        shown = list(lines)
        if shown:
            self.console.print()
            self.say(title, "bold")
        for text in shown:
            self.say(text)

    def show(
        self, attribution: Attribution | None, sides: Sides[Side] | None, config: Config, corpora: Sides[Path]
    ) -> None:
        self._heading()
        self._origin(attribution)
        if self.case.verdict not in (Verdict.ADDED, Verdict.REMOVED):
            self._edit(attribution, config, corpora)
        self._facts()
        work = "counted work of the whole launch, base → head (one number: both sides are equal)"
        self.section(work, work_table.lines(self.case))
        self.section("also seen", dict.fromkeys(self._findings(config)))
        changes = launch_changes.of_case(self.case, self.opened.run)
        both = [change for change in changes if change.is_known_to_both]
        self.section("differences in the launch and its options", map(str, both))
        alone = [change for change in changes if not change.is_known_to_both]
        self.section("options that only one side's release knows", map(str, alone))
        timings = self.opened.timing
        timings_of_case = (
            [timing for timing in timings.cases if timing.case == self.case.id] if timings else []
        )
        if not any(timing.measurement for timing in timings_of_case):
            self.section("time, not measured", expected_times.of_case(self.case))
        self.section(
            "timing", (f"{timing.gpu}: {timing_summary.in_words(timing)}" for timing in timings_of_case)
        )
        self.section("to compile each side alone, from the IR that enters the stage", self._alone(sides))

    def _facts(self) -> None:
        """Prints all figures if only one side compiles, else those that moved."""
        base, head = self.case.facts
        if base and head:
            moved = moved_facts(base, head).items()
            facts = [
                f"{fact_name(fact):28} {_figure(before)} → {_figure(after)}{unit(fact)}"
                for fact, (before, after) in moved
            ]
            unknown = unknown_facts(base, head).items()
            facts += [f"{fact_name(fact):28} not known at {side}" for fact, side in unknown]
            self.section("figures that moved", facts)
        else:
            facts = [
                f"{fact_name(fact):28} {_figure(value)}{unit(fact)}"
                for fact, value in facts_in_order(base or head).items()
            ]
            self.section(f"figures of {'base' if base else 'head'} alone", facts)

    def _heading(self) -> None:
        case, run = self.case, self.opened.run
        self.say(f"{case.id}: {case.verdict.value}", "bold")
        self.say(f"base {phrases.side(run.base)}   head {phrases.side(run.head)}", "dim")
        if case.renamed_from:
            self.say(f"at base it is {case.renamed_from}", "dim")
        if case.summary:
            self.say(case.summary.title.replace("`", ""))
            why, *others = repeats_counted(text.replace("`", "") for text in case.summary.reasons) or [""]
            self.say(f"{case.summary.severity}: {why}" if why else case.summary.severity)
            for text in others:
                self.say(f"also: {text}", "dim")
            for line in witnesses.of(case):
                self.say(line)
        group = next((group for group in group_names.named(run) if group.group.id == case.group), None)
        if group:
            count = len(group.group.members)
            place = f"one of {count} cases in group" if count > 1 else "the only case in group"
            is_repeated = case.summary and group.group.title == case.summary.title
            title = "" if is_repeated else f": {group.group.title.replace('`', '')}"
            self.say(f"{place} {group.number} ({group.short}){title}", "dim")
        if (calls := explanation.calls(self.opened.folder, case)) > 1:
            self.say(f"launched {calls} times with this kernel; figures of work are of the first call", "dim")
        if case.error:
            self.say(case.error, "red")
        head = case.failures.head
        if ended := failed_program(case):
            for line in ended.stderr.splitlines():
                self.say(line, "dim")
        elif case.verdict is Verdict.BROKEN and head and head.stage == "capture" and run.head.revision:
            self.say(_RECORDED, "dim")
        stages = [f"{name} {status.value}" for name, status in in_stage_order(case.stages)]
        if stages:
            self.say("stages:  " + " → ".join(stages))

    def _origin(self, attribution: Attribution | None) -> None:
        origin = attribution.origin if attribution else self.case.origin
        if origin is None:
            return
        in_pass = f", pass {origin.pass_name}" if origin.pass_name else ""
        self.say(f"origin:  {origin.stage}{in_pass}", "bold")
        if attribution and attribution.step and attribution.step.argument:
            options = attribution.step.options
            self.say(f"         {attribution.step.argument}" + (f" {{{options}}}" if options else ""))
        if origin.charged:
            self.say("contributing parts: " + phrases.components(origin.charged))
        if made_otherwise := self._made_otherwise(origin):
            self.say(f"note:    {made_otherwise}")
        if origin.masked:
            self.say(f"masked:  {', '.join(origin.masked)} (a difference that later went away)", "dim")
        if origin.note:
            self.say(f"note:    {origin.note}")

    def _made_otherwise(self, origin: Origin) -> str:
        """Says so if the difference begins before the assembly, the assembly is the same, and the machine
        code is not.
        """
        statuses = self.case.stages
        kind = next((kind for kind in WITHOUT_TEXT.values() if kind.status in statuses), None)
        if kind is None or origin.stage in (Stage.LAUNCH, kind.assembly, kind.status):
            return ""
        if statuses[kind.status] is not StageStatus.CHANGED or statuses.get(kind.assembly) not in _SAME:
            return ""
        text = title(kind.assembly)
        return f"the {text} of both sides is the same, but {kind.made_by} makes other machine code from it"

    def _texts(self, stage: str, config: Config) -> Sides[str] | None:
        """Disassembles machine code. Says why there are no texts."""
        folder, case = self.opened.folder, self.case
        if stage in WITHOUT_TEXT:
            try:
                return disassembly.disassembled(folder, case, config)
            except IrdiffError as error:
                self.say(f"what differs in {stage} is not shown: {error.what}", "dim")
                return None
        base, head = (stage_diff.read_text(folder, case, side, stage) for side in ("base", "head"))
        if base is None or head is None:
            self.say(f"the run folder does not have the text of {stage or 'any stage'} of both sides", "dim")
            return None
        return Sides(base=base, head=head)

    def _edit(self, attribution: Attribution | None, config: Config, corpora: Sides[Path]) -> None:
        """Prints the first changed stage if no pass is known."""
        edit, store = attribution.edit if attribution else None, Store(config.store)
        texts = [store.get(edit.base), store.get(edit.head)] if edit else [None]
        if None not in texts:
            stage: str = Stage.TTGIR
            base, head = (text.decode() for text in texts if text is not None)
        else:
            stage = self.case.origin.stage if self.case.origin else ""
            read = self._texts(stage, config)
            if read is None:
                return
            base, head = read
        diff = stage_diff.compare(stage, base, head)
        pass_name = attribution.origin.pass_name if attribution and attribution.edit else None
        self.say("")
        self.say(f"what {pass_name} makes different" if pass_name else f"what differs in {stage}", "bold")
        view = View(context=self.context, raw=False, side_by_side=False, width=self.console.width)
        is_marked = False
        shown = diff_command.lines_or_reason(diff, view, stage, self.opened.folder, self.case)
        for index, line in enumerate(shown):
            if index == _MAX_DIFF_LINES:
                if is_marked:
                    self.say(MARK_LEGEND, "dim")
                self.say(f"… the rest: {commands.diff(self.opened.call, self.case.id)}", "dim")
                break
            is_marked |= diff_command.is_marked(line.plain)
            self.console.print(line, soft_wrap=True, highlight=False)
        title, places = (
            "kernel lines behind it",
            self._source_lines(diff, Sides(base=base, head=head), corpora),
        )
        if stage == Stage.LAUNCH:
            changed = [file.path for file in self.opened.run.reach.files] if self.opened.run.reach else []
            title = "lines that launch it"
            places = iter(explanation.launching_lines(self.case.kernel, corpora.head, changed))
        lines = list(dict.fromkeys(places))
        more = [f"… and {len(lines) - _MAX_SOURCE_LINES} more"] if len(lines) > _MAX_SOURCE_LINES else []
        self.section(title, [*lines[:_MAX_SOURCE_LINES], *more])

    def _source_lines(self, diff: StageDiff, texts: Sides[str], corpora: Sides[Path]) -> Iterator[str]:
        """Yields the lines of the kernel's source that produced the changed lines of each side."""
        launches = self.case.launches.map(lambda key: self.opened.run.launches[key] if key else None)
        for text, root, launch, kind in zip(
            texts, corpora, launches, (Kind.REMOVED, Kind.ADDED), strict=True
        ):
            if launch is None:
                continue
            lines = [line for line in diff.rows if line.kind is kind]
            places = [line.base if kind is Kind.REMOVED else line.head for line in lines]
            numbers = canonicalize(diff.stage, text).numbers
            raw = [numbers[place] for place in places if place is not None and place < len(numbers)]
            yield from explanation.source_lines(text, raw, root, {launch.source_path, *launch.sources})

    def _findings(self, config: Config) -> Iterator[str]:
        """Disassembles and compares machine code."""
        yield from (finding.words for finding in self.case.findings)
        stages, artifacts = self.case.stages, self.case.artifacts.base
        kind = next((kind for kind in WITHOUT_TEXT.values() if kind.artifact in artifacts), None)
        if kind is None or stages.get(kind.status) is not StageStatus.CHANGED:
            return
        try:
            texts = disassembly.disassembled(self.opened.folder, self.case, config)
            equality = equivalent(kind.status, texts.base, texts.head)
        except IrdiffError as error:
            yield f"machine code: not disassembled: {error.what}"
            return
        is_shown = self.case.origin is not None and self.case.origin.stage == kind.status
        if equality.equal and not is_shown:
            yield f"machine code: {disassembly.without_difference(self.opened.folder, self.case)}"
        yield from (f"machine code: {finding.words}" for finding in equality.findings)

    def _alone(self, sides: Sides[Side] | None) -> Iterator[str]:
        files = explanation.held(self.opened.folder, self.opened.run, self.case)
        if not files:
            return
        by_tools = explanation.tool_commands(self.opened.run, self.opened.folder, self.case)
        words = commands.explain(self.opened.call, self.case.id)
        yield f"save the files in a folder, and go there: {words} --save DIR; cd DIR"
        yield from by_tools
        commands_of_sides = [
            alone for alone in explanation.reproduction(self.opened.run, self.case) if alone.file in files
        ]
        for alone in () if by_tools else commands_of_sides:
            python = sides.of(alone.side).toolchain.python if sides else "PYTHON"
            yield f"{alone.side}: {alone.command(python)}"
        if not by_tools:
            yield f"without saving: {words} --exec {commands_of_sides[-1].side}"


def _figure(value: Fact) -> str:
    return value if isinstance(value, str) else f"{value:,}"
