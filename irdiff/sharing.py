"""What is equal is held once: tens of thousands of launches have a few hundred sets of options."""

from __future__ import annotations

import hashlib
import sys
from typing import Any, TypeVar

T = TypeVar("T")
_MOST = 200_000
_known: dict[bytes, Any] = {}


def shared(value: T) -> T:
    """The value, or an equal one that is held already. It must not be changed afterwards.

    Values are told apart by how they are written: True, 1 and 1.0 are equal, and are not the same argument.
    """
    if type(value) is str:
        return sys.intern(value)  # type: ignore[call-overload,no-any-return]  # T is str here
    if len(_known) >= _MOST:  # of a process that serves many runs
        _known.clear()
    known: T = _known.setdefault(hashlib.sha256(repr(value).encode()).digest(), value)
    return known
