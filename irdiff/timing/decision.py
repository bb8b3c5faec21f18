"""Decides verdicts of speed from samples, and is the only place that does.

The unit of evidence is the *process*: samples of one process share its memory placement, clocks and
temperature. Each process gives one log ratio head ÷ base, of medians and of trimmed means. Intervals and
p-values are Student's t over those; a bootstrap over so few processes is too narrow.

`slower` and `faster`: a t test over processes against the margin, of medians and of trimmed means (the larger
p-value of the two counts), corrected for the number of cases (Benjamini-Hochberg). The margin is the
threshold or the noise floor of the case, whichever is larger.

`same` is a claim of its own, never the default. All of these must hold:
- all processes of the protocol measured the case (`PROCESSES`);
- the interval of head ÷ base lies inside the threshold, of medians and of trimmed means: a second hump of the
samples moves the mean and not the median;
- samples that take far longer than the median of their process, which trimmed means leave out, are as
frequent with head as with base (Fisher's exact test);
- so does the control's, and no process of head or control stands apart from the others. If 18 processes
agree, at least three quarters of all do, with 99 % confidence (S. S. Wilks, 1941, "Determination of Sample
Sizes for Setting Tolerance Limits").

`python -m tests.programs.bench_statistics` shows how often each is wrong under simulated noise.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
from scipy import stats

from irdiff.timing.results import (
    FAULTS,
    MEASURABLE,
    PROCESSES,
    CaseTiming,
    Measurement,
    OutputCheck,
    ProcessTimes,
    Sample,
    Speed,
    TimingProtocol,
    Unclear,
)
from irdiff.timing.schedule import GpuWork
from irdiff.words import counted

_ARMS = ("base", "control", "head")
_TRIMMED = 0.1  # at each end
_SLOW = 1.5
"""A sample is slow from this many times the median of its process and arm on."""
_BY_CHANCE = 0.001
"""Other numbers of slow samples are no chance below this p-value."""
_LEAST_SPREAD = 1e-6  # of a log ratio: events tick; identical numbers do not mean certainty beyond that


@dataclass(frozen=True, kw_only=True)
class Ratio:
    """A ratio with its interval, and the log ratio of each process."""

    value: float
    low: float
    high: float
    logs: tuple[float, ...]

    def apart(self, distance: float) -> tuple[float, ...]:
        """Returns the log ratios that lie further than `distance` from the median."""
        middle = median(self.logs)
        return tuple(log for log in self.logs if abs(log - middle) > distance)

    def p_greater(self, margin: float) -> float:
        """One-sided t test of the hypothesis that the true log ratio is at most `margin`."""
        return _p_greater(np.asarray(self.logs), margin)

    def p_less(self, margin: float) -> float:
        """One-sided t test of the hypothesis that the true log ratio is at least -`margin`."""
        return _p_greater(-np.asarray(self.logs), margin)


class SlowSamples(NamedTuple):
    """Counts of slow samples and of all samples: of head, and of base and its control together."""

    head: int
    of_head: int
    base: int
    of_base: int

    @property
    def differ(self) -> bool:
        table = [[self.head, self.of_head - self.head], [self.base, self.of_base - self.base]]
        return bool(stats.fisher_exact(table).pvalue < _BY_CHANCE)


@dataclass(frozen=True, kw_only=True)
class SampleEstimate:
    """The estimate from one case's samples, before cases are looked at together."""

    processes: tuple[ProcessTimes, ...]
    head: Ratio
    head_means: Ratio
    """The ratio of the means of the middle 80 % of the samples."""
    control: Ratio
    slow: SlowSamples
    samples: int
    launches_per_sample: int

    @property
    def noise_floor(self) -> float:
        """The greatest error of the control: base's binary loaded twice, timed in the same rounds."""
        return max(abs(self.control.low - 1), abs(self.control.high - 1))


def process_times(samples: Iterable[Sample]) -> tuple[ProcessTimes, ...]:
    """Leaves out processes that lack samples of one of the three arms."""
    return _process_times(_by_process(samples))


