"""Do two buffers hold the same result: bitwise, else by units in the last place and relative norm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from irdiff.timing.buffers import Storage, torch_dtype

_CHUNK_ELEMENTS = 1 << 25
_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
DEFAULT_TOLERANCE = (1e-2, 1e-2)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How head's buffer differs from base's."""

    argument: str
    elements: int
    """That differ."""
    max_ulp: int | None
    """Distance in representable values; None for integers."""
    relative_norm: float
    """‖head - base‖ / ‖base‖, over elements that are finite on both sides."""
    within: bool
    """|head - base| <= atol + rtol x |base| everywhere, and the same infinities and NaNs."""


def difference(
    torch: Any, storage: Storage, base: Any, head: Any, tolerance: tuple[float, float] | None
) -> Difference | None:
    """None where the bytes are the same. `base` and `head`: byte tensors of the storage."""
    if torch.equal(base, head):
        return None
    dtype = torch_dtype(torch, storage.dtype)
    relative, absolute = tolerance or DEFAULT_TOLERANCE
    ours, theirs = base.view(dtype), head.view(dtype)
    count, ulp, square, scale, within = 0, 0, 0.0, 0.0, True
    floating = dtype.is_floating_point
    for begin in range(0, storage.elements, _CHUNK_ELEMENTS):
        a, b = ours[begin : begin + _CHUNK_ELEMENTS], theirs[begin : begin + _CHUNK_ELEMENTS]
        x, y = a.to(torch.float64), b.to(torch.float64)
        finite = torch.isfinite(x) & torch.isfinite(y)
        gap = torch.where(finite, (y - x).abs(), 0.0)
        same_special = (x == y) | (x.isnan() & y.isnan())
        close = torch.where(finite, gap <= absolute + relative * x.abs(), same_special)
        within = within and bool(close.all())
        count += int((~same_special).sum())
        square += float((gap * gap).sum())
        scale += float(torch.where(finite, x * x, 0.0).sum())
        if floating:
            steps = (_ordered(torch, b, storage) - _ordered(torch, a, storage)).abs()
            ulp = max(ulp, int(torch.where(finite, steps, 0).max()))
    norm = math.sqrt(square / scale) if scale else (math.inf if square else 0.0)
    return Difference(
        argument=storage.name,
        elements=count,
        max_ulp=ulp if floating else None,
        relative_norm=norm,
        within=within,
    )


def _ordered(torch: Any, values: Any, storage: Storage) -> Any:
    """Floats as integers in the same order, one step a representable value (sign-magnitude unfolded)."""
    size = storage.item_bytes
    bits = values.view(getattr(torch, _INTEGERS[size])).to(torch.int64)
    least = -(1 << (8 * size - 1))
    return torch.where(bits < 0, least - bits, bits)
