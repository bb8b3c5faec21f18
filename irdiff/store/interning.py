"""Equal values that are held once: 40,000 cases have a few hundred sets of options, facts and findings."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 200_000
_held: dict[Hashable, Any] = {}


def interned(value: T) -> T:
    """The value, or an equal one that is held already: tens of thousands of launches have a few hundred sets
    of options. It must not be changed afterwards.

    Values are compared as they are written: True, 1 and 1.0 are equal, and are not the same argument.
    """
    if type(value) is str:  # exactly: an enum's member is a str as well, and is not interned
        return sys.intern(value)  # type: ignore[call-overload,no-any-return]  # T is str here
    return interned_as(hashlib.sha256(repr(value).encode()).digest(), value)


def interned_as(key: Hashable, value: T) -> T:
    """As `interned`, with a key that is quicker to make than the text of the value."""
    if len(_held) >= _MOST:  # of a process that serves many runs
        _held.clear()
    known: T = _held.setdefault(key, value)
    return known


def read_once(kind: str, text: str, read: Callable[[str], T]) -> T:
    """What a function without effects reads in a text of a kind: the same object for the same text, which
    must not be changed.
    """
    key = hashlib.sha256(f"{kind} {text}".encode()).digest()
    known: T | None = _held.get(key)
    return interned_as(key, read(text)) if known is None else known
