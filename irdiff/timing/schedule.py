"""Which process measures which case when, on one GPU.

First one process checks outputs. Then the processes of the protocol come one after another, each with every
case, so that a ratio is seen under several memory placements; half of them set up head before base (ABBA).
The next ones import while the current one measures.

A case that faults in any process is done: the fault is its result. Every process measures every other case,
also when the budget is spent: fewer processes would leave all cases without a verdict.

Cases that have one base (a session of many versions) may be timed together, as one bundle whose arms are all
interleaved: the base runs once a round for all of them.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from irdiff.timing.isolate import GpuProcess, GpuProcessError, GpuProcessGone
from irdiff.timing.results import FAULTS, MEASURABLE, OutputCheck, OutputStatus, TimingProtocol
from irdiff.timing.samples import Sample

_SHARED_ARMS = ("base", "control")
_REVERSED = (False, True, True, False)
_LAUNCH_LIMIT_S = 20.0
_OPEN_LIMIT_S = 120.0
_SETUP_S = 0.12
_LEAST_SLICE_S, _MOST_SLICE_S = 0.08, 1.0
_AHEAD = 2
"""How many processes import while one works: with few cases one is done before the next has imported."""


@dataclass(frozen=True, kw_only=True)
class GpuPlace:
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
    busy_s: float = 0.0
    wall_s: float = 0.0
    stopped: str = ""
    """Why it ended before every process had measured every case; empty where it did not."""


Say = Callable[[str], None]
Bundle = tuple[str, ...]
"""Cases of one base, timed together."""


class _Processes:
    """The current process and the next ones, which import while the current one works."""

    def __init__(self, place: GpuPlace, work: GpuWork) -> None:
        self._place, self._work = place, work
        self._next: deque[GpuProcess] = deque()
        self._current: GpuProcess | None = None

    def fresh(self) -> GpuProcess:
        """A process that has opened the GPU. Raises GpuProcessError."""
        self.close_current()
        while len(self._next) <= _AHEAD:
            place = self._place
            self._next.append(GpuProcess(place.folder, place.environment, place.log))
        current = self._current = self._next.popleft()
        try:
            reply = current.ask({"op": "open", "index": self._place.index}, _OPEN_LIMIT_S)
        except GpuProcessGone as ended:
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
        while self._next:
            self._next.popleft().close()


def run_gpu(
    place: GpuPlace,
    cases: Sequence[str],
    protocol: TimingProtocol,
    say: Say,
    bundle_of: Callable[[str], str] | None = None,
) -> GpuWork:
    """Checks and times `cases` on one GPU. Those for which `bundle_of` gives the same are timed together.

    Raises GpuProcessError where the GPU cannot be opened at all. Where that fails later (a fault took the GPU
    with it), what was found until then is returned, with the reason in `stopped`.
    """
    begin = time.monotonic()
    work = GpuWork()
    processes = _Processes(place, work)
    try:
        _verify_all(processes, cases, work, say)
        timed = [case for case in cases if work.outputs[case].status in MEASURABLE]
        if timed and not protocol.verify_only:
            bundles = _bundled(timed, bundle_of)
            _time_all(processes, bundles, work, protocol, say, begin + protocol.budget_s)
    except GpuProcessError as error:
        if not work.card:
            raise
        work.stopped = f"measuring ended early: {error.what}"
        say(work.stopped)
    finally:
        processes.close()
    work.wall_s = time.monotonic() - begin
    return work


def _verify_all(processes: _Processes, cases: Sequence[str], work: GpuWork, say: Say) -> None:
    process = processes.fresh()
    say(f"{work.card['name']}: checking outputs of {len(cases)} cases")
    for case in cases:
        try:
            reply = process.ask({"op": "verify", "case": case}, _LAUNCH_LIMIT_S)
            work.outputs[case] = _check(reply)
        except GpuProcessGone as ended:
            work.outputs[case] = bad_output(ended.status, ended.side, ended.message)
        if work.outputs[case].status in FAULTS:
            process = processes.fresh()
    try:
        reply = process.ask({"op": "peaks"}, _LAUNCH_LIMIT_S)
        if reply["kind"] == "peaks":
            work.peaks = {"tflops": reply["tflops"], "tb_per_s": reply["tb_per_s"]}
            work.busy_s += reply["busy_s"]
    except GpuProcessGone:
        pass  # figures of merit only


def bad_output(
    status: OutputStatus, side: str | None, message: str, arguments: Sequence[str] = ()
) -> OutputCheck:
    """Of a case whose outputs could not be compared."""
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
        return bad_output(OutputStatus.NOT_LAUNCHED, None, reply["message"])
    if reply["kind"] == "out of bounds":
        message = f"{reply['side']} wrote outside of {', '.join(reply['arguments'])}"
        return bad_output(OutputStatus.OUT_OF_BOUNDS, reply["side"], message, reply["arguments"])
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


def _bundled(cases: Sequence[str], bundle_of: Callable[[str], str] | None) -> list[Bundle]:
    bundles: dict[str, list[str]] = {}
    for case in cases:
        bundles.setdefault(bundle_of(case) if bundle_of else case, []).append(case)
    return [tuple(bundle) for bundle in bundles.values()]


def _time_all(
    processes: _Processes,
    bundles: Sequence[Bundle],
    work: GpuWork,
    protocol: TimingProtocol,
    say: Say,
    deadline: float,
) -> None:
    heads = sum(map(len, bundles))
    least_s = protocol.processes * (len(bundles) * _SETUP_S + heads * _LEAST_SLICE_S)
    if least_s > deadline - time.monotonic():
        say(f"{heads} cases in {protocol.processes} processes take {least_s:.0f} s, beyond the budget")
    waiting = list(bundles)
    for number in range(protocol.processes):
        if not waiting:
            return
        heads = sum(map(len, waiting))
        share_s = (deadline - time.monotonic()) / (protocol.processes - number)
        left_s = 0.9 * share_s - len(waiting) * _SETUP_S
        slice_s = min(_MOST_SLICE_S, max(_LEAST_SLICE_S, left_s / heads))
        say(f"process {number + 1}: {heads} cases, up to {slice_s:.2f} s each")
        waiting = _one_process(processes, waiting, number, slice_s, work, protocol)


def _one_process(
    processes: _Processes,
    bundles: Sequence[Bundle],
    number: int,
    slice_s: float,
    work: GpuWork,
    protocol: TimingProtocol,
) -> list[Bundle]:
    """Adds one process's samples of every case; returns the bundles, without the cases that faulted."""
    process = processes.fresh()
    sound = []
    for place, given in enumerate(bundles):
        bundle = given
        while bundle:
            try:
                request = _request(bundle, number, place, slice_s, protocol)
                reply = process.ask(request, _LAUNCH_LIMIT_S + 3 * request["slice_s"])
                rows = _samples(work.card["uuid"], bundle, number, reply)
            except GpuProcessGone as ended:
                message = f"while timing, in process {number + 1} of {protocol.processes}: {ended.message}"
                guilty = _guilty(bundle, ended.side)
                side = ended.side if ended.side in (None, *_SHARED_ARMS) else "head"
                work.outputs.update((case, bad_output(ended.status, side, message)) for case in guilty)
                bundle = tuple(case for case in bundle if case not in guilty)
                process = processes.fresh()
                continue
            sound.append(bundle)
            work.busy_s += reply["busy_s"]
            for row in rows:
                work.samples.setdefault(row.case, []).append(row)
            break
    return sound


