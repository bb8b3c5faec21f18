from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from irdiff import pipeline
from irdiff.capture import program_failures
from irdiff.cli import (
    options,
    report_command,
    run_argument,
    screen,
    sections,
    test_arguments,
    tool_sides,
)
from irdiff.cli.options import CaseArguments, CheckoutArguments
from irdiff.cli.report_command import RunOutputs
from irdiff.cli.run_argument import OpenedRun
from irdiff.cli.test_arguments import ComparedTests, TestArguments
from irdiff.cluster import batches, own_processes
from irdiff.compare.cases import failed_program
from irdiff.comparison import Comparison, Request, resolved
from irdiff.config import Config
from irdiff.errors import ExitCode, IrdiffError, NothingComparedError, UsageError
from irdiff.model import BOUNDS, Edited, Options, Run, Sides, Verdict
from irdiff.parallel import Report
from irdiff.report import commands, edit_coverage, escape
from irdiff.report.conclusion import may_fail
from irdiff.resolve import ir_files
from irdiff.resolve.sides import Side
from irdiff.resolve.targets import FIRST
from irdiff.run import run_list, run_place
from irdiff.words import counted, first_few


@dataclass(frozen=True, kw_only=True)
class CompareArguments:
    base: str | None
    head: str | None
    checkout: CheckoutArguments
    is_ir: bool
    ir_options: tuple[str, ...]
    exercised: bool
    origin: str | None
    assembler: str | None
    bump: bool
    selection: CaseArguments
    python: str | None
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    tests: TestArguments
    configs: int | None
    stages: str | None
    no_cache: bool
    recheck: bool
    attribute: bool
    shard: str
    out: Path | None
    baseline: str | None
    outputs: RunOutputs
    exit_code: bool
    cluster: str | None
    config: Config


_SECTIONS = {
    "Which kernels": ("--corpus", "--pack", "--program", "--tests", "--sample", "--python", "--with"),
    "Which cases": ("--target", "--case", "--tier", "--configs"),
    "Sides": ("--repo", "--triton", "--no-build", "--ir", "--option", "--from", *options.ASSEMBLERS),
    "What is shown": ("--quiet", "--limit", "--baseline", "--bump", "--exercised"),
    "What is written": (
        "--out",
        "--html",
        "--markdown",
        "--json",
        "--tests-changed",
        "--tests-unchanged",
        "--exit-code",
    ),
    "How much is done": ("--recheck", "--attribute", "--stages", "--no-cache", "--timeout", "--memory"),
    "Machines": ("--jobs", "--shard", "--cluster", "--cache", "--store-mode"),
}


