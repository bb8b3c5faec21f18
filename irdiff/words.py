"""Counts and lists as every message and report says them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """`1 case`, `3 cases`, `2 launches`."""
    ending = "" if count == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{count} {noun}{ending}"


def repeats_counted(texts: Iterable[str]) -> list[str]:
    """Each text once, in the order of its first appearance; one that repeats ends in `(at 3 places)`."""
    return [f"{text} (at {count} places)" if count > 1 else text for text, count in Counter(texts).items()]


def first_few(names: Sequence[str], shown: int) -> str:
    """`a, b and 3 more`."""
    few = ", ".join(names[:shown])
    return f"{few} and {len(names) - shown} more" if len(names) > shown else few


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters, cut between two words where there are any."""
    if len(text) <= limit:
        return text
    whole = text[:limit].rpartition(" ")[0]
    return f"{whole if len(whole) > limit // 2 else text[: limit - 1]}…"
