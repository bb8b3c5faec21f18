"""Schedules which process measures which case when, on one GPU.

First one process checks outputs. Then the processes of the protocol follow one after another, each with every
case, so that a ratio is seen under several memory placements; half of them set up head before base (ABBA).

A case that faults in any process is done: the fault is its result. Every process measures every other case,
even beyond the budget: fewer processes would leave all cases without a verdict.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from irdiff.timing.isolate import GpuProcess, GpuProcessError, GpuProcessGone
from irdiff.timing.results import (
    FAULTS,
    MEASURABLE,
    Conditions,
    GpuRecord,
    OutputCheck,
    OutputStatus,
    Sample,
    TimingProtocol,
)
from irdiff.words import counted

_SHARED_ARMS = ("base", "control")
_REVERSED = (False, True, True, False)
_LAUNCH_LIMIT_S = 20.0
_OPEN_LIMIT_S = 120.0
_SETUP_S = 0.12
_LEAST_SLICE_S, _MOST_SLICE_S = 0.08, 1.0
_AHEAD = 2
"""The number of processes that import while one works. If there are few cases, a process ends before the next
one has imported.
"""

Start = Callable[[], GpuProcess]
Bundle = Mapping[str, str]
"""Cases that share a base and are timed together, by the arm of their head: `head`, `head 1` and so on."""


@dataclass(frozen=True, kw_only=True)
class TimingOptions:
    """The options of `irdiff time`."""

    patterns: tuple[str, ...]
    every: bool
    """All cases with a binary on both sides, not only changed ones."""
    protocol: TimingProtocol
    environment: Mapping[str, str]
    say: Callable[[str], None]
    bundle_of: Callable[[str], str] | None = None
    """Cases with the same result share a base, and are timed together."""


@dataclass(kw_only=True)
class GpuWork:
    card: dict[str, Any] = field(default_factory=dict)
    outputs: dict[str, OutputCheck] = field(default_factory=dict)
    samples: dict[str, list[Sample]] = field(default_factory=dict)
    busy_s: float = 0.0
    wall_s: float = 0.0
    stopped: str = ""
    """Why it ended before every process had measured every case; empty if it did not."""

    def record(self, conditions: Conditions) -> GpuRecord:
        driver = ", ".join(filter(None, (conditions.driver, self.card["driver"])))
        facts: dict[str, Any] = {**vars(conditions), **self.card, "driver": driver}
        return GpuRecord(
            **facts,
            wall_s=self.wall_s,
            busy_s=self.busy_s,
            trustworthy=not conditions.throttled and not conditions.other_processes,
            stopped=self.stopped,
        )


def run_gpu(start: Start, index: int, cases: Sequence[str], options: TimingOptions) -> GpuWork:
    """Raises GpuProcessError if the GPU cannot be opened at all. If it fails later (a fault took the GPU
    down), returns the results until then, with the reason in `stopped`.
    """
    begin = time.monotonic()
    gpu = _Gpu(start, index, options)
    work = gpu.work
    try:
        gpu.verify(cases)
        timed = [case for case in cases if work.outputs[case].status in MEASURABLE]
        if timed and not options.protocol.verify_only:
            gpu.time(_bundled(timed, options.bundle_of), begin + options.protocol.budget_s)
    except GpuProcessError as error:
        if not work.card:
            raise
        work.stopped = f"measuring ended early: {error.what}"
        options.say(work.stopped)
    finally:
        gpu.close()
    work.wall_s = time.monotonic() - begin
    return work


class _Gpu:
    """The current process, and the next ones, which import while the current one works."""

    def __init__(self, start: Start, index: int, options: TimingOptions) -> None:
        self.work = GpuWork()
        self._start, self._index = start, index
        self._protocol, self._say = options.protocol, options.say
        self._processes: deque[GpuProcess] = deque()

    def close(self) -> None:
        while self._processes:
            self._processes.popleft().close()

    def _begin_process(self) -> None:
        """Raises GpuProcessError if the next process cannot open the GPU."""
        if self._processes:
            self._processes.popleft().close()
        while len(self._processes) <= _AHEAD:
            self._processes.append(self._start())
        request = {"op": "open", "index": self._index}
        reply = self._processes[0].ask_first(request, _OPEN_LIMIT_S, f"GPU {self._index} cannot be opened")
        self.work.card = reply["card"]

    def verify(self, cases: Sequence[str]) -> None:
        self._begin_process()
        work = self.work
        self._say(f"{work.card['name']}: checking outputs of {counted(len(cases), 'case')}")
        for case in cases:
            try:
                reply = self._processes[0].ask({"op": "verify", "case": case}, _LAUNCH_LIMIT_S)
                work.outputs[case] = _check(reply)
            except GpuProcessGone as ended:
                work.outputs[case] = OutputCheck(status=ended.status, side=ended.side, message=ended.message)
            if work.outputs[case].status in FAULTS:
                self._begin_process()

    def time(self, bundles: Sequence[Bundle], deadline: float) -> None:
        processes = self._protocol.processes
        heads = sum(map(len, bundles))
        least_s = processes * (len(bundles) * _SETUP_S + heads * _LEAST_SLICE_S)
        if least_s > deadline - time.monotonic():
            self._say(
                f"{counted(heads, 'case')} in {processes} processes take {least_s:.0f} s, beyond the budget"
            )
        for number in range(processes):
            if not bundles:
                return
            heads = sum(map(len, bundles))
            share_s = (deadline - time.monotonic()) / (processes - number)
            left_s = 0.9 * share_s - len(bundles) * _SETUP_S
            slice_s = min(_MOST_SLICE_S, max(_LEAST_SLICE_S, left_s / heads))
            self._say(f"process {number + 1}: {counted(heads, 'case')}, up to {slice_s:.2f} s each")
            self._begin_process()
            timed = [self._timed(bundle, number, place, slice_s) for place, bundle in enumerate(bundles)]
            bundles = [bundle for bundle in timed if bundle]

    def _timed(self, bundle: Bundle, number: int, place: int, slice_s: float) -> Bundle:
        """Returns the bundle without the cases that faulted."""
        work, protocol = self.work, self._protocol
        while bundle:
            request = {
                "op": "time",
                "heads": bundle,
                "slice_s": slice_s * len(bundle),
                "reverse": _REVERSED[number % len(_REVERSED)],
                "seed": protocol.seed * 1_000_003 + number * 10_007 + place,
            }
            try:
                limit_s = _LAUNCH_LIMIT_S + 3 * slice_s * len(bundle)
                reply = self._processes[0].ask(request, limit_s)
                samples = _samples(work.card["uuid"], bundle, number, reply)
            except GpuProcessGone as ended:
                # the base is to blame, or it is not known which: then all are
                guilty = {ended.side} if ended.side in bundle else set(bundle)
                side = "head" if ended.side in bundle else ended.side
                process = f"process {number + 1} of {protocol.processes}"
                message = f"while timing, in {process}: {ended.message}"
                bad = OutputCheck(status=ended.status, side=side, message=message)
                work.outputs.update({bundle[arm]: bad for arm in guilty if arm})
                bundle = {arm: case for arm, case in bundle.items() if arm not in guilty}
                self._begin_process()
                continue
            work.busy_s += reply["busy_s"]
            for sample in samples:
                work.samples.setdefault(sample.case, []).append(sample)
            break
        return bundle


def _check(reply: Mapping[str, Any]) -> OutputCheck:
    if reply["kind"] == "refused":
        return OutputCheck(status=OutputStatus.NOT_LAUNCHED, message=reply["message"])
    if reply["kind"] == "out of bounds":
        message = f"{reply['side']} wrote outside of {', '.join(reply['arguments'])}"
        names = tuple(reply["arguments"])
        return OutputCheck(
            status=OutputStatus.OUT_OF_BOUNDS, side=reply["side"], message=message, arguments=names
        )
    differences = reply["differences"]
    if not differences:
        status, message = OutputStatus.EQUAL, "bitwise equal"
    else:
        within = all(difference["within"] for difference in differences)
        status = OutputStatus.CLOSE if within else OutputStatus.DIFFERENT
        message = "; ".join(
            f"{difference['argument']}: {difference['elements']} elements differ"
            for difference in differences
        )
    ulps = [difference["max_ulp"] for difference in differences if difference["max_ulp"] is not None]
    return OutputCheck(
        status=status,
        message=message,
        arguments=tuple(difference["argument"] for difference in differences),
        max_ulp=max(ulps) if ulps else (None if differences else 0),
        relative_norm=max((difference["relative_norm"] for difference in differences), default=0.0),
        base_repeats=reply["base_repeats"],
    )


def _bundled(cases: Sequence[str], bundle_of: Callable[[str], str] | None) -> list[Bundle]:
    bundles: dict[str, dict[str, str]] = {}
    for case in cases:
        bundle = bundles.setdefault(bundle_of(case) if bundle_of else case, {})
        bundle[f"head {len(bundle)}" if bundle else "head"] = case
    return list(bundles.values())


def _samples(gpu: str, bundle: Bundle, process: int, reply: Mapping[str, Any]) -> list[Sample]:
    """Gives each case the samples of the base. Raises GpuProcessGone if the samples are not reliable: the
    same launches ran before.
    """
    if reply["kind"] != "timed":
        raise GpuProcessGone(OutputStatus.FAULT, None, str(reply.get("message") or reply["kind"]))
    for _, _, arm, launches, elapsed_us in reply["samples"]:
        if not (math.isfinite(elapsed_us) and elapsed_us > 0 and launches > 0):
            raise GpuProcessGone(OutputStatus.FAULT, arm, f"{elapsed_us} us is no time of a launch")
    if missing := {*_SHARED_ARMS, *bundle} - {sample[2] for sample in reply["samples"]}:
        raise GpuProcessGone(OutputStatus.FAULT, None, f"it took no samples of {', '.join(sorted(missing))}")
    return [
        Sample(
            gpu=gpu,
            case=case,
            process=process,
            round=number,
            position=position,
            arm="head" if arm in bundle else arm,
            launches=launches,
            elapsed_us=elapsed_us,
        )
        for number, position, arm, launches, elapsed_us in reply["samples"]
        for case in ([bundle[arm]] if arm in bundle else bundle.values())
    ]
