"""One case timed in one process: base, a second copy of base, and one head or more, interleaved.

A sample is the time between two events around a replayed graph of `launches` launches. Before each, the L2
cache is overwritten and inputs that the kernel changes are restored; each launch of a sample has buffers
of its own, so all begin cold. Rounds hold each arm once, in random order. Work is enqueued a chunk ahead
of what is read, so the GPU does not wait for Python.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from irdiff.timing.buffers import Buffers, Storage

_SAMPLE_US = 200.0  # an event's own error is about 0.5 us: a sample this long keeps it below 0.3 %
_MAX_LAUNCHES = 64
_CHUNK_US = 20_000.0
_LEAST_ROUNDS = 16
_MAX_ROUNDS = 4000
_TARGET_ERROR = 0.0008
_STABLE = 0.005
_WARM_UP_SHARE = 0.3
_MAX_SETS_BYTES = 16 << 30


@dataclass(frozen=True, kw_only=True)
class Enqueue:
    """How one arm's launch is put on a stream, for one set of buffers."""

    bind: Callable[[Buffers], object]
    """The parameters for a set of buffers."""
    launch: Callable[[object, int], None]
    """Enqueues a launch with those parameters on a stream."""


class SampleRow(NamedTuple):
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


class _GraphedCase:
    """The captured graphs of one case."""

    def __init__(self, torch: Any, launches: int, graphs: Mapping[str, Any], prepare: Any) -> None:
        self.torch, self.launches, self.graphs, self.prepare = torch, launches, graphs, prepare

    def enqueue_round(self, order: Sequence[str]) -> list[tuple[str, Any, Any]]:
        marks = []
        for arm in order:
            begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.prepare.replay()
            begin.record()
            self.graphs[arm].replay()
            end.record()
            marks.append((arm, begin, end))
        return marks


def measure(
    torch: Any,
    arms: Mapping[str, Enqueue],
    needed: Sequence[Storage],
    initial: Mapping[int, Any],
    first: Buffers,
    pace: Pace,
) -> tuple[list[SampleRow], float]:
    """Samples of all arms, and the seconds in which this GPU had work of this case, from events.

    Arms are set up in their order; half of the processes have it the other way.

    `first` is a set of buffers, loaded, that the others are like.
    """
    duration_us, changed, busy_us = _probe(torch, arms["base"], needed, initial, first)
    launches = max(1, min(_MAX_LAUNCHES, math.ceil(_SAMPLE_US / duration_us)))
    case = _capture(torch, arms, needed, initial, first, changed, launches, pace)
    rng = random.Random(pace.seed)  # noqa: S311 - an order of launches, not a secret
    deadline = time.monotonic() + pace.slice_s
    warm_us, sample_us = _warm_up(case, rng, time.monotonic() + _WARM_UP_SHARE * pace.slice_s)
    rounds = max(2, min(64, int(_CHUNK_US / max(sample_us, 1.0))))
    rows: list[SampleRow] = []
    pending: list[list[tuple[str, Any, Any]]] = []
    busy_us += warm_us
    done = 0
    while True:
        ahead = [case.enqueue_round(_shuffled(arms, rng)) for _ in range(rounds)]
        if pending:
            busy_us += _read(pending, rows, done, launches)
            done += len(pending)
        pending = ahead
        if time.monotonic() > deadline or done >= _MAX_ROUNDS or _precise(rows, done):
            break
    busy_us += _read(pending, rows, done, launches)
    return rows, busy_us / 1e6


def _shuffled(arms: Iterable[str], rng: random.Random) -> list[str]:
    names = list(arms)
    return rng.sample(names, len(names))


def _read(
    pending: Sequence[list[tuple[str, Any, Any]]], rows: list[SampleRow], first: int, launches: int
) -> float:
    """Appends the samples of a chunk; returns the microseconds from its first event to its last."""
    pending[-1][-1][2].synchronize()
    for number, marks in enumerate(pending):
        for position, (arm, begin, end) in enumerate(marks):
            rows.append(
                SampleRow(
                    round=first + number,
                    position=position,
                    arm=arm,
                    launches=launches,
                    elapsed_us=begin.elapsed_time(end) * 1e3,
                )
            )
    return float(pending[0][0][1].elapsed_time(pending[-1][-1][2])) * 1e3