def _by_process(samples: Iterable[Sample]) -> dict[int, dict[str, list[float]]]:
    """{process: {arm: µs of one launch}} of processes that have samples of all three arms."""
    by_process: dict[int, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        by_process[sample.process][sample.arm].append(sample.elapsed_us / sample.launches)
    return {process: arms for process, arms in sorted(by_process.items()) if arms.keys() >= set(_ARMS)}


def _process_times(by_process: Mapping[int, Mapping[str, Sequence[float]]]) -> tuple[ProcessTimes, ...]:
    return tuple(
        ProcessTimes(
            process=process,
            **{f"{name}_us": median(arms[name]) for name in _ARMS},
            **{f"{name}_mean_us": _trimmed_mean(arms[name]) for name in _ARMS},
        )
        for process, arms in by_process.items()
    )


def _slow_samples(by_process: Mapping[int, Mapping[str, Sequence[float]]]) -> SlowSamples:
    slow, all_of = Counter[str](), Counter[str]()
    for arms in by_process.values():
        for name in _ARMS:
            limit = _SLOW * median(arms[name])
            slow[name] += sum(time > limit for time in arms[name])
            all_of[name] += len(arms[name])
    return SlowSamples(
        head=slow["head"],
        of_head=all_of["head"],
        base=slow["base"] + slow["control"],
        of_base=all_of["base"] + all_of["control"],
    )


def _trimmed_mean(times: Sequence[float]) -> float:
    cut = int(_TRIMMED * len(times))
    return fmean(sorted(times)[cut : len(times) - cut])


def estimate(samples: Sequence[Sample], *, confidence: float) -> SampleEstimate | None:
    """Returns None if fewer than two processes have samples of all three arms."""
    by_process = _by_process(samples)
    processes = _process_times(by_process)
    if len(processes) < 2:
        return None
    return SampleEstimate(
        processes=processes,
        head=_ratio([process.head_us / process.base_us for process in processes], confidence),
        head_means=_ratio([process.head_mean_us / process.base_mean_us for process in processes], confidence),
        control=_ratio([process.control_us / process.base_us for process in processes], confidence),
        slow=_slow_samples(by_process),
        samples=len(samples),
        launches_per_sample=samples[0].launches,
    )


def _ratio(ratios: Sequence[float], confidence: float) -> Ratio:
    logs = np.log(ratios)
    center = float(logs.mean())
    reach = _LEAST_SPREAD + _standard_error(logs) * float(stats.t.ppf((1 + confidence) / 2, len(logs) - 1))
    low, value, high = (math.exp(center + far) for far in (-reach, 0.0, reach))
    return Ratio(value=value, low=low, high=high, logs=tuple(map(float, logs)))


def _standard_error(logs: np.ndarray) -> float:
    return float(logs.std(ddof=1)) / math.sqrt(len(logs))


def _p_greater(logs: np.ndarray, margin: float) -> float:
    distance, error = float(logs.mean()) - margin, _standard_error(logs)
    if error < _LEAST_SPREAD:
        return 0.0 if distance > _LEAST_SPREAD else 1.0
    return float(stats.t.sf(distance / error, len(logs) - 1))


_APART = 2.0
"""A process stands apart beyond this many thresholds from the median process. A smaller hump must be in most
processes to hide a change of 1.5 thresholds, and then the interval sees it.
"""
_WITHIN, _ACROSS, _BEYOND = "within", "across", "beyond"
"""The position of an interval relative to the threshold."""


def case_timings(gpu: str, work: GpuWork, protocol: TimingProtocol) -> list[CaseTiming]:
    """A case that faulted has no measurement, however many processes measured it before: the fault is its
    result.
    """
    outputs, samples = work.outputs, work.samples
    sound = [
        sample
        for case, timings in samples.items()
        if outputs[case].status not in FAULTS
        for sample in timings
    ]
    measured = decide(sound, protocol)
    timings = []
    for case, check in outputs.items():
        measurement = measured.get(case)
        times = process_times(samples.get(case, ()))
        if measurement and measurement.unclear is Unclear.FEW_PROCESSES and work.stopped:
            measurement = replace(measurement, why=f"{measurement.why}; {work.stopped}")
        timings.append(
            CaseTiming(
                case=case,
                gpu=gpu,
                outputs=check,
                measurement=measurement,
                processes=times,
                note="" if measurement else _why_not_measured(check, len(times), protocol, work.stopped),
            )
        )
    return timings


def _why_not_measured(check: OutputCheck, processes: int, protocol: TimingProtocol, stopped: str) -> str:
    if check.status not in MEASURABLE:
        return check.message
    if protocol.verify_only:
        return "only its outputs were compared"
    few = few_processes(processes, protocol)
    return "; ".join(filter(None, (few, stopped)))


def decide(samples: Iterable[Sample], protocol: TimingProtocol) -> dict[str, Measurement]:
    """Decides from all samples of one GPU. Verdicts are corrected for the number of cases. Leaves out cases
    that fewer than two processes measured.
    """
    by_case: dict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_case[sample.case].append(sample)
    estimates = {
        case: estimated
        for case, samples_of_case in by_case.items()
        if (estimated := estimate(samples_of_case, confidence=protocol.confidence))
    }
    if not estimates:
        return {}
    p_values = [p_value(estimated, protocol) for estimated in estimates.values()]
    q_values = stats.false_discovery_control(p_values, method="bh")
    return {
        case: judge(estimated, p, float(q), protocol)
        for (case, estimated), p, q in zip(estimates.items(), p_values, q_values, strict=True)
    }


def p_value(case: SampleEstimate, protocol: TimingProtocol) -> float:
    """Two-sided, of the hypothesis that medians or means are within the margin."""
    margin = math.log1p(max(protocol.threshold, case.noise_floor))
    slower = max(case.head.p_greater(margin), case.head_means.p_greater(margin))
    faster = max(case.head.p_less(margin), case.head_means.p_less(margin))
    return min(1.0, 2 * min(slower, faster))


def judge(case: SampleEstimate, p: float, q: float, protocol: TimingProtocol) -> Measurement:
    """`p`, `q`: the p-value before and after the correction."""
    objections: list[tuple[Unclear, str]] = []
    if few := few_processes(len(case.processes), protocol):
        objections = [(Unclear.FEW_PROCESSES, few)]
        speed = Speed.UNCLEAR
    elif q <= 1 - protocol.confidence:
        speed = Speed.SLOWER if case.head.value > 1 else Speed.FASTER
    else:
        objections = list(_objections_to_same(case, p, protocol))
        speed = Speed.UNCLEAR if objections else Speed.SAME
    return Measurement(
        base_us=median(process.base_us for process in case.processes),
        head_us=median(process.head_us for process in case.processes),
        ratio=case.head.value,
        ratio_low=case.head.low,
        ratio_high=case.head.high,
        control_ratio=case.control.value,
        control_low=case.control.low,
        control_high=case.control.high,
        noise_floor=case.noise_floor,
        p_value=p,
        q_value=q,
        speed=speed,
        unclear=objections[0][0] if objections else None,
        why="; ".join(words for _, words in objections),
        processes=len(case.processes),
        samples=case.samples,
        launches_per_sample=case.launches_per_sample,
    )


def few_processes(count: int, protocol: TimingProtocol) -> str:
    """Returns the reason why `count` processes are too few; empty if they are enough."""
    needed = max(PROCESSES, protocol.processes)
    if count >= needed:
        return ""
    return f"only {counted(count, 'process')} measured it, any other timing verdict needs {needed}"


def _objections_to_same(
    case: SampleEstimate, p: float, protocol: TimingProtocol
) -> Iterator[tuple[Unclear, str]]:
    threshold = protocol.threshold
    if case.noise_floor > threshold:
        words = f"base's own binary, loaded again, may be off by {_percent(case.noise_floor)}"
        yield Unclear.CONTROL, f"{words}, more than the threshold of {_percent(threshold)}"
    for name, ratio in (("head", case.head), ("base's own binary", case.control)):
        if strays := ratio.apart(_APART * math.log1p(threshold)):
            away = median(strays) - median(ratio.logs)
            far = f"{_percent(math.expm1(abs(away)))} {'slower' if away > 0 else 'faster'}"
            where = f"in {len(strays)} of {len(ratio.logs)} processes"
            yield Unclear.TWO_HUMPS, f"{where} {name} is about {far} than in the others: two humps"
    if case.slow.differ:
        of_head = f"{case.slow.head:,} of {case.slow.of_head:,} samples of head"
        of_base = f"{case.slow.base:,} of {case.slow.of_base:,} of base"
        yield Unclear.TWO_HUMPS, f"{of_head} took more than {_SLOW} times the median, and {of_base}"
    medians, means = (_place(ratio, threshold) for ratio in (case.head, case.head_means))
    if not medians == means == _WITHIN:
        yield _about_intervals(case, medians, means, p, protocol)


def _place(ratio: Ratio, threshold: float) -> str:
    edge = math.log1p(threshold)
    low, high = math.log(ratio.low), math.log(ratio.high)
    if -edge < low and high < edge:
        return _WITHIN
    return _BEYOND if low > edge or high < -edge else _ACROSS


def _about_intervals(
    case: SampleEstimate, medians: str, means: str, p: float, protocol: TimingProtocol
) -> tuple[Unclear, str]:
    threshold = _percent(protocol.threshold)
    interval = f"the interval {_interval_words(case.head)}"
    if medians == means == _BEYOND:
        if p <= 1 - protocol.confidence:
            why = "not after the correction for the number of cases"
            return Unclear.MANY_CASES, f"{interval} is beyond {threshold}, but {why}"
        why = "not beyond what base's own binary may be off by"
        return Unclear.CONTROL, f"{interval} is beyond {threshold}, but {why}"
    if medians != _ACROSS:
        return Unclear.TWO_HUMPS, (
            f"{interval} of the medians and {_interval_words(case.head_means)} of the means disagree: "
            "samples within a process lie in two humps"
        )
    if math.log(case.head.high / case.head.low) >= 2 * math.log1p(protocol.threshold):
        return Unclear.WIDE, f"{interval} is too wide to lie within {threshold} on both sides"
    return Unclear.THRESHOLD, f"{interval} is neither within {threshold} nor beyond it"


def _interval_words(ratio: Ratio) -> str:
    return f"{100 * (ratio.low - 1):+.2f} to {100 * (ratio.high - 1):+.2f} %"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
