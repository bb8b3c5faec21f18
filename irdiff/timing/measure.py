"""Times one case in one process: base, a second copy of base, and one or more heads, interleaved.

A sample is the time between two events around a replayed graph of `launches` launches, each with its own
buffers. Before it, the L2 cache is overwritten and inputs that the kernel changes are restored. Each round
holds each arm once, in random order. Work is enqueued one chunk ahead of what is read, so the GPU does not
wait for Python.
"""

from __future__ import annotations

import math
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from irdiff.backends import gpus
from irdiff.timing.buffers import Buffers

_SAMPLE_US = 200.0  # an event's own error is about 0.5 us: a sample this long keeps it below 0.3 %
_MAX_LAUNCHES = 64
_CHUNK_US = 20_000.0
_LEAST_ROUNDS = 16
_MAX_ROUNDS = 4000
_TARGET_ERROR = 0.0008
_STABLE = 0.005
_WARM_UP_SHARE = 0.3
_MAX_SETS_BYTES = 16 << 30

Enqueue = Callable[[int], None]
Arm = Callable[[Buffers], Enqueue]
"""Binds one arm to one set of buffers."""
Round = list[tuple[str, Any, Any]]
"""Each arm with its begin and end events, in the order of the round."""


class RawSample(NamedTuple):
    """One sample, before it is given a case and a process: a list in JSON."""

    round: int
    position: int
    arm: str
    launches: int
    elapsed_us: float


@dataclass(frozen=True, kw_only=True)
class Pace:
    slice_s: float
    """Wall time for the samples, warm-up included."""
    l2_bytes: int
    seed: int


def measure(arms: Mapping[str, Arm], first: Buffers, pace: Pace) -> tuple[list[RawSample], float]:
    """Returns samples of all arms, and the seconds in which this GPU had work of this case, from events.

    Arms are set up in their order; half of the processes use the reverse. `first` is a loaded set of buffers;
    the others are made like it.
    """
    duration_us, changed, busy_us = _probe(arms["base"], first)
    launches = max(1, min(_MAX_LAUNCHES, math.ceil(_SAMPLE_US / duration_us)))
    case = _GraphedCase(arms, first, changed, launches, pace)
    deadline = time.monotonic() + pace.slice_s
    warm_us, round_us = _warm_up(case, time.monotonic() + _WARM_UP_SHARE * pace.slice_s)
    busy_us += warm_us
    samples: list[RawSample] = []
    pending: list[Round] = []
    done, count = 0, max(2, min(64, int(_CHUNK_US / max(round_us, 1.0))))
    while True:
        ahead = case.enqueue_rounds(count)
        if pending:
            busy_us += _read(pending, samples, done, launches)
            done += len(pending)
        pending = ahead
        if time.monotonic() > deadline or done >= _MAX_ROUNDS or _precise(samples, done):
            break
    busy_us += _read(pending, samples, done, launches)
    return samples, busy_us / 1e6


def _probe(base: Arm, buffers: Buffers) -> tuple[float, frozenset[int], float]:
    """Returns the microseconds of a launch, the inputs that it changes, and the GPU time spent on this."""
    torch = buffers.inputs.torch
    launch = base(buffers)
    stream = gpus.current_stream(torch)
    launch(stream)
    changed = buffers.changed_inputs()
    times = []
    for _ in range(3):
        buffers.load(changed)
        begin, end = (gpus.of_torch(torch).Event(enable_timing=True) for _ in range(2))
        begin.record()
        launch(stream)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return max(min(times), 1.0), changed, sum(times)


