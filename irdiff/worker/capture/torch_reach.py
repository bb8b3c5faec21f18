"""Which tensors of torch are out of the reach of kernels, though some were launched.

A kernel may write to any storage that is there when it is launched. So a tensor is out of reach if torch made
it after the last launch, from numbers and from tensors that are out of reach, and from nothing else: torch
computes it on both sides alike, and a program may read it.

Imported where torch is there.
"""

from __future__ import annotations

import torch

from .. import storages

_NUMBERS = frozenset(map(type, (True, 1, 1.0, 1j, "", None, ...)))
"""And words. Those of numpy are classes below them, and may come from anywhere."""
_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def is_out(value):
    """Whether a value holds nothing but numbers and tensors that are out of reach."""
    if isinstance(value, torch.Tensor):
        origin = _origin_of(value)
        return origin is not None and origin.launches_before == storages.launches()
    if isinstance(value, (tuple, list)):
        return all(map(is_out, value))
    if isinstance(value, dict):
        return all(map(is_out, value.values()))
    if isinstance(value, slice):
        return is_out((value.start, value.stop, value.step))
    return type(value) in _NUMBERS or isinstance(value, _OF_TORCH)


def note(given, was_out, result):
    """A call of torch has ended. All of its tensors are in reach from now on, those that it was given, too,
    unless it was given what is out of reach, launched no kernel (`was_out`), and made numbers and tensors
    alone: of anything else nobody knows what is written through it.
    """
    if was_out and is_out(result):
        return
    for tensor in _tensors_in((given, result)):
        origin = _origin_of(tensor)
        if origin is not None:
            origin.launches_before = None


def _tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors_in(item)


def _origin_of(tensor):
    """None where torch made its storage by itself, or where it has none of its own."""
    try:
        return storages.origin_of_torch(tensor.untyped_storage())
    except (NotImplementedError, RuntimeError):
        return None
