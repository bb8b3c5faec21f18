"""Which registers an instruction reads and writes, as far as its effect on addresses and branches goes. Pure.

Bits of an int stand for registers, and for words of local memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from irdiff.backends.nvidia.execution.integer import COMPUTED
from irdiff.ir.sass.destinations import written
from irdiff.ir.sass.instructions import ZERO, InstructionForm, Operand, SassInstruction
from irdiff.ir.sass.opcodes import BRANCHES, GLOBAL, LOCAL, MATRIX_FROM_SHARED, MEMORY
from irdiff.ir.sass.tensor_memory import TENSOR_MATRIX, TENSOR_MEMORY

_FIRST_BIT = {"R": 0, "UR": 256, "P": 512, "UP": 520}
_FLAGS = 0x7F
_LOCAL_BIT = 530
_MOST_LOCAL_WORDS = 4096
EVERYTHING = (1 << (_LOCAL_BIT + _MOST_LOCAL_WORDS + 1)) - 1
LEADS_ANYWHERE = frozenset({"RET", "BRX", "BRXU", "JMP", "JMX"})
"""Behind these, every register may be needed."""
_PAIRS = frozenset({"WIDE", "HI", "64", "U64", "S64"})
_WORDS = {"64": 2, "128": 4}
_COUNTED = (
    BRANCHES | MEMORY | MATRIX_FROM_SHARED | TENSOR_MATRIX | TENSOR_MEMORY | {"BAR", "SYNCS", "UTMASTG"}
)
_MOVES_LANES = frozenset({"R2UR", "VOTE", "VOTEU", "SHFL"})


@dataclass(frozen=True, slots=True)
class RegisterUse:
    writes: int
    """Bits of registers that it may change."""
    kills: int
    """Bits of registers that it certainly changes."""
    reads: int
    """Bits of registers that the written values depend on."""
    decides: int
    """Registers that decide where it leads, which lanes execute it, or which addresses it accesses."""
    counts: bool
    """It must be looked at even if nothing that it writes is needed."""


def of_function(code: Sequence[SassInstruction]) -> list[RegisterUse]:
    local = [
        operand for ins in code if ins.opcode in LOCAL for operand in ins.operands if operand.kind == "mem"
    ]
    one_base = len({operand.registers for operand in local}) <= 1
    return [_with_local(ins, one_base) if ins.opcode in LOCAL else of_form(ins.form) for ins in code]


def _with_local(ins: SassInstruction, one_base: bool) -> RegisterUse:
    """Words of local memory are told apart where all accesses have the same base: spills."""
    use = of_form(ins.form)
    address = next(operand for operand in ins.operands if operand.kind == "mem")
    first, words = address.number // 4, _words(ins.modifiers)
    if one_base and 0 <= first <= _MOST_LOCAL_WORDS - words:
        bits = (1 << words) - 1 << (_LOCAL_BIT + first)
    else:
        bits = EVERYTHING >> _LOCAL_BIT << _LOCAL_BIT
    if ins.opcode == "LDL":
        return RegisterUse(use.writes, use.kills, bits, use.decides, True)
    return RegisterUse(bits, 0, use.reads, use.decides, True)


@lru_cache(maxsize=1 << 17)
def of_form(form: InstructionForm) -> RegisterUse:
    guard = 0 if form.predicate is None else _bits(form.predicate)
    destinations = _destinations(form)
    writes = 0
    for operand in destinations:
        writes |= _bits(operand)
    kills = writes if form.predicate is None else 0
    if form.opcode in MEMORY:
        return _of_access(form, guard, writes, kills)
    decides = 0
    if form.opcode in _COUNTED:
        decides = guard | _deciding(form)
    return RegisterUse(writes, kills, guard | _sources(form), decides, form.opcode in _COUNTED)


def _of_access(form: InstructionForm, guard: int, writes: int, kills: int) -> RegisterUse:
    decides, reads = guard, 0
    wide = form.opcode in GLOBAL
    for operand in form.operands:
        if operand.kind == "mem":
            for kind, number, pair in operand.registers:
                is_pair = pair or (wide and kind == "R")
                decides |= (3 if is_pair else 1) << (_FIRST_BIT[kind] + number)
        elif operand.kind in ("P", "UP"):
            decides |= _bits(operand)
    match form.opcode:
        case "STS" | "STL":
            source = form.operands[1]
            if source.number != ZERO:
                reads = (1 << _words(form.modifiers)) - 1 << (_FIRST_BIT["R"] + source.number)
        case _:
            pass
    return RegisterUse(writes, kills, reads, decides, True)


def _words(modifiers: Sequence[str]) -> int:
    return next((_WORDS[word] for word in modifiers if word in _WORDS), 1)


def _bits(operand: Operand, count: int = 1) -> int:
    first = _FIRST_BIT.get(operand.kind)
    if first is None or operand.number == ZERO:
        return 0
    return (1 << count) - 1 << (first + operand.number)


def _destinations(form: InstructionForm) -> list[Operand]:
    if form.opcode not in COMPUTED:
        return written(form)
    operands = list(form.operands)
    if form.opcode == "R2P":
        return [Operand("P", bit) for bit in range(7) if operands[2].number >> bit & 1]
    targets = [operands.pop(0)]
    if targets[0].kind in ("P", "UP") and form.opcode in ("LOP3", "ULOP3"):
        targets.append(operands.pop(0))
    if form.opcode not in ("SEL", "USEL", "FSEL"):
        while (
            operands
            and operands[0].kind in ("P", "UP")
            and (targets[0].kind not in ("P", "UP") or len(targets) < 2)
        ):
            targets.append(operands.pop(0))
    words = _words(form.modifiers)
    if "WIDE" in form.modifiers or (form.opcode == "CS2R" and "32" not in form.modifiers):
        words = 2
    first = next(target for target in targets if target.kind in ("R", "UR")) if words > 1 else None
    if first is not None and first.number != ZERO:
        targets += [Operand(first.kind, first.number + n) for n in range(1, words)]
    return targets


def _sources(form: InstructionForm) -> int:
    """Nothing, where the result is unknown whatever is read."""
    if form.opcode not in COMPUTED and form.opcode not in _MOVES_LANES:
        return 0
    count = 2 if _PAIRS & set(form.modifiers) else 1
    bits = 0
    if form.opcode == "P2R":
        bits = (form.operands[-1].number & _FLAGS) << _FIRST_BIT["P"]
    for operand in form.operands:
        bits |= _bits(operand, count if operand.kind in ("R", "UR") else 1)
    return bits


def _deciding(form: InstructionForm) -> int:
    bits = 0
    if form.opcode in MATRIX_FROM_SHARED or form.opcode in TENSOR_MEMORY:
        return 0
    if form.opcode in TENSOR_MATRIX:
        shape = [operand.registers for operand in form.operands if operand.text == "idesc"]
        return sum(1 << (_FIRST_BIT[kind] + number) for rows in shape for kind, number, _ in rows)
    for operand in form.operands:
        bits |= _bits(operand, 2 if operand.kind in ("R", "UR") else 1)
        if form.opcode == "UTMASTG":
            for kind, number, _ in operand.registers:
                bits |= 3 << (_FIRST_BIT[kind] + number)
    return bits
