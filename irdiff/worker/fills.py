"""Fills real tensors for captured arguments: the same argument and seed give the same values on any machine.

Values are drawn for the whole storage, so views that share one agree.
"""

from __future__ import annotations

import zlib

from . import corpus_api

# Random values are made in blocks, so that a large float64 copy never exists.
_BLOCK = 1 << 24
_SPARE_BYTES = 256


def materialize(torch, argument, seed=0, device="cuda", storage=None):
    """argument: has `dtype`, `shape`, `strides`, `storage_offset` (both in elements) and `fill` (see
    `corpus_api.tensor`). storage: a flat tensor, from `storage_of`, that several arguments share.
    """
    if storage is None:
        storage = storage_of(torch, argument, extent(argument), seed, device)
    return torch.as_strided(
        storage, tuple(argument["shape"]), tuple(argument["strides"]), argument["storage_offset"] or 0
    )


def extent(argument):
    """Returns how many elements the storage must have for this view of it."""
    if 0 in tuple(argument["shape"]):
        return argument["storage_offset"] or 0
    return (
        (argument["storage_offset"] or 0)
        + 1
        + sum((n - 1) * s for n, s in zip(argument["shape"], argument["strides"]))
    )


def storage_of(torch, argument, elements, seed=0, device="cuda"):
    """Returns a flat tensor; torch's allocator aligns it to 256 bytes."""
    dtype = getattr(torch, corpus_api.DType(argument["dtype"]).torch_name)
    flat = torch.empty(elements + _SPARE_BYTES, dtype=dtype, device=device)[:elements]
    kind, _, rest = (argument["fill"] or "normal").partition(":")
    if kind not in KINDS:
        raise ValueError(f"unknown fill {argument['fill']!r}: one of {', '.join(KINDS)}")
    generator = torch.Generator(device=device)
    generator.manual_seed(
        zlib.crc32(repr((seed, argument["dtype"], list(argument["shape"]), argument["fill"])).encode())
    )
    parameters = rest.split(",") if kind == "values" else [float(word) for word in rest.split(":") if word]
    for begin in range(0, elements, _BLOCK):
        part = flat[begin : begin + _BLOCK]
        words = {"generator": generator, "device": device}
        part.copy_(_values(torch, kind, parameters, begin, part.numel(), elements, dtype, words))
    return flat


KINDS = (
    "normal", "uniform", "randint", "const", "zeros", "ones", "empty", "arange", "perm", "values",
)  # fmt: skip


def _values(torch, kind, parameters, begin, count, total, dtype, words):
    """Returns `count` values from `begin` on. words: torch's generator and device."""
    device = words["device"]
    if kind == "normal" and dtype.is_floating_point:
        return torch.randn(count, **words) * (parameters[0] if parameters else 1.0)
    if kind == "normal":  # quantized data: every bit pattern
        info = torch.iinfo(dtype) if dtype != torch.bool else None
        low, high = (info.min, info.max) if info else (0, 1)
        return torch.randint(max(low, -(1 << 31)), min(high, 1 << 31) + 1, (count,), **words)
    if kind == "uniform":
        low, high = parameters or (0.0, 1.0)
        return torch.rand(count, **words) * (high - low) + low
    if kind == "randint":
        low, high = (int(bound) for bound in parameters)
        return torch.randint(low, high, (count,), **words)
    if kind == "arange":
        return torch.arange(begin, begin + count, device=device)
    if kind == "perm":
        if total > _BLOCK:
            raise ValueError(f"perm of {total} elements: at most {_BLOCK}")
        return torch.randperm(total, **words)
    if kind == "values":
        number = float if dtype.is_floating_point else int
        return torch.tensor([number(word) for word in parameters[begin : begin + count]], device=device)
    # `empty` is what a kernel must write whole: what it forgets must not depend on the machine
    constant = {"zeros": 0.0, "empty": 0.0, "ones": 1.0}.get(kind)
    return torch.full((count,), parameters[0] if constant is None else constant, device=device)