class _GraphedCase:
    """A graph of all launches of a sample for each arm, and one graph that prepares a sample."""

    def __init__(
        self,
        arms: Mapping[str, Arm],
        first: Buffers,
        changed: Collection[int],
        launches: int,
        pace: Pace,
    ) -> None:
        inputs = first.inputs
        torch = self._torch = inputs.torch
        self._random = random.Random(pace.seed)  # noqa: S311 - an order of launches, not a secret
        footprint = sum(storage.size_bytes for storage in inputs.storages) or 1
        count = max(1, min(launches, _MAX_SETS_BYTES // footprint))
        sets = [first, *(Buffers(inputs) for _ in range(count - 1))]
        flush = torch.empty(max(2 * pace.l2_bytes, 32 << 20), dtype=torch.uint8, device=gpus.TORCH_DEVICE)

        def prepare(_stream: int) -> None:
            for buffers in sets:
                buffers.load(changed)
            flush.fill_(1)

        self._used = sets, flush  # by the graphs, which hold nothing but addresses
        prepare(0)
        gpus.of_torch(torch).synchronize()
        self._prepare = gpus.captured(torch, prepare)
        self._graphs = {}
        for name, arm in arms.items():
            bound = [arm(buffers) for buffers in sets]

            def enqueue(stream: int, bound: Sequence[Enqueue] = bound) -> None:
                for number in range(launches):
                    bound[number % len(bound)](stream)

            self._graphs[name] = gpus.captured(torch, enqueue)

    def enqueue_rounds(self, count: int) -> list[Round]:
        names = list(self._graphs)
        return [self._enqueue_round(self._random.sample(names, len(names))) for _ in range(count)]

    def _enqueue_round(self, order: Sequence[str]) -> Round:
        marks = []
        for arm in order:
            begin, end = (gpus.of_torch(self._torch).Event(enable_timing=True) for _ in range(2))
            self._prepare.replay()
            begin.record()
            self._graphs[arm].replay()
            end.record()
            marks.append((arm, begin, end))
        return marks


def _read(pending: Sequence[Round], samples: list[RawSample], first: int, launches: int) -> float:
    """Appends the samples of a chunk; returns the microseconds from its first event to its last."""
    pending[-1][-1][2].synchronize()
    for number, marks in enumerate(pending, first):
        for position, (arm, begin, end) in enumerate(marks):
            samples.append(RawSample(number, position, arm, launches, begin.elapsed_time(end) * 1e3))
    return float(pending[0][0][1].elapsed_time(pending[-1][-1][2])) * 1e3


def _warm_up(case: _GraphedCase, deadline: float) -> tuple[float, float]:
    """Runs rounds until base's time is steady. Returns (GPU microseconds spent, microseconds of a round)."""
    spent, previous = 0.0, 0.0
    count = 2
    while True:
        samples: list[RawSample] = []
        spent += _read(case.enqueue_rounds(count), samples, 0, 1)
        base = sorted(sample.elapsed_us for sample in samples if sample.arm == "base")
        middle = base[len(base) // 2]
        round_us = sum(sample.elapsed_us for sample in samples) / count * 1.3
        if time.monotonic() > deadline or abs(middle - previous) <= _STABLE * middle:
            return spent, round_us
        previous = middle
        count = max(2, min(32, int(_CHUNK_US / 2 / max(round_us, 1.0))))


def _precise(samples: Sequence[RawSample], rounds: int) -> bool:
    """True if the ratios of medians of this process are precise enough, including the noisiest head."""
    if rounds < _LEAST_ROUNDS:
        return False
    times: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        times[sample.arm].append(sample.elapsed_us)
    squares = {arm: _square_of_error(sorted(values)) for arm, values in times.items()}
    worst = max(square for arm, square in squares.items() if arm not in ("base", "control"))
    return math.sqrt(squares["base"] + worst) <= _TARGET_ERROR


def _square_of_error(values: Sequence[float]) -> float:
    """The squared standard error of the median of sorted values, relative to it."""
    middle = values[len(values) // 2]
    spread = sorted(abs(value - middle) for value in values)[len(values) // 2]
    # the standard error of a median under normal noise, by the median absolute deviation
    return (1.2533 * 1.4826 * spread / middle) ** 2 / len(values)
