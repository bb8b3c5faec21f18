from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from irdiff import config as configuration
from irdiff import timing
from irdiff.cli import options, run_argument, screen
from irdiff.cli.run_argument import OpenedRun
from irdiff.config import Config
from irdiff.errors import ExitCode, UsageError
from irdiff.history import session
from irdiff.report import commands, tables, timing_summary
from irdiff.report.tables import Column
from irdiff.run import run_archive, run_folder, run_list, run_place
from irdiff.timing import NoGpuError, timing_file
from irdiff.timing.isolate import GpuProcessError
from irdiff.timing.results import (
    BAD_OUTPUTS,
    FAULTS,
    NO_SUCH_GPU,
    PROCESSES,
    CaseTiming,
    OutputStatus,
    TimingProtocol,
    TimingResults,
)
from irdiff.timing.schedule import TimingOptions
from irdiff.words import counted

_FROM_2 = click.IntRange(min=2)  # the interval is over processes


def _share(_context: click.Context, _option: click.Parameter, percent: float) -> float:
    return percent / 100


@click.command("time")
@run_argument.argument()
@click.option("--case", "cases", multiple=True, metavar="PATTERN", help="Time only these cases; repeatable.")
@options.gathered(
    "protocol",
    partial(TimingProtocol, confidence=0.95),
    click.option(
        "--budget", "budget_s", type=options.DURATION, default="15m", help="Time to aim for: 90s, 10m, 1h."
    ),
    click.option("--verify-only", is_flag=True, help="Compare what both sides compute; time nothing."),
    click.option("--threshold", default=1.0, callback=_share, help="Percent that counts as a difference."),
    click.option(
        "--processes",
        type=_FROM_2,
        default=PROCESSES,
        help="Processes that measure each case; with fewer than 18 every result is unclear.",
    ),
    click.option("--seed", default=0, help="The seed of the order of launches."),
)
@click.option("--all", "every", is_flag=True, help="Time cases whose code did not change, too.")
@click.option(
    "--versions",
    is_flag=True,
    help="Time all versions of each case together; RUN is a folder that `irdiff history session` wrote.",
)
@click.option("--simulate", type=options.PATH, help="Take recorded samples; needs no GPU.")
@click.option(
    "--take",
    metavar="TIMED",
    help="Time nothing: take the timings from this copy of RUN, which was timed on a GPU host.",
)
@options.json_option
def time_command(
    *,
    run: str,
    cases: tuple[str, ...],
    protocol: TimingProtocol,
    every: bool,
    versions: bool,
    simulate: Path | None,
    take: str | None,
    json_path: Path | None,
) -> int:
    """Time the changed cases of RUN on the GPUs of this host: the very binaries that were compared.

    RUN is a run folder, a zip or tar file of one, `last`, or a name that `irdiff runs` lists. Results go
    into the run folder (timing.json), so reports, gate and comment use them. An archive is unpacked among
    the runs that `irdiff runs` lists.
    """
    config = configuration.load()
    log = Console(stderr=True, highlight=False)
    with _writable(run, config) as opened:
        if simulate is not None:
            results = timing.simulate(timing_file.read_samples(simulate), protocol)
        elif take is not None:
            results = _taken(opened, take, config)
        else:
            chosen = TimingOptions(
                patterns=cases,
                every=every,
                protocol=protocol,
                environment=config.tool_environment,
                say=lambda line: log.print(line, markup=False),
                bundle_of=(lambda case: session.parse(case)[0]) if versions else None,
            )
            results = _timed(opened, chosen)
    if json_path is not None:
        options.write_output(json_path, timing_file.dump(results))
    if str(json_path) != "-":
        show(results, Console(highlight=False))
    return int(exit_code(results))


@contextmanager
def _writable(text: str, config: Config) -> Iterator[OpenedRun]:
    """Unpacks an archive into the list of runs, where it stays."""
    path = run_list.find(text, config.runs)
    if path.is_dir() or path.suffix == ".json":
        with run_argument.opened(text, config) as opened:
            yield opened
        return
    folder = options.free_path(config.runs / path.name.partition(".")[0])
    with run_place.replaced(folder) as part:
        run_archive.unpack(path, part)
        run_folder.load(part)
    call = run_list.call_of(folder, config.runs)
    click.echo(f"unpacked to {folder}: from now on the run is called {call}", err=True)
    yield OpenedRun(folder=folder, call=call, is_archive=False)


def _timed(opened: OpenedRun, chosen: TimingOptions) -> TimingResults:
    folder = shlex.quote(str(opened.folder))
    elsewhere = (
        "  to time it on another host, where no compiler and no corpus is needed:\n"
        f"    python3 -m zipfile -c run.zip {folder}     # here; then copy run.zip there\n"
        "    pip install 'irdiff[timing]' && irdiff time run.zip   # there; zip the folder that it names\n"
        f"    {commands.command('time', opened.call, '--take', 'timed.zip')}   # here"
    )
    try:
        return timing.time_run(opened.folder, chosen)
    except (NoGpuError, GpuProcessError) as error:
        raise type(error)(error.what, hint=f"{error.hint}\n{elsewhere}") from error


