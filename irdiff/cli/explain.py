"""`irdiff explain RUN CASE|GROUP`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console

from irdiff.attribute.attribution import Attribution
from irdiff.cli import options, run_argument, screen
from irdiff.cli.case_story import CaseStory
from irdiff.config import Config
from irdiff.errors import IrdiffError, RunFolderError, UsageError
from irdiff.model import Sides
from irdiff.report import escape
from irdiff.resolve.sides import Side
from irdiff.run import explanation


@click.command("explain")
@run_argument.argument()
@run_argument.case_argument
@options.context_option
@click.option(
    "--lit",
    "lit_path",
    is_flag=False,
    flag_value="",
    help="Write a FileCheck test of the responsible pass: here, else into --save, else to stdout.",
)
@click.option("--save", "save_path", type=options.PATH, help="Write the files of the commands here.")
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
    """Show the whole story of one CASE of RUN, or of the smallest example of a change group (2, g:b140).

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. The story is of
    stages, the responsible pass, its edit with the kernel's source lines, facts, and how to reproduce each
    side alone. The pass is looked for where the run did not; that needs the toolchains of the run.
    """
    with run_argument.opened(run, config) as given:
        story = CaseStory(
            console=Console(),
            run=given.run,
            case=run_argument.find_case(given.run, case),
            folder=given.folder,
            call=given.call,
            context=context,
        )
        if save_path:
            explanation.save(given.folder, given.run, story.case, save_path)
        if exec_side:
            click.echo(_alone(exec_side, save_path, story, corpus, config), nl=False)
            return
        sides, attribution = _attributed(story, corpus, config)
        if lit_path is not None:
            _write_lit(_lit_file(lit_path, save_path), story, sides, attribution, config)
        else:
            story.tell(attribution, sides, config, explanation.corpus_roots(given.run, corpus, config))


def _alone(side: str, saved: Path | None, story: CaseStory, corpus: Path | None, config: Config) -> str:
    """What one side alone makes of the IR that enters the changed stage."""
    run, case = story.run, story.case
    with screen.status_line() as tell, tempfile.TemporaryDirectory(prefix="irdiff-") as name:
        python = explanation.sides_again(run, case, corpus, config, tell).of(side).toolchain.python
        folder = saved or Path(name)
        if not saved:
            explanation.save(story.folder, run, case, folder)
        row = next(row for row in explanation.reproduction(run, case) if row.side == side)
        if not (folder / row.file).exists():
            raise RunFolderError(f"the run folder holds no {row.file.partition('.')[2]} of {side}")
        click.echo(escape.terminal(row.command(python)), err=True)
        return row.run(python, folder, config)


def _lit_file(text: str, saved: Path | None) -> Path:
    if not text:
        return saved / "test.mlir" if saved else Path("-")
    options.check_output(Path(text))
    return Path(text)


def _attributed(
    story: CaseStory, corpus: Path | None, config: Config
) -> tuple[Sides[Side] | None, Attribution | None]:
    run, case = story.run, story.case
    try:
        with screen.status_line() as tell:
            sides = explanation.sides_again(run, case, corpus, config, tell)
            tell(f"attributing {case.id}")
            return sides, explanation.attribute(run, story.folder, case, sides, config)
    except IrdiffError as error:
        story.say(f"the pass is not looked for: {error.what}", "yellow")
        return None, None


def _write_lit(
    path: Path, story: CaseStory, sides: Sides[Side] | None, found: Attribution | None, config: Config
) -> None:
    if sides is None or found is None or found.step is None:
        raise UsageError(
            f"{escape.terminal(story.case.id)}: no MLIR pass is responsible, so there is none to test",
            hint="choose a case whose origin names a pass: irdiff report RUN",
        )
    from irdiff.attribute import lit_test

    with screen.status_line() as tell:
        test = lit_test.generate(story.run, story.case, sides, found.step, config, tell)
    options.write_output(path, test.text)
    click.echo(test.summary, err=True)
