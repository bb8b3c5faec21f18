"""Tells if two accesses may touch the same bytes, so that a barrier or fence must keep them apart. Pure."""

from __future__ import annotations

import functools
import re

from irdiff.effects import order, ways
from irdiff.effects.numbering import Event
from irdiff.effects.values import Values
from irdiff.ir.program import Act

ORDERS = frozenset({Act.SYNC, Act.OPAQUE})
_PREPARES = re.compile(r"mbarrier\.(?:init|inval)|tcgen05\.(?:alloc|relinquish_alloc_permit)")
_GIVES_UP = re.compile(r"tcgen05\.relinquish_alloc_permit")
_PREPARES_OR_TELLS = re.compile(rf"{_PREPARES.pattern}|mbarrier\.arrive|tcgen05\.commit")
_COPIES = re.compile(r"cp\.async\.c[ag]\.shared\.global")


def may_race(values: Values, one: Event, other: Event, fence: str) -> bool:
    """Two that may touch the same bytes, a writer among them.

    A fence of proxies stands between an access of the generic proxy, or an `mbarrier`, and a later one of the
    asynchronous proxy; the other way around a wait is such a fence (PTX ISA, "Async proxy"). A wait of tensor
    memory stands between a load or store of a thread and what writes, reads or tells others (PTX ISA,
    "tcgen05 Memory Consistency Model").
    """
    if ways.GROUPS.match(fence) and not ways.IN_BACKGROUND.match(one.operation.name):
        return False
    if fence.startswith("tcgen05.wait"):
        is_own = _word(one) == f"tcgen05.{fence.removeprefix('tcgen05.wait::')[:2]}"
        if is_own and other.operation.name.startswith("mbarrier.arrive"):
            return True
        if other.effect.act in ORDERS:
            return False
        is_apart = not is_own or order.are_apart(values, one, other)
        is_init = False
    elif "proxy" in fence:
        is_apart = _is_asynchronous(one) or not _is_asynchronous(other) or _is_tensor_memory(one)
        is_init = one.operation.name.startswith("mbarrier.init")
    else:  # what ends with an `mbarrier` is waited for there
        is_apart = other.effect.act in ORDERS or _are_of_one_warp(values, one, other)
        is_apart, is_init = is_apart or ways.SIGNALS.match(one.operation.name) is not None, False
    if is_apart or (one.effect.act in ORDERS and not is_init):
        return False
    acts = one.effect.act, other.effect.act
    only_read = Act.LOAD in acts and {*acts} <= {
        Act.LOAD,
        Act.MATRIX,
    }  # a matrix unit only reads shared memory
    if only_read or (acts == (Act.MATRIX, Act.MATRIX) and _word(one) == _word(other)):
        return False
    return bool(_spaces(one) & _spaces(other)) and not order.never_meet(values, one, other)


def have_no_part(values: Values, one: Event, other: Event) -> bool:
    """Tells whether nothing passes between an access and a synchronization.

    What prepares an `mbarrier` or tensor memory only touches what it names. What tells an `mbarrier` tells of
    what is before it: whoever hears of it may come before or after an access behind it. A block that gives up
    its right to allocate tensor memory only does not allocate any more.
    """
    for giving, left in ((one, other), (other, one)):
        if _GIVES_UP.match(giving.operation.name):
            return left.effect.act is not Act.OPAQUE and "alloc" not in left.operation.name
    if _PREPARES_OR_TELLS.match(one.operation.name) and _is_plain(other):
        sync, access = one, other
    elif _PREPARES.match(other.operation.name) and _is_plain(one):
        sync, access = other, one
    else:
        return False
    if _is_tensor_memory(access):  # whoever is told where it was allocated has waited for that
        return "alloc" not in sync.operation.name or _is_address_loaded(values, access)
    is_elsewhere = access.effect.space == "global" or not sync.effect.address
    return is_elsewhere or order.never_meet(values, sync, access)


def _is_address_loaded(values: Values, event: Event) -> bool:
    atoms = (atom for each in event.address for atom, _ in values.linear(32, each)[1])
    return any(values.keys[atom][0] in ("event", "part") for atom in atoms)


def _is_plain(event: Event) -> bool:
    is_access = event.effect.act in (Act.LOAD, Act.STORE) or _is_copy(event.operation.name)
    return (is_access and not event.operation.keeps_order) or _is_tensor_memory(event)


def _is_tensor_memory(event: Event) -> bool:
    return _spaces(event) == {"tensor"}


def touches_tensor_memory(event: Event) -> bool:
    return "tensor" in _spaces(event)


@functools.cache
def _is_copy(name: str) -> bool:
    return _COPIES.match(name) is not None


def overlap(values: Values, one: Event, other: Event) -> bool:
    """True if accesses that may race share a symbol, or have addresses in one buffer a constant apart."""
    ours, theirs = order.extent(values, one), order.extent(values, other)
    if ours and theirs and ours.symbol == theirs.symbol:
        return True
    own = [
        (each.address[:-1], values.linear(32, each.address[-1])[1]) for each in (one, other) if each.address
    ]
    return len(own) == 2 and own[0] == own[1] and share_a_buffer(values, one, other)


def share_a_buffer(values: Values, one: Event, other: Event) -> bool:
    """True if two accesses of global memory begin at one pointer, and for all others: they are not told
    apart.
    """
    if "global" not in _spaces(one) & _spaces(other):
        return True
    pointers = [
        {
            *event.address[:-1],
            *(atom for atom, times in values.linear(64, event.address[-1])[1] if times == 1),
        }
        if event.address
        else set[int]()
        for event in (one, other)
    ]
    return bool(pointers[0] & pointers[1])


def _is_asynchronous(event: Event) -> bool:
    """True if the asynchronous proxy makes an access of shared memory."""
    name = event.operation.name
    is_matrix = event.effect.act is Act.MATRIX and "shared" in _spaces(event)
    return is_matrix or (event.effect.act is Act.COPY and "bulk" in name)


def _are_of_one_warp(values: Values, one: Event, other: Event) -> bool:
    """A warp reaches only its 32 lanes of tensor memory; of two that share lanes, addresses differ."""
    if not {_word(one), _word(other)} <= {"tcgen05.ld", "tcgen05.st"}:
        return False
    forms = [values.linear(32, each.address[-1])[1] for each in (one, other) if each.address]
    return len(forms) == 2 and forms[0] == forms[1]


def _word(event: Event) -> str:
    return _first_words(event.operation.name)


@functools.cache
def _first_words(name: str) -> str:
    return ".".join(name.split(".")[:2])


def _spaces(event: Event) -> set[str]:
    """A copy has shared memory at one end; `tcgen05` works on tensor memory, `mma` and `cp` on both."""
    if not (word := _word(event)).startswith("tcgen05."):
        return {event.effect.space or "shared"}
    return {"tensor"} if word in ("tcgen05.ld", "tcgen05.st", "tcgen05.shift") else {"tensor", "shared"}
