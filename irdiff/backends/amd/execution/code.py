"""The instructions of a kernel with their places, and where each leads. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.errors import NormalizeError
from irdiff.ir.amdgcn.machine_code import MachineKernel, MachineLine, MachineOperand
from irdiff.ir.blocks import STRAIGHT_ON, Leads

_OF_LINES = (".Ltmp", ".Lfunc")
"""Labels of line tables."""
_ENDS = frozenset({"s_endpgm", "s_setpc_b64", "s_swappc_b64", "s_trap"})


@dataclass(frozen=True, slots=True)
class WaveForm:
    leads: Leads


@dataclass(frozen=True, slots=True, eq=False)
class WaveInstruction:
    place: int
    target: int | None
    form: WaveForm
    line: MachineLine
    shown_place: str
    """The label before it, and how many instructions behind: `.LBB0_3+7`."""

    @property
    def opcode(self) -> str:
        return self.line.opcode

    @property
    def operands(self) -> tuple[MachineOperand, ...]:
        return self.line.operands

    @property
    def modifiers(self) -> Mapping[str, str]:
        return self.line.modifiers


def instructions(kernel: MachineKernel) -> tuple[WaveInstruction, ...]:
    """Raises NormalizeError for a branch to a label that does not stand in the kernel."""
    labels = {place: label for label, place in kernel.places.items() if not label.startswith(_OF_LINES)}
    listed: list[WaveInstruction] = []
    begin, label = 0, kernel.name
    for place, line in enumerate(kernel.lines):
        if place in labels:
            begin, label = place, labels[place]
        target = None
        if line.label:
            target = kernel.places.get(line.label)
            if target is None:
                raise NormalizeError(f"{line.text} leads out of {kernel.name}")
        shown = f"{label}+{place - begin}" if place != begin else label
        listed.append(WaveInstruction(place, target, _form(line.opcode), line, shown))
    return tuple(listed)


_JUMP = WaveForm(Leads(is_branch=True, to_target=True, on=False, ends=False))
_BRANCH = WaveForm(Leads(is_branch=True, to_target=True, on=True, ends=False))
_END = WaveForm(Leads(is_branch=True, to_target=False, on=False, ends=True))
_ON = WaveForm(STRAIGHT_ON)


def _form(opcode: str) -> WaveForm:
    if opcode == "s_branch":
        return _JUMP
    if opcode.startswith("s_cbranch"):
        return _BRANCH
    return _END if opcode in _ENDS else _ON