def _probe(
    torch: Any, base: Enqueue, needed: Sequence[Storage], initial: Mapping[int, Any], buffers: Buffers
) -> tuple[float, frozenset[int], float]:
    """Microseconds of a launch, the inputs that it changes, and the GPU time this took."""
    parameters = base.bind(buffers)
    stream = torch.cuda.current_stream().cuda_stream
    base.launch(parameters, stream)
    changed = frozenset(
        storage.number
        for storage in needed
        if not storage.is_output and not torch.equal(buffers.body(storage.number), initial[storage.number])
    )
    times = []
    for _ in range(3):
        for number in changed:
            buffers.body(number).copy_(initial[number])
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        base.launch(parameters, stream)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return max(min(times), 1.0), changed, sum(times)


def _capture(
    torch: Any,
    arms: Mapping[str, Enqueue],
    needed: Sequence[Storage],
    initial: Mapping[int, Any],
    first: Buffers,
    changed: frozenset[int],
    launches: int,
    pace: Pace,
) -> _GraphedCase:
    footprint = sum(storage.size_bytes for storage in needed) or 1
    count = max(1, min(launches, _MAX_SETS_BYTES // footprint))
    sets = [first]
    for _ in range(count - 1):
        sets.append(Buffers(torch, needed))
        sets[-1].load(dict(initial))
    flush = torch.empty(max(2 * pace.l2_bytes, 32 << 20), dtype=torch.uint8, device="cuda")

    def restore() -> None:
        for buffers in sets:
            for number in changed:
                buffers.body(number).copy_(initial[number])
        flush.fill_(1)

    restore()
    torch.cuda.synchronize()
    prepare = _graph(torch, lambda _stream: restore())
    graphs = {}
    for name in arms:
        arm = arms[name]
        bound = [arm.bind(buffers) for buffers in sets]

        def enqueue(stream: int, arm: Enqueue = arm, bound: Sequence[object] = bound) -> None:
            for number in range(launches):
                arm.launch(bound[number % len(bound)], stream)

        graphs[name] = _graph(torch, enqueue)
    return _GraphedCase(torch, launches, graphs, prepare)


def _graph(torch: Any, enqueue: Callable[[int], None]) -> Any:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        enqueue(torch.cuda.current_stream().cuda_stream)
    return graph


def _warm_up(case: _GraphedCase, rng: random.Random, deadline: float) -> tuple[float, float]:
    """Rounds until base's time is steady: (GPU microseconds spent, microseconds of a round)."""
    spent, previous, round_us = 0.0, 0.0, 1.0
    rounds = 2
    while True:
        rows: list[SampleRow] = []
        spent += _read([case.enqueue_round(_shuffled(case.graphs, rng)) for _ in range(rounds)], rows, 0, 1)
        base = sorted(row.elapsed_us for row in rows if row.arm == "base")
        middle = base[len(base) // 2]
        round_us = sum(row.elapsed_us for row in rows) / rounds * 1.3
        if time.monotonic() > deadline or abs(middle - previous) <= _STABLE * middle:
            return spent, round_us
        previous = middle
        rounds = max(2, min(32, int(_CHUNK_US / 2 / max(round_us, 1.0))))


def _precise(rows: Sequence[SampleRow], rounds: int) -> bool:
    """Whether this process's ratios of medians are known well enough, that of the noisiest head too."""
    if rounds < _LEAST_ROUNDS:
        return False
    times: dict[str, list[float]] = {}
    for row in rows:
        times.setdefault(row.arm, []).append(row.elapsed_us)
    squares = {arm: _square_of_error(sorted(values)) for arm, values in times.items()}
    worst = max(square for arm, square in squares.items() if arm not in ("base", "control"))
    return math.sqrt(squares["base"] + worst) <= _TARGET_ERROR


def _square_of_error(values: Sequence[float]) -> float:
    """Of the median of sorted values, relative to it."""
    middle = values[len(values) // 2]
    spread = sorted(abs(value - middle) for value in values)[len(values) // 2]
    # the standard error of a median under normal noise, by the median absolute deviation
    return (1.2533 * 1.4826 * spread / middle) ** 2 / len(values)
