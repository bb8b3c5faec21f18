"""Endings of programs that are no failing case: each is left out of the pairs, and reported in a clause.

- Tests that fail on both sides. Values are not computed, so assertions about them fail on any side, and
pytest came to its own end.
- A program that one side lacks, and that fails there when it is taken from the other side. It uses kernels
that the one side lacks too: they are new, or gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from irdiff.capture.program_failures import ENDED_EARLY
from irdiff.model import CaptureFailure, Launch, Pair, Sides
from irdiff.resolve.sides import Side
from irdiff.words import shortened

_TESTS_FAILED = f"{ENDED_EARLY}pytest ended with 1: tests failed"
"""The message of `worker.run_program`."""
_TESTS_FAIL = (
    "pytest ends with 1 on both sides: values are not computed, so assertions fail, and what a test launches "
    "after that was not compared"
)
_MAX_REASON = 120


def left_out(pairs: Sequence[Pair], sides: Sides[Side]) -> tuple[list[Pair], tuple[str, ...]]:
    """Returns the pairs without such endings, and a clause for each kind."""
    kept, failed_tests = _without_failed_tests(pairs)
    base, head = sides.map(lambda side: side.corpus.borrowed)
    lacking: dict[str, None] = {}
    for place, pair in enumerate(kept):
        if pair.workload in base.keys() ^ head.keys():
            side, failure, launch = ("base", pair.base, pair.head)
            if pair.workload in head:
                side, failure, launch = ("head", pair.head, pair.base)
            if isinstance(failure, CaptureFailure) and isinstance(launch, Launch):
                lacking[_lacking(side, {**base, **head}[pair.workload], failure)] = None
                kept[place] = replace(pair, base=None) if side == "base" else replace(pair, head=None)
    return kept, (*([_TESTS_FAIL] if failed_tests else []), *lacking)


def _lacking(side: str, program: str, failure: CaptureFailure) -> str:
    other = "head" if side == "base" else "base"
    reason = shortened(failure.failure.message.removeprefix(ENDED_EARLY), _MAX_REASON)
    fails = f"{side} has no {program}, and that of {other} fails there ({reason})"
    return f"{fails}: its launches were not compared"


def _without_failed_tests(pairs: Sequence[Pair]) -> tuple[list[Pair], bool]:
    launching = {pair.workload for pair in pairs if isinstance(pair.head, Launch)}
    kept = [pair for pair in pairs if pair.workload not in launching or not all(_fails_tests(pair))]
    return kept, len(kept) < len(pairs)


def _fails_tests(pair: Pair) -> Iterator[bool]:
    for side in (pair.base, pair.head):
        yield isinstance(side, CaptureFailure) and side.failure.message == _TESTS_FAILED
