"""`irdiff compare BASE HEAD`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff import corpus as corpora
from irdiff import pipeline, toolchains
from irdiff.api import run_name
from irdiff.cli import options, progress
from irdiff.errors import ExitCode, UsageError
from irdiff.model import Run, Verdict
from irdiff.parallel import Progress
from irdiff.sides import Side


@click.command("compare")
@click.argument("base")
@click.argument("head")
@options.target_option
@options.targets_folder_option
@options.corpus_option
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="PATTERN",
    help="family/workload:label@target; parts and globs work.",
)
@click.option("--tier", "tiers", multiple=True, type=click.Choice(["gate", "core", "extended"]))
@click.option("--stages", default="", help="Stages to compare, comma-separated; default: all.")
@click.option("--no-shortcut", is_flag=True, help="Compile both sides anew, even where they are the same.")
@click.option(
    "--recheck/--no-recheck",
    default=True,
    help="Compile changed cases again to see if a side agrees with itself.",
)
@click.option("--shard", default="1/1", help="K/N: the K-th of N parts of the cases.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The run folder; default: in the cache, `last` names it."
)
@options.json_option
@click.option(
    "--markdown", "markdown_path", type=click.Path(path_type=Path), help="Write the Markdown report here."
)
@click.option(
    "--exit-code", is_flag=True, help="End with 1 where a case changed, broke, or is nondeterministic."
)
@options.cache_option
@options.limit_options
def compare_command(
    base: str,
    head: str,
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    corpus: Path | None,
    cases: tuple[str, ...],
    tiers: tuple[str, ...],
    stages: str,
    no_shortcut: bool,
    recheck: bool,
    shard: str,
    out: Path | None,
    json_path: Path | None,
    markdown_path: Path | None,
    exit_code: bool,
    cache: Path | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """Compile every kernel of the corpus with BASE and with HEAD, and say what changed.

    A side is a release (triton==3.8.0), a wheel file (wheel:PATH), or an interpreter that has Triton
    (python:PATH).
    """
    config = configuration.load(cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib)
    console = Console(stderr=True, no_color=config.color is False)
    chosen = pipeline.Options(
        targets=options.selected_targets(target_names, targets_dir, config),
        cases=cases,
        tiers=tiers,
        stages=tuple(part for part in stages.split(",") if part),
        shortcut=not no_shortcut,
        recheck=recheck,
        shard=_parse_shard(shard),
        command=tuple(sys.argv[1:]),
    )
    kernels = corpora.load(options.corpus_folder(corpus, config))
    folder = out or config.runs / run_name(base, head)
    with progress.shown(console) as report:
        sides = []
        for index, spec in enumerate((base, head)):
            report(Progress(phase="toolchains", done=index, total=2, detail=spec))
            sides.append(Side(toolchain=toolchains.resolve(spec, config), corpus=kernels, note=""))
        report(Progress(phase="toolchains", done=2, total=2, detail=""))
        run = pipeline.compare(sides[0], sides[1], chosen, config, folder, report)
    _write(run, folder, json_path, markdown_path)
    return _code(run) if exit_code else ExitCode.DONE


def _parse_shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text!r} is not K/N with 1 <= K <= N", hint="as in --shard 3/8")
    return int(found[1]), int(found[2])


def _write(run: Run, folder: Path, json_path: Path | None, markdown_path: Path | None) -> None:
    from irdiff import run_folder
    from irdiff.report import terminal

    if json_path:
        options.write_output(json_path, run_folder.dump(run))
    if markdown_path:
        from irdiff.report import markdown

        options.write_output(markdown_path, markdown.render(run))
    if str(json_path) != "-" and str(markdown_path) != "-":
        terminal.show(run, folder, Console())


def _code(run: Run) -> ExitCode:
    bad = (Verdict.CHANGED, Verdict.BROKEN, Verdict.REMOVED)
    return ExitCode.ANSWER_IS_NO if any(case.verdict in bad for case in run.cases) else ExitCode.DONE
