"""`irdiff explain RUN CASE|GROUP`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff import config as configuration
from irdiff import normalize
from irdiff.attribute.attribution import Attribution
from irdiff.cli import case_argument, disassembly, options, run_argument
from irdiff.cli.run_argument import GivenRun
from irdiff.cli.status import status_line
from irdiff.config import Config
from irdiff.errors import ExitCode, IrdiffError, RunFolderError, UsageError
from irdiff.model import Case, Run, Sides, StageStatus
from irdiff.report import commands, diff_view, escape, group_names, launch_changes, stage_diff, wording
from irdiff.report.alignment import Kind
from irdiff.report.diff_view import View
from irdiff.report.rank import moved_facts
from irdiff.report.stage_diff import StageDiff
from irdiff.resolve.sides import Side
from irdiff.run import explanation, run_folder, tool_commands
from irdiff.stages import Stage, in_stage_order
from irdiff.store import Store
from irdiff.timing import timing_file
from irdiff.timing.results import CaseTiming

_MAX_DIFF_LINES = 120
_MAX_SOURCE_LINES = 12


@click.command("explain")
@run_argument.argument()
@case_argument.argument
@click.option(
    "--context", "-U", type=click.IntRange(min=0), default=3, show_default=True, help="Lines around a change."
)
@click.option(
    "--lit",
    "lit_path",
    is_flag=False,
    flag_value="",
    help="Write a FileCheck test of the responsible pass: here, else into --save, else to stdout.",
)
@click.option(
    "--save", "save_path", type=click.Path(path_type=Path), help="Write the files of the commands here."
)
@click.option(
    "--exec",
    "exec_side",
    type=click.Choice(["base", "head"]),
    help="Compile this side alone, by its own interpreter, and print what comes out.",
)
@options.corpus_option
@options.cache_option
def explain_command(
    run: str,
    case: str,
    context: int,
    lit_path: str | None,
    save_path: Path | None,
    exec_side: str | None,
    corpus: Path | None,
    cache: Path | None,
) -> int:
    """Tell the whole story of one CASE of RUN, or of the smallest example of a change group (2, g:b140).

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. Stages, the
    responsible pass, its edit with the kernel's source lines, facts, and how to reproduce each side alone.
    The pass is looked for where the run did not; that needs the toolchains of the run.
    """
    config = configuration.load(cache=cache)
    with run_argument.opened(run, config) as given:
        found = run_folder.load(given.folder)
        chosen = case_argument.find(found, case)
        console = Console(no_color=config.color is False)
        teller = _Teller(console, found, given, chosen, context)
        if save_path:
            explanation.save(given.folder, found, chosen, save_path)
        if exec_side:
            click.echo(_alone(exec_side, save_path, teller, corpus, config), nl=False)
            return ExitCode.DONE
        sides, story = _attributed(found, given.folder, chosen, corpus, config, teller)
        if lit_path is not None:
            return _write_lit(_lit_file(lit_path, save_path), found, chosen, sides, story, config)
        teller.tell(story, sides, config, explanation.corpus_roots(found, corpus, config))
    return ExitCode.DONE


def _alone(side: str, saved: Path | None, teller: _Teller, corpus: Path | None, config: Config) -> str:
    """What one side alone makes of the IR that enters the changed stage."""
    run, case = teller.run, teller.case
    with status_line(Console(stderr=True)) as tell, tempfile.TemporaryDirectory(prefix="irdiff-") as name:
        python = explanation.sides_again(run, case, corpus, config, tell).of(side).toolchain.python
        folder = saved or Path(name)
        if not saved:
            explanation.save(teller.folder, run, case, folder)
        row = next(row for row in explanation.reproduction(run, case) if row.side == side)
        if not (folder / row.file).exists():
            raise RunFolderError(f"the run folder holds no {row.file.partition('.')[2]} of {side}")
        click.echo(escape.terminal(row.command(python)), err=True)
        return row.run(python, folder, config)


def _lit_file(text: str, saved: Path | None) -> Path:
    if not text:
        return saved / "test.mlir" if saved else Path("-")
    if text != "-":
        options.check_output(Path(text))
    return Path(text)


def _attributed(
    run: Run, folder: Path, case: Case, corpus: Path | None, config: Config, teller: _Teller
) -> tuple[Sides[Side] | None, Attribution | None]:
    try:
        with status_line(Console(stderr=True)) as tell:
            sides = explanation.sides_again(run, case, corpus, config, tell)
            tell(f"attributing {case.id}")
            return sides, explanation.attribute(run, folder, case, sides, config)
    except IrdiffError as error:
        teller.say(f"the pass is not looked for: {error.what}", "yellow")
        return None, None


def _write_lit(
    path: Path,
    run: Run,
    case: Case,
    sides: Sides[Side] | None,
    story: Attribution | None,
    config: Config,
) -> int:
    if sides is None or story is None or story.step is None:
        raise UsageError(
            f"{escape.terminal(case.id)}: no MLIR pass is responsible, so there is none to test",
            hint="choose a case whose origin names a pass: irdiff report RUN",
        )
    from irdiff.attribute import lit_test

    with status_line(Console(stderr=True)) as tell:
        test = lit_test.generate(run, case, sides, story.step, config, tell)
    options.write_output(path, test.text)
    click.echo(test.summary, err=True)
    return ExitCode.DONE


class _Teller:
    """Prints the story."""

    def __init__(self, console: Console, run: Run, given: GivenRun, case: Case, context: int) -> None:
        self.console = console
        self.run = run
        self.folder = given.folder
        self.call = given.call
        self.case = case
        self.context = context

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(escape.terminal(text), style=style), soft_wrap=True)

    def title(self, text: str) -> None:
        self.console.print()
        self.say(text, "bold")

    def tell(
        self, story: Attribution | None, sides: Sides[Side] | None, config: Config, corpora: Sides[Path]
    ) -> None:
        case, run = self.case, self.run
        self.say(f"{case.id}: {case.verdict.value}", "bold")
        self.say(f"base {wording.side(run.base)}   head {wording.side(run.head)}", "dim")
        if case.told:
            self.say(case.told.title.replace("`", ""))
            self.say(f"{case.told.severity} ({'; '.join(case.told.reasons)})")
        row = next((row for row in group_names.named(run) if row.group.id == case.group), None)
        if row:
            count = len(row.group.members)
            place = f"one of {count} cases in group" if count > 1 else "the only case in group"
            self.say(f"{place} {row.number} ({row.short}): {row.group.title.replace('`', '')}", "dim")
        if case.error:
            self.say(case.error, "red")
        rows = [f"{name} {status.value}" for name, status in in_stage_order(case.stages)]
        self.say("stages:  " + " → ".join(rows))
        self._origin(story)
        self._edit(story, Store(config.store), corpora)
        self._facts()
        self._findings(config)
        self._launch()
        self._timing()
        self._alone(sides)

    def _alone(self, sides: Sides[Side] | None) -> None:
        self.title("each side alone, from the IR that enters that stage")
        by_tools = tool_commands.of_case(self.run, self.folder, self.case)
        for command in by_tools:
            self.say(command)
        for row in () if by_tools else explanation.reproduction(self.run, self.case):
            python = sides.of(row.side).toolchain.python if sides else "PYTHON"
            self.say(f"{row.side}: {row.command(python)}")
        words = commands.explain(self.call, self.case.id)
        self.say(f"files:    {words} --save DIR")
        if not by_tools:
            self.say(f"run here: {words} --exec head", "dim")

    def _origin(self, story: Attribution | None) -> None:
        origin = story.origin if story else self.case.origin
        if origin is None:
            return
        self.say(
            f"origin:  {origin.stage}" + (f", pass {origin.pass_name}" if origin.pass_name else ""), "bold"
        )
        if story and story.step and story.step.argument:
            known = story.step.options
            self.say(f"         {story.step.argument}" + (f" {{{known}}}" if known else ""))
        if origin.charged:
            self.say("charged: " + ", ".join(component.value for component in origin.charged))
        if origin.healed:
            self.say("healed:  differed and came together again: " + ", ".join(origin.healed), "dim")
        if origin.note:
            self.say(f"note:    {origin.note}")

    def _edit(self, story: Attribution | None, store: Store, corpora: Sides[Path]) -> None:
        texts = _texts_of_step(story, store)
        stage = Stage.TTGIR if texts else self.case.origin.stage if self.case.origin else ""
        if not texts:
            read = [stage_diff.read_text(self.folder, self.case, side, stage) for side in ("base", "head")]
            texts = (read[0], read[1]) if read[0] is not None and read[1] is not None else None
        if not texts:
            self.say(f"no text of {stage or 'any stage'} to show", "dim")
            return
        diff = stage_diff.compare(stage, *texts)
        self.say(
            f"\nedit of {story.origin.pass_name}" if story and story.step else f"\nedit in {stage}", "bold"
        )
        view = View(context=self.context, raw=False, side_by_side=False, width=self.console.width)
        for index, line in enumerate(diff_view.lines(diff, view)):
            if index == _MAX_DIFF_LINES:
                self.say(f"… the rest: {commands.diff(self.call, self.case.id)}", "dim")
                break
            self.console.print(line, soft_wrap=True, highlight=False)
        self._source(diff, texts, corpora)

    def _source(self, diff: StageDiff, texts: tuple[str, str], corpora: Sides[Path]) -> None:
        shown: list[str] = []
        for side, (kind, root) in enumerate(zip((Kind.REMOVED, Kind.ADDED), corpora, strict=True)):
            places = [row.head if side else row.base for row in diff.rows if row.kind is kind]
            numbers = normalize.canonicalize(diff.stage, texts[side]).numbers
            raw = [numbers[place] for place in places if place is not None and place < len(numbers)]
            shown += explanation.source_lines(texts[side], raw, root)
        unique = list(dict.fromkeys(shown))
        if unique:
            self.title("kernel lines behind it")
            for line in unique[:_MAX_SOURCE_LINES]:
                self.say(line)
            if len(unique) > _MAX_SOURCE_LINES:
                self.say(f"… and {len(unique) - _MAX_SOURCE_LINES} more", "dim")

    def _facts(self) -> None:
        moved = moved_facts(self.case.facts.base, self.case.facts.head)
        if moved:
            self.title("facts that moved")
            for name, (before, after) in moved.items():
                self.say(f"{name:28} {before} → {after}")

    def _findings(self, config: Config) -> None:
        """What was seen beside the edit; of SASS, which only nvdisasm shows, it is looked for here."""
        words = [wording.finding(found) for found in self.case.findings]
        if self.case.stages.get(Stage.SASS) is StageStatus.CHANGED and self.case.artifacts.base.get(
            Stage.CUBIN
        ):
            try:
                texts = disassembly.of_case(self.folder, self.case, config)
                found = normalize.equivalent(Stage.SASS, texts.base, texts.head)
                words += ["machine code: the disassembly is the same"] * found.equal
                words += [f"machine code: {wording.finding(row)}" for row in found.findings]
            except IrdiffError as error:
                words.append(f"machine code: not disassembled: {error.what}")
        if words:
            self.title("also seen")
            for line in dict.fromkeys(words):
                self.say(line)

    def _launch(self) -> None:
        found = launch_changes.of_case(self.case, self.run)
        if found:
            self.title("what the launch and its options have otherwise")
        for change in found:
            self.say(str(change))

    def _timing(self) -> None:
        timings = timing_file.load(self.folder if self.folder.is_dir() else self.folder.parent)
        rows = [row for row in timings.cases if row.case == self.case.id] if timings else []
        if rows:
            self.title("timing")
        for row in rows:
            self.say(f"{row.gpu}: {_measured(row)}; outputs {row.outputs.status.value}")


def _measured(row: CaseTiming) -> str:
    found = row.measurement
    if found is None:
        return f"not measured: {row.note or row.outputs.message}"
    ratio = f"head / base {found.ratio:.4f} [{found.ratio_low:.4f}, {found.ratio_high:.4f}]"
    noise = f"noise floor {found.noise_floor:.4f}"
    words = f"{found.speed.value}: {found.why}" if found.why else found.speed.value
    return f"{found.base_us:.2f} → {found.head_us:.2f} µs, {ratio}, {noise}: {words}"


def _texts_of_step(story: Attribution | None, store: Store) -> tuple[str, str] | None:
    if story is None or story.edit is None:
        return None
    base, head = store.get(story.edit.base), store.get(story.edit.head)
    return (base.decode(), head.decode()) if base is not None and head is not None else None
