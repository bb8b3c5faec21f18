"""Nodes of the table of values: what one is made of, and what it gives for values of these. Pure."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

Key = tuple[Any, ...]
WITH_WIDTH = frozenset(
    {"mul", "shl", "shr", "sar", "and", "or", "xor", "trunc", "sext", "eq", "lt", "sfield", "zfield"}
)
"""Nodes whose first part is a width."""


def ones(width: int) -> int:
    return (1 << width) - 1


def signed(value: int, width: int) -> int:
    """Reads a number of `width` bits as a signed one."""
    return value - (value >> width - 1 << width)


def is_pack(key: Key) -> bool:
    """Whether it is made of parts side by side; the name says how wide all are, if each has not 32 bits."""
    return bool(key[0].partition(" ")[0] == "pack")


def used_bits(places: int, mask: int) -> int:
    """The bits of a term's atom that are left under its mask once it is shifted."""
    return mask << -places if places < 0 else mask >> places


def operands_of(key: Key) -> list[int]:
    """The numbers of the values that a node is made of."""
    match key:
        case (("const" | "text" | "parameter" | "undefined" | "join"), *_):
            return []
        case "bits", _, terms:
            return [atom for (atom, _), _ in terms]
        case "sum", _, _, terms:
            return [atom for atom, _ in terms]
        case ("part", value, _, _) | ("not", value) | ("trunc", _, value) | ("sext", _, _, value):
            return [value]
        case "put", value, _, part:
            return [value, part]
        case name, _, *parts if name in WITH_WIDTH:
            return [*parts]
    return [each for each in key[1:] if isinstance(each, int)]


def evaluate(key: Key, values: Sequence[int]) -> int:
    """What a node gives for values of its operands."""
    match key:
        case "bits", constant, terms:
            result = int(constant)
            for value, ((_, places), mask) in zip(values, terms, strict=True):
                result ^= (value << places if places >= 0 else value >> -places) & mask
            return result
        case "sum", width, constant, terms:
            times = (factor for _, factor in terms)
            return int(constant + sum(map(operator.mul, values, times))) & ones(width)
        case "lt", kind, *_:
            width = int(kind[1:])
            sign = 1 << width - 1 if kind[0] == "s" else 0
            return int((values[0] & ones(width) ^ sign) < (values[1] & ones(width) ^ sign))
        case "eq", width, *_:
            return int(not (values[0] ^ values[1]) & ones(width))
        case "not", _:
            return 1 - values[0]
    result = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[key[0]](*values)
    return int(result)
