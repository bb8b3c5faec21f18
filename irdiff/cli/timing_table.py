"""`irdiff time`'s table: the cases, the slowest first, and what to think of the GPU."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from irdiff.report import tables, timing_summary
from irdiff.report.tables import Column
from irdiff.timing.results import BAD_OUTPUTS, FAULTS, CaseTiming, Speed, TimingResults
from irdiff.words import counted

_COLUMNS = (
    Column(name="case"),
    Column(name=""),
    *(Column(name=name, right=True) for name in ("change", "95 % interval", "noise", "base us", "head us")),
    Column(name="outputs"),
)


def lines(found: TimingResults, width: int | None) -> Iterator[Text]:
    """An id is never cut: it is there to be copied. `width` as of `tables.lines`."""
    rows = [[Text(cell) for cell in _cells(row)] for row in sorted(found.cases, key=_rank)]
    if rows:
        yield from tables.lines(_COLUMNS, rows, width)
    yield from map(Text, summary(found))


def _rank(row: CaseTiming) -> tuple[int, float]:
    if row.outputs.status in BAD_OUTPUTS:
        return (0, 0.0)
    return (1, -row.measurement.ratio) if row.measurement else (2, 0.0)


def _cells(row: CaseTiming) -> tuple[str, ...]:
    outputs = timing_summary.outputs_in_words(row.outputs)
    if row.measurement is None:
        word = "faulted" if row.outputs.status in FAULTS else "not measured"
        return (row.case, word, "", "", "", "", "", outputs)
    m = row.measurement
    return (
        row.case,
        str(m.speed),
        f"{_percent(m.ratio)} %",
        f"{_percent(m.ratio_low)} to {_percent(m.ratio_high)} %",
        f"{100 * m.noise_floor:.2f} %",
        f"{m.base_us:.2f}",
        f"{m.head_us:.2f}",
        outputs,
    )


def _percent(ratio: float) -> str:
    """Of head against base: above zero is slower."""
    return f"{100 * (ratio - 1):+.2f}"


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


def summary(found: TimingResults) -> list[str]:
    counts = dict.fromkeys(Speed, 0)
    for row in found.cases:
        if row.measurement:
            counts[row.measurement.speed] += 1
    faulted = sum(row.outputs.status in FAULTS for row in found.cases)
    words = [f"{faulted} faulted"] if faulted else []
    lines = ["", ", ".join([*words, *(f"{count} {speed}" for speed, count in counts.items())])]
    lines += [line for row in found.cases for line in _case_lines(row)]
    for reason, count in Counter(row.reason.split(":")[0] for row in found.not_timed).items():
        lines.append(f"{counted(count, 'case')} not timed: {reason}")
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