def _request(
    bundle: Bundle, number: int, place: int, slice_s: float, protocol: TimingProtocol
) -> dict[str, Any]:
    request: dict[str, Any] = {
        "op": "time",
        "case": bundle[0],
        "slice_s": slice_s * len(bundle),
        "reverse": _REVERSED[number % len(_REVERSED)],
        "seed": protocol.seed * 1_000_003 + number * 10_007 + place,
    }
    return {**request, "others": bundle[1:]} if bundle[1:] else request


def _arms(bundle: Bundle) -> dict[str, str]:
    """The case of each head, by the name of its arm."""
    return {f"head {number}" if number else "head": case for number, case in enumerate(bundle)}


def _guilty(bundle: Bundle, side: str | None) -> Bundle:
    """The case whose head is to blame; all of them where it is the base, or not known."""
    case = _arms(bundle).get(side or "")
    return (case,) if case else bundle


def _samples(gpu: str, bundle: Bundle, process: int, reply: Mapping[str, Any]) -> list[Sample]:
    """The samples of a reply, each case with those of the base.

    Raises GpuProcessGone where there are none to rely on: the same launches ran before.
    """
    if reply["kind"] != "timed":
        raise GpuProcessGone(OutputStatus.FAULT, None, str(reply.get("message") or reply["kind"]))
    arms = _arms(bundle)
    for _, _, arm, launches, elapsed_us in reply["rows"]:
        if not (math.isfinite(elapsed_us) and elapsed_us > 0 and launches > 0):
            raise GpuProcessGone(OutputStatus.FAULT, arm, f"{elapsed_us} us is no time of a launch")
    if missing := {*_SHARED_ARMS, *arms} - {row[2] for row in reply["rows"]}:
        raise GpuProcessGone(OutputStatus.FAULT, None, f"it took no samples of {', '.join(sorted(missing))}")
    return [
        Sample(
            gpu=gpu,
            case=case,
            process=process,
            round=row[0],
            position=row[1],
            arm="head" if row[2] in arms else row[2],
            launches=row[3],
            elapsed_us=row[4],
        )
        for row in reply["rows"]
        for case in ([arms[row[2]]] if row[2] in arms else bundle)
    ]
