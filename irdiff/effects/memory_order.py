"""Tells how much an access, a fence or an atomic operation orders other accesses: its memory order and scope.
Pure.

Acquire and release do not replace each other. An operation that names no scope has the default scope of its
instruction (`_scope`). Sources: PTX ISA, "Memory Consistency Model"; LLVM LangRef, "Atomic Memory
Ordering Constraints".
"""

from __future__ import annotations

import itertools
import re

from irdiff.effects.numbering import Event
from irdiff.ir.program import Act

_ORDERS = {
    "relaxed": 0, "monotonic": 0, "unordered": 0, "acquire": 1, "release": 2, "acq_rel": 3, "sc": 7,
    "seq_cst": 7,
}  # fmt: skip
"""The promises of each, by bits: one that lacks a bit of another orders less."""
_SCOPES = (("singlethread",), ("wavefront",), ("cta", "workgroup"), ("cluster",), ("gpu", "agent"), ("sys",))
_FENCES = re.compile(r"fence\.")
_RELEASES = re.compile(r"(?:mbarrier|barrier\.cluster)\.arrive")
_ACQUIRES = re.compile(r"(?:mbarrier\.(?:try|test)|barrier\.cluster\.)_?wait")
_NAMES = re.compile(rf"\b(?:{'|'.join((*_ORDERS, *itertools.chain(*_SCOPES), 'syncscope'))})\b|[. \"()]+")


def unordered(name: str) -> str:
    """One text for operations that differ in order and scope alone."""
    return _NAMES.sub("", name)


def is_comparable(one: Event, other: Event) -> bool:
    """True if both name as many orders: a `cmpxchg` has two."""
    return len(_orders(one)) == len(_orders(other))


def is_less(one: Event, other: Event) -> bool:
    """True if the second has a smaller scope, or lacks a promise of the first."""
    orders = zip(_orders(one), _orders(other), strict=False)
    return _scope(other) < _scope(one) or any(before & ~after for before, after in orders)


def is_equal(one: Event, other: Event) -> bool:
    return _scope(one) == _scope(other) and _orders(one) == _orders(other)


def _parts(event: Event) -> list[str]:
    return re.split(r"[. \"(),]", event.operation.word)


def _orders(event: Event) -> list[int]:
    """A fence of PTX that names none is `acq_rel`, arriving at a barrier in memory or of a cluster is a
    release, waiting there an acquire, and any other access is relaxed.
    """
    named = [_ORDERS[each] for each in _parts(event) if each in _ORDERS]
    if named:
        return named
    word = event.operation.word
    orders = (("acq_rel", _FENCES), ("release", _RELEASES), ("acquire", _ACQUIRES))
    return [next((_ORDERS[name] for name, pattern in orders if pattern.match(word)), 0)]


def _scope(event: Event) -> int:
    """An atomic of PTX that names none has the GPU's, an `mbarrier` the block's, one of LLVM IR all; a plain
    access has none.
    """
    parts, act = _parts(event), event.effect.act
    named = [n for n, names in enumerate(_SCOPES) if not {*names}.isdisjoint(parts)]
    if not named and " " in event.operation.word:
        return len(_SCOPES) if act in (Act.SYNC, Act.ATOMIC) else -1
    default = "gpu" if act is Act.ATOMIC else "cta" if event.operation.word.startswith("mbarrier") else ""
    return max(named, default=next((n for n, names in enumerate(_SCOPES) if default in names), -1))