@click.command("compare", cls=sections.command(_SECTIONS))
@click.argument("base", required=False)
@click.argument("head", required=False)
@options.checkout
@click.option("--ir", "is_ir", is_flag=True, help="BASE and HEAD are files of IR for one compiler.")
@click.option(
    "--option",
    "ir_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the launch, with --ir: num_warps=8; repeatable.",
)
@click.option(
    "--exercised",
    is_flag=True,
    help="Say which edited lines of the compiler ran.",
)
@options.origin_option
@options.assembler_option
@options.bump_option
@options.selection
@options.python_option
@options.packages_option
@click.option(
    "--program",
    "programs",
    metavar="COMMAND",
    multiple=True,
    help="Compare what a program of the repository launches; repeatable.",
)
@test_arguments.comparison_options
@click.option("--configs", type=click.IntRange(min=1), help="Take the first N configs of each autotuner.")
@click.option("--stages", help="Stages to compare, comma-separated; default: all.")
@click.option(
    "--no-cache",
    is_flag=True,
    help="Take nothing from the cache: compile both sides, also cases with equal inputs.",
)
@options.recheck_option
@options.attribute_option
@click.option("--shard", default="1/1", help="K/N: the K-th of N parts of the cases.")
@click.option(
    "--out",
    type=options.PATH,
    help="Write the run to this folder; default: one in the cache. Other commands find it as `last`.",
)
@run_argument.baseline_option
@report_command.output_options
@click.option(
    "--exit-code",
    is_flag=True,
    help="Exit with 1 if a case of the report changed, does not compile or was removed.",
)
@options.limited_and_sharing
@click.option("--cluster", metavar="URL", help="A Dask scheduler whose machines work: tcp://HOST:8786.")
def compare_command(**values: Any) -> int:
    """Compile kernels with BASE and with HEAD, and say which changed, why, and what that does.

    \b
    irdiff compare triton==3.8.0 triton==3.9.0    two releases, over irdiff's kernels
    irdiff compare main HEAD                      two revisions of this repository
    irdiff compare                                your work since it left the main branch

    A revision selects the compiler in a checkout of Triton, and the kernels in a repository that has an
    irdiff.toml (`irdiff init` writes one). `.` is the working tree. Other sides are a wheel (wheel:PATH) and
    an interpreter that has Triton (python:PATH). A side can also be one tool of a
    compiler: llvm:PATH compiles the LLVM IR of the other side (or of --from), ptxas:PATH its PTX. With --ir
    both sides are files of IR, and one compiler compiles both.
    """  # noqa: D301 (click reads the backspace)
    arguments = CompareArguments(**values)
    config, outputs = arguments.config, arguments.outputs
    if arguments.out:
        options.check_outside(arguments.out, (*outputs.files, *arguments.tests.files))
    _prepare(arguments.out, config)
    console = Console(stderr=True, quiet=outputs.quiet)

    def say(text: str) -> None:
        console.print(escape.terminal(text), soft_wrap=True, highlight=False, markup=False)

    def say_edited(edited: Edited) -> None:
        """Prints how the sides differ before anything is compiled."""
        if edited.files and not edited.identical:
            for sentence in filter(
                None, (edit_coverage.differing(edited), edit_coverage.consequence(edited))
            ):
                say(sentence)

    earlier = report_command.earlier_of(arguments.baseline, config)
    tests = ComparedTests(arguments.tests, say) if arguments.tests.are_given else None
    with screen.status_line(console):
        comparison = resolved(_of_pipeline(arguments, tests), config, say_edited)
    with screen.progress(console) as progress, _machines(arguments, progress) as fill:
        run, folder = pipeline.compare(comparison, config, arguments.out, progress, fill=fill)
    try:
        run_list.remember(folder, config.runs)
    except OSError as error:
        reason = error.strerror or error
        say(f"`last` does not mean this run: {config.runs} cannot be written: {reason}")
    opened = OpenedRun(folder=folder, call=run_list.call_of(folder, config.runs), is_archive=False)
    part = report_command.part_of(run, opened.call, earlier, is_bump=arguments.bump)
    report_command.write(run, part, opened, outputs)
    for line in _failed_programs(run):
        say(line)
    if "-" not in map(str, outputs.files):
        report_command.print_report(part, opened, outputs)
    if tests:
        tests.write(run)
    if isinstance(comparison, Comparison):
        _require_whole(run, opened)
    return _code(part.run) if arguments.exit_code else ExitCode.DONE


