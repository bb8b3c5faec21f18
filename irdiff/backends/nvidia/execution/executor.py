"""Executes SASS for all warps of some programs at once: what stands between two branches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.accesses import Memory
from irdiff.backends.nvidia.execution.deciding import Deciding
from irdiff.backends.nvidia.execution.integer import COMPUTED
from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.execution.control_flow import ControlFlow, Fragment, NotCounted
from irdiff.execution.memory_costs import BYTES, EXECUTED, LANES, MATRIX, TMA
from irdiff.execution.state import TRUE, UNKNOWN, Array, Value, both
from irdiff.ir.sass import tensor_memory
from irdiff.ir.sass.destinations import written
from irdiff.ir.sass.instructions import SassFunction, SassInstruction
from irdiff.ir.sass.opcodes import BRANCHES, MATRIX_FROM_SHARED, MEET, MEMORY
from irdiff.ir.sass.tensor_memory import TENSOR_MATRIX, TENSOR_MEMORY

_TRAP_REACH = 4
"""Instructions before a trap, in the block that leads to it."""


@dataclass(kw_only=True)
class Executor(ControlFlow[SassInstruction]):
    state: WarpState
    memory: Memory
    function: SassFunction
    deciding: Deciding

    def _is_meeting(self, place: int) -> bool:
        return self.code[place].opcode in MEET

    def _is_end(self, ins: SassInstruction) -> bool:
        return ins.opcode in ("EXIT", "BPT", "KILL")

    def _needed_at(self, place: int, alive: Array) -> Array:
        count = self.code[place].operands
        stated = len(count) > 1 and count[1].kind == "imm"
        return np.full_like(alive, count[1].number // 32) if stated else alive

    def _barrier_of(self, place: int) -> int:
        operand = self.code[place].operands[0]
        if operand.kind == "imm":
            return operand.number
        value, _ = self.state.fetch(operand)
        return -1 if value is None else int(value.flat[0])

    def _straight(self, fragment: Fragment, fragments: list[Fragment], limit: int) -> Fragment | None:
        """Runs a fragment until it branches, ends, or meets another; returns it where it waits."""
        code, place, mask = self.code, fragment.place, fragment.mask
        sure = fragment.sure
        warps = fragment.warps
        of_programs = self.memory.of_programs(warps[:, 0])
        full = bool((mask == self.alive).all())
        whole = full or self._of_whole_programs(mask)
        full_warps = bool((warps == self.alive.any(axis=1, keepdims=True)).all())
        lane_mask, warp_mask = None if full else mask, None if full_warps else warps
        first = place

        def counted(end: int) -> None:
            table = self.tally.table(sure)
            table[EXECUTED, first:end] += of_programs
            table[LANES, first:end] += fragment.lanes(self.memory)

        following, computed = self.deciding.following, self.deciding.computed
        while True:
            place = following[place]
            if place >= limit:
                counted(limit)
                fragments.append(Fragment(limit, mask, sure))
                return None
            if place >= len(code):
                raise NotCounted("the code runs past its end")
            ins = code[place]
            opcode = ins.opcode
            self.steps += 1
            if self.steps > self.most_steps:
                self._go_on_if_alike()
            flag: Value = (None, None) if ins.predicate is None else self.state.flag(ins.predicate)
            if opcode in BRANCHES:
                counted(place + 1)
                self._branch(ins, fragment, fragments, flag)
                return None
            if opcode == "BAR":
                if not self._none(flag, ins):
                    if "ARV" in ins.modifiers:
                        number = self._barrier_of(place)
                        self.arrived[number] = self.arrived.get(number, 0) + of_programs
                    elif not whole:
                        counted(place + 1)
                        return Fragment(place, mask, sure)
            else:
                self._compute(ins, flag, mask, lane_mask, warp_mask, sure, computed[place])
            place += 1
            if place == limit:
                counted(place)
                fragments.append(Fragment(place, mask, sure))
                return None

    def _none(self, flag: Value, ins: SassInstruction) -> bool:
        return ins.predicate is not None and flag[0] is not None and flag[1] is None and not flag[0].any()

    def _compute(
        self,
        ins: SassInstruction,
        flag: Value,
        mask: Array,
        lane_mask: Array | None,
        warp_mask: Array | None,
        sure: bool,
        needed: bool,
    ) -> None:
        unsure: Array | None = None
        holds: Array | None = None
        if ins.predicate is not None:
            value, known = flag
            if value is None:
                unsure = np.ones((1, 1), dtype=bool)
            else:
                holds = value
                if known is not None:
                    unsure = ~np.broadcast_to(known, np.broadcast_shapes(known.shape, value.shape))
                    holds = value & ~unsure
                    unsure = unsure if (unsure & mask).any() else None
                if unsure is None:
                    if not (holds & mask).any():
                        return
                    if holds.all():
                        holds = None
        opcode = ins.opcode
        if opcode in MEMORY:
            active = (
                mask
                if holds is None and unsure is None
                else mask & (np.zeros((1, 1), dtype=bool) if holds is None else holds)
            )
            maybe = None if unsure is None else mask & unsure
            write = (
                lane_mask if holds is None and unsure is None else active if maybe is None else active | maybe
            )
            self.memory.execute(ins, active, maybe, write, sure, needed)
            if maybe is not None and needed:
                self._doubt(ins, unsure, lane_mask)
            return
        compute = COMPUTED.get(opcode)
        if compute is not None:
            results = compute(self.state, ins)
            if self.repeater.recording and opcode in ("ISETP", "UISETP"):
                self.repeater.compared(
                    ins.place,
                    self.state.fetch(ins.operands[2]),
                    self.state.fetch(ins.operands[3]),
                    ins.modifiers,
                )
        else:
            results = self._other(ins, mask, sure)
        if not needed:
            return
        for target, result in results:
            value, known = result
            base = lane_mask if target.kind in ("R", "P") else warp_mask
            where = base
            if holds is not None or unsure is not None:
                reached = np.zeros((1, 1), dtype=bool) if holds is None else holds
                if unsure is not None:
                    reached = reached | unsure
                    if value is not None:
                        known = both(known, ~unsure)
                if target.kind in ("UR", "UP") and reached.shape[1] > 1:
                    reached = reached.any(axis=1, keepdims=True)
                where = reached if base is None else base & reached
            if value is not None and target.kind in ("UR", "UP") and value.shape[1] > 1:
                value, known = value[:, :1], None if known is None else known[:, :1]
            self.state.write(target.kind, target.number, value, known, where)

    def _doubt(self, ins: SassInstruction, unsure: Array | None, lane_mask: Array | None) -> None:
        for target in written(ins):
            where = unsure if lane_mask is None else lane_mask & unsure
            self.state.forget(target.kind, target.number, where)

    def _other(self, ins: SassInstruction, mask: Array, sure: bool) -> list[tuple[Any, Value]]:
        """Instructions that move values between lanes, or that wait."""
        opcode, state = ins.opcode, self.state
        if opcode == "R2UR":
            value, known = state.fetch(ins.operands[-1])
            return [(ins.operands[0], self._first_lane(value, known, mask))]
        if opcode == "ELECT":
            first = np.zeros_like(mask)
            first[np.arange(len(mask)), mask.argmax(axis=1)] = True
            return [(ins.operands[0], (first, None)), (ins.operands[1], UNKNOWN)]
        if opcode in ("VOTE", "VOTEU"):
            return self._vote(ins, mask)
        if opcode == "SHFL":
            return self._shuffle(ins)
        if opcode == "SYNCS":
            return self._synchronize(ins, mask, sure)
        if opcode == "USETMAXREG":
            return [(target, (np.ones((1, 1), dtype=bool), None)) for target in written(ins)]
        if opcode == "FCHK":  # a division takes the slow way only for the smallest and largest numbers
            return [(ins.operands[0], (np.zeros((1, 1), dtype=bool), None))]
        if opcode == "LEPC" and ins.target is not None:
            address = self.code[min(ins.target, len(self.code) - 1)].address
            low: Array = np.array([[address]], dtype=np.uint32)
            return [(ins.operands[0], (low, None)), (written(ins)[-1], UNKNOWN)]
        if opcode in MATRIX_FROM_SHARED:
            self.memory.matrix_operands(ins, mask.any(axis=1, keepdims=True), sure)
            return [(target, UNKNOWN) for target in written(ins)]
        if opcode in TENSOR_MATRIX:
            self._matrix_shape(ins, mask, sure)
            return []
        if opcode in TENSOR_MEMORY:
            self._tensor_memory(ins, mask, sure)
            return [(target, UNKNOWN) for target in written(ins)]
        if opcode == "UTCATOMSWS" and "FIND_AND_SET" in ins.modifiers:  # there is room in tensor memory
            first, *others = written(ins)
            return [(first, (TRUE, None)), *((target, UNKNOWN) for target in others)]
        if opcode == "UTMASTG":
            self._bulk_store(ins, mask, sure)
            return []
        return [(target, UNKNOWN) for target in written(ins)]

    def _guarded(self, ins: SassInstruction, mask: Array) -> tuple[Array, Array]:
        """Lanes whose predicate holds, and those where data decide it."""
        if ins.predicate is None:
            return mask, np.zeros_like(mask)
        value, known = self.state.flag(ins.predicate)
        if value is None:
            return np.zeros_like(mask), mask
        if known is None:
            return mask & value, np.zeros_like(mask)
        return mask & value & known, mask & ~known

    def _matrix_shape(self, ins: SassInstruction, mask: Array, sure: bool) -> None:
        """One thread of a warp issues it."""
        holds, maybe = (lanes.any(axis=1) for lanes in self._guarded(ins, mask))
        kind, number, _ = next(operand.registers[0] for operand in ins.operands if operand.text == "idesc")
        value, known = self.state.word(kind, number)
        descriptors = set()
        if value is not None:
            issuing = (holds | maybe)[:, None]
            if known is None or not (issuing & ~known).any():
                descriptors = set(np.unique(np.broadcast_to(value, issuing.shape)[issuing]).tolist())
        shape = tensor_memory.shape(ins.opcode, descriptors.pop()) if len(descriptors) == 1 else None
        place, of_programs = ins.place, self.memory.of_programs
        if shape is None:
            most = tensor_memory.most_operations(ins.opcode)
            self.tally.add(MATRIX, place, of_programs(holds | maybe) * most, False)
            self.tally.shapes[place] = ""
            return
        self.tally.add(MATRIX, place, of_programs(holds) * shape.operations, sure)
        if (maybe & ~holds).any():
            self.tally.add(MATRIX, place, of_programs(maybe & ~holds) * shape.operations, False)
        named = self.tally.shapes.setdefault(place, shape.name)
        self.tally.shapes[place] = named if named == shape.name else ""

    def _tensor_memory(self, ins: SassInstruction, mask: Array, sure: bool) -> None:
        size = tensor_memory.moved_bytes(ins.form)
        holds, maybe = (lanes.any(axis=1) for lanes in self._guarded(ins, mask))
        self.tally.add(BYTES, ins.place, self.memory.of_programs(holds) * size, sure)
        if (maybe & ~holds).any():
            self.tally.add(BYTES, ins.place, self.memory.of_programs(maybe & ~holds) * size, False)

    def _bulk_store(self, ins: SassInstruction, mask: Array, sure: bool) -> None:
        """Counts the descriptor's box; where it is not known, all that shared memory holds at most."""
        holds, maybe = (lanes.any(axis=1) for lanes in self._guarded(ins, mask))
        maybe = maybe & ~holds
        address = ins.operands[1].registers
        value, known = self.state.pair("UR", address[0][1]) if address else UNKNOWN
        sizes = np.zeros((len(holds), 1), dtype=np.int64)
        if value is not None:
            for start, size in self.memory.by_address.items():
                is_this = value == np.uint64(start)
                sizes = np.where(is_this if known is None else is_this & known, size, sizes)
        each = sizes[:, 0]
        self.tally.add(TMA, ins.place, self.memory.of_programs(each * holds), sure)
        if maybe.any():
            self.tally.add(TMA, ins.place, self.memory.of_programs(each * maybe), False)
        self._count_unknown_copies(ins, (holds | maybe) & (each == 0))

    def _count_unknown_copies(self, ins: SassInstruction, warps: Array) -> None:
        if warps.any():
            most = self.memory.of_programs(warps) * self.memory.shared_bytes
            self.tally.add(TMA, ins.place, most, False)

    def _first_lane(self, value: Array | None, known: Array | None, mask: Array) -> Value:
        if value is None:
            return UNKNOWN
        if value.shape[1] == 1:
            return value, known if known is None or known.shape[1] == 1 else known.all(axis=1, keepdims=True)
        lane = mask.argmax(axis=1)[:, None]
        one = np.take_along_axis(np.broadcast_to(value, mask.shape), lane, axis=1)
        if known is not None:
            known = np.take_along_axis(np.broadcast_to(known, mask.shape), lane, axis=1)
        return one, known

    def _vote(self, ins: SassInstruction, mask: Array) -> list[tuple[Any, Value]]:
        target, source = ins.operands[0], ins.operands[-1]
        value, known = self.state.flag(source)
        if value is None:
            return [(out, UNKNOWN) for out in written(ins)]
        lanes = np.broadcast_to(value, mask.shape)
        all_known = (
            None if known is None else (np.broadcast_to(known, mask.shape) | ~mask).all(axis=1, keepdims=True)
        )
        if target.kind in ("R", "UR"):
            bits = ((lanes & mask).astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(
                axis=1, keepdims=True
            )
            return [
                (target, (bits.astype(np.uint32), all_known)),
                *((out, UNKNOWN) for out in written(ins)[1:]),
            ]
        if "ANY" in ins.modifiers:
            result = (lanes & mask).any(axis=1, keepdims=True)
        elif "ALL" in ins.modifiers:
            result = (lanes | ~mask).all(axis=1, keepdims=True)
        else:
            return [(out, UNKNOWN) for out in written(ins)]
        return [(target, (result, all_known))]

    def _shuffle(self, ins: SassInstruction) -> list[tuple[Any, Value]]:
        flag, target, source, lane, bounds = ins.operands
        value, known = self.state.fetch(source)
        index, index_known = self.state.fetch(lane)
        word = ins.modifiers[0]
        plain = bounds.kind == "imm" and bounds.number == 0x1F and word in ("IDX", "BFLY")
        if value is None or index is None or not plain:
            return [(out, UNKNOWN) for out in written(ins)]
        if value.shape[1] == 1:
            return [(target, (value, known)), (flag, (np.ones((1, 1), dtype=bool), None))]
        lanes = np.arange(32, dtype=np.int64)[None, :]
        wanted = index.astype(np.int64) & 31 if word == "IDX" else lanes ^ (index.astype(np.int64) & 31)
        shape = (self.state.slots, 32)
        at = np.broadcast_to(wanted, shape)
        moved = np.take_along_axis(np.broadcast_to(value, shape), at, axis=1)
        if known is not None:
            known = np.take_along_axis(np.broadcast_to(known, shape), at, axis=1)
        return [(target, (moved, both(known, index_known))), (flag, (np.ones((1, 1), dtype=bool), None))]

    def _synchronize(self, ins: SassInstruction, mask: Array, sure: bool) -> list[tuple[Any, Value]]:
        """Barriers in shared memory: a wait ends at once, and an arrival says how many bytes will come."""
        words = ins.modifiers
        if "PHASECHK" in words:
            return [(ins.operands[0], (np.ones((1, 1), dtype=bool), None))]
        if words == ("ARRIVE", "TRANS64") and ins.operands[-1].kind == "R":
            self._expected_bytes(ins, mask, sure)
        return [(target, UNKNOWN) for target in written(ins)]

    def _expected_bytes(self, ins: SassInstruction, mask: Array, sure: bool) -> None:
        """Counts what an arrival says; where that is not known, all that shared memory holds at most."""
        value, known = self.state.fetch(ins.operands[-1])
        holds, maybe = self._guarded(ins, mask)
        if value is None:
            self._count_unknown_copies(ins, (holds | maybe).any(axis=1))
            return
        certain = holds if known is None else holds & known
        unclear = (holds | maybe) & ~certain
        each = np.broadcast_to(value.view(np.int32).astype(np.int64), mask.shape)
        self.tally.add(TMA, ins.place, self.memory.of_programs((each * certain).sum(axis=1)), sure)
        self._count_unknown_copies(ins, unclear.any(axis=1))

    # control flow

    def _branch(
        self, ins: SassInstruction, fragment: Fragment, fragments: list[Fragment], flag: Value
    ) -> None:
        mask, sure = fragment.mask, fragment.sure
        condition, known = self._condition(ins, flag)
        if (condition is None or known is not None) and (way := self._without_trap(ins)) is not None:
            condition = way if condition is None or known is None else np.where(known, condition, way)
            known = None
        if condition is None:
            self._fork(ins, mask, np.zeros_like(mask), np.zeros_like(mask), fragments, sure)
            return
        taken, other = mask & condition, mask & ~condition
        if known is not None and (mask & ~known).any():
            unclear = mask & ~known
            self._fork(ins, unclear, taken & known, other & known, fragments, sure)
            return
        self._part(ins, taken, other, fragments, sure)

    def _without_trap(self, ins: SassInstruction) -> Array | None:
        """The way that leads to no trap, where the other one does: a kernel's checks hold."""
        if ins.target is None:
            return None
        traps = self._traps(ins.target), self._traps(ins.place + 1)
        return None if traps[0] == traps[1] else np.array([[not traps[0]]])

    def _traps(self, place: int) -> bool:
        """True if straight code from here traps, or calls what begins with a trap."""
        for ins in self.code[place : place + _TRAP_REACH]:
            if ins.opcode == "CALL" and ins.target is not None:
                return self.code[ins.target].opcode == "BPT"
            if ins.form.leads.is_branch:
                return ins.opcode == "BPT"
        return False

    def _condition(self, ins: SassInstruction, flag: Value) -> Value:
        condition, known = (np.ones((1, 1), dtype=bool), None) if ins.predicate is None else flag
        for operand in ins.operands:  # `BRA UP0, …` and `BRA P1, …`
            if operand.kind in ("P", "UP") and condition is not None:
                value, mask = self.state.flag(operand)
                condition = None if value is None else condition & value
                known = both(known, mask)
        return condition, known

    def _targets(self, ins: SassInstruction, taken: Array) -> list[tuple[int | None, Array]]:
        if ins.target is not None and ins.opcode in ("BRA", "CALL", "JMP"):
            return [(ins.target, taken)]
        if ins.opcode == "CALL":  # of a function that is not in the file, as printf
            return [(None, taken)]
        if ins.opcode == "RET":
            value, _ = self.state.word("R", ins.operands[0].number)
            if value is None:
                raise NotCounted(f"a return at {ins.address:#x} to an address that is not known")
            targets: list[tuple[int | None, Array]] = []
            addresses = np.broadcast_to(value, taken.shape)
            for address in np.unique(addresses[taken]):
                target = self.function.place_of.get(int(address))
                if target is None:
                    raise NotCounted(
                        f"a return at {ins.address:#x} to {int(address):#x}, where no instruction is"
                    )
                targets.append((target, taken & (addresses == address)))
            return targets
        raise NotCounted(f"{ins.opcode} at {ins.address:#x}: its targets are not read")
