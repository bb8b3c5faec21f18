"""From samples, checks and conditions to the records of `timing.json`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irdiff.model import Launch, Run
from irdiff.timing import decision, statistics
from irdiff.timing.decision import Decision
from irdiff.timing.results import (
    FAULTS,
    MEASURABLE,
    CaseTiming,
    Conditions,
    GpuRecord,
    Measurement,
    OutputCheck,
    TimingProtocol,
    Unclear,
)
from irdiff.timing.schedule import GpuWork

Launches = Mapping[str, Launch | None]
"""Head's launch by case."""


def case_timings(gpu: str, work: GpuWork, launches: Launches, protocol: TimingProtocol) -> list[CaseTiming]:
    """One record for each case that was looked at on a GPU.

    A case that faulted has no measurement, however many processes measured it before: the fault is its
    result.
    """
    outputs, samples = work.outputs, work.samples
    sound = [row for case, rows in samples.items() if outputs[case].status not in FAULTS for row in rows]
    decisions = decision.decide(sound, protocol)
    rows = []
    for case, check in outputs.items():
        found = decisions.get(case)
        times = found.estimate.processes if found else statistics.process_times(samples.get(case, ()))
        rows.append(
            CaseTiming(
                case=case,
                gpu=gpu,
                outputs=check,
                measurement=_measurement(found, launches.get(case), work) if found else None,
                processes=times,
                note="" if found else _why_not_measured(check, len(times), protocol, work.stopped),
            )
        )
    return rows


def _why_not_measured(check: OutputCheck, processes: int, protocol: TimingProtocol, stopped: str) -> str:
    if check.status not in MEASURABLE:
        return check.message
    if protocol.verify_only:
        return "only its outputs were compared"
    few = decision.few_processes(processes, protocol)
    return "; ".join(filter(None, (few, stopped)))


def _measurement(found: Decision, launch: Launch | None, work: GpuWork) -> Measurement:
    row = found.estimate
    seconds = row.head_us / 1e6
    tflops = launch.flops / seconds / 1e12 if launch and launch.flops else None
    tb_per_s = launch.min_bytes / seconds / 1e12 if launch and launch.min_bytes else None
    shares = [
        100 * value / work.peaks[name]
        for name, value in (("tflops", tflops), ("tb_per_s", tb_per_s))
        if value is not None and work.peaks.get(name)
    ]
    few = found.unclear is Unclear.FEW_PROCESSES
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
        p_value=found.p_value,
        q_value=found.q_value,
        speed=found.speed,
        unclear=found.unclear,
        why="; ".join(filter(None, (found.why, work.stopped if few else ""))),
        processes=len(row.processes),
        samples=row.samples,
        launches_per_sample=row.launches_per_sample,
        tflops=tflops,
        tb_per_s=tb_per_s,
        percent_of_peak=max(shares) if shares else None,
    )


def head_launches(run: Run) -> dict[str, Launch | None]:
    return {case.id: run.launches.get(case.launches.head or "") for case in run.cases}


def gpu_record(work: GpuWork, conditions: Conditions) -> GpuRecord:
    card = {name: value for name, value in work.card.items() if name not in ("index", "driver")}
    told: dict[str, Any] = {**vars(conditions), **card}
    told["driver"] = ", ".join(filter(None, (conditions.driver, work.card["driver"])))
    return GpuRecord(
        **told,
        peak_tflops=work.peaks.get("tflops"),
        peak_tb_per_s=work.peaks.get("tb_per_s"),
        wall_s=work.wall_s,
        busy_s=work.busy_s,
        trustworthy=not conditions.throttled and not conditions.other_processes,
        stopped=work.stopped,
    )
