"""Rules on results: the meaning read from the code, and the outputs that a GPU wrote."""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.gate.objections import Objection, unknown, violated, worst
from irdiff.gate.policy import MeaningRule
from irdiff.gate.timings import TimedCase
from irdiff.model import Case, Meaning

WRONG_OUTPUTS = "wrong outputs"
_REASONS = 3
_MAY_BE_UNSEEN = frozenset({Meaning.HAZARD, Meaning.ROUNDING})
"""A case that is `not shown` may have one of these. What is intended is known from the edit."""
_NOT_SHOWN = "irdiff could not decide whether it computes the same (`irdiff explain` says why)"


def wrong_outputs(rule: MeaningRule, timings: Sequence[TimedCase]) -> Objection | None:
    """Objects to outputs that a GPU wrote, whatever the code says."""
    return _wrong(timings) if WRONG_OUTPUTS in rule.meanings else None


def objection(rule: MeaningRule, case: Case, timings: Sequence[TimedCase]) -> Objection | None:
    from_code = {meaning for meaning in rule.meanings if isinstance(meaning, Meaning)}
    return worst(
        [
            _wrong(timings) or _not_compared(timings) if WRONG_OUTPUTS in rule.meanings else None,
            _from_code(rule, from_code, case, timings) if from_code else None,
        ]
    )


def _from_code(
    rule: MeaningRule, meanings: set[Meaning], case: Case, timings: Sequence[TimedCase]
) -> Objection | None:
    if case.summary is None:
        return unknown("changed, and the run does not say whether it still computes the same")
    effects = case.summary.effects
    meaning = effects.kind if effects else Meaning.NOT_SHOWN
    equal_on = _bitwise_equal_on(timings)
    if meaning not in meanings:
        is_open = meaning is Meaning.NOT_SHOWN and not meanings.isdisjoint(_MAY_BE_UNSEEN)
        settled = equal_on and rule.equal_outputs_settle
        return unknown(_NOT_SHOWN) if is_open and not settled else None
    words = f"{meaning} ({'; '.join(dict.fromkeys(case.summary.reasons[:_REASONS]))})"
    if equal_on and not rule.equal_outputs_settle:
        words += f"; outputs were bitwise equal on {', '.join(equal_on)}"
    return violated(words, equal_outputs_on=equal_on if rule.equal_outputs_settle else ())


def _bitwise_equal_on(timings: Sequence[TimedCase]) -> tuple[str, ...]:
    """Returns the GPUs that ran both sides, if each of them wrote the same bytes."""
    if not all(timed.bitwise_equal for timed in timings):
        return ()
    return tuple(sorted({timed.device for timed in timings}))


def _wrong(timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        if timed.faulted and timed.same_result is False:
            return violated(timed.fault, is_measured=True)
        if timed.same_result is False:
            words = f"base and head compute different results on {timed.device}: {timed.note}"
            return violated(words, is_measured=True)
    return None


def _not_compared(timings: Sequence[TimedCase]) -> Objection | None:
    if not timings:
        return unknown("changed and not run", needs_gpu=True)
    for timed in timings:
        if timed.faulted:
            return unknown(timed.fault)
        if timed.same_result is None:
            return unknown(f"outputs were not compared on {timed.device}: {timed.reason}")
    return None