def _prepare(out: Path | None, config: Config) -> None:
    """Raises UsageError or StoreError before anything is compiled if the cache or the run folder cannot be
    written.
    """
    try:
        run_place.prepare(config.runs / "new")
    except IrdiffError as error:
        raise type(error)(
            f"the cache {config.cache} cannot be used: {error.what}",
            hint="free space there, or name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        ) from error
    if out:
        run_place.prepare(out)


def _of_pipeline(arguments: CompareArguments, tests: ComparedTests | None) -> Request:
    base, head, config, checkout = arguments.base, arguments.head, arguments.config, arguments.checkout
    if checkout.triton and arguments.python:
        raise UsageError("--triton and --python both name the compiler: give one", hint="give one of them")
    if arguments.python:
        checkout = replace(checkout, triton=f"python:{Path(arguments.python).expanduser().absolute()}")
    wanted = checkout.side_options(
        arguments.selection,
        packages=arguments.packages,
        exercised=arguments.exercised,
        programs=arguments.programs,
    )
    targets = arguments.selection.targets(config, arguments.checkout.repo or Path.cwd())
    make_sides: Callable[[], Sides[Side]] | None = None
    if tool_sides.is_tool(base, head):
        texts = tool_sides.ToolSides(origin=arguments.origin, assembler=arguments.assembler, wanted=wanted)
        make_sides = partial(tool_sides.resolve, base or "", head or "", texts, config)
    elif arguments.is_ir:
        if base is None or head is None:
            hint = f"irdiff compare --ir base.ttgir head.ttgir --target {FIRST}"
            raise UsageError("--ir needs two files", hint=hint)
        paths = Sides(base=Path(base), head=Path(head))
        make_sides = partial(ir_files.sides, paths, arguments.ir_options, checkout.triton, config)
    elif tests:
        others = {
            "--stages": arguments.stages,
            "--corpus": wanted.corpus,
            "--pack": wanted.packs,
            "--shard": _parse_shard(arguments.shard) != (1, 1),
        }
        if together := next((name for name, value in others.items() if value), None):
            raise UsageError(f"--tests and {together} do not go together", hint=f"leave out {together}")
        make_sides = partial(tests.resolve, (base, head), wanted, targets, config)
    return Request(
        base=base,
        head=head,
        sides=wanted,
        targets=targets,
        options=Options(
            cases=arguments.selection.cases,
            tiers=arguments.selection.tiers,
            stages=tuple(part for part in (arguments.stages or "").split(",") if part),
            use_cache=not arguments.no_cache,
            recheck=arguments.recheck,
            attribute=arguments.attribute,
            shard=_parse_shard(arguments.shard),
            configs=arguments.configs,
        ),
        command=tuple(sys.argv[1:]),
        made=make_sides,
        tests=tests.cases if tests else tuple,
    )


@contextmanager
def _machines(
    arguments: CompareArguments, progress: Report
) -> Iterator[Callable[[Comparison], tuple[str, ...]]]:
    """Yields a function that has other processes or machines compile what a comparison needs."""
    if not arguments.cluster:
        yield lambda comparison: own_processes.fill(comparison, arguments.config, progress)
        return
    from irdiff.cluster import dask_cluster

    with closing(dask_cluster.DaskCluster(arguments.cluster)) as machines:
        yield lambda comparison: batches.fill(comparison, arguments.config, machines, progress)


def _parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard {text!r} is not K/N with 1 <= K <= N", hint="as in --shard 3/8")
    return int(match[1]), int(match[2])


def _failed_programs(run: Run) -> Iterator[str]:
    """Yields the traceback of each distinct error once."""
    failures = {failure.stderr: (case, failure) for case in run.cases if (failure := failed_program(case))}
    for case, failure in failures.values():
        yield f"irdiff: {program_failures.of(failure, case.workload).program} fails:"
        yield from program_failures.own_traceback(failure.stderr)


def _require_whole(run: Run, opened: OpenedRun) -> None:
    """Raises NothingComparedError if no case could be judged, or one ran out of time or memory."""
    unjudged = (Verdict.FAILING, Verdict.UNSUPPORTED)
    for case in run.cases:
        if case.verdict is Verdict.FAILING and (ended := failed_program(case)):
            why = program_failures.of(ended, case.workload)
            raise NothingComparedError(
                f"{why.program} fails on both sides: {why.reason}",
                hint="what it launched before that is in the run; repair it, then compare again",
            )
    is_empty_shard = not run.cases and run.options.shard != (1, 1)  # more shards than workloads
    if not is_empty_shard and all(case.verdict in unjudged for case in run.cases):
        raise NothingComparedError(
            f"nothing was compared: no case compiles on either side ({counted(len(run.cases), 'case')})",
            hint=f"see why in the run: {commands.command('report', opened.call)}",
        )
    bounded = [case for case in run.cases if any(side and side.kind in BOUNDS for side in case.failures)]
    if bounded:
        verdicts = " or ".join(sorted({case.verdict for case in bounded}))
        names = first_few([case.id for case in bounded], 1)
        raise NothingComparedError(
            f"{counted(len(bounded), 'case')} called {verdicts} ran out of time or memory: {names}",
            hint="give more with --timeout and --memory",
        )


def _code(run: Run) -> ExitCode:
    bad = (Verdict.CHANGED, Verdict.REMOVED, Verdict.BROKEN, Verdict.FAILING)
    is_bad = any(case.verdict in bad and not may_fail(case, run) for case in run.cases)
    return ExitCode.ANSWER_IS_NO if is_bad else ExitCode.DONE
