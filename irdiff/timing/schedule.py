"""Which process measures which case when, on one GPU.

First one process checks outputs. Then processes come one after another, each with every case, so that
a ratio is seen under several memory placements; half of them set up head before base (ABBA). The next process
imports while the current one measures. Cases whose interval is still too wide get further processes until the
budget is spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irdiff.timing import statistics
from irdiff.timing.isolate import Ended, GpuProcess, GpuProcessError
from irdiff.timing.results import OutputCheck, OutputStatus, Protocol, Sample

_REVERSED = (False, True, True, False)
_LAUNCH_LIMIT_S = 20.0
_OPEN_LIMIT_S = 120.0
_SETUP_S = 0.12
_LEAST_SLICE_S, _MOST_SLICE_S = 0.08, 1.0
_MOST_PROCESSES = 12


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the processes of one GPU run."""

    folder: Path
    environment: Mapping[str, str]
    log: Path
    index: int


@dataclass(kw_only=True)
class GpuWork:
    """What has been found on one GPU so far."""

    card: dict[str, Any] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    outputs: dict[str, OutputCheck] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    busy_s: float = 0.0
    wall_s: float = 0.0


Say = Callable[[str], None]


class _Processes:
    """The current process and the next one, which imports while the current one works."""

    def __init__(self, place: Place, work: GpuWork, first: GpuProcess | None) -> None:
        self._place, self._work = place, work
        self._next = first or self._start()
        self._current: GpuProcess | None = None

    def _start(self) -> GpuProcess:
        return GpuProcess(self._place.folder, self._place.environment, self._place.log)

    def fresh(self) -> GpuProcess:
        self.close_current()
        current, self._next = self._next, self._start()
        self._current = current
        try:
            reply = current.ask({"op": "open", "index": self._place.index}, _OPEN_LIMIT_S)
        except Ended as ended:
            raise GpuProcessError(f"GPU {self._place.index} cannot be opened: {ended.message}") from ended
        if reply["kind"] != "opened":
            raise GpuProcessError(f"GPU {self._place.index} cannot be opened: {reply.get('message')}")
        self._work.card = reply["card"]
        return current

    def close_current(self) -> None:
        if self._current:
            self._current.close()
            self._current = None

    def close(self) -> None:
        self.close_current()
        self._next.close()


def run_gpu(
    place: Place, cases: Sequence[str], protocol: Protocol, say: Say, first: GpuProcess | None = None
) -> GpuWork:
    """Checks and times `cases` on one GPU within the budget."""
    begin = time.monotonic()
    work = GpuWork()
    processes = _Processes(place, work, first)
    try:
        _verify_all(processes, cases, work, say)
        timed = [case for case in cases if _can_be_timed(work.outputs[case])]
        if timed and not protocol.verify_only:
            _time_all(processes, timed, work, protocol, say, begin + protocol.budget_s)
    finally:
        processes.close()
    work.wall_s = time.monotonic() - begin
    return work


def _can_be_timed(check: OutputCheck) -> bool:
    return check.status in (OutputStatus.EQUAL, OutputStatus.CLOSE, OutputStatus.DIFFERENT)


def _verify_all(processes: _Processes, cases: Sequence[str], work: GpuWork, say: Say) -> None:
    process = processes.fresh()
    say(f"{work.card['name']}: checking outputs of {len(cases)} cases")
    for case in cases:
        try:
            reply = process.ask({"op": "verify", "case": case}, _LAUNCH_LIMIT_S)
            work.outputs[case] = _check(reply)
        except Ended as ended:
            work.outputs[case] = _bad(ended.status, ended.side, ended.message)
        if work.outputs[case].status not in _CONTEXT_SURVIVES:
            process = processes.fresh()
    try:
        reply = process.ask({"op": "peaks"}, _LAUNCH_LIMIT_S)
        if reply["kind"] == "peaks":
            work.peaks = {"tflops": reply["tflops"], "tb_per_s": reply["tb_per_s"]}
            work.busy_s += reply["busy_s"]
    except Ended:
        pass  # figures of merit only


_CONTEXT_SURVIVES = frozenset(OutputStatus) - {OutputStatus.FAULT, OutputStatus.HANG}


