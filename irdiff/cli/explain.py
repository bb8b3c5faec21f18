"""`irdiff explain RUN CASE|GROUP`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff.attribute.attribution import Attribution
from irdiff.cli import case_argument, options, run_argument
from irdiff.cli.case_story import CaseStory
from irdiff.cli.status import status_line
from irdiff.config import Config
from irdiff.errors import ExitCode, IrdiffError, RunFolderError, UsageError
from irdiff.model import Case, Run, Sides
from irdiff.report import escape
from irdiff.resolve.sides import Side
from irdiff.run import explanation, run_folder


@click.command("explain")
@run_argument.argument()
@case_argument.argument
@options.context_option
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

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. The story is of
    stages, the responsible pass, its edit with the kernel's source lines, facts, and how to reproduce each
    side alone. The pass is looked for where the run did not; that needs the toolchains of the run.
    """
    config = configuration.load(cache=cache)
    with run_argument.opened(run, config) as given:
        found = run_folder.load(given.folder)
        chosen = case_argument.find(found, case)
        story = CaseStory(
            console=Console(no_color=config.color is False),
            run=found,
            case=chosen,
            folder=given.folder,
            call=given.call,
            context=context,
        )
        if save_path:
            explanation.save(given.folder, found, chosen, save_path)
        if exec_side:
            click.echo(_alone(exec_side, save_path, story, corpus, config), nl=False)
            return ExitCode.DONE
        sides, attribution = _attributed(story, corpus, config)
        if lit_path is not None:
            return _write_lit(_lit_file(lit_path, save_path), found, chosen, sides, attribution, config)
        story.tell(attribution, sides, config, explanation.corpus_roots(found, corpus, config))
    return ExitCode.DONE


def _alone(side: str, saved: Path | None, story: CaseStory, corpus: Path | None, config: Config) -> str:
    """What one side alone makes of the IR that enters the changed stage."""
    run, case = story.run, story.case
    with status_line(Console(stderr=True)) as tell, tempfile.TemporaryDirectory(prefix="irdiff-") as name:
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
    if text != "-":
        options.check_output(Path(text))
    return Path(text)


def _attributed(
    story: CaseStory, corpus: Path | None, config: Config
) -> tuple[Sides[Side] | None, Attribution | None]:
    run, case = story.run, story.case
    try:
        with status_line(Console(stderr=True)) as tell:
            sides = explanation.sides_again(run, case, corpus, config, tell)
            tell(f"attributing {case.id}")
            return sides, explanation.attribute(run, story.folder, case, sides, config)
    except IrdiffError as error:
        story.say(f"the pass is not looked for: {error.what}", "yellow")
        return None, None


def _write_lit(
    path: Path,
    run: Run,
    case: Case,
    sides: Sides[Side] | None,
    found: Attribution | None,
    config: Config,
) -> int:
    if sides is None or found is None or found.step is None:
        raise UsageError(
            f"{escape.terminal(case.id)}: no MLIR pass is responsible, so there is none to test",
            hint="choose a case whose origin names a pass: irdiff report RUN",
        )
    from irdiff.attribute import lit_test

    with status_line(Console(stderr=True)) as tell:
        test = lit_test.generate(run, case, sides, found.step, config, tell)
    options.write_output(path, test.text)
    click.echo(test.summary, err=True)
    return ExitCode.DONE
