"""Steps over many items on several threads, with progress, and over both sides of one."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from irdiff.model import Sides

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state that a progress display shows after every step."""

    phase: str
    done: int
    total: int
    detail: str
    attention: str = ""
    """A message that a user must read before the end; it stays on the screen."""


LARGE_TEXT = threading.RLock()
"""Held while a text of perhaps 20 MB, or the two of an edit, are worked on; its thread may ask again. That is
pure Python: several at once would only take several times the memory."""

_AHEAD = 64
"""Steps that wait for a thread. One that waits takes a kilobyte: of 40,000 cases not all do."""

Report = Callable[[Progress], None]


@dataclass(frozen=True, kw_only=True)
class Stream(Generic[B]):
    """Items on their way through steps, each of which takes a stream and returns another.

    Nothing runs before somebody wants the results. Then each item passes all of its steps in one go: one is
    compared while the next is compiled, and the texts of few items are in memory.
    """

    items: Sequence[Any]
    step: Callable[[Any], B]

    @classmethod
    def of(cls, items: Sequence[A], step: Callable[[A], B]) -> Stream[B]:
        return cls(items=items, step=step)

    def then(self, step: Callable[[B], C]) -> Stream[C]:
        before = self.step
        return Stream(items=self.items, step=lambda item: step(before(item)))

    def within(self, attempt: Callable[[Callable[[], B]], B]) -> Stream[B]:
        """Each item passes its steps inside of `attempt`, which may have it pass them again."""
        step = self.step
        return Stream(items=self.items, step=lambda item: attempt(lambda: step(item)))

    def results(self, threads: int, phase: str, report: Report) -> Iterator[B]:
        """As they come, as of `in_parallel`."""
        return in_parallel(self.step, self.items, threads, phase, report)


def in_parallel(
    step: Callable[[A], B], items: Sequence[A], threads: int, phase: str, report: Report
) -> Iterator[B]:
    """Results as they come. The first exception (Ctrl-C included) ends the rest."""
    report(Progress(phase=phase, done=0, total=len(items), detail=""))
    pool = ThreadPoolExecutor(threads)
    finished: SimpleQueue[Future[B]] = SimpleQueue()
    try:
        waiting = iter(items)

        def submit(count: int) -> None:
            for item in itertools.islice(waiting, count):
                pool.submit(step, item).add_done_callback(finished.put)

        submit(threads + _AHEAD)
        for done in range(1, len(items) + 1):
            result = finished.get().result()
            submit(1)
            report(Progress(phase=phase, done=done, total=len(items), detail=getattr(result, "id", "")))
            yield result
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def meanwhile(step: Callable[[Report], A], report: Report) -> Iterator[Future[A]]:
    """Runs a step while the block runs. If the block raises (Ctrl-C included), the step ends with its next
    report.
    """
    is_given_up = threading.Event()

    def report_or_end(progress: Progress) -> None:
        if is_given_up.is_set():
            raise CancelledError
        report(progress)

    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(step, report_or_end)
        except BaseException:
            is_given_up.set()
            raise


def of_both(ask: Callable[[str], A]) -> Sides[A]:
    """The answers for `base` and for `head`, both asked at once: with few cases, a core would be idle."""
    with ThreadPoolExecutor(1) as pool:
        base = pool.submit(ask, "base")
        head = ask("head")
        return Sides(base=base.result(), head=head)
