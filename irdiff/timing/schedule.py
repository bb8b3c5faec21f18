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

import contextlib
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
    gpu = _Gpu(place, protocol, say)
    work = gpu.work
    try:
        gpu.verify(cases)
        timed = [case for case in cases if work.outputs[case].status in MEASURABLE]
        if timed and not protocol.verify_only:
            gpu.time(_bundled(timed, bundle_of), begin + protocol.budget_s)
    except GpuProcessError as error:
        if not work.card:
            raise
        work.stopped = f"measuring ended early: {error.what}"
        say(work.stopped)
    finally:
        gpu.close()
    work.wall_s = time.monotonic() - begin
    return work


class _Gpu:
    """One GPU at work: its current process, and the next ones, which import while the current one works."""

    def __init__(self, place: GpuPlace, protocol: TimingProtocol, say: Say) -> None:
        self.work = GpuWork()
        self._place, self._protocol, self._say = place, protocol, say
        self._processes: deque[GpuProcess] = deque()

    def close(self) -> None:
        while self._processes:
            self._processes.popleft().close()

    def _begin_process(self) -> None:
        """Puts one that has opened the GPU in the place of the current one. Raises GpuProcessError."""
        place = self._place
        if self._processes:
            self._processes.popleft().close()
        while len(self._processes) <= _AHEAD:
            self._processes.append(GpuProcess(place.folder, place.environment, place.log))
        try:
            reply = self._ask({"op": "open", "index": place.index}, _OPEN_LIMIT_S)
        except GpuProcessGone as ended:
            raise GpuProcessError(f"GPU {place.index} cannot be opened: {ended.message}") from ended
        if reply["kind"] != "opened":
            raise GpuProcessError(f"GPU {place.index} cannot be opened: {reply.get('message')}")
        self.work.card = reply["card"]

    def _ask(self, request: Mapping[str, Any], limit_s: float = _LAUNCH_LIMIT_S) -> dict[str, Any]:
        return self._processes[0].ask(request, limit_s)

    def verify(self, cases: Sequence[str]) -> None:
        self._begin_process()
        work = self.work
        self._say(f"{work.card['name']}: checking outputs of {len(cases)} cases")
        for case in cases:
            try:
                work.outputs[case] = _check(self._ask({"op": "verify", "case": case}))
            except GpuProcessGone as ended:
                work.outputs[case] = bad_output(ended.status, ended.side, ended.message)
            if work.outputs[case].status in FAULTS:
                self._begin_process()
        with contextlib.suppress(GpuProcessGone):  # figures of merit only
            reply = self._ask({"op": "peaks"})
            if reply["kind"] == "peaks":
                work.peaks = {"tflops": reply["tflops"], "tb_per_s": reply["tb_per_s"]}
                work.busy_s += reply["busy_s"]

    def time(self, bundles: Sequence[Bundle], deadline: float) -> None:
        processes = self._protocol.processes
        heads = sum(map(len, bundles))
        least_s = processes * (len(bundles) * _SETUP_S + heads * _LEAST_SLICE_S)
        if least_s > deadline - time.monotonic():
            self._say(f"{heads} cases in {processes} processes take {least_s:.0f} s, beyond the budget")
        for number in range(processes):
            if not bundles:
                return
            heads = sum(map(len, bundles))
            share_s = (deadline - time.monotonic()) / (processes - number)
            left_s = 0.9 * share_s - len(bundles) * _SETUP_S
            slice_s = min(_MOST_SLICE_S, max(_LEAST_SLICE_S, left_s / heads))
            self._say(f"process {number + 1}: {heads} cases, up to {slice_s:.2f} s each")
            self._begin_process()
            timed = [self._timed(bundle, number, place, slice_s) for place, bundle in enumerate(bundles)]
            bundles = [bundle for bundle in timed if bundle]

    def _timed(self, bundle: Bundle, number: int, place: int, slice_s: float) -> Bundle:
        """Adds one process's samples of a bundle; returns it without the cases that faulted."""
        work = self.work
        while bundle:
            try:
                request = _request(bundle, number, place, slice_s, self._protocol)
                reply = self._ask(request, _LAUNCH_LIMIT_S + 3 * request["slice_s"])
                rows = _samples(work.card["uuid"], bundle, number, reply)
            except GpuProcessGone as ended:
                process = f"process {number + 1} of {self._protocol.processes}"
                guilty = _guilty(bundle, ended.side)
                side = ended.side if ended.side in (None, *_SHARED_ARMS) else "head"
                bad = bad_output(ended.status, side, f"while timing, in {process}: {ended.message}")
                work.outputs.update(dict.fromkeys(guilty, bad))
                bundle = tuple(case for case in bundle if case not in guilty)
                self._begin_process()
                continue
            work.busy_s += reply["busy_s"]
            for row in rows:
                work.samples.setdefault(row.case, []).append(row)
            break
        return bundle


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
