"""Names the storages of tensors by where they come from: inputs of the entry by position, others by their
number among storages of one kind (how it was made, type and shape).

A launch that gets `(y, x)` in place of `(x, y)` passes tensors of the same shapes, so a place among the
arguments of one kernel would not tell them apart. A storage also remembers what it was last filled with
(`zeros`, `empty`), until a launch gets it and may write to it.
"""

from __future__ import annotations

import copy
import ctypes
import itertools
import re
import weakref
from collections import Counter
from typing import NamedTuple

_ATTRIBUTE = "irdiff_origin"
"""An attribute of torch's own storages, whose Python objects live as long as they do."""
FAKE_ADDRESS_BITS = 44
"""Storages of fake tensors lie this far apart."""
_MOST_WORDS = 1 << 16
_WORD_BYTES = ctypes.sizeof(ctypes.c_int64)
_WORDS = ("int64", "uint64")
_OF_WORDS = re.compile(r" as (i|u|int|uint)64 ")
_LEAST_ADDRESS = 1 << 32
"""Allocations lie above it, and most numbers that a launch passes lie below."""
_order = itertools.count()


class Entry:
    """Storages of one entry of LAUNCHES, or of what comes before all of them."""

    def __init__(self, name=""):
        self.name = name
        self.counts: Counter = Counter()
        self.inputs: dict = {}
        """{origin: position}"""
        self.states: dict = {}
        """{origin: what it was filled with last}, where that changed since the entry began"""
        self.addresses: dict = {}
        """{address in no known storage: its origin}"""


_entry = Entry(" before the entry")
_launches = 0
_fakes: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
"""{address: fake storage}"""
_of_torch: weakref.WeakSet = weakref.WeakSet()


class StorageOrigin:
    def __init__(self, kind, fill="", device=""):
        self._entry = _entry
        self._kind = kind + _entry.name
        _entry.counts[self._kind] += 1
        self._number = _entry.counts[self._kind]
        self.order = next(_order)
        """Storages that were made earlier have smaller ones."""
        self._fill = fill
        self.device = device
        """`cpu` where the program made it there and never moved it; empty where that is not known."""
        self._is_copied = False
        self.launches_before: int | None = _launches
        """How many kernels were launched before it was made; None where its content comes from others
        (`torch_reach`).
        """

    def first_copy(self, device):
        """Returns the origin of the first copy on another device: it has this number. None for later ones."""
        if self._is_copied:
            return None
        self._is_copied = True
        same = copy.copy(self)
        same._fill, same.device, same._is_copied = self.state, device, False
        same.launches_before = _launches
        return same

    @property
    def words(self):
        """The number and the total are compared if both sides have the same total (`launch_texts`)."""
        position = _entry.inputs.get(self)
        if position is not None:
            return f"input {position}"
        return f"number {self._number} of {self._entry.counts[self._kind]} {self._kind}"

    @property
    def is_of_words(self):
        return _OF_WORDS.search(self._kind) is not None

    @property
    def state(self):
        """Returns what it was last filled with; empty if unknown."""
        return _entry.states.get(self, self._fill)

    @state.setter
    def state(self, fill):
        _entry.states[self] = fill


class Place(NamedTuple):
    origin: StorageOrigin
    offset_bytes: int
    bytes_left: int = 0
    """To the end of a storage of torch."""


def begin_entry(values):
    """`values` are tensors among the inputs of the entry."""
    global _entry
    _entry = Entry()
    for value in values:
        _entry.inputs.setdefault(place_of(value).origin, len(_entry.inputs) + 1)


def launched():
    """A kernel may write to any existing storage."""
    global _launches
    _launches += 1


def launches():
    """Includes launches of this process's ancestors."""
    return _launches


def add_fake(storage, address):
    """Registers the storage of a fake tensor (`origin`, `size_bytes`) under its address."""
    _fakes[address] = storage


def place_of(tensor):
    """Takes a fake tensor, torch's, or an object that has an address."""
    origin = getattr(getattr(tensor, "storage", None), "origin", None)
    if isinstance(origin, StorageOrigin):
        return Place(origin, tensor.offset * tensor.dtype.itemsize)
    if hasattr(tensor, "untyped_storage"):
        storage = tensor.untyped_storage()
        origin = origin_of_torch(storage) or label(
            storage, tensor, StorageOrigin(f"seen as {_kind_of(tensor)}")
        )
        return Place(origin, tensor.data_ptr() - storage.data_ptr())
    return place_at(tensor.data_ptr()) or Place(_of_address(tensor.data_ptr()), 0)


def place_at(address):
    """Returns None for a number that is no address in a known storage."""
    if address < _LEAST_ADDRESS:
        return None
    base = address >> FAKE_ADDRESS_BITS << FAKE_ADDRESS_BITS
    fake = _fakes.get(base)
    if fake is not None and address - base <= fake.size_bytes:
        return Place(fake.origin, address - base)
    behind = None
    for storage in list(_of_torch):
        start, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        if start <= address < max(end, start + 1):
            return Place(origin_of_torch(storage), address - start, end - address)
        if address == end:  # the allocator puts its own words between two storages
            behind = Place(origin_of_torch(storage), end - start)
    return behind


def held_by(tensor):
    """Returns [(index, `Place`)] of the addresses that a torch tensor holds in words of 8 bytes, for a kernel
    to follow; what is held at an address has the index `3.0`. The tensor has a type of 8 bytes, or is a view
    of a storage that was made of one: others often hold leftovers. Tables longer than `_MOST_WORDS` are not
    followed.
    """
    start = tensor.data_ptr() if hasattr(tensor, "untyped_storage") else 0
    place = place_at(start) if start else None
    is_of_words = str(tensor.dtype).partition(".")[2] in _WORDS
    if place is None or not (is_of_words or place.origin.is_of_words):
        return []
    # a view may leave out words between its own
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    size_bytes = (last + 1) * tensor.itemsize if tensor.numel() else 0
    return list(_addresses(start, min(size_bytes, place.bytes_left), {place.origin}))


def _addresses(start, size_bytes, above):
    """above: origins of the tables that lead here, which are not followed again."""
    words = size_bytes // _WORD_BYTES
    if not 0 < words <= _MOST_WORDS:
        return
    values = memoryview((ctypes.c_int64 * words).from_address(start)).cast("B").cast("q")
    if max(values) < _LEAST_ADDRESS:
        return
    for index, value in enumerate(values):
        place = place_at(value)
        if place is None:
            continue
        yield str(index), place
        if place.origin.is_of_words and place.origin not in above:
            below = _addresses(value, place.bytes_left, {*above, place.origin})
            yield from ((f"{index}.{inner}", held) for inner, held in below)


def _of_address(address):
    """An address in no known storage has no other name."""
    if address not in _entry.addresses:
        _entry.addresses[address] = StorageOrigin("at an address of the program's own")
        _entry.addresses[address].order = address
    return _entry.addresses[address]


def origin_of_torch(storage):
    """Returns None if torch created the storage by itself and nothing has asked for it yet."""
    return vars(storage).get(_ATTRIBUTE)


def label(storage, tensor, origin):
    setattr(storage, _ATTRIBUTE, origin)
    _of_torch.add(storage)
    return origin


def _kind_of(tensor):
    return kind(str(tensor.dtype).rpartition(".")[2], tensor.shape)


def kind(dtype, shape):
    return f"{dtype} [{', '.join(map(str, shape))}]"
