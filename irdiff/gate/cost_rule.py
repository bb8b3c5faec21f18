"""Rules on time: a changed case may not take longer, and may have to be timed.

`TimedCase.enough` says whether an interval is reliable. Recordings of earlier versions of irdiff have cases
that are `slower` after fewer processes than today: their intervals count as reliable, too, so that such a
recording still fails the gate.
"""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.gate.objections import BUT, Objection, unknown, violated
from irdiff.gate.policy import CostRule
from irdiff.gate.timings import TimedCase
from irdiff.model import Case, Expected, ExpectedTime
from irdiff.timing.results import Speed

_TOO_WIDE = "the interval or the noise is too wide to decide"


def objection(rule: CostRule, case: Case, timings: Sequence[TimedCase]) -> Objection | None:
    if timings:
        return slower(rule, timings) or _undecided(rule, timings)
    if rule.measured_only:
        return unknown("changed and not timed", needs_gpu=True)
    if case.expected is None:
        return unknown("not timed, and irdiff made no prediction", needs_gpu=True)
    return _expected(case.expected)


def _expected(time: ExpectedTime) -> Objection | None:
    match time.expected:
        case Expected.NO_CHANGE:
            return None
        case Expected.SLOWER:
            return violated(f"not timed, and likely slower: {time.why}")
        case Expected.FASTER:
            return unknown("not timed; likely faster, which proves nothing", needs_gpu=True)
        case Expected.UNKNOWN:
            return unknown("not timed, and irdiff could not predict its time", needs_gpu=True)


def slower(rule: CostRule, timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        reliable = timed.enough or timed.speed is Speed.SLOWER
        beyond = max(rule.percent, timed.noise_percent)
        if reliable and timed.low_percent is not None and timed.low_percent > beyond:
            return violated(timed.interval, is_measured=True)
    return None


def _undecided(rule: CostRule, timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        if timed.faulted:
            return unknown(timed.fault)
        if timed.low_percent is None or timed.high_percent is None:
            return unknown(f"not measured on {timed.device}: {timed.reason}")
        if timed.speed is Speed.FASTER:
            continue
        if not timed.enough or timed.high_percent > rule.percent:
            note = (timed.speed is Speed.UNCLEAR and timed.note) or _TOO_WIDE
            return unknown(f"measured {timed.interval}{BUT}{note}")
    return None


def not_timed(timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        if timed.faulted:
            return violated(timed.fault, is_measured=True)
    if any(timed.is_timed for timed in timings):
        return None
    if not timings:
        return violated("changed and not timed", needs_gpu=True)
    if quick := [timed for timed in timings if timed.few_processes]:
        return violated(f"not timed long enough on {quick[0].device}: {quick[0].reason}", needs_gpu=True)
    return violated(f"could not be timed on {timings[0].device}: {timings[0].reason}")
