"""The timings of a session as rows of the history."""

from __future__ import annotations

from collections.abc import Mapping

from irdiff.history.database import Database
from irdiff.history.session import Session, parse
from irdiff.store import key_of
from irdiff.timing.results import CaseTiming, GpuRecord, Measurement, TimingResults


def add(database: Database, session: Session, found: TimingResults) -> int:
    """Adds what was measured on each GPU, in place of the same session; returns the timings.

    A version whose machine code is another's has that one's time. The reference has its own, and how far it
    was off when its binary was loaded a second time.
    """
    count = 0
    for gpu in found.gpus:
        key = key_of("session/1", found.created, gpu.uuid, session.reference)[:16]
        database.put("sessions", [_session(key, session, found, gpu)])
        rows = [
            (key, session.versions[label], *row)
            for case in found.cases
            if case.gpu == gpu.uuid and case.measurement
            for label, row in _rows(case, case.measurement, session).items()
        ]
        unique = {(row[1], row[2]): row for row in rows}
        count += database.put("timings", list(unique.values()))
    return count


def _rows(
    case: CaseTiming, measured: Measurement, session: Session
) -> Mapping[str, tuple[str, float, float, float, float, float, str]]:
    """By the label of each version that this entry speaks for."""
    case_id, label = parse(case.case)
    same = session.same.get(case_id, {})
    outputs = str(case.outputs.status)
    version = (measured.head_us, measured.ratio, measured.ratio_low, measured.ratio_high)
    rows = {
        other: (case_id, *version, measured.noise_floor, outputs)
        for other, standing in same.items()
        if standing == label
    }
    own = same.get(_label(session, session.reference))
    control = (measured.base_us, 1.0, measured.control_low, measured.control_high)
    rows |= {
        other: (case_id, *control, measured.noise_floor, "equal")
        for other, standing in same.items()
        if standing == own
    }
    return rows


def _label(session: Session, name: str) -> str:
    return next(label for label, other in session.versions.items() if other == name)


def _session(key: str, session: Session, found: TimingResults, gpu: GpuRecord) -> tuple[object, ...]:
    middle = [
        row[1] if row else None
        for row in (gpu.sm_clock_mhz, gpu.memory_clock_mhz, gpu.temperature_c, gpu.power_w)
    ]
    told = (gpu.target, gpu.driver, session.reference)
    fit = (",".join(gpu.throttled), gpu.trustworthy, found.protocol.processes)
    return (key, found.created, gpu.uuid, gpu.name, *told, *middle, *fit)
