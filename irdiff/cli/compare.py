"""`irdiff compare [BASE] [HEAD]`."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.api import run_name
from irdiff.capture.notices import MISSING_PACKAGE
from irdiff.cli import case_patterns, completing, options, progress, run_argument, run_outputs, tool_sides
from irdiff.cli.run_argument import GivenRun
from irdiff.cli.run_outputs import RunOutputs
from irdiff.cli.status import status_line
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError, UsageError
from irdiff.model import FailureKind, Options, Run, Verdict
from irdiff.parallel import Report
from irdiff.report import commands, edited, escape
from irdiff.resolve import ir_files
from irdiff.resolve.look import Look, look
from irdiff.resolve.sides import SideOptions, resolve_sides
from irdiff.resolve.toolchains import install_progress
from irdiff.run import run_list, run_place, same_compiler
from irdiff.stages import check_compared


@click.command("compare")
@click.argument("base", required=False, shell_complete=completing.sides)
@click.argument("head", required=False, shell_complete=completing.sides)
@options.repo_option
@click.option(
    "--triton",
    metavar="SPEC",
    help="The compiler of both sides where revisions select kernels: triton==3.9.0.",
)
@click.option(
    "--ir", "is_ir", is_flag=True, help="BASE and HEAD are files of IR, .ttir or .ttgir, for one compiler."
)
@click.option(
    "--option",
    "ir_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Of the launch, with --ir: num_warps=8.",
)
@click.option(
    "--exercised",
    is_flag=True,
    help="Count the cases that run the passes which use an edited source: one more compilation of base.",
)
@click.option("--no-build", is_flag=True, help="Do not build a native part that is missing: fail.")
@options.origin_option
@options.ptxas_option
@options.bump_option
@options.target_option
@options.targets_folder_option
@options.corpus_option
@options.pack_option
@options.kernel_options
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="PATTERN",
    shell_complete=completing.workloads,
    help="family/workload:label@target; parts and globs work.",
)
@click.option("--tier", "tiers", multiple=True, type=click.Choice(["gate", "core", "extended"]))
@click.option("--stages", default="", help="Stages to compare, comma-separated; default: all.")
@click.option("--no-shortcut", is_flag=True, help="Compile both sides anew, even where they are the same.")
@click.option(
    "--recheck/--no-recheck",
    default=True,
    help="Make one changed case of each group again to see if a side agrees with itself.",
)
@click.option(
    "--attribute/--no-attribute",
    default=True,
    help="Look for the pass and the component behind each change (about one more compilation of each).",
)
@click.option("--shard", default="1/1", help="K/N: the K-th of N parts of the cases.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The run folder; default: in the cache, `last` names it."
)
@click.option(
    "--known",
    metavar="RUN",
    shell_complete=run_argument.complete,
    help="Show only what this earlier run did not have, and count the rest; --exit-code asks about that.",
)
@click.option("--quiet", "-q", is_flag=True, help="Show no progress, and of the report its first line.")
@options.limit_option
@options.json_option
@click.option(
    "--markdown", "markdown_path", type=options.OutputFile(), help="Write the Markdown report here."
)
@click.option("--html", "html_path", type=options.OutputFile(), help="Write the HTML report here, one file.")
@click.option("--exit-code", is_flag=True, help="End with 1 where a case changed, broke, or was removed.")
@options.cache_option
@options.store_mode_option
@click.option(
    "--cluster",
    metavar="URL",
    help="A Dask scheduler, tcp://HOST:8786: its machines do the work (irdiff[cluster]).",
)
@options.limit_options
def compare_command(
    base: str | None,
    head: str | None,
    repo: Path | None,
    triton: str | None,
    is_ir: bool,
    ir_options: tuple[str, ...],
    exercised: bool,
    no_build: bool,
    origin: str | None,
    ptxas: str | None,
    bump: bool,
    target_names: tuple[str, ...],
    targets_dir: Path | None,
    corpus: Path | None,
    packs: tuple[str, ...],
    python: str | None,
    packages: tuple[str, ...],
    program: str | None,
    configs: int | None,
    cases: tuple[str, ...],
    tiers: tuple[str, ...],
    stages: str,
    no_shortcut: bool,
    recheck: bool,
    attribute: bool,
    shard: str,
    out: Path | None,
    known: str | None,
    quiet: bool,
    limit: int | None,
    json_path: Path | None,
    markdown_path: Path | None,
    html_path: Path | None,
    exit_code: bool,
    cache: Path | None,
    store_mode: str | None,
    cluster: str | None,
    jobs: int | None,
    timeout_s: float,
    memory_mib: int,
) -> int:
    """Compile every kernel of the corpus with BASE and with HEAD, and say what changed.

    A side is a release (triton==3.8.0), a wheel file (wheel:PATH), an interpreter that has Triton
    (python:PATH), a revision of the repository, or `.` for its working tree. In a checkout of Triton a
    revision selects the compiler, in a repository with an irdiff.toml the kernels. Without HEAD it is the
    working tree where that has changes, else HEAD; without BASE, the merge base with the main branch.
    With --ir both are files of IR, and one compiler compiles both. llvm:PATH and ptxas:PATH compile the
    LLVM IR, or the PTX, of a release or of a run: `triton==3.9.0 llvm:PATH`, or two tools and --from.
    """
    if out:
        run_place.check(out)
        options.check_beside(out, (json_path, markdown_path, html_path))
    config = configuration.load(
        cache=cache, jobs=jobs, timeout_s=timeout_s, memory_mib=memory_mib, store_mode=store_mode
    )
    console = Console(stderr=True, no_color=config.color is False, quiet=quiet)
    earlier = run_outputs.earlier_of(known, config)
    targets = options.selected_targets(target_names, targets_dir, config, cases)
    stage_names = tuple(part for part in stages.split(",") if part)
    check_compared(stage_names, (target.backend for target in targets))
    chosen = Options(
        cases=cases,
        tiers=tiers,
        stages=stage_names,
        shortcut=not no_shortcut,
        recheck=recheck,
        attribute=attribute,
        shard=_parse_shard(shard),
        configs=configs,
    )
    with status_line(console) as tell, install_progress.telling(tell):
        wanted = SideOptions(
            repo=repo,
            corpus=corpus,
            triton=_compiler_of_both(triton, python),
            build=not no_build,
            progress=tell,
            packs=packs,
            packages=packages,
            program=program,
        )
        is_tool = tool_sides.is_tool(base, head)
        found = None if is_ir or is_tool else look(base, head, wanted, config)
        same = found if found and found.edited.identical and chosen.shortcut else None
        if is_tool:
            texts = tool_sides.ToolSides(origin=origin, ptxas=ptxas, wanted=wanted)
            sides = tool_sides.resolve(base or "", head or "", texts, config)
        elif is_ir:
            sides = ir_files.sides(_ir_files(base, head, ir_options, triton), config)
        elif same is None:
            _say(found, console)
            sides = resolve_sides(base, head, wanted, config)
    if same:
        folder = out or config.runs / run_name(*same.specs)
        run = same_compiler.write(same, targets, chosen, config, folder)
    else:
        folder = out or config.runs / run_name(*(side.revision or side.toolchain.spec for side in sides))
        with progress.shown(console) as report:
            meant = case_patterns.of_sides(cases, sides, targets, config, report)
            chosen = replace(chosen, cases=case_patterns.flat(meant))
            asked = pipeline.Comparison(
                sides=sides,
                targets=targets,
                options=chosen,
                command=tuple(sys.argv[1:]),
                exercised=exercised,
                edited=found.edited if found and not found.edited.identical else None,
                notes=case_patterns.notes(meant),
            )
            if cluster:
                asked = replace(asked, notes=(*asked.notes, *_filled(asked, config, cluster, report)))
            run = pipeline.compare(asked, config, folder, report)
    given = GivenRun(folder=folder, call=run_list.call_of(folder, config.runs), is_archive=False)
    part = run_outputs.part_of(run, given.call, earlier, is_bump=bump)
    outputs = RunOutputs(json=json_path, markdown=markdown_path, html=html_path, quiet=quiet, limit=limit)
    run_outputs.write(run, part, given, None, outputs)
    if "-" not in map(str, (json_path, markdown_path, html_path)):
        run_outputs.print_report(part, given, None, outputs, config)
    if same is None:
        _require_whole(run, given)
    return _code(part.run) if exit_code else ExitCode.DONE


def _compiler_of_both(triton: str | None, python: str | None) -> str | None:
    if triton and python:
        raise UsageError("--triton and --python name two compilers", hint="give one of them")
    return f"python:{Path(python).expanduser().absolute()}" if python else triton


def _say(found: Look | None, console: Console) -> None:
    """What differs and what follows, before anything is made."""
    if found and found.edited.files:
        for sentence in filter(None, (edited.differing(found.edited), edited.consequence(found.edited))):
            console.print(escape.terminal(sentence), soft_wrap=True, highlight=False, markup=False)


def _ir_files(
    base: str | None, head: str | None, ir_options: tuple[str, ...], triton: str | None
) -> ir_files.IrFiles:
    if base is None or head is None:
        raise UsageError(
            "--ir needs two files", hint="irdiff compare --ir base.ttgir head.ttgir --target sm_90"
        )
    return ir_files.IrFiles(base=Path(base), head=Path(head), options=ir_options, triton=triton)


def _filled(asked: pipeline.Comparison, config: Config, url: str, report: Report) -> tuple[str, ...]:
    """Has a cluster make what the comparison needs; notes of what it did not make."""
    from irdiff.cluster import client

    with closing(client.DaskCluster(url)) as machines:
        return client.fill(asked, config, machines, report)


def _parse_shard(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise UsageError(f"--shard {text!r} is not K/N with 1 <= K <= N", hint="as in --shard 3/8")
    return int(found[1]), int(found[2])


def _require_whole(run: Run, given: GivenRun) -> None:
    """Raises NothingComparedError where no case could be judged, or one ran into a bound on both sides."""
    unjudged = (Verdict.FAILING, Verdict.UNSUPPORTED)
    if all(case.verdict in unjudged for case in run.cases):
        for note in run.notes:
            lacking, _, cure = note.partition("; next: ")
            if cure and MISSING_PACKAGE in lacking:
                raise NothingComparedError(f"nothing was compared: {lacking}", hint=cure)
        raise NothingComparedError(
            f"nothing was compared: no case compiles on either side ({len(run.cases)} cases)",
            hint=f"see why in the run: {commands.command('report', given.call)}",
        )
    bounds = (FailureKind.TIMEOUT, FailureKind.MEMORY)
    bounded = [
        case.id
        for case in run.cases
        if case.verdict is Verdict.FAILING
        and any(side and side.kind in bounds for side in (case.failures.base, case.failures.head))
    ]
    if bounded:
        raise NothingComparedError(
            f"{len(bounded)} cases were not compared, their compilation ran into a bound: {bounded[0]}, …",
            hint="give more with --timeout and --memory",
        )


def _code(run: Run) -> ExitCode:
    bad = (Verdict.CHANGED, Verdict.BROKEN, Verdict.REMOVED)
    return ExitCode.ANSWER_IS_NO if any(case.verdict in bad for case in run.cases) else ExitCode.DONE
