"""Decides which torch tensors no kernel can have written to.

A tensor is out of reach if torch created it after the last launch, only from numbers and from tensors that
are out of reach. A program may read it, because torch computes it in the same way on both sides. Imported
only if torch is there.
"""

from __future__ import annotations

import torch

from .. import storages
from . import torch_storages

_NUMBERS = frozenset(map(type, (True, 1, 1.0, 1j, "", None, ...)))
"""Includes strings. Numpy's numbers are subclasses, and may come from anywhere."""
_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)


def is_out(value):
    if isinstance(value, torch.Tensor):
        origin = torch_storages.origin_of(value)
        return origin is not None and origin.launches_before == storages.launches()
    if isinstance(value, (tuple, list)):
        return all(map(is_out, value))
    if isinstance(value, dict):
        return all(map(is_out, value.values()))
    if isinstance(value, slice):
        return is_out((value.start, value.stop, value.step))
    return type(value) in _NUMBERS or isinstance(value, _OF_TORCH)


def note(arguments, was_out, result):
    """Called when a call of torch has ended. Its tensors become reachable, arguments included, unless the
    arguments were out of reach and no kernel was launched (`was_out`), and the result is only numbers and
    tensors: anything else could be written through.
    """
    if was_out and is_out(result):
        return
    for tensor in tensors_in((arguments, result)):
        origin = torch_storages.origin_of(tensor)
        if origin is not None:
            origin.launches_before = None


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)
