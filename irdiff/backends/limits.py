"""Arithmetic of limits that the rules for occupancy share."""

from __future__ import annotations

from collections.abc import Mapping


def rounded(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit


def least(most: Mapping[str, int]) -> tuple[int, str]:
    """The number of blocks, and the first of the resources that allow no more."""
    limit = min(most, key=most.__getitem__)
    return most[limit], limit