def _bad(status: OutputStatus, side: str | None, message: str, arguments: Sequence[str] = ()) -> OutputCheck:
    return OutputCheck(
        status=status,
        side=side,
        message=message,
        arguments=tuple(arguments),
        max_ulp=None,
        relative_norm=None,
        base_repeats=None,
    )


def _check(reply: Mapping[str, Any]) -> OutputCheck:
    if reply["kind"] == "refused":
        return _bad(OutputStatus.NOT_LAUNCHED, None, reply["message"])
    if reply["kind"] == "out of bounds":
        message = f"{reply['side']} wrote outside of {', '.join(reply['arguments'])}"
        return _bad(OutputStatus.OUT_OF_BOUNDS, reply["side"], message, reply["arguments"])
    rows = reply["differences"]
    if not rows:
        status, message = OutputStatus.EQUAL, "bitwise equal"
    else:
        within = all(row["within"] for row in rows)
        status = OutputStatus.CLOSE if within else OutputStatus.DIFFERENT
        message = "; ".join(f"{row['argument']}: {row['elements']} elements differ" for row in rows)
    ulps = [row["max_ulp"] for row in rows if row["max_ulp"] is not None]
    return OutputCheck(
        status=status,
        side=None,
        message=message,
        arguments=tuple(row["argument"] for row in rows),
        max_ulp=max(ulps) if ulps else (None if rows else 0),
        relative_norm=max((row["relative_norm"] for row in rows), default=0.0),
        base_repeats=reply["base_repeats"],
    )


def _time_all(
    processes: _Processes, cases: Sequence[str], work: GpuWork, protocol: Protocol, say: Say, deadline: float
) -> None:
    waiting = list(cases)
    for number in range(_MOST_PROCESSES):
        least = number < protocol.processes
        if not least:
            waiting = [case for case in waiting if not _is_precise(work, case, protocol)]
        left = deadline - time.monotonic()
        share = left / (protocol.processes - number) if least else left
        slice_s = 0.9 * share / max(len(waiting), 1) - _SETUP_S
        if not waiting or (not least and slice_s < _LEAST_SLICE_S):
            return
        slice_s = min(_MOST_SLICE_S, max(_LEAST_SLICE_S, slice_s))
        say(f"process {number + 1}: {len(waiting)} cases, up to {slice_s:.2f} s each")
        waiting = _one_process(processes, waiting, number, slice_s, work, protocol)


def _one_process(
    processes: _Processes,
    cases: Sequence[str],
    number: int,
    slice_s: float,
    work: GpuWork,
    protocol: Protocol,
) -> list[str]:
    """Adds one process's samples of every case; returns the cases that did not fail."""
    process = processes.fresh()
    good = []
    for place, case in enumerate(cases):
        request = {
            "op": "time",
            "case": case,
            "slice_s": slice_s,
            "reverse": _REVERSED[number % len(_REVERSED)],
            "seed": protocol.seed * 1_000_003 + number * 10_007 + place,
        }
        try:
            reply = process.ask(request, _LAUNCH_LIMIT_S + 3 * slice_s)
        except Ended as ended:
            work.notes[case] = f"{ended.status} while timing: {ended.message}"
            process = processes.fresh()
            continue
        if reply["kind"] != "timed":
            work.notes[case] = reply["message"]
            continue
        good.append(case)
        work.busy_s += reply["busy_s"]
        work.samples.setdefault(case, []).extend(_samples(work.card["uuid"], case, number, reply["rows"]))
    return good


def _samples(gpu: str, case: str, process: int, rows: Sequence[Sequence[Any]]) -> list[Sample]:
    return [
        Sample(
            gpu=gpu,
            case=case,
            process=process,
            round=row[0],
            position=row[1],
            arm=row[2],
            launches=row[3],
            elapsed_us=row[4],
        )
        for row in rows
    ]


def _is_precise(work: GpuWork, case: str, protocol: Protocol) -> bool:
    row = statistics.estimate(work.samples.get(case, []), confidence=protocol.confidence, seed=protocol.seed)
    if row is None:
        return False
    return row.head.half_width <= protocol.precision and row.noise_floor <= 2 * protocol.precision
