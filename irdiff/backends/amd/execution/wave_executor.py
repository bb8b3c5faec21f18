"""Executes a kernel for all waves of some programs at once.

A wave's lanes share one place, so control flow is that of waves; EXEC says which lanes take part.
Instructions that are not computed make their results unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from irdiff.backends.amd import machine_tables
from irdiff.backends.amd.execution import scalar, vector
from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import EXEC, MASK, VCC, Ternary, WaveRegisters
from irdiff.backends.amd.execution.memory import WaveMemory
from irdiff.execution.control_flow import ControlFlow, Fragment, NotCounted
from irdiff.execution.iterations import IntegerComparison
from irdiff.execution.memory_costs import EXECUTED, LANES
from irdiff.execution.state import TRUE, Array, Value

_NO_RESULT = (
    "s_waitcnt",
    "s_nop",
    "s_barrier",
    "s_setprio",
    "s_sleep",
    "s_sched",
    "s_setreg",
    "s_icache",
    "s_dcache",
    "s_sendmsg",
    "s_inst_prefetch",
    "s_code_end",
    "buffer_wbl2",
    "buffer_inv",
    "global_wb",
    "global_inv",
)
_SWAPS = ("v_swap_b32", "v_permlane16_swap", "v_permlane32_swap")
_KINDS = {"lt": "LT", "le": "LE", "gt": "GT", "ge": "GE", "eq": "EQ", "lg": "NE", "ne": "NE"}
_RANGES = {
    "u32": (0, 2**32 - 1),
    "i32": (-(2**31), 2**31 - 1),
    "u16": (0, 2**16 - 1),
    "i16": (-(2**15), 2**15 - 1),
}
_FAR = 1 << 62
_UNREADABLE = (ValueError, TypeError, LookupError, StopIteration, OverflowError)
"""Errors that an action raises for operands of another number or kind than its instruction has."""


@dataclass(kw_only=True)
class WaveExecutor(ControlFlow[WaveInstruction]):
    memory: WaveMemory
    registers: WaveRegisters
    scc_event: Callable[[int], IntegerComparison] | None = None
    """Returns what a branch on SCC at a place compares, if an instruction of `LOGIC_WRITES_SCC` left it."""

    def _is_meeting(self, _place: int) -> bool:
        return True

    def _is_end(self, _ins: WaveInstruction) -> bool:
        return False

    def _barrier_of(self, _place: int) -> int:
        return 0

    def _needed_at(self, _place: int, alive: Array) -> Array:
        return alive

    def _targets(self, ins: WaveInstruction, taken: Array) -> list[tuple[int | None, Array]]:
        if ins.target is not None:
            return [(ins.target, taken)]
        if ins.opcode == "s_endpgm":
            return [(None, taken)]
        raise NotCounted(f"{ins.opcode} at {ins.shown_place}: its target is not read")

    def _straight(self, fragment: Fragment, fragments: list[Fragment], limit: int) -> Fragment | None:
        code, place, mask, sure = self.code, fragment.place, fragment.mask, fragment.sure
        of_programs = self.memory.of_programs(fragment.warps[:, 0])
        full = bool((mask == self.alive).all())
        whole = full or self._of_whole_programs(mask)
        self.registers.waves, self.registers.lanes = (None, None) if full else (fragment.warps, mask)
        first = lanes_from = place

        def counted(end: int) -> None:
            self.tally.table(sure)[EXECUTED, first:end] += of_programs
            self._count_lanes(mask, lanes_from, end, sure)

        while True:
            if place >= limit:
                counted(place)
                fragments.append(Fragment(place, mask, sure))
                return None
            if place >= len(code):
                raise NotCounted("the code runs past its end")
            ins = code[place]
            self.steps += 1
            if self.steps > self.most_steps:
                self._go_on_if_alike()
            if ins.form.leads.is_branch:
                counted(place + 1)
                self._branch(ins, fragment, fragments)
                return None
            if ins.opcode == "s_barrier":
                if not whole:
                    counted(place + 1)
                    return Fragment(place, mask, sure)
            else:
                before = self.registers.exec
                try:
                    self._compute(ins, mask, sure)
                except _UNREADABLE as error:
                    reason = f"{ins.line.text!r} at {ins.shown_place}: its operands cannot be read"
                    raise NotCounted(reason) from error
                after = self.registers.exec
                if after is not before:
                    self.state.registers[MASK][EXEC] = before
                    self._count_lanes(mask, lanes_from, place + 1, sure)
                    lanes_from = place + 1
                    self._set_exec(after)
            place += 1

    def _count_lanes(self, mask: Array, begin: int, end: int, sure: bool) -> None:
        active = Ternary.of(self.registers.exec)
        if active.sure is active.perhaps:
            lanes = mask if active.sure is TRUE else mask & active.sure
            self.tally.table(sure)[LANES, begin:end] += self.memory.of_programs(lanes.sum(axis=1))
            return
        least, most = ((mask & each).sum(axis=1) for each in (active.sure, active.perhaps))
        self.tally.table(sure)[LANES, begin:end] += self.memory.of_programs(least)
        self.tally.table(False)[LANES, begin:end] += self.memory.of_programs(most - least)

    def _set_exec(self, value: Value) -> None:
        bits, known = value
        is_full = bits is not None and bits is not TRUE and known is None and bool(bits.all())
        self.state.registers[MASK][EXEC] = (TRUE, None) if is_full else value

    def _compute(self, ins: WaveInstruction, mask: Array, sure: bool) -> None:
        opcode = ins.opcode
        if machine_tables.access_of(opcode) is not None:
            self.memory.execute(ins, mask, sure)
            return
        opcode, selected = vector.parts(ins)
        action = vector.ACTIONS.get(opcode) if opcode[0] == "v" else scalar.ACTIONS.get(opcode)
        if action is None or not (selected or vector.is_plain(ins)):
            self._forget(ins)
            return
        compared: tuple[Value, Value] | None = None
        if self.repeater.recording and opcode.startswith(("s_cmp", "v_cmp")):
            compared = (scalar if opcode[0] == "s" else vector).sides(self.registers, ins)
        self.registers.selected = selected
        action(self.registers, ins)
        self.registers.selected = {}
        if compared is not None:
            self._compared(ins, *compared)
        if opcode.startswith("s_cmp") or opcode in scalar.LOGIC_WRITES_SCC:
            self.scc_event = None if opcode.startswith("s_cmp") else self._left_in_scc(ins)

    def _left_in_scc(self, ins: WaveInstruction) -> Callable[[int], IntegerComparison] | None:
        """None for masks of lanes: these follow from comparisons."""
        if ins.opcode.endswith("_b64") or ins.opcode.endswith("_i64"):
            return None
        if ins.opcode.startswith("s_bitcmp"):
            (value, _), (bit, _) = (self.registers.fetch(each) for each in ins.operands)
            if value is None or bit is None or bit.size > 1:
                return None
            most = 2 << (int(bit.flat[0]) & 31)
            left, right = value.astype(np.int64) % most, np.full((1, 1), most // 2)
            return lambda place: IntegerComparison(place, left, right, "GE", 0, most - 1)
        value, _ = self.registers.fetch(ins.operands[0])
        if value is None:
            return None
        whole, zero = value.astype(np.int64), np.zeros((1, 1), dtype=np.int64)
        return lambda place: IntegerComparison(place, whole, zero, "NE", 0, 2**32 - 1)

    def _compared(self, ins: WaveInstruction, left: Value, right: Value) -> None:
        _, kind, type_ = ins.opcode.split("_")[-3:]
        least, most = _RANGES.get(type_, (-_FAR, _FAR))
        self.memory.events.append(IntegerComparison(ins.place, left[0], right[0], _KINDS[kind], least, most))

    def _forget(self, ins: WaveInstruction) -> None:
        opcode, operands = ins.opcode, ins.operands
        if opcode.startswith(_NO_RESULT) or not operands:
            return
        self.registers.forget(operands[0])
        if opcode in vector.WRITES_SECOND or opcode.startswith(_SWAPS):
            self.registers.forget(operands[1])
        if opcode.startswith("v_cmpx") or "saveexec" in opcode:
            raise NotCounted(f"{opcode} at {ins.shown_place}: what it leaves in EXEC is not computed")
        if opcode.startswith("s_"):
            self.registers.write_scc((None, None))

    # branches

    def _branch(self, ins: WaveInstruction, fragment: Fragment, fragments: list[Fragment]) -> None:
        mask, sure = fragment.mask, fragment.sure
        condition, known = self._condition(ins)
        nobody = np.zeros_like(mask)
        if condition is None:
            self._fork(ins, mask, nobody, nobody, fragments, sure)
            return
        taken, other = mask & condition, mask & ~condition
        if known is not None and (mask & ~known).any():
            self._fork(ins, mask & ~known, taken & known, other & known, fragments, sure)
            return
        self._part(ins, taken, other, fragments, sure)

    def _condition(self, ins: WaveInstruction) -> Value:
        kind = ins.opcode.removeprefix("s_cbranch_")
        match kind:
            case "scc0" | "scc1":
                self._note_scc(ins)
                value = self.registers.scc
            case "execz" | "execnz":
                value = Ternary.of(self.registers.exec).any_lane()
            case "vccz" | "vccnz":
                value = Ternary.of(self.registers.mask(VCC)).any_lane()
            case _:
                return (TRUE, None) if ins.target is None or ins.opcode == "s_branch" else (None, None)
        if kind in ("scc0", "execz", "vccz") and value[0] is not None:
            return ~value[0], value[1]
        return value

    def _note_scc(self, ins: WaveInstruction) -> None:
        """A branch on what is no comparison compares, too."""
        if self.scc_event is not None and self.repeater.recording:
            self.memory.events.append(self.scc_event(ins.place))
