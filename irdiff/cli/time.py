"""`irdiff time RUN`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from irdiff import config as configuration
from irdiff import timing
from irdiff.cli import options
from irdiff.errors import ExitCode, UsageError
from irdiff.run import run_folder
from irdiff.timing import timing_file
from irdiff.timing.results import (
    BAD_OUTPUTS,
    FAULTS,
    NO_SUCH_GPU,
    PROCESSES,
    CaseTiming,
    OutputStatus,
    Protocol,
    Speed,
    TimingResults,
)
from irdiff.timing.samples import read_samples

_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


@click.command("time")
@click.argument("run")
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only these; parts of an id work too.")
@click.option("--budget", default="15m", show_default=True, help="Time to spend: 90s, 10m, 1h.")
@click.option("--all", "every", is_flag=True, help="Also cases whose code did not change.")
@click.option("--verify-only", is_flag=True, help="Compare what both sides compute; time nothing.")
@click.option("--simulate", type=click.Path(path_type=Path), help="Judge recorded samples; needs no GPU.")
@click.option("--threshold", default=1.0, show_default=True, help="Percent that counts as a difference.")
@click.option(
    "--processes", default=PROCESSES, show_default=True, help="Processes a case; with fewer, all is unclear."
)
@click.option("--seed", default=0, show_default=True, help="Of the order of launches.")
@options.json_option
def time_command(
    run: str,
    cases: tuple[str, ...],
    budget: str,
    every: bool,
    verify_only: bool,
    simulate: Path | None,
    threshold: float,
    processes: int,
    seed: int,
    json_path: Path | None,
) -> int:
    """Time the changed cases of a run on the GPUs of this host: the very binaries that were compared.

    Results go into the run folder (timing.json), so reports, gate and comment use them.
    """
    config = configuration.load()
    if processes < 2:
        raise UsageError("--processes must be at least 2: the interval is over processes")
    protocol = Protocol(
        budget_s=seconds(budget),
        threshold=threshold / 100,
        confidence=0.95,
        processes=processes,
        seed=seed,
        verify_only=verify_only,
    )
    console = Console(highlight=False, no_color=config.color is False)
    log = Console(stderr=True, highlight=False)
    folder = options.run_path(run, config)
    if simulate is not None:
        found = timing.simulate(run_folder.load(folder), read_samples(simulate), protocol)
    else:
        asked = timing.Options(
            patterns=cases,
            every=every,
            protocol=protocol,
            environment=config.tool_environment,
            say=lambda line: log.print(line, markup=False),
        )
        found = timing.time_run(folder, asked)
    if json_path is not None:
        options.write_output(json_path, timing_file.dump(found))
    if str(json_path) != "-":
        show(found, console)
    return int(exit_code(found))


def exit_code(found: TimingResults) -> ExitCode:
    """Gives 4 where a case that a GPU here could run was not launched, or not by every process because a GPU
    was lost. Faults and differences are findings, and change nothing.
    """
    left_out = any(row.outputs.status is OutputStatus.NOT_LAUNCHED for row in found.cases)
    lost = any(gpu.stopped for gpu in found.gpus)
    lost = lost or any(not row.reason.startswith(NO_SUCH_GPU) for row in found.not_timed)
    return ExitCode.NOT_COMPARED if left_out or lost else ExitCode.DONE


def seconds(text: str) -> float:
    """`90s`, `10m`, `1.5h`, or a plain number of seconds. Raises UsageError."""
    unit = text[-1:].lower()
    number = text[:-1] if unit in _UNITS_S else text
    try:
        value = float(number) * _UNITS_S.get(unit, 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise UsageError(f"{text!r} is not a time", hint="write it as 90s, 10m or 1h")
    return value


def show(found: TimingResults, console: Console) -> None:
    """The table of cases, slowest first, and what to think of the GPU."""
    order = sorted(found.cases, key=_rank)
    table = Table(box=None, pad_edge=False)
    for name in ("case", "base us", "head us", "head / base", "95 % interval", "floor", "verdict", "outputs"):
        table.add_column(name, justify="left" if name in ("case", "verdict", "outputs") else "right")
    for row in order:
        table.add_row(*_cells(row))
    console.print(table)
    for line in summary_lines(found):
        console.print(line, markup=False)


def _rank(row: CaseTiming) -> tuple[int, float]:
    if row.outputs.status in BAD_OUTPUTS:
        return (0, 0.0)
    return (1, -row.measurement.ratio) if row.measurement else (2, 0.0)


def _cells(row: CaseTiming) -> tuple[str, ...]:
    outputs = str(row.outputs.status)
    if row.outputs.max_ulp:
        outputs += f" ({row.outputs.max_ulp} ulp)"
    if row.measurement is None:
        word = "faulted" if row.outputs.status in FAULTS else "not measured"
        return (row.case, "", "", "", "", "", word, outputs)
    m = row.measurement
    return (
        row.case,
        f"{m.base_us:.2f}",
        f"{m.head_us:.2f}",
        f"{m.ratio:.4f}",
        f"{m.ratio_low:.4f}-{m.ratio_high:.4f}",
        f"{100 * m.noise_floor:.2f} %",
        str(m.speed),
        outputs,
    )


def _case_lines(row: CaseTiming) -> list[str]:
    """What is to be said of a case in words: wrong results, faults, and why there is no verdict."""
    if row.outputs.status in BAD_OUTPUTS:
        side = f" at {row.outputs.side}" if row.outputs.side else ""
        lines = [f"{row.case}: {row.outputs.status}{side}: {row.outputs.message}"]
    else:
        lines = [f"{row.case}: not measured: {row.note}"] if row.measurement is None and row.note else []
    if row.measurement and row.measurement.why:
        lines.append(f"{row.case}: {row.measurement.speed}: {row.measurement.why}")
    return lines


def summary_lines(found: TimingResults) -> list[str]:
    counts = dict.fromkeys(Speed, 0)
    for row in found.cases:
        if row.measurement:
            counts[row.measurement.speed] += 1
    faulted = sum(row.outputs.status in FAULTS for row in found.cases)
    words = [f"{faulted} faulted"] if faulted else []
    lines = ["", ", ".join([*words, *(f"{count} {speed}" for speed, count in counts.items())])]
    lines += [line for row in found.cases for line in _case_lines(row)]
    for reason, count in Counter(row.reason.split(":")[0] for row in found.not_timed).items():
        lines.append(f"{count} {'case' if count == 1 else 'cases'} not timed: {reason}")
    for gpu in found.gpus:
        if gpu.stopped:
            lines.append(f"{gpu.name} ({gpu.uuid}): {gpu.stopped}")
        share = 100 * gpu.busy_s / gpu.wall_s if gpu.wall_s else 0.0
        lines.append(
            f"{gpu.name} ({gpu.uuid}): {gpu.wall_s:.0f} s, kernels in flight {share:.0f} % of it; "
            f"peak {gpu.peak_tflops or 0:.0f} TFLOP/s, {gpu.peak_tb_per_s or 0:.2f} TB/s"
        )
        if not gpu.trustworthy:
            why = ", ".join([*gpu.throttled, *(f"shared with {row}" for row in gpu.other_processes)])
            lines.append(f"  NOT A PASS: the GPU was not fit to measure on: {why}")
    return lines
