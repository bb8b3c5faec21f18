"""From samples, checks and conditions to the records of `timing.json`. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from irdiff.model import Launch, Run
from irdiff.timing import statistics
from irdiff.timing.host import Conditions
from irdiff.timing.results import CaseTiming, GpuRecord, Measurement, OutputCheck, Protocol, Sample
from irdiff.timing.statistics import Estimate, Judged


def measurements(
    samples: Iterable[Sample],
    protocol: Protocol,
    launches: Mapping[str, Launch | None],
    peaks: Mapping[str, float],
) -> dict[str, Measurement]:
    """Case → measurement, of samples that come from one GPU."""
    by_case: dict[str, list[Sample]] = defaultdict(list)
    for row in samples:
        by_case[row.case].append(row)
    estimates = {
        case: found
        for case, rows in by_case.items()
        if (found := statistics.estimate(rows, confidence=protocol.confidence, seed=protocol.seed))
    }
    judged = statistics.judge(estimates, threshold=protocol.threshold, confidence=protocol.confidence)
    return {
        case: _measurement(estimates[case], judged[case], launches.get(case), peaks) for case in estimates
    }


def _measurement(
    row: Estimate, verdict: Judged, launch: Launch | None, peaks: Mapping[str, float]
) -> Measurement:
    seconds = row.head_us / 1e6
    tflops = launch.flops / seconds / 1e12 if launch and launch.flops else None
    tb_per_s = launch.min_bytes / seconds / 1e12 if launch and launch.min_bytes else None
    shares = [
        100 * value / peaks[name]
        for name, value in (("tflops", tflops), ("tb_per_s", tb_per_s))
        if value is not None and peaks.get(name)
    ]
    return Measurement(
        base_us=row.base_us,
        head_us=row.head_us,
        ratio=row.head.value,
        ratio_low=row.head.low,
        ratio_high=row.head.high,
        control_ratio=row.control.value,
        control_low=row.control.low,
        control_high=row.control.high,
        noise_floor=row.noise_floor,
        p_value=verdict.p_value,
        q_value=verdict.q_value,
        speed=verdict.speed,
        processes=row.processes,
        samples=row.samples,
        launches_per_sample=row.launches_per_sample,
        tflops=tflops,
        tb_per_s=tb_per_s,
        percent_of_peak=max(shares) if shares else None,
    )


def case_timings(
    gpu: str,
    outputs: Mapping[str, OutputCheck],
    measured: Mapping[str, Measurement],
    notes: Mapping[str, str],
) -> list[CaseTiming]:
    """One record for each case that was looked at on a GPU."""
    return [
        CaseTiming(
            case=case,
            gpu=gpu,
            outputs=check,
            measurement=measured.get(case),
            note=notes.get(case, "" if case in measured else check.message),
        )
        for case, check in outputs.items()
    ]


def head_launches(run: Run) -> dict[str, Launch | None]:
    return {case.id: run.launches.get(case.launches.head or "") for case in run.cases}


def gpu_record(
    card: Mapping[str, Any],
    conditions: Conditions,
    peaks: Mapping[str, float],
    wall_s: float,
    busy_s: float,
) -> GpuRecord:
    return GpuRecord(
        uuid=card["uuid"],
        name=card["name"],
        target=card["target"],
        driver=", ".join(filter(None, (conditions.driver, card["driver"]))),
        multiprocessors=card["multiprocessors"],
        memory_bytes=card["memory_bytes"],
        l2_bytes=card["l2_bytes"],
        ecc=conditions.ecc,
        mig=conditions.mig,
        sm_clock_mhz=conditions.sm_clock_mhz,
        memory_clock_mhz=conditions.memory_clock_mhz,
        temperature_c=conditions.temperature_c,
        power_w=conditions.power_w,
        power_limit_w=conditions.power_limit_w,
        throttled=conditions.throttled,
        power_capped_fraction=conditions.power_capped_fraction,
        other_processes=conditions.other_processes,
        peak_tflops=peaks.get("tflops"),
        peak_tb_per_s=peaks.get("tb_per_s"),
        wall_s=wall_s,
        busy_s=busy_s,
        trustworthy=not conditions.throttled and not conditions.other_processes,
    )