def _taken(opened: OpenedRun, text: str, config: Config) -> TimingResults:
    """Joins timings of a copy of the run. Raises UsageError for another run."""
    if Path(text).suffix == ".json" and Path(text).is_file():
        raise UsageError(
            f"{text} alone does not say which binaries were timed",
            hint="--take the folder or archive that `irdiff time` wrote it into, next to run.json",
        )
    with run_argument.opened(text, config) as other:
        if other.run != opened.run:
            raise UsageError(
                f"{text} is no copy of {opened.call}: its timings are of other binaries",
                hint="give the folder, or a zip of it, that `irdiff time` wrote on the GPU host",
            )
        results = timing_file.join(opened.folder, [other.folder])
    if results is None:
        raise UsageError(f"{text} has no timings", hint="run `irdiff time` on it, on a host with a GPU")
    return results


def exit_code(results: TimingResults) -> ExitCode:
    """Returns 4 if a GPU of this host could have run a case that was not launched, or that some processes did
    not measure because a GPU was lost. Faults and differences are findings: they do not change the exit code.
    """
    left_out = any(case.outputs.status is OutputStatus.NOT_LAUNCHED for case in results.cases)
    lost = any(gpu.stopped for gpu in results.gpus)
    lost = lost or any(not case.reason.startswith(NO_SUCH_GPU) for case in results.not_timed)
    return ExitCode.NOT_COMPARED if left_out or lost else ExitCode.DONE


# the table: the cases, the slowest first, and whether the GPU was fit to measure on

_COLUMNS = (
    Column(name="case"),
    Column(name=""),
    *(Column(name=name, right=True) for name in ("change", "95 % interval", "noise", "base us", "head us")),
    Column(name="outputs"),
)


def show(results: TimingResults, console: Console) -> None:
    """Prints the slowest cases first, with full ids, to be copied."""
    cells = [[Text(cell) for cell in _cells(case)] for case in sorted(results.cases, key=_rank)]
    if cells:
        width = console.width if console.is_terminal else None
        screen.print_lines(console, tables.lines(_COLUMNS, cells, width))
    screen.print_lines(console, map(Text, _summary(results)))


def _rank(case: CaseTiming) -> tuple[int, float]:
    if case.outputs.status in BAD_OUTPUTS:
        return (0, 0.0)
    return (1, -case.measurement.ratio) if case.measurement else (2, 0.0)


def _cells(case: CaseTiming) -> tuple[str, ...]:
    outputs, measured = timing_summary.outputs_in_words(case.outputs), case.measurement
    if measured is None:
        word = "faulted" if case.outputs.status in FAULTS else "not measured"
        return (case.case, word, "", "", "", "", "", outputs)
    change, low, high = (
        f"{100 * (ratio - 1):+.2f}" for ratio in (measured.ratio, measured.ratio_low, measured.ratio_high)
    )
    figures = (f"{change} %", f"{low} to {high} %", f"{100 * measured.noise_floor:.2f} %")
    return (
        case.case,
        measured.speed,
        *figures,
        f"{measured.base_us:.2f}",
        f"{measured.head_us:.2f}",
        outputs,
    )


def _summary(results: TimingResults) -> Iterator[str]:
    """Yields wrong results, faults, and the reasons for missing verdicts."""
    summary = timing_summary.of_results(results)
    yield ""
    yield summary.headline
    yield from (f"{case.case_id}: {case.words}" for case in summary.wrong)
    for case in results.cases:
        if case.measurement and case.measurement.why:
            yield f"{case.case}: {case.measurement.speed}: {case.measurement.why}"
        elif not case.measurement and case.note and case.outputs.status not in BAD_OUTPUTS:
            yield f"{case.case}: not measured: {case.note}"
    for reason, count in Counter(case.reason.split(":")[0] for case in results.not_timed).items():
        yield f"{counted(count, 'case')} not timed: {reason}"
    for gpu in results.gpus:
        name = f"{gpu.name} ({gpu.uuid})"
        if gpu.stopped:
            yield f"{name}: {gpu.stopped}"
        share = 100 * gpu.busy_s / gpu.wall_s if gpu.wall_s else 0.0
        yield f"{name}: {gpu.wall_s:.0f} s, kernels ran {share:.0f} % of that time"
        if not gpu.trustworthy:
            why = ", ".join([*gpu.throttled, *(f"shared with {process}" for process in gpu.other_processes)])
            yield f"  NOT A PASS: the GPU was not fit to measure on: {why}"
