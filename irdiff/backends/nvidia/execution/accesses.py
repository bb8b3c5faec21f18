"""Loads, stores and atomics of SASS: which values they move, and what they cost."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.execution import coalescing
from irdiff.execution.memory_costs import (
    LEAST_WAVES,
    LOCAL_REQUESTS,
    LOCAL_SECTORS,
    UNKNOWN_WAVES,
    WAVEFRONTS,
    Access,
    MemoryCosts,
    some_unknown,
)
from irdiff.execution.state import UNKNOWN, Array, Value, both, merged, spread
from irdiff.ir.sass.destinations import written
from irdiff.ir.sass.instructions import ZERO, InstructionForm, Operand, SassInstruction
from irdiff.ir.sass.opcodes import LOCAL, SHARED

_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WAVE_BYTES = 128
LANES_OF_A_WARP = 32
"""One access takes at most as many sectors, or wavefronts: one of each lane."""
_SHARED_WINDOW = 0xFFFFFF
_STATIC_SHARED_BYTES = 16 << 10
_ELEMENT_BITS = {"TF32": 32, "F16": 16, "BF16": 16}


@dataclass(kw_only=True)
class Memory(MemoryCosts):
    """Shared memory's known words, and the contents of global memory that the launch fixes."""

    state: WarpState
    shared_bytes: int
    shared: Array | None = None
    shared_known: Array | None = None
    by_address: dict[int, int] = field(default_factory=dict)
    """Address of a tensor map → bytes of one copy."""

    def address(self, operand: Operand, wide: bool) -> Value:
        """(slots, 32) addresses as int64."""
        total: Any = np.array([[operand.number]], dtype=np.int64)
        known = None
        for kind, number, pair in operand.registers:
            is_wide = pair or (
                wide and kind == "R" and not any(register[2] for register in operand.registers)
            )
            value, mask = self.state.pair(kind, number) if is_wide else self.state.word(kind, number)
            if value is None:
                return UNKNOWN
            part = value.view(np.int64) if is_wide else value.view(np.int32).astype(np.int64)
            total, known = total + part, both(known, mask)
        return total, known

    def execute(
        self,
        ins: SassInstruction,
        active: Array,
        maybe: Array | None,
        write: Array | None,
        sure: bool,
        needed: bool = True,
    ) -> None:
        """`active`: lanes whose predicate holds; `maybe`: where that is not known; `write`: of results.

        `needed`: whether what is read or written is.
        """
        operands = [operand for operand in ins.operands if operand.kind == "mem"]
        width = next((_BYTES[word] for word in ins.modifiers if word in _BYTES), 4)
        if ins.opcode in LOCAL:
            self._count_local(ins, active, maybe, width, sure)
            if needed:
                self._local(ins, operands[0], active, write, width)
            return
        if ins.opcode == "LDGSTS":
            into_shared, maybe_into = active, maybe
            guard = ins.operands[-1]
            if guard.kind == "P":  # where it does not hold, zeros are stored and nothing is read
                value, known = self.state.flag(guard)
                if value is None:
                    active, maybe = np.zeros_like(active), active if maybe is None else active | maybe
                else:
                    if known is not None:
                        maybe = active & ~known if maybe is None else maybe | (active & ~known)
                    active = active & value if known is None else active & value & known
            lines = self._global(ins, operands[1], active, maybe, width, sure)
            self._shared(ins, operands[0], into_shared, maybe_into, width, sure, lines)
            return
        if ins.opcode in SHARED:
            self._shared(ins, operands[0], active, maybe, width, sure)
            if not needed:
                return
            if ins.opcode == "LDS":
                self._read_shared(ins, operands[0], write, width)
                return
            if ins.opcode == "STS":
                self._write_shared(ins, operands[0], active, maybe, width)
            elif ins.opcode in ("STSM", "ATOMS"):
                self._forget_shared()
        else:
            if any(word.startswith(("F32x", "F16x2x", "BF16x2x")) for word in ins.modifiers):
                width = 16 if any("x4" in word for word in ins.modifiers) else 8
            self._global(ins, operands[0], active, maybe, width, sure)
            if ins.opcode in ("LDG", "LD"):
                if needed:
                    self._read_global(ins, operands[0], write, width)
                return
            if self.regions:
                self.overwrite(self.address(operands[0], wide=True)[0])
        if not needed:
            return
        for operand in written(ins):
            self.state.forget(operand.kind, operand.number, write)

    # global

    def _global(
        self,
        ins: SassInstruction,
        operand: Operand,
        active: Array,
        maybe: Array | None,
        width: int,
        sure: bool,
    ) -> Array | None:
        """Counts; returns the lines of 128 bytes that a copy into shared memory comes from."""
        lanes = spread(active, (self.state.slots, 32))
        cost = self.lines
        if ins.opcode == "LDGSTS":
            cost = functools.partial(self._copied_sectors, width)
        where = self.count_global(
            ins.place, self.address(operand, wide=True), lanes, maybe, width, sure, cost
        )
        if where is None or ins.opcode != "LDGSTS":
            return None
        return self.patterns.cost("lines", _lines, where, lanes, _WAVE_BYTES)

    def _copied_sectors(self, width: int, addresses: Array, lanes: Array) -> Array:
        copied = functools.partial(coalescing.copied_sectors, width=width)
        return self.patterns.cost(("copied", width), copied, addresses, lanes, coalescing.SECTOR_BYTES)

    def _read_global(self, ins: SassInstruction, operand: Operand, write: Array | None, width: int) -> None:
        target = ins.operands[0] if ins.operands[0].kind == "R" else ins.operands[1]
        words = max(1, width // 4)
        if not self.regions or target.number == ZERO:
            for register in written(ins):
                self.state.forget(register.kind, register.number, write)
            return
        addresses, known = self.address(operand, wide=True)
        signed_bits = 8 if "S8" in ins.modifiers else 16 if "S16" in ins.modifiers else 0
        for word in range(words):
            value = (
                UNKNOWN
                if addresses is None
                else self.content(addresses + 4 * word, known, min(width, 4), signed_bits)
            )
            self.state.write("R", target.number + word, *value, write)

    # shared

    def _shared(
        self,
        ins: SassInstruction,
        operand: Operand,
        active: Array,
        maybe: Array | None,
        width: int,
        sure: bool,
        lines: Array | None = None,
    ) -> None:
        place, tally = ins.place, self.tally
        addresses, known = self.address(operand, wide=False)
        lanes = spread(active, (self.state.slots, 32))
        warps = self.figures.of(lanes) > 0
        if ins.opcode != "LDGSTS":
            self.count_bytes(place, lanes, maybe, width, sure)
        matrices = 0
        if ins.opcode in ("LDSM", "STSM"):
            matrices = int(ins.modifiers[-1]) if ins.modifiers[-1].isdigit() else 1
            lanes = lanes & (np.arange(32) < 8 * matrices)
        if addresses is None or some_unknown(known, lanes):
            self.count_unknown(UNKNOWN_WAVES, place, lanes, maybe, sure)
            self.events.append(Access(place, None, None, width, "shared"))
            return
        where = spread(addresses, lanes.shape)
        if matrices:
            wavefronts = functools.partial(coalescing.wavefronts, width=16, lanes_at_once=8)
            first = where[:, : 8 * matrices], lanes[:, : 8 * matrices]
            waves = self.patterns.cost(("matrices", matrices), wavefronts, *first, _WAVE_BYTES)
            least = np.where(warps, matrices, 0)
        else:
            waves = self._waves(ins, where, lanes, width)
            if lines is not None:  # what one line brings is written at once
                waves = np.maximum(waves, lines)
            least = np.where(warps, max(1, width // 4), 0)
        tally.add(WAVEFRONTS, place, self.of_programs(waves), sure)
        tally.add(LEAST_WAVES, place, self.of_programs(least), sure)
        if maybe is not None:
            most = LANES_OF_A_WARP if matrices else self._waves(ins, where, lanes | maybe, width)
            more = np.where(maybe.any(axis=1), most - waves, 0)
            tally.add(WAVEFRONTS, place, self.of_programs(more), False)
        self.events.append(Access(place, addresses, lanes, 16 if matrices else width, "shared"))

    def _waves(self, ins: SassInstruction, addresses: Array, lanes: Array, width: int) -> Array:
        is_load = ins.opcode == "LDS"
        passes = coalescing.load_wavefronts if is_load else coalescing.wavefronts
        function = functools.partial(passes, width=width)
        return self.patterns.cost((is_load, width), function, addresses, lanes, _WAVE_BYTES)

    def matrix_operands(self, ins: SassInstruction, warps: Array, sure: bool) -> None:
        """`HGMMA` reads its right side, and its left one where it is no register, from shared memory.

        Four warps share what they read; swizzled tiles have no conflicts.
        """
        waves = self.of_programs(warps[:, 0] * _matrix_waves(ins.form))
        self.tally.add(WAVEFRONTS, ins.place, waves, sure)
        self.tally.add(LEAST_WAVES, ins.place, waves, sure)

    def _forget_shared(self) -> None:
        self.shared = self.shared_known = None

    def _write_shared(
        self, ins: SassInstruction, operand: Operand, active: Array, maybe: Array | None, width: int
    ) -> None:
        state, source = self.state, ins.operands[1]
        words = [
            state.word("R", source.number + n if source.number != ZERO else ZERO)
            for n in range(max(1, width // 4))
        ]
        if self.shared is None and all(value is None for value, _ in words):
            return
        addresses, known = self.address(operand, wide=False)
        if addresses is None or some_unknown(known, active if maybe is None else active | maybe):
            self._forget_shared()
            return
        if self.shared is None or self.shared_known is None:
            size = self.shared_bytes + _STATIC_SHARED_BYTES
            self.shared = np.zeros((state.programs, size), dtype=np.uint8)
            self.shared_known = np.zeros((state.programs, size), dtype=bool)
        shape = (state.slots, 32)
        lanes = spread(active if maybe is None else active | maybe, shape)
        first = spread(addresses & _SHARED_WINDOW, shape)
        lanes = lanes & (first + width <= self.shared.shape[1])
        program = np.broadcast_to((np.arange(state.slots) // state.warps)[:, None], shape)[lanes]
        first = first[lanes]
        if maybe is not None or all(value is None for value, _ in words):
            self.shared_known[program[:, None], first[:, None] + np.arange(width)] = False
            return
        for byte in range(width):
            value, mask = words[byte // 4]
            if value is not None:
                part = value >> np.uint32(8 * (byte % 4)) & np.uint32(255)
                self.shared[program, first + byte] = np.broadcast_to(part, shape)[lanes]
            sure = value is not None if mask is None else np.broadcast_to(mask, shape)[lanes]
            self.shared_known[program, first + byte] = sure

    def _read_shared(self, ins: SassInstruction, operand: Operand, write: Array | None, width: int) -> None:
        target = ins.operands[0]
        if target.number == ZERO:
            return
        addresses, known = (None, None) if self.shared is None else self.address(operand, wide=False)
        for word in range(max(1, width // 4)):
            value = (
                UNKNOWN
                if addresses is None
                else self._shared_word(addresses + 4 * word, known, min(width, 4))
            )
            if {"S8", "S16"} & set(ins.modifiers):
                value = UNKNOWN
            self.state.write("R", target.number + word, *value, write)

    def _shared_word(self, addresses: Array, known: Array | None, size: int) -> Value:
        if self.shared is None or self.shared_known is None:
            return UNKNOWN
        program = (np.arange(self.state.slots) // self.state.warps)[:, None]
        first = np.minimum(addresses & _SHARED_WINDOW, self.shared.shape[1] - size)
        there = np.ones((1, 1), dtype=bool) if known is None else known
        value = np.zeros((1, 1), dtype=np.uint32)
        for byte in range(size):
            there = there & self.shared_known[program, first + byte]
            value = value | self.shared[program, first + byte].astype(np.uint32) << np.uint32(8 * byte)
        if not there.any():
            return UNKNOWN
        return value, None if there.all() else there

    # local

    def _count_local(
        self, ins: SassInstruction, active: Array, maybe: Array | None, width: int, sure: bool
    ) -> None:
        lanes = spread(active, (self.state.slots, 32))
        # a thread's words of local memory lie side by side with those of the other lanes
        count = coalescing.local_sectors(lanes, width)
        self.count_bytes(ins.place, lanes, maybe, width, sure)
        if maybe is not None:
            more = coalescing.local_sectors(lanes | maybe, width) - count
            self.tally.add(LOCAL_SECTORS, ins.place, self.of_programs(more), False)
        self.tally.add(LOCAL_SECTORS, ins.place, self.of_programs(count), sure)
        self.tally.add(LOCAL_REQUESTS, ins.place, self.of_programs(lanes.any(axis=1)), sure)

    def _local(
        self, ins: SassInstruction, operand: Operand, active: Array, write: Array | None, width: int
    ) -> None:
        words = max(1, width // 4)
        lanes = spread(active, (self.state.slots, 32))
        addresses, known = self.address(operand, wide=False)
        start, same = 0, False
        if addresses is not None and not some_unknown(known, lanes):
            used = np.broadcast_to(addresses, lanes.shape)[lanes]
            same = len(used) > 0 and bool((used == used[0]).all())
            start = int(used[0]) if same else 0
        if ins.opcode == "STL":
            if not same:
                self.state.local.clear()
                return
            if width < 4:
                self.state.local[start & ~3] = UNKNOWN
                return
            for n in range(words):
                source = ins.operands[1]
                value = self.state.word("R", source.number + n if source.number != ZERO else ZERO)
                self.state.local[start + 4 * n] = merged(
                    self.state.local.get(start + 4 * n, UNKNOWN), value, write
                )
            return
        for n in range(words):
            value = self.state.local.get(start + 4 * n, UNKNOWN) if same and width >= 4 else UNKNOWN
            if ins.operands[0].number != ZERO:
                self.state.write("R", ins.operands[0].number + n, *value, write)


@functools.lru_cache(maxsize=1 << 10)
def _matrix_waves(ins: InstructionForm) -> int:
    """Returns the wavefronts for one of the four warps, which share what they read."""
    rows, columns, depth = (int(word) for word in next(w for w in ins.modifiers if "x" in w).split("x"))
    size_bits = 8 if ins.opcode in ("QGMMA", "IGMMA") else _ELEMENT_BITS.get(ins.modifiers[-1], 16)
    from_registers = ins.operands[1].kind == "R"
    size = (columns + (0 if from_registers else rows)) * depth * size_bits // 8
    return -(-size // (_WAVE_BYTES * 4))


def _lines(addresses: Array, active: Array) -> Array:
    return coalescing.distinct(addresses // _WAVE_BYTES, active)
