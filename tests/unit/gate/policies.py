"""Policies and acceptances as a user writes them, each with what it has to have; and one timing of one case."""

import datetime
from dataclasses import replace

from irdiff.gate import acceptance, policy
from irdiff.gate.timings import TimedCase
from irdiff.timing.results import Speed

TODAY = datetime.date(2026, 1, 2)
REASON = "because the release needs it"
CASE = "a/x:1@sm_90"


def of(*rules):
    rows = [{"id": f"rule-{n}", "action": "deny", "reason": REASON, **rule} for n, rule in enumerate(rules)]
    return policy.parse({"schema": policy.SCHEMA, "rule": rows}, "test")


def accepted(**changes):
    """An entry of the first rule for some cases, until today."""
    entry = {
        "rule": "rule-0",
        "cases": ["a/*"],
        "owner": "jane",
        "reason": REASON,
        "expires": TODAY,
        "on": TODAY,
    }
    entry |= {"issue": "https://github.com/o/n/issues/1", **changes}
    return acceptance.parse({"schema": acceptance.SCHEMA, "accepted": [entry]}, "test")


def timed(low, high, speed=Speed.SAME, **changes):
    """A measurement of `CASE`, in percent; None where it could not be measured."""
    middle = None if low is None or high is None else (low + high) / 2
    known = TimedCase(
        case=CASE, device="H200", slower_percent=middle, low_percent=low, high_percent=high, noise_percent=0.2,
        speed=speed, enough=True, few_processes=False, faulted=False, same_result=True, bitwise_equal=False,
        note="",
    )  # fmt: skip
    return replace(known, **changes)
