"""Loads, stores and atomics of waves: where they go, what they cost, and the contents that a launch fixes.

Source: AMD Instinct MI300 instruction set architecture guide, "Vector Memory Operations" (addresses and range
checks of raw buffers), "Flat Memory Instructions", "Data Share".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import U32, U64, Ternary, WaveRegisters
from irdiff.backends.amd.machine_tables import MachineAccess, access_of
from irdiff.execution.memory_costs import BYTES, Access, MemoryCosts
from irdiff.execution.state import UNKNOWN, Array, Value, both, spread
from irdiff.ir.amdgcn.machine_code import MachineOperand

ARGUMENTS_ADDRESS = 0x7E00_0000_1000
_BASE_BITS = U64(0xFFFF_FFFF_FFFF)
_STRIDE_BITS = U32(0x3FFF0000)
_OFF = "off"


@dataclass(kw_only=True)
class WaveMemory(MemoryCosts):
    registers: WaveRegisters

    def execute(self, ins: WaveInstruction, mask: Array, sure: bool) -> None:
        """`mask`: (waves, 64) lanes of the waves that execute it."""
        access = access_of(ins.opcode)
        assert access is not None
        if access.space == "scalar":
            self._scalar(ins, access)
            return
        active = Ternary.of(self.registers.exec)
        lanes = spread(mask & active.sure, mask.shape)
        maybe = None if active.sure is active.perhaps else mask & active.perhaps & ~active.sure
        maybe = maybe if maybe is not None and maybe.any() else None
        if access.space == "global":
            self._global(ins, access, lanes, maybe, sure)
        else:
            self.count_bytes(ins.place, lanes, maybe, access.width, sure)
            self.events.append(Access(ins.place, None, None, access.width, access.space))
            self._forget_target(ins, access)

    def _forget_target(self, ins: WaveInstruction, access: MachineAccess) -> None:
        returns = access.kind == "load" or (access.kind == "atomic" and _returns(ins))
        if returns and "lds" not in ins.modifiers and "_lds_" not in ins.opcode and ins.operands:
            self.registers.forget(ins.operands[0])

    # global

    def _global(
        self, ins: WaveInstruction, access: MachineAccess, lanes: Array, maybe: Array | None, sure: bool
    ) -> None:
        if ins.opcode.startswith("buffer_"):
            address, inside = self._buffer(ins, access)
            if inside is not None:
                decided = Ternary.of(inside)
                if decided.sure is not decided.perhaps:
                    unsure = lanes & decided.perhaps & ~decided.sure
                    maybe = unsure if maybe is None else unsure | (maybe & decided.perhaps)
                    maybe = maybe if maybe.any() else None
                elif maybe is not None:
                    maybe = maybe & decided.perhaps
                lanes = lanes & decided.sure
        else:
            address = self._flat(ins, access)
        if maybe is not None and not maybe.any():
            maybe = None
        where = self.count_global(ins.place, address, lanes, maybe, access.width, sure, self.lines)
        if access.kind != "load" and self.regions:
            self.overwrite(where)
        if access.kind == "load" and self.regions and where is not None and access.width >= 4:
            self._known(ins, address, access)
        else:
            self._forget_target(ins, access)

    def _known(self, ins: WaveInstruction, address: Value, access: MachineAccess) -> None:
        bits, known = address
        if "lds" in ins.modifiers or "_lds_" in ins.opcode or bits is None:
            return
        for word in range(access.width // 4):
            self.registers.write(ins.operands[0], self.content(bits + 4 * word, known, 4), word)

    def _flat(self, ins: WaveInstruction, access: MachineAccess) -> Value:
        """`global_load D, v, s`, `global_load D, v[:], off`, `global_store v, D, s`; atomics may return."""
        operands = list(ins.operands)
        if access.kind == "load" or (access.kind == "atomic" and _returns(ins)):
            operands = operands[1:]
        if "_lds_" in ins.opcode:
            operands = list(ins.operands)
        vector = operands[0]
        base = operands[-1] if not ins.opcode.startswith("flat_") else MachineOperand("text", text=_OFF)
        offset = _offset(ins)
        if base.kind == "s":
            start, known = self.registers.fetch64(base)
            index, known_index = self.registers.fetch(vector)
            if start is None or index is None:
                return UNKNOWN
            total: Any = start.view(np.int64) + index.astype(np.int64) + offset
            return total, both(known, known_index)
        bits, known = self.registers.fetch64(vector)
        return UNKNOWN if bits is None else (bits.view(np.int64) + offset, known)

    def _buffer(self, ins: WaveInstruction, access: MachineAccess) -> tuple[Value, Value | None]:
        """The addresses, and which lie in the buffer: others access nothing."""
        resource_at = next(n for n, each in enumerate(ins.operands) if each.kind == "s" and each.count == 4)
        resource, scalar = ins.operands[resource_at], ins.operands[resource_at + 1]
        words = [self.registers.fetch(resource, n) for n in range(4)]
        (low, k0), (high, k1), (records, k2), _ = words
        into, known_into = self.registers.fetch(scalar)
        index: Array | None = np.zeros((1, 1), dtype=U32)
        known: Array | None = None
        if "idxen" in ins.modifiers:
            return UNKNOWN, UNKNOWN
        if "offen" in ins.modifiers:
            index, known = self.registers.fetch(ins.operands[resource_at - 1])
        if index is None or into is None or records is None:
            return UNKNOWN, UNKNOWN
        shift = index.astype(np.int64) + _offset(ins)
        inside = shift + access.width <= records.astype(np.int64) - into.astype(np.int64)
        decided: Value = inside, both(known, k2, known_into)
        if low is None or high is None or bool((high & _STRIDE_BITS).any()):
            return UNKNOWN, decided
        base = (low.astype(U64) | high.astype(U64) << U64(32)) & _BASE_BITS
        address = base.view(np.int64) + into.astype(np.int64) + shift
        return (address, both(k0, k1, known, known_into)), decided

    # scalar

    def _scalar(self, ins: WaveInstruction, access: MachineAccess) -> None:
        target, base = ins.operands[:2]
        waves = self.registers.waves
        warps = np.ones(self.state.slots, dtype=np.int64) if waves is None else waves[:, 0].astype(np.int64)
        self.tally.add(BYTES, ins.place, self.of_programs(warps * access.width), True)
        start, known = self.registers.fetch64(base) if ins.opcode.startswith("s_load") else UNKNOWN
        offset: Any = _offset(ins)
        for operand in ins.operands[2:]:
            bits, there = self.registers.fetch(operand)
            if bits is None:
                start = None
                break
            offset, known = offset + bits.astype(np.int64), both(known, there)
        for word in range(target.count):
            value = UNKNOWN
            if start is not None:
                value = self._scalar_word(start.view(np.int64) + offset + 4 * word, known)
            self.registers.write(target, value, word)

    def _scalar_word(self, addresses: Array, known: Array | None) -> Value:
        first = int(addresses.flat[0]) - ARGUMENTS_ADDRESS
        if 0 <= first < 1 << 16 and bool((addresses == addresses.flat[0]).all()):
            number = self.state.constant(0, first, 4)
            return UNKNOWN if number is None else (np.array([[number]], dtype=U32), known)
        return self.content(addresses, known, 4) if self.regions else UNKNOWN


def _returns(ins: WaveInstruction) -> bool:
    return "sc0" in ins.modifiers or "glc" in ins.modifiers or "_rtn" in ins.opcode


def _offset(ins: WaveInstruction) -> int:
    return int(ins.modifiers.get("offset") or "0", 0)
