"""`irdiff compare [BASE] [HEAD]`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from irdiff import config as configuration
from irdiff import pipeline
from irdiff.api import run_name
from irdiff.capture.notices import MISSING_PACKAGE
from irdiff.cli import case_patterns, options, progress, run_outputs, tool_sides
from irdiff.cli.compare_options import CompareWords, compare_options
from irdiff.cli.run_argument import GivenRun
from irdiff.cli.run_outputs import RunOutputs, ShownRun
from irdiff.cli.status import status_line
from irdiff.config import Config
from irdiff.errors import ExitCode, NothingComparedError, UsageError
from irdiff.model import Edited, FailureKind, Options, Run, Target, Verdict
from irdiff.parallel import Report
from irdiff.report import commands, edited, escape
from irdiff.resolve import ir_files
from irdiff.resolve.look import Look, look
from irdiff.resolve.sides import SideOptions, resolve_sides
from irdiff.resolve.toolchains import install_progress
from irdiff.run import run_list, run_place, same_compiler
from irdiff.stages import check_compared
from irdiff.worker_client.workers import Workers


@click.command("compare")
@compare_options
def compare_command(**given: Any) -> int:
    """Compile every kernel of the corpus with BASE and with HEAD, and say what changed.

    A side is a release (triton==3.8.0), a wheel file (wheel:PATH), an interpreter that has Triton
    (python:PATH), a revision of the repository, or `.` for its working tree. In a checkout of Triton a
    revision selects the compiler, in a repository with an irdiff.toml the kernels. Without HEAD it is the
    working tree where that has changes, else HEAD; without BASE, the merge base with the main branch.
    With --ir both are files of IR, and one compiler compiles both. llvm:PATH and ptxas:PATH compile the
    LLVM IR, or the PTX, of a release or of a run: `triton==3.9.0 llvm:PATH`, or two tools and --from.
    """
    words = CompareWords(**given)
    if words.out:
        run_place.prepare(words.out)
        options.check_beside(words.out, words.files)
    config = configuration.load(
        cache=words.cache,
        jobs=words.jobs,
        timeout_s=words.timeout_s,
        memory_mib=words.memory_mib,
        store_mode=words.store_mode,
    )
    if not words.out:
        run_place.prepare(config.runs / "new")
    console = Console(stderr=True, no_color=config.color is False, quiet=words.quiet)
    earlier = run_outputs.earlier_of(words.known, config)
    targets = options.selected_targets(words.target_names, words.targets_dir, config, words.cases)
    asked = _asked(words, targets, config, console)
    if isinstance(asked, Look):
        folder = words.out or config.runs / run_name(*asked.specs)
        run = same_compiler.write(asked, targets, _chosen(words), config, folder)
    else:
        names = (side.revision or side.toolchain.spec for side in asked.sides)
        folder = words.out or config.runs / run_name(*names)
        run = _compared(asked, words, config, folder, console)
    if words.out:
        _remember(words.out, config, console)
    made = GivenRun(folder=folder, call=run_list.call_of(folder, config.runs), is_archive=False)
    part = run_outputs.part_of(run, made.call, earlier, is_bump=words.bump)
    _show(run, part, made, words, config)
    if not isinstance(asked, Look):
        _require_whole(run, made)
    return _code(part.run) if words.exit_code else ExitCode.DONE


def _asked(
    words: CompareWords, targets: tuple[Target, ...], config: Config, console: Console
) -> pipeline.Comparison | Look:
    """What to compare; or what was seen of two revisions that make the same compiler, so none is made."""
    base, head, chosen = words.base, words.head, _chosen(words)
    check_compared(chosen.stages, (target.backend for target in targets))
    edited: Edited | None = None
    with status_line(console) as tell, install_progress.telling(tell):
        wanted = _wanted(words, tell)
        if tool_sides.is_tool(base, head):
            texts = tool_sides.ToolSides(origin=words.origin, ptxas=words.ptxas, wanted=wanted)
            sides = tool_sides.resolve(base or "", head or "", texts, config)
        elif words.is_ir:
            sides = ir_files.sides(_ir_files(words), config)
        else:
            seen = look(base, head, wanted, config)
            if seen and seen.edited.identical and chosen.shortcut:
                return seen
            if seen and not seen.edited.identical:
                edited = seen.edited
            _say(seen, console)
            sides = resolve_sides(base, head, wanted, config)
    return pipeline.Comparison(
        sides=sides,
        targets=targets,
        options=chosen,
        command=tuple(sys.argv[1:]),
        exercised=words.exercised,
        edited=edited,
    )


def _wanted(words: CompareWords, tell: Callable[[str], None]) -> SideOptions:
    return SideOptions(
        repo=words.repo,
        corpus=words.corpus,
        triton=_compiler_of_both(words.triton, words.python),
        build=not words.no_build,
        progress=tell,
        packs=words.packs,
        packages=words.packages,
        exercised=words.exercised,
        program=words.program,
    )


def _chosen(words: CompareWords) -> Options:
    return Options(
        cases=words.cases,
        tiers=words.tiers,
        stages=tuple(part for part in words.stages.split(",") if part),
        shortcut=not words.no_shortcut,
        recheck=words.recheck,
        attribute=words.attribute,
        shard=_parse_shard(words.shard),
        configs=words.configs,
    )


def _compared(
    asked: pipeline.Comparison, words: CompareWords, config: Config, folder: Path, console: Console
) -> Run:
    with progress.shown(console) as report, closing(Workers(config)) as warm:
        meant = case_patterns.of_sides(words.cases, asked.sides, asked.targets, config, report, warm=warm)
        chosen = replace(asked.options, cases=case_patterns.flat(meant))
        asked = replace(asked, options=chosen, meant=meant)
        if words.cluster:
            asked = replace(asked, notes=(*asked.notes, *_filled(asked, config, words.cluster, report)))
        return pipeline.compare(asked, config, folder, report, warm=warm)


def _show(run: Run, part: ShownRun, made: GivenRun, words: CompareWords, config: Config) -> None:
    json, markdown, html = words.files
    outputs = RunOutputs(json=json, markdown=markdown, html=html, quiet=words.quiet, limit=words.limit)
    run_outputs.write(run, part, made, None, outputs)
    if "-" not in map(str, words.files):
        run_outputs.print_report(part, made, None, outputs, config)


def _remember(folder: Path, config: Config, console: Console) -> None:
    try:
        run_list.remember(folder, config.runs)
    except OSError as error:
        told = f"`last` does not mean this run: {config.runs} cannot be written: {error.strerror or error}"
        console.print(escape.terminal(told), soft_wrap=True, highlight=False, markup=False)


def _compiler_of_both(triton: str | None, python: str | None) -> str | None:
    if triton and python:
        raise UsageError("--triton and --python name two compilers", hint="give one of them")
    return f"python:{Path(python).expanduser().absolute()}" if python else triton


def _say(found: Look | None, console: Console) -> None:
    """What differs and what follows, before anything is made."""
    if found and found.edited.files:
        for sentence in filter(None, (edited.differing(found.edited), edited.consequence(found.edited))):
            console.print(escape.terminal(sentence), soft_wrap=True, highlight=False, markup=False)


def _ir_files(words: CompareWords) -> ir_files.IrFiles:
    if words.base is None or words.head is None:
        raise UsageError(
            "--ir needs two files", hint="irdiff compare --ir base.ttgir head.ttgir --target sm_90"
        )
    return ir_files.IrFiles(
        base=Path(words.base), head=Path(words.head), options=words.ir_options, triton=words.triton
    )


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
    """Raises NothingComparedError where no case could be judged, or one ran into a bound on a side."""
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
    bounded = [case.id for case in run.cases if any(side and side.kind in bounds for side in case.failures)]
    if bounded:
        raise NothingComparedError(
            f"{len(bounded)} cases were not compared, their compilation ran into a bound: {bounded[0]}, …",
            hint="give more with --timeout and --memory",
        )


def _code(run: Run) -> ExitCode:
    bad = (Verdict.CHANGED, Verdict.BROKEN, Verdict.REMOVED)
    return ExitCode.ANSWER_IS_NO if any(case.verdict in bad for case in run.cases) else ExitCode.DONE
