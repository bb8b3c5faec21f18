"""Remembers what an access of a warp costs, by the pattern of its addresses.

The lines that addresses touch, and the banks that they meet in, stay the same when all addresses move by
whole lines. So accesses that differ by that have one cost, which is computed once for a launch: most of its
warps and iterations repeat a few patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

_FAR = np.int64(1) << 62
_MOST = 1 << 16
_MOST_OF_ALL = 512
Cost = Callable[[Any, Any], Any]
"""(addresses, active lanes), both (n, lanes) → n costs."""


class AccessPatterns:
    def __init__(self) -> None:
        self._costs: dict[tuple[Hashable, bytes], int] = {}
        self._of_all: dict[tuple[Hashable, bytes], Any] = {}
        """The same for all warps at once: most accesses repeat as a whole."""

    def cost(self, kind: Hashable, function: Cost, addresses: Any, active: Any, line_bytes: int) -> Any:
        """`function` of each warp; it is the same for all accesses of one `kind`. An array (warps,)."""
        moved = np.where(active, addresses - (addresses[:, :1] & -line_bytes), _FAR)
        key = kind, moved.tobytes()
        costs = self._of_all.get(key)
        if costs is None:
            if len(self._of_all) >= _MOST_OF_ALL:
                self._of_all.clear()
            costs = self._of_all[key] = self._computed(kind, function, moved)
        return costs

    def _computed(self, kind: Hashable, function: Cost, moved: Any) -> Any:
        if len(self._costs) > _MOST:
            self._costs.clear()
        if (moved == moved[:1]).all():
            return np.full(len(moved), self._of_warps(kind, function, moved[:1])[0])
        return np.array(self._of_warps(kind, function, moved))

    def _of_warps(self, kind: Hashable, function: Cost, moved: Any) -> list[int]:
        content, size = moved.tobytes(), moved.shape[1] * moved.itemsize
        keys = [(kind, content[n : n + size]) for n in range(0, len(content), size)]
        new = {key: n for n, key in enumerate(keys) if key not in self._costs}
        if new:
            moved_once = moved[list(new.values())]
            self._costs.update(zip(new, function(moved_once, moved_once != _FAR).tolist(), strict=True))
        return [self._costs[key] for key in keys]
