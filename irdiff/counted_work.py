"""What one launch executes, counted: facts with units, comparable whatever its grid, blocks and warps are.

Standard library only: runs hold these records, and reports read them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

_SECTOR_BYTES = 32


class Amount(NamedTuple):
    """A count: what surely happens, and what may happen at most. Equal where nothing depends on data."""

    low: int
    high: int

    @property
    def is_known(self) -> bool:
        return self.low == self.high


@dataclass(frozen=True, kw_only=True)
class LoopWork:
    """One loop: the instructions whose innermost loop it is. All warps of the grid together."""

    first_address: int
    last_address: int
    """Of the branch back to the first."""
    depth: int
    """1 for a loop in no other."""
    entries: Amount
    """Times that a warp enters it."""
    iterations: Amount
    """Times that a warp runs its first instruction."""
    instructions: Amount
    global_requests: Amount
    global_sectors: Amount
    """Of `Work.line_bytes`."""
    shared_wavefronts: Amount | None
    """None where no source says what takes one, as in `Work`."""
    spill_sectors: Amount | None
    matrix_instructions: Amount
    barriers: Amount
    waits: Amount
    label: str = ""
    """Of its first instruction, in an assembly; `first_address` is then a number of instructions."""

    @property
    def trip_count(self) -> float | None:
        """Iterations of a warp that enters it, on average; None where data decide it."""
        is_known = self.iterations.is_known and self.entries.is_known and self.entries.low
        return round(self.iterations.low / self.entries.low, 3) if is_known else None


@dataclass(frozen=True, kw_only=True)
class Work:
    """What all programs of a launch execute together. Instructions are counted once a warp."""

    programs: int
    """Blocks of the grid."""
    warps: int
    """Of all programs."""
    instructions: Amount
    thread_instructions: Amount
    """Active lanes of all instructions: 32 an instruction where no warp diverges."""
    by_class: Mapping[str, Amount]
    """Instructions by class (`work.classes`)."""
    by_pipe: Mapping[str, Amount]
    """Instructions by the pipe that executes them; empty where pipes are not told apart."""
    global_requests: Amount
    """Warp instructions that access global memory; each atomic too."""
    global_sectors: Amount
    """Pieces of `line_bytes`, as the L1 cache is asked for them."""
    least_global_sectors: Amount
    """Sectors that the same bytes would take if they lay side by side."""
    unknown_global_requests: Amount
    """Requests whose addresses data decide: in `global_sectors` with one to 32 sectors each."""
    cache_policies: Mapping[str, Amount]
    """Requests by the policy that their instruction names."""
    shared_wavefronts: Amount | None
    """None where no source says what takes one."""
    least_shared_wavefronts: Amount | None
    """Without bank conflicts."""
    unknown_shared_requests: Amount | None
    """Those whose addresses data decide: in `shared_wavefronts` with one to 32 each."""
    spill_sectors: Amount | None
    """Of local memory, 32 bytes each; None on AMD, whose scratch memory stands in `bytes_by_space`."""
    bytes_by_space: Mapping[str, Amount]
    """Bytes that active lanes access: `global load`, `global store`, `global atomic`, `shared load`,
    `shared store`, `shared atomic`, `global to shared` (cp.async), `local`; `bulk copy` as below."""
    tma_bytes: Amount
    """Bytes that bulk copies move: loads as barriers expect them, stores by their descriptors' boxes. A copy
    of unknown size moves at most what the program's shared memory holds."""
    matrix_operations: Mapping[str, Amount]
    """Floating-point or integer operations by shape and type: `HGMMA 64x128x16 F32 BF16`."""
    barriers: Amount
    waits: Amount
    atomics: Amount
    loops: tuple[LoopWork, ...]
    """By address."""
    programs_executed: int
    """The whole grid follows from these."""
    notes: tuple[str, ...]
    """Loops that data decide: each was counted as if it ran once."""
    line_bytes: int = 32
    """Of `global_sectors`: sectors of NVIDIA, cache lines of AMD."""

    @property
    def is_least(self) -> bool:
        """Whether every count is the least: data decide how often a loop runs."""
        return bool(self.notes)

    @property
    def piece(self) -> str:
        """How words call what `global_sectors` counts."""
        return "sectors" if self.line_bytes == _SECTOR_BYTES else "lines"

    @property
    def spill_bytes(self) -> Amount:
        if self.spill_sectors is not None:
            return Amount(self.spill_sectors.low * 32, self.spill_sectors.high * 32)
        scratch = [amount for space, amount in self.bytes_by_space.items() if space.startswith("scratch")]
        return Amount(sum(amount.low for amount in scratch), sum(amount.high for amount in scratch))

    @property
    def matrix_flops(self) -> Amount:
        """Operations of all shapes and types."""
        rows = self.matrix_operations.values()
        return Amount(sum(amount.low for amount in rows), sum(amount.high for amount in rows))

    @property
    def trip_counts(self) -> Mapping[int, float | None]:
        """Address of a loop's first instruction → `trip_count`."""
        return {loop.first_address: None if self.is_least else loop.trip_count for loop in self.loops}


@dataclass(frozen=True, kw_only=True)
class NotCountedWork:
    """Why the work of a launch was not counted."""

    reason: str


def facts_of(work: Work) -> dict[str, int]:
    """The figures that are surely known, as facts; nothing that data decide."""
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
