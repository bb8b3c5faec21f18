"""Real tensors for captured arguments: the same values for the same row and seed, on any machine.

`materialize` takes a row with `dtype`, `shape`, `strides`, `storage_offset` (both in elements) and `fill`
(see `corpus_api.tensor`). Values are drawn for the whole storage, so views that share one agree.
"""

from __future__ import annotations

import zlib

from . import corpus_api

# Random values are made in blocks, so that a large float64 copy never exists.
_BLOCK = 1 << 24
_SPARE_BYTES = 256


def materialize(torch, row, seed=0, device="cuda", storage=None):
    """A tensor as the row says. `storage`: a flat tensor, from `storage_of`, that several rows share."""
    if storage is None:
        storage = storage_of(torch, row, extent(row), seed, device)
    return torch.as_strided(storage, tuple(row["shape"]), tuple(row["strides"]), row["storage_offset"] or 0)


def extent(row):
    """Elements that the storage must have for this view of it."""
    if 0 in tuple(row["shape"]):
        return row["storage_offset"] or 0
    return (row["storage_offset"] or 0) + 1 + sum((n - 1) * s for n, s in zip(row["shape"], row["strides"]))


def storage_of(torch, row, elements, seed=0, device="cuda"):
    """A flat tensor of `elements`, filled as the row says; aligned to 256 bytes by torch's allocator."""
    dtype = getattr(torch, corpus_api.DType(row["dtype"]).torch_name)
    flat = torch.empty(elements + _SPARE_BYTES, dtype=dtype, device=device)[:elements]
    kind, _, rest = (row["fill"] or "normal").partition(":")
    if kind not in _FILLS:
        raise ValueError(f"unknown fill {row['fill']!r}: one of {', '.join(_FILLS)}")
    generator = torch.Generator(device=device)
    generator.manual_seed(zlib.crc32(repr((seed, row["dtype"], list(row["shape"]), row["fill"])).encode()))
    fill = _FILLS[kind]
    parameters = rest.split(",") if kind == "values" else [float(word) for word in rest.split(":") if word]
    for begin in range(0, elements, _BLOCK):
        part = flat[begin : begin + _BLOCK]
        part.copy_(fill(torch, begin, part.numel(), elements, parameters, generator, device, dtype))
    return flat


def _normal(torch, begin, count, total, parameters, generator, device, dtype):
    if not dtype.is_floating_point:  # quantized data: every bit pattern
        info = torch.iinfo(dtype) if dtype != torch.bool else None
        low, high = (info.min, info.max) if info else (0, 1)
        return torch.randint(
            max(low, -(1 << 31)), min(high, 1 << 31) + 1, (count,), generator=generator, device=device
        )
    scale = parameters[0] if parameters else 1.0
    return torch.randn(count, generator=generator, device=device) * scale


def _uniform(torch, begin, count, total, parameters, generator, device, dtype):
    low, high = parameters or (0.0, 1.0)
    return torch.rand(count, generator=generator, device=device) * (high - low) + low


def _randint(torch, begin, count, total, parameters, generator, device, dtype):
    low, high = (int(bound) for bound in parameters)
    return torch.randint(low, high, (count,), generator=generator, device=device)


def _constant(torch, begin, count, total, parameters, generator, device, dtype):
    return torch.full((count,), parameters[0], device=device)


def _zeros(torch, begin, count, total, parameters, generator, device, dtype):
    return torch.zeros(count, device=device)


def _ones(torch, begin, count, total, parameters, generator, device, dtype):
    return torch.ones(count, device=device)


def _empty(torch, begin, count, total, parameters, generator, device, dtype):
    # What a kernel must write whole: zeros, so that what it forgets does not depend on the machine.
    return torch.zeros(count, device=device)


def _arange(torch, begin, count, total, parameters, generator, device, dtype):
    return torch.arange(begin, begin + count, device=device)


def _perm(torch, begin, count, total, parameters, generator, device, dtype):
    if total > _BLOCK:
        raise ValueError(f"perm of {total} elements: at most {_BLOCK}")
    return torch.randperm(total, generator=generator, device=device)


def _values(torch, begin, count, total, parameters, generator, device, dtype):
    number = float if dtype.is_floating_point else int
    return torch.tensor([number(word) for word in parameters[begin : begin + count]], device=device)


_FILLS = {
    "normal": _normal,
    "uniform": _uniform,
    "randint": _randint,
    "const": _constant,
    "zeros": _zeros,
    "ones": _ones,
    "empty": _empty,
    "arange": _arange,
    "perm": _perm,
    "values": _values,
}
