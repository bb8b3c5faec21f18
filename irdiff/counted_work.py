"""Counts of what one launch executes. They can be compared even if grid, blocks or warps differ.

Standard library only: runs hold these records, and reports read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_SECTOR_BYTES = 32


class Amount(NamedTuple):
    """A count: the least and the most that may happen. Both are equal if nothing depends on data."""

    low: int
    high: int

    @property
    def is_known(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, kw_only=True)
class LoopWork:
    """The instructions that have this loop as their innermost loop, counted over all warps of the grid."""

    first_address: int
    last_address: int
    """The address of the branch back to `first_address`."""
    depth: int
    """1 for a loop that is in no other loop."""
    entries: Amount
    """How often a warp enters the loop."""
    iterations: Amount
    """How often a warp executes the first instruction of the loop."""
    instructions: Amount
    global_requests: Amount
    global_sectors: Amount
    """Sectors of `Work.line_bytes` bytes."""
    shared_wavefronts: Amount | None
    """As in `Work`."""
    spill_sectors: Amount | None
    matrix_instructions: Amount
    barriers: Amount
    waits: Amount
    label: str = ""
    """In an assembly, the label of the first instruction. `first_address` is then its number."""

    @property
    def trip_count(self) -> float | None:
        """The mean number of iterations of a warp that enters the loop; None if data decide it."""
        is_known = self.iterations.is_known and self.entries.is_known and self.entries.low
        return round(self.iterations.low / self.entries.low, 3) if is_known else None


@dataclass(frozen=True, kw_only=True)
class Work:
    """Counts what all blocks of a launch execute together. An instruction counts once for each warp."""

    programs: int
    """The number of blocks of the grid."""
    warps: int
    """The number of warps of all blocks."""
    instructions: Amount
    thread_instructions: Amount
    """Active lanes of all instructions. Without divergence these are 32 for each instruction."""
    by_class: Mapping[str, Amount]
    """Instructions by class (`work.classes`)."""
    by_pipe: Mapping[str, Amount]
    """Instructions by the pipe that executes them; empty if the target has no table of pipes."""
    global_requests: Amount
    """Instructions of a warp that access global memory, including atomics."""
    global_sectors: Amount
    """Pieces of `line_bytes` bytes that are requested from the L1 cache."""
    least_global_sectors: Amount
    """The sectors that the same bytes would need if they were contiguous."""
    unknown_global_requests: Amount
    """Requests whose addresses depend on data. `global_sectors` counts one to 32 sectors for each."""
    cache_policies: Mapping[str, Amount]
    """Requests by the cache policy that their instruction names."""
    shared_wavefronts: Amount | None
    """None if no source says how many wavefronts an access takes."""
    least_shared_wavefronts: Amount | None
    """The wavefronts that would be needed without bank conflicts."""
    unknown_shared_requests: Amount | None
    """Requests whose addresses depend on data. `shared_wavefronts` counts one to 32 for each."""
    spill_sectors: Amount | None
    """Sectors of local memory, 32 bytes each; None on AMD, whose scratch memory is in `bytes_by_space`."""
    bytes_by_space: Mapping[str, Amount]
    """Bytes that active lanes access: `global load`, `global store`, `global atomic`, `shared load`,
    `shared store`, `shared atomic`, `global to shared` (cp.async), `local`; `bulk copy` as below."""
    tma_bytes: Amount
    """Bytes that bulk copies move. For loads these are the bytes that barriers expect, for stores the size of
    the box in the descriptor. A copy of unknown size counts with at most the size of the block's shared
    memory.
    """
    matrix_operations: Mapping[str, Amount]
    """Floating-point or integer operations by shape and type: `HGMMA 64x128x16 F32 BF16`."""
    barriers: Amount
    waits: Amount
    atomics: Amount
    loops: tuple[LoopWork, ...]
    """Sorted by address."""
    programs_executed: int
    """The number of blocks that were executed. The counts of the whole grid follow from these."""
    notes: tuple[str, ...]
    """Loops whose trip count depends on data. Each was counted as if it ran once."""
    line_bytes: int = 32
    """The bytes of one of `global_sectors`: a sector on NVIDIA, a cache line on AMD."""

    @property
    def is_least(self) -> bool:
        """True if every count is the least possible one, because data decide how often a loop runs."""
        return bool(self.notes)

    @property
    def piece(self) -> str:
        """The word for what `global_sectors` counts."""
        return "sectors" if self.line_bytes == _SECTOR_BYTES else "lines"

    @property
    def spill_bytes(self) -> Amount:
        if self.spill_sectors is not None:
            return Amount(self.spill_sectors.low * 32, self.spill_sectors.high * 32)
        scratch = [amount for space, amount in self.bytes_by_space.items() if space.startswith("scratch")]
        return Amount(sum(amount.low for amount in scratch), sum(amount.high for amount in scratch))

    @property
    def matrix_flops(self) -> Amount:
        """The sum over all shapes and types."""
        rows = self.matrix_operations.values()
        return Amount(sum(amount.low for amount in rows), sum(amount.high for amount in rows))

    @property
    def trip_counts(self) -> Mapping[int, float | None]:
        """Maps the address of a loop's first instruction to its `trip_count`."""
        return {loop.first_address: None if self.is_least else loop.trip_count for loop in self.loops}


@dataclass(frozen=True, kw_only=True)
class NotCountedWork:
    """Why the work of a launch was not counted."""

    reason: str


def facts_of(work: Work) -> dict[str, int]:
    """Returns the figures that do not depend on data, as facts."""
    if work.is_least:
        return {}
    amounts = {
        "executed_instructions": work.instructions,
        "executed_barriers": work.barriers,
        "executed_atomics": work.atomics,
        "matrix_operations": work.matrix_flops,
        "global_requests": work.global_requests,
        f"global_{work.piece}": work.global_sectors,
        "shared_wavefronts": work.shared_wavefronts,
        "spilled_bytes": work.spill_bytes,
        "bulk_copied_bytes": work.tma_bytes,
    }
    return {name: amount.low for name, amount in amounts.items() if amount is not None and amount.is_known}
