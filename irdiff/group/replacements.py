"""Which of the operations that became fewer stand for which that became more. Pure.

`-1 arith.divf` and `+1 tt.approx_divf` are one change: a division is done in another way. Two operations are
such a pair where the name of one is in the name of the other, where they differ only in how many lanes they
take, or where they do the same kind of thing. In the last case, and for a call, their counts must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from irdiff.group import operation_names
from irdiff.model import Cause, CauseKind

_CODE = re.compile(r"`([^`]*)`")
_LANES = re.compile(r"\bv\d+(?=b?[fi]\d+\b)|\.v\d+\b|(?<=x)\d+$")
_TYPES = re.compile(r"(?:\.(?:v\d+)?(?:b?[fiu]\d+|b\d+))+$")
_KINDS = (
    re.compile(r"\bst\.|\bstore\b|_store_|ds_write"),
    re.compile(r"\bld\.|\bload\b|_load_|ds_read"),
    re.compile(r"barrier|\bbar\."),
    re.compile(r"fence|membar"),
    re.compile(r"mma|mfma|\bdot"),
    re.compile(r"expand_dims|reshape|broadcast|splat|tt\.trans|split|join"),
    re.compile(r"\bcvt|conver(?:t|sion)|fptrunc|fpext"),
)
_LEAST_NAME = 3


def joined(numbers: Sequence[Cause], hidden: Sequence[Cause]) -> list[Cause]:
    """The numbers, each pair as one replacement. `hidden` are operations that have no cause of their own."""
    fewer = sorted((row for row in numbers if row.count < 0), key=lambda row: row.subject)
    more = sorted((row for row in numbers if row.count > 0), key=lambda row: row.subject)
    found: list[Cause] = []
    for row in fewer:
        other = next(_partners(row, more), None)
        if other:
            more.remove(other)
        elif row.subject.startswith("call of "):
            other = next(_partners(row, [each for each in hidden if each.count > 0]), None)
        found.append(_replaced(row, other) if other else row)
    return [*found, *more]


def _partners(fewer: Cause, more: Sequence[Cause]) -> Iterator[Cause]:
    """The possible pairs, the likeliest first."""
    ours = _name(fewer)
    yield from (row for row in more if _LANES.sub("", _name(row)) == _LANES.sub("", ours))
    equal = [row for row in more if row.count == -fewer.count]
    yield from (row for row in equal if _has(ours, _name(row)) or _has(_name(row), ours))
    yield from (row for row in equal if any(k.search(ours) and k.search(_name(row)) for k in _KINDS))


def _has(name: str, other: str) -> bool:
    """Whether the last word of one operation's name is in the other's: `mul` in `__nv_umulhi`."""
    word = re.split(r"\.|__\w{2,4}_", _TYPES.sub("", other))[-1]
    return len(word) >= _LEAST_NAME and word in name


def _name(row: Cause) -> str:
    found = _CODE.search(row.subject)
    return found.group(1) if found else row.subject


def _replaced(fewer: Cause, more: Cause) -> Cause:
    ours = operation_names.plural(fewer.subject, 2)
    number = "" if more.count == -fewer.count else f"{-fewer.count} → {more.count}"
    return replace(
        more,
        kind=CauseKind.REPLACED,
        subject=f"{ours} → {more.subject}",
        count=-fewer.count,
        in_loops=fewer.in_loops,
        ahead="",
        detail=number,
    )
