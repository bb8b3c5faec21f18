"""Summarizes `timing.json`: a forest of ratios, head ÷ base, with interval and noise floor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from irdiff.timing import results as timings
from irdiff.timing.results import BAD_OUTPUTS, FAULTS, CaseTiming, Measurement, Speed, TimingResults
from irdiff.words import counted, shortened

_FEW_ULP = 1000
_WORDS = 100
"""Characters about a wrong output within a sentence."""


@dataclass(frozen=True, kw_only=True)
class TimingRow:
    """Ratios are head time ÷ base time: above 1 is slower."""

    case_id: str
    measured: Measurement
    outputs: str

    @property
    def words(self) -> str:
        """`+9.4 % (+9.2 % to +9.5 %), 60.23 → 65.87 µs, outputs bitwise equal`."""
        measured = self.measured
        ratios = (measured.ratio, measured.ratio_low, measured.ratio_high)
        change, low, high = (f"{100 * (ratio - 1):+.1f} %" for ratio in ratios)
        times = f"{measured.base_us:.4g} → {measured.head_us:.4g} µs"
        return f"{change} ({low} to {high}), {times}, outputs {self.outputs}"


@dataclass(frozen=True, kw_only=True)
class WrongOutput:
    """A case whose sides write different results, or of which a side faults or hangs."""

    case_id: str
    words: str
    is_of_head: bool
    """False if base faults by itself, or nothing could be launched."""


@dataclass(frozen=True, kw_only=True)
class TimingSummary:
    headline: str
    device: str
    rows: tuple[TimingRow, ...]
    """The slowest first."""
    wrong: tuple[WrongOutput, ...]

    @property
    def sentence(self) -> str:
        words = f"timed on {self.device}: {self.headline}" if self.device else f"timed: {self.headline}"
        if self.wrong:
            return f"{words}; {self.wrong[0].case_id}: {shortened(self.wrong[0].words, _WORDS)}"
        slowest = next((timing for timing in self.rows if timing.measured.speed is Speed.SLOWER), None)
        if slowest is None:
            return words
        return f"{words}; the slowest is {slowest.case_id}, {100 * (slowest.measured.ratio - 1):+.1f} %"

    @cached_property
    def gravity(self) -> dict[str, float]:
        """Values above 0 are wrong results, faults, or slower; the gravest has the most."""
        slower = {
            timing.case_id: timing.measured.ratio
            for timing in self.rows
            if timing.measured.speed is Speed.SLOWER
        }
        return {**slower, **dict.fromkeys((timing.case_id for timing in self.wrong), math.inf)}

    @property
    def wrong_at_head(self) -> frozenset[str]:
        return frozenset(wrong.case_id for wrong in self.wrong if wrong.is_of_head)

    def gravest(self, case_ids: Iterable[str]) -> str:
        """`slower by up to 9.4 %`, `wrong results`; empty if no measurement of them is grave."""
        most = max((self.gravity.get(case_id, 0.0) for case_id in case_ids), default=0.0)
        if most == math.inf:
            return "wrong results"
        return f"slower by up to {100 * (most - 1):.1f} %" if most else ""


def of_results(results: TimingResults) -> TimingSummary:
    """Puts the slowest case first."""
    names = {gpu.uuid: gpu.name for gpu in results.gpus}
    timings = [
        TimingRow(case_id=timing.case, measured=timing.measurement, outputs=_outputs(timing))
        for timing in results.cases
        if timing.measurement
    ]
    return TimingSummary(
        headline=_headline(results),
        device=", ".join(f"{count} x {name}" for name, count in sorted(Counter(names.values()).items())),
        rows=tuple(sorted(timings, key=lambda timing: (-timing.measured.ratio, timing.case_id))),
        wrong=tuple(
            WrongOutput(
                case_id=timing.case,
                words=_outputs(timing),
                is_of_head=timing.outputs.same_result is False,
            )
            for timing in results.cases
            if timing.outputs.status in BAD_OUTPUTS
        ),
    )


def in_words(timing: CaseTiming) -> str:
    measured = timing.measurement
    if measured is None:
        return f"not measured: {timing.note or timing.outputs.message}"
    words = TimingRow(case_id=timing.case, measured=measured, outputs=_outputs(timing)).words
    why = f": {measured.why}" if measured.why else ""
    return f"{words}, noise floor {100 * measured.noise_floor:.2f} %: {measured.speed}{why}"


def outputs_in_words(outputs: timings.OutputCheck) -> str:
    """Formats `equal`, `close, within 5 ulp`, `close, 2.4e-06 of the norm`. Next to zero any two numbers are
    millions of units in the last place apart: there only the norm counts.
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


def _headline(results: TimingResults) -> str:
    speeds = Counter(timing.measurement.speed for timing in results.cases if timing.measurement)
    faulted = sum(timing.outputs.status in FAULTS for timing in results.cases)
    wrong = sum(timing.outputs.status in BAD_OUTPUTS - FAULTS for timing in results.cases)
    unmeasured = len(results.not_timed) + sum(
        timing.measurement is None and timing.outputs.status not in FAULTS for timing in results.cases
    )
    measured = [f"{speeds[speed]} {speed.value}" for speed in Speed if speeds[speed]]
    gpus = len(results.gpus)
    lost = sum(bool(gpu.stopped) for gpu in results.gpus)
    unfit = sum(not gpu.trustworthy for gpu in results.gpus)
    parts = (
        f"{faulted} faulted" if faulted else "",
        f"{wrong} with wrong or missing output" if wrong else "",
        *(measured or ["nothing was measured"]),
        f"{unmeasured} not timed" if unmeasured else "",
        f"lost {lost} of {counted(gpus, 'GPU')} before the end" if lost else "",
        f"{unfit} of {counted(gpus, 'GPU')} busy or throttled: no pass for what they timed" if unfit else "",
    )
    return ", ".join(filter(None, parts))
