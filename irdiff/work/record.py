"""The work of one launch, counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Amount:
    """A count: from what surely happens to what may happen. Equal where nothing depends on data."""

    low: int
    high: int

    @property
    def is_known(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, kw_only=True)
class Work:
    """What all programs of a launch execute together. Instructions are counted once a warp."""

    instructions: Amount
    by_class: Mapping[str, Amount]
    """Instructions by class (`classes.CLASSES`)."""
    by_pipe: Mapping[str, Amount]
    """Instructions by the pipe that executes them."""
    global_requests: Amount
    """Warp instructions that access global memory; each atomic too."""
    global_sectors: Amount
    """Of 32 bytes, as the L1 cache is asked for them."""
    least_global_sectors: Amount
    """Sectors that the same bytes would take if they lay side by side."""
    unknown_global_requests: Amount
    """Requests whose addresses data decide: their sectors are not in `global_sectors`."""
    cache_policies: Mapping[str, Amount]
    """Requests by the policy that their instruction names."""
    shared_wavefronts: Amount
    least_shared_wavefronts: Amount
    """Without bank conflicts."""
    unknown_shared_requests: Amount
    spill_sectors: Amount
    """Of local memory, 32 bytes each."""
    tma_bytes: Amount
    """That bulk copies move: loads as barriers expect them, stores by their descriptors' boxes."""
    matrix_operations: Mapping[str, Amount]
    """Floating-point or integer operations by shape and type: `64x128x16 F32 BF16`."""
    barriers: Amount
    waits: Amount
    atomics: Amount
    trip_counts: Mapping[str, float]
    """Address of a loop's head → times that a warp which enters it runs it, on average."""
    exact: bool
    """Whether the whole grid follows from the programs that were executed."""
    programs_executed: int
    notes: tuple[str, ...]
    """What data decide."""

    @property
    def spill_bytes(self) -> Amount:
        return Amount(low=self.spill_sectors.low * 32, high=self.spill_sectors.high * 32)


@dataclass(frozen=True, kw_only=True)
class NotCountedWork:
    """Why the work of a launch was not counted."""

    reason: str
