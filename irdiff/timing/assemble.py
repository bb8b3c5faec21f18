"""From samples, checks and conditions to the records of `timing.json`. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from irdiff.timing import decision, estimates
from irdiff.timing.results import (
    FAULTS,
    MEASURABLE,
    CaseTiming,
    Conditions,
    GpuRecord,
    OutputCheck,
    TimingProtocol,
    Unclear,
)
from irdiff.timing.schedule import GpuWork


def case_timings(gpu: str, work: GpuWork, protocol: TimingProtocol) -> list[CaseTiming]:
    """One record for each case that was looked at on a GPU.

    A case that faulted has no measurement, however many processes measured it before: the fault is its
    result.
    """
    outputs, samples = work.outputs, work.samples
    sound = [row for case, rows in samples.items() if outputs[case].status not in FAULTS for row in rows]
    measured = decision.decide(sound, protocol)
    rows = []
    for case, check in outputs.items():
        found = measured.get(case)
        times = estimates.process_times(samples.get(case, ()))
        if found and found.unclear is Unclear.FEW_PROCESSES and work.stopped:
            found = replace(found, why=f"{found.why}; {work.stopped}")
        rows.append(
            CaseTiming(
                case=case,
                gpu=gpu,
                outputs=check,
                measurement=found,
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


def gpu_record(work: GpuWork, conditions: Conditions) -> GpuRecord:
    driver = ", ".join(filter(None, (conditions.driver, work.card["driver"])))
    facts: dict[str, Any] = {**vars(conditions), **work.card, "driver": driver}
    return GpuRecord(
        **facts,
        wall_s=work.wall_s,
        busy_s=work.busy_s,
        trustworthy=not conditions.throttled and not conditions.other_processes,
        stopped=work.stopped,
    )
