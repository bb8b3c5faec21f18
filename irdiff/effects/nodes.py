"""Nodes of the table of values, and what they are made of. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    """True for parts side by side; the name says how wide all are, if each has not 32 bits."""
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


def reached(numbers: Iterable[int], below: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """Yields numbers and all that are below them, each once. Whoever has seen enough stops."""
    waiting, seen = [*numbers], set[int]()
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            yield number
            waiting += below(number)
