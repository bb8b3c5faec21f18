"""`timing.json` as reports show it: a forest of ratios."""

from __future__ import annotations

from collections import Counter

from irdiff.report.timing_summary import TimingRow, TimingSummary, WrongOutput
from irdiff.timing.results import BAD_OUTPUTS, FAULTS, CaseTiming, OutputCheck, Speed, TimingResults

_FEW_ULP = 1000


def timing_summary_of(results: TimingResults) -> TimingSummary:
    """The timings as a forest, the slowest case first: a reader must not miss it."""
    names = {gpu.uuid: gpu.name for gpu in results.gpus}
    rows = [row for timing in results.cases if (row := _row(timing)) is not None]
    return TimingSummary(
        headline=_headline(results),
        device=", ".join(f"{count} x {name}" for name, count in sorted(Counter(names.values()).items())),
        rows=tuple(sorted(rows, key=lambda row: (-row.ratio, row.case_id))),
        wrong=tuple(
            WrongOutput(case_id=timing.case, words=_outputs(timing))
            for timing in results.cases
            if timing.outputs.status in BAD_OUTPUTS
        ),
    )


def outputs_in_words(outputs: OutputCheck) -> str:
    """`equal`, `close, within 5 ulp`, `close, 2.4e-06 of the norm`.

    Units in the last place say how close two numbers are that are nearly the same; next to zero any two
    numbers are millions of units apart, and only the norm of the difference tells something.
    """
    if outputs.max_ulp and outputs.max_ulp <= _FEW_ULP:
        return f"{outputs.status.value}, within {outputs.max_ulp} ulp"
    if outputs.relative_norm:
        return f"{outputs.status.value}, {outputs.relative_norm:.1e} of the norm"
    return outputs.status.value


def _outputs(timing: CaseTiming) -> str:
    outputs = timing.outputs
    side = f" at {outputs.side}" if outputs.side else ""
    if outputs.status.value in outputs.message:  # `bitwise equal` says `equal`
        return outputs.message + side
    return f"{outputs.status.value}{side}" + (f": {outputs.message}" if outputs.message else "")


def _row(timing: CaseTiming) -> TimingRow | None:
    measured = timing.measurement
    if measured is None:
        return None
    return TimingRow(
        case_id=timing.case,
        ratio=measured.ratio,
        low=measured.ratio_low,
        high=measured.ratio_high,
        noise=measured.noise_floor,
        verdict=measured.speed.value,
        why=measured.why,
        base_us=measured.base_us,
        head_us=measured.head_us,
        outputs=_outputs(timing),
    )


def _headline(results: TimingResults) -> str:
    speeds = Counter(row.measurement.speed for row in results.cases if row.measurement)
    faulted = sum(row.outputs.status in FAULTS for row in results.cases)
    wrong = sum(row.outputs.status in BAD_OUTPUTS - FAULTS for row in results.cases)
    unmeasured = len(results.not_timed) + sum(
        row.measurement is None and row.outputs.status not in FAULTS for row in results.cases
    )
    parts = [f"{speeds[speed]} {speed.value}" for speed in Speed if speeds[speed]] or ["nothing was measured"]
    if wrong:
        parts.insert(0, f"{wrong} with wrong or missing output")
    if faulted:
        parts.insert(0, f"{faulted} faulted")
    if unmeasured:
        parts.append(f"{unmeasured} not timed")
    lost = sum(bool(gpu.stopped) for gpu in results.gpus)
    if lost:
        parts.append(f"{lost} of {len(results.gpus)} GPUs were lost before the end")
    unfit = sum(not gpu.trustworthy for gpu in results.gpus)
    if unfit:
        parts.append(f"{unfit} of {len(results.gpus)} GPUs were busy or throttled: their figures are no pass")
    return ", ".join(parts)
