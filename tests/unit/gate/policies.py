"""Policies as a user writes them, each rule and waiver with what it has to have."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from irdiff.gate import policy

TODAY = datetime.date(2026, 1, 2)
REASON = "because the release needs it"


def of(*rules: dict[str, Any], waivers: Sequence[dict[str, Any]] = ()) -> policy.Policy:
    rows = [{"id": f"rule-{n}", "action": "deny", "reason": REASON, **rule} for n, rule in enumerate(rules)]
    return policy.parse({"schema": policy.SCHEMA, "rule": rows, "waiver": list(waivers)}, "test")


def waiver(**changes: Any) -> dict[str, Any]:
    """Of the first rule, until today."""
    known = {"rule": "rule-0", "cases": ["a/*"], "owner": "jane", "reason": REASON, "expires": TODAY}
    return {**known, "issue": "https://github.com/o/n/issues/1", **changes}
