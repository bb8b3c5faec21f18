"""Which registers an instruction writes, as its operands say. Pure."""

from __future__ import annotations

import functools

from irdiff.ir.sass.instructions import ZERO, InstructionForm, Operand, SassInstruction
from irdiff.ir.sass.tensor_memory import loaded_registers


def next_register(operand: Operand) -> Operand:
    """The upper register of a pair."""
    if operand.number == ZERO:
        return operand
    return Operand(operand.kind, operand.number + 1)


def is_flag(operand: Operand) -> bool:
    return operand.kind in ("P", "UP")


def split(ins: SassInstruction) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    """Destination, predicates that are written, sources, predicates that are read."""
    return _split(ins.form)


@functools.lru_cache(maxsize=1 << 14)
def _split(ins: InstructionForm) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    rest = list(ins.operands[1:])
    outs: list[Operand] = []
    while rest and is_flag(rest[0]):
        outs.append(rest.pop(0))
    sources = [operand for operand in rest if not is_flag(operand)]
    return ins.operands[0], outs, sources, [operand for operand in rest if is_flag(operand)]


_WIDTHS = {"64": 2, "128": 4, "U8": 1, "S8": 1, "U16": 1, "S16": 1}


NO_RESULT = frozenset(
    [
        "ST",
        "STG",
        "STS",
        "STL",
        "STSM",
        "REDG",
        "RED",
        "REDS",
        "LDGSTS",
        "UTMALDG",
        "UTMASTG",
        "UTMAPF",
        "UTMAREDG",
        "UTMACMDFLUSH",
        "UTMACCTL",
        "UBLKCP",
        "UBLKPF",
        "BAR",
        "BRA",
        "BRX",
        "EXIT",
        "BSSY",
        "BSYNC",
        "BREAK",
        "CALL",
        "RET",
        "JMP",
        "NOP",
        "MEMBAR",
        "ERRBAR",
        "CGAERRBAR",
        "FENCE",
        "CCTL",
        "CCTLL",
        "DEPBAR",
        "LDGDEPBAR",
        "WARPSYNC",
        "WARPGROUP",
        "YIELD",
        "NANOSLEEP",
        "BMOV",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "ACQBULK",
        "ARRIVES",
        "BPT",
        "KILL",
        "ENDCOLLECTIVE",
        "PREEXIT",
        "STAS",
        "UTCHMMA",
        "UTCQMMA",
        "UTCIMMA",
        "UTCOMMA",
        "UTCBAR",
        "UTCCP",
        "STTM",
        "UVIRTCOUNT",
        "UVIADD_",
    ]
)


@functools.lru_cache(maxsize=1 << 14)
def _count(ins: InstructionForm) -> int:
    """Registers of the first destination."""
    words = ins.modifiers
    if ins.opcode in ("HGMMA", "QGMMA", "IGMMA", "BGMMA"):
        shape = next(word for word in words if "x" in word)
        columns = int(shape.split("x")[1])
        half = "F32" not in words[:2] and ins.opcode != "IGMMA"
        return max(1, columns // (4 if half else 2))
    if ins.opcode in ("HMMA", "QMMA", "IMMA", "BMMA", "OMMA"):
        return 2 if "F16" in words[1:2] else 4
    if ins.opcode == "DMMA":
        return 8
    if ins.opcode == "LDTM":
        return loaded_registers(ins)
    if ins.opcode in ("FADD2", "FMUL2", "FFMA2"):
        return 2
    if ins.opcode == "LDSM":
        return {"M88": 1, "MT88": 1}.get(words[-1], int(words[-1]) if words[-1].isdigit() else 4)
    if ins.opcode in ("DADD", "DMUL", "DFMA", "DMNMX") or (ins.opcode == "I2F" and "F64" in words):
        return 2
    if ins.opcode in ("F2F", "F2I", "FRND", "I2F") and any("64" in word for word in words):
        return 2
    if any("x4" in word for word in words if word.startswith(("F32", "F16", "BF16"))):
        return 4
    if any("x2" in word for word in words if word.startswith("F32")):
        return 2
    return max([_WIDTHS.get(word, 1) for word in words] + [1])


_TWO_FLAGS = frozenset({"FSETP", "DSETP", "HSETP2", "ISETP", "UISETP", "PLOP3", "UPLOP3"})


_FLAG_THEN_VALUE = frozenset({
    "SHFL", "ATOM", "ATOMG", "ATOMS", "MATCH", "LDG", "LD", "R2UR", "UTCATOMSWS",
})  # fmt: skip


@functools.lru_cache(maxsize=1 << 14)
def _written(ins: InstructionForm) -> tuple[Operand, ...]:
    if ins.opcode in NO_RESULT or not ins.operands:
        return ()
    if (
        ins.opcode in _TWO_FLAGS
        or (ins.opcode in _FLAG_THEN_VALUE and is_flag(ins.operands[0]))
        or (ins.opcode in ("ELECT", "VOTE", "VOTEU") and len(ins.operands) > 2)
    ):
        targets = ins.operands[:2]
    else:
        targets = ins.operands[:1]
    destinations: list[Operand] = []
    for target in targets:
        if target.number == ZERO or target.kind not in ("R", "UR", "P", "UP"):
            continue
        count = 1 if is_flag(target) else _count(ins)
        destinations += [Operand(target.kind, target.number + n) for n in range(count)]
    return tuple(destinations)


def written(ins: SassInstruction | InstructionForm) -> list[Operand]:
    return list(_written(ins.form if isinstance(ins, SassInstruction) else ins))
