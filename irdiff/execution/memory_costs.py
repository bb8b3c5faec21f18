"""Costs of memory accesses on every machine, and the contents that a launch fixes.

What one warp instruction costs is counted for each program, in the columns of `CostTally`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irdiff.execution import coalescing
from irdiff.execution.launch_facts import KnownContent
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.state import UNKNOWN, Array, LaneState, Value, both, spread

COLUMNS = (
    "executed", "lanes", "taken", "requests", "least_sectors", "bytes", "sectors", "unknown_requests",
    "wavefronts", "least_wavefronts", "unknown_wavefronts", "local_sectors", "tma_bytes", "local_requests",
    "matrix_operations",
)  # fmt: skip


@dataclass
class CostTally:
    """Certain counts, and possible ones beyond; each (columns, instructions, programs)."""

    instructions: int
    programs: int
    both: Array = field(init=False)
    """(2, columns, instructions, programs): `sure`, then `beyond`."""
    sure: Array = field(init=False)
    beyond: Array = field(init=False)
    is_sure: bool = True
    """True if every count is certain."""
    shapes: dict[int, str] = field(default_factory=dict)
    """Place of a matrix instruction whose registers name its shape → that, or `` where it names several."""

    def __post_init__(self) -> None:
        self.both = np.zeros((2, len(COLUMNS), self.instructions, self.programs), dtype=np.int64)
        self.sure, self.beyond = self.both

    def add(self, column: int, place: int, amount: Array, sure: bool) -> None:
        self.table(sure)[column, place] += amount

    def table(self, sure: bool) -> Array:
        if sure:
            return self.sure
        self.is_sure = False
        return self.beyond

    @property
    def is_alike(self) -> bool:
        """True if all programs cost the same."""
        return bool((self.both == self.both[..., :1]).all())

    def copied(self, places: slice) -> tuple[Array, Array | None]:
        """Counts of some instructions; None for the possible ones if there are none."""
        return self.sure[:, places].copy(), None if self.is_sure else self.beyond[:, places].copy()

    def put_back(self, places: slice, kept: tuple[Array, Array | None]) -> None:
        sure, beyond = kept
        self.sure[:, places] = sure
        self.beyond[:, places] = 0 if beyond is None else beyond


(
    EXECUTED,
    LANES,
    TAKEN,
    REQUESTS,
    LEAST,
    BYTES,
    SECTORS,
    UNKNOWN_REQUESTS,
    WAVEFRONTS,
    LEAST_WAVES,
    UNKNOWN_WAVES,
    LOCAL_SECTORS,
    TMA,
    LOCAL_REQUESTS,
    MATRIX,
) = range(len(COLUMNS))


@dataclass(frozen=True, slots=True)
class Access:
    """A memory access in an iteration of a loop: its addresses, for the check that iterations repeat."""

    place: int
    addresses: Array | None
    active: Array | None
    width: int
    space: str


@dataclass
class LaneFigures:
    """How many lanes of each warp a mask has: most accesses in a row have one mask."""

    mask: Array | None = None
    counts: Array | None = None
    per_width: dict[int, Array] = field(default_factory=dict)

    def of(self, lanes: Array) -> Array:
        if self.mask is not lanes or self.counts is None:
            self.mask, self.counts, self.per_width = lanes, np.count_nonzero(lanes, axis=1), {}
        return self.counts


@dataclass(kw_only=True)
class MemoryCosts:
    state: LaneState
    tally: CostTally
    regions: Sequence[KnownContent]
    patterns: AccessPatterns
    line_bytes: int
    """The size of the pieces of global memory that are counted."""
    overwritten: set[int] = field(default_factory=set)
    events: list[Any] = field(default_factory=list)
    figures: LaneFigures = field(default_factory=LaneFigures)

    def of_programs(self, per_warp: Array) -> Array:
        return per_warp.reshape(self.state.programs, self.state.warps).sum(axis=1)

    def count_bytes(self, place: int, lanes: Array, maybe: Array | None, width: int, sure: bool) -> None:
        self.tally.add(BYTES, place, self.of_programs(self.figures.of(lanes) * width), sure)
        if maybe is not None:
            self.tally.add(BYTES, place, self.of_programs((maybe & ~lanes).sum(axis=1) * width), False)

    def lines(self, addresses: Array, lanes: Array) -> Array:
        """How many pieces of `line_bytes` each warp touches."""
        return self.patterns.cost("sectors", self._lines, addresses, lanes, self.line_bytes)

    def _lines(self, addresses: Array, active: Array) -> Array:
        return coalescing.lines(addresses, active, self.line_bytes)

    def count_global(
        self,
        place: int,
        address: Value,
        lanes: Array,
        maybe: Array | None,
        width: int,
        sure: bool,
        cost: Callable[[Array, Array], Array],
    ) -> Array | None:
        """`cost`: addresses and lanes → lines. Returns the addresses, where those of all lanes are known."""
        tally = self.tally
        addresses, known = address
        self._count_lanes(place, lanes, width, sure)
        if maybe is not None:
            self._count_maybe(place, lanes, maybe, width)
        if addresses is None or some_unknown(known, lanes):
            self.count_unknown(UNKNOWN_REQUESTS, place, lanes, maybe, sure)
            self.events.append(Access(place, None, None, width, "global"))
            return None
        where = spread(addresses, lanes.shape)
        touched = cost(where, lanes)
        tally.add(SECTORS, place, self.of_programs(touched), sure)
        if maybe is not None:
            tally.add(SECTORS, place, self.of_programs(cost(where, lanes | maybe) - touched), False)
        self.events.append(Access(place, addresses, lanes, width, "global"))
        return where

    def _count_lanes(self, place: int, lanes: Array, width: int, sure: bool) -> None:
        """Requests, the sectors that they need at least, and bytes."""
        count = self.figures.of(lanes)
        of_programs = self.figures.per_width.get(width)
        if of_programs is None:
            figures = np.stack([count > 0, -(-count * width // self.line_bytes), count * width])
            of_programs = figures.reshape(3, self.state.programs, self.state.warps).sum(axis=2)
            self.figures.per_width[width] = of_programs
        self.tally.table(sure)[REQUESTS : BYTES + 1, place] += of_programs

    def _count_maybe(self, place: int, lanes: Array, maybe: Array, width: int) -> None:
        more = np.broadcast_to(maybe, lanes.shape) & ~lanes
        requests = more.any(axis=1) & ~lanes.any(axis=1)
        self.tally.add(REQUESTS, place, self.of_programs(requests), False)
        least = coalescing.least_lines(more | lanes, width, self.line_bytes) - coalescing.least_lines(
            lanes, width, self.line_bytes
        )
        self.tally.add(LEAST, place, self.of_programs(least), False)
        self.tally.add(BYTES, place, self.of_programs(more.sum(axis=1) * width), False)

    def count_unknown(self, column: int, place: int, lanes: Array, maybe: Array | None, sure: bool) -> None:
        """Accesses of warps at addresses that data decide."""
        warps = lanes.any(axis=1)
        self.tally.add(column, place, self.of_programs(warps), sure)
        if maybe is not None:
            more = np.broadcast_to(maybe, lanes.shape).any(axis=1) & ~warps
            self.tally.add(column, place, self.of_programs(more), False)

    def content(self, addresses: Array, known: Array | None, size: int, signed_bits: int = 0) -> Value:
        for region in self.regions:
            end = region.address + len(region.content)
            if region.address in self.overwritten:
                continue
            inside = (addresses >= region.address) & (addresses + size <= end)
            if not inside.any():
                continue
            at = np.where(inside, addresses - region.address, 0)
            value = np.zeros(at.shape, dtype=np.uint32)
            for byte in range(size):
                value = value | region.content[at + byte].astype(np.uint32) << np.uint32(8 * byte)
            if signed_bits:
                shift = np.int32(32 - signed_bits)
                value = ((value << np.uint32(32 - signed_bits)).view(np.int32) >> shift).view(np.uint32)
            mask = both(known, None if inside.all() else inside)
            return value, mask
        return UNKNOWN

    def overwrite(self, addresses: Array | None) -> None:
        """Forgets contents that a store may change."""
        for region in self.regions:
            end = region.address + len(region.content)
            if addresses is None or ((addresses >= region.address) & (addresses < end)).any():
                self.overwritten.add(region.address)


def some_unknown(known: Array | None, lanes: Array) -> bool:
    return known is not None and bool((lanes & ~known).any())
